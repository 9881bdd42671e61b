// Text as the bytes of a file.
#pragma once

#include <cstddef>
#include <span>
#include <string>

namespace hone::test {

inline std::span<const std::byte> bytes_of(const std::string& text) { return std::as_bytes(std::span(text)); }

}  // namespace hone::test
