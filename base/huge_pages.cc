#include "base/huge_pages.h"

#include <sys/mman.h>

#include <cstdint>

namespace hone {

void wish_for_huge_pages(void* memory, std::size_t bytes) {
  constexpr std::size_t kPage = 4096;
  if (bytes < kLargeMemory) return;
  const std::size_t skipped = (kPage - reinterpret_cast<std::uintptr_t>(memory) % kPage) % kPage;
  madvise(static_cast<std::byte*>(memory) + skipped, bytes - skipped, MADV_HUGEPAGE);
}

}  // namespace hone
