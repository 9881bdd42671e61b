#include "runtime/device/host_memory.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <string>

#include "base/diag.h"
#include "base/hash.h"
#include "base/huge_pages.h"
#include "base/text.h"

namespace hone {
namespace {

constexpr std::size_t kHugePage = 2 << 20;

/// The number in a control group's file; "max", or no such file, is no limit.
std::uint64_t limit_in(const char* path) {
  std::uint64_t limit = 0;
  std::ifstream file(path);
  return file >> limit ? limit : UINT64_MAX;
}

std::uint64_t find_host_memory() {
  const std::uint64_t physical = static_cast<std::uint64_t>(sysconf(_SC_PHYS_PAGES)) * static_cast<std::uint64_t>(sysconf(_SC_PAGE_SIZE));
  return std::min({physical, limit_in("/sys/fs/cgroup/memory.max"), limit_in("/sys/fs/cgroup/memory/memory.limit_in_bytes")});
}

}  // namespace

std::uint64_t host_memory_bytes() {
  static const std::uint64_t bytes = find_host_memory();
  return bytes;
}

std::uint64_t available_memory_bytes() {
  std::ifstream file("/proc/meminfo");
  std::string word;
  std::uint64_t kilobytes = 0;
  while (file >> word)
    if (word == "MemAvailable:" and file >> kilobytes) return std::min(kilobytes * 1024, host_memory_bytes());
  return host_memory_bytes();
}

std::uint64_t machine_number() {
  std::string name;
  if (std::ifstream file("/proc/sys/kernel/random/boot_id"); not std::getline(file, name)) {
    name.resize(256);
    (void)gethostname(name.data(), name.size());
  }
  return hash_of(name);
}

HostMemory::HostMemory(std::size_t bytes, std::string_view what, std::size_t alignment) : bytes_(bytes) {
  // Linux promises more than it has and kills the process later, so what cannot fit is refused here.
  const std::uint64_t available = host_memory_bytes();
  if (bytes <= available) {
    if (bytes >= kLargeMemory) alignment = std::max(alignment, kHugePage);
    const std::size_t rounded = round_up(std::max<std::size_t>(bytes, 1), alignment, what);
    data_ = static_cast<std::byte*>(std::aligned_alloc(alignment, rounded));
    if (data_ != nullptr) wish_for_huge_pages(data_, rounded);
  }
  if (data_ == nullptr)
    throw Error(Code::kMemory, fmt::format("{} takes {}, but this machine has {}", what, human_bytes(bytes), human_bytes(available)), {},
                {"use a smaller batch, or compile with --memory-limit"});
}

void HostMemory::release() noexcept { std::free(data_); }

}  // namespace hone
