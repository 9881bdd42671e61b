#include "runtime/device/pinned_memory.h"

#include "runtime/device/device.h"

namespace hone {

PinnedMemory::PinnedMemory(Device* device, std::size_t bytes, std::string_view what) : device_(device), pinned_(device == nullptr ? nullptr : device->allocate_pinned(bytes)) {
  if (pinned_ == nullptr) plain_ = HostMemory(bytes, what);
}

PinnedMemory::~PinnedMemory() {
  if (pinned_ != nullptr) device_->release_pinned(pinned_);
}

}  // namespace hone
