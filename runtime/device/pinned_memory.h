// Memory of the host for what a device is to be fed: pinned, where it has such memory, so that it is copied while the host and the device do something else.
#pragma once

#include <cstddef>
#include <string_view>

#include "runtime/device/host_memory.h"

namespace hone {

class Device;

class PinnedMemory {
 public:
  PinnedMemory() = default;
  /// `device` outlives it; null: the host, whose memory is as good. Throws Error kMemory.
  PinnedMemory(Device* device, std::size_t bytes, std::string_view what);
  ~PinnedMemory();
  PinnedMemory(PinnedMemory&& other) noexcept { swap(other); }
  PinnedMemory& operator=(PinnedMemory&& other) noexcept {
    PinnedMemory moved(std::move(other));
    swap(moved);
    return *this;
  }

  /// Begins at a multiple of kTensorAlignment.
  std::byte* data() const { return pinned_ != nullptr ? pinned_ : plain_.data(); }

 private:
  void swap(PinnedMemory& other) noexcept {
    std::swap(device_, other.device_);
    std::swap(pinned_, other.pinned_);
    std::swap(plain_, other.plain_);
  }

  Device* device_ = nullptr;
  std::byte* pinned_ = nullptr;
  HostMemory plain_;
};

}  // namespace hone
