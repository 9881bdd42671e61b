#include "runtime/device/device.h"

#include <algorithm>

#include "base/diag.h"
#include "base/text.h"

namespace hone {

std::uint64_t Device::available_memory() const {
  const std::uint64_t free = free_memory();
  return limit_ == 0 ? free : std::min(free, limit_ - std::min(taken_, limit_));
}

std::byte* Device::take(std::size_t bytes, std::string_view what) {
  if (limit_ > 0 and bytes > limit_ - std::min(taken_, limit_))
    throw Error(Code::kMemory, fmt::format("{} takes {}; of the {} that may be taken on {} {} are", what, human_bytes(bytes), human_bytes(limit_), name(), human_bytes(taken_)), {},
                {"a larger --memory-limit, if the device has more", "take a smaller --batch, or --batch auto for the largest that fits", "compile with --memory-limit, so that activations are made again in the backward pass"});
  std::byte* memory = allocate(bytes, what);
  taken_ += bytes;
  return memory;
}

void Device::give_back(std::byte* memory, std::size_t bytes) noexcept {
  release(memory);
  taken_ -= std::min<std::uint64_t>(bytes, taken_);
}

}  // namespace hone
