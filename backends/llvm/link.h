// From a module's object file to an ELF shared object, by lld in this process.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

namespace hone {

/// Links one relocatable object into a shared object that exports its global functions and leaves undefined symbols to dlopen.
/// Nothing is written to disk. May be called from any thread; one link runs at a time.
std::vector<std::byte> link_shared_object(std::span<const std::byte> object);

}  // namespace hone
