// Memory in large pages, where the system has them.
#pragma once

#include <cstddef>

namespace hone {

/// Of so many bytes on.
inline constexpr std::size_t kLargeMemory = std::size_t{4} << 20;

/// What lies anywhere in large memory is then found without a walk through page tables each time. Only a wish: small pages work too, and less memory is left as it is.
void wish_for_huge_pages(void* memory, std::size_t bytes);

}  // namespace hone
