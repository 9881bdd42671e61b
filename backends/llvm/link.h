// From object files to an ELF shared object, by lld in this process.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

namespace hone {

/// Links relocatable objects (their bytes) into a shared object that exports their global functions and leaves undefined symbols to dlopen.
/// Nothing is written to disk. May be called from any thread; one link runs at a time.
std::vector<std::byte> link_shared_object(std::span<const std::string> objects);

}  // namespace hone
