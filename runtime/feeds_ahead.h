// FeedsAhead: batches on their way to a device while it computes with those before them. There is place for two: the one that is next, and the one that comes in meanwhile.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "runtime/device/device.h"
#include "runtime/feeds.h"

namespace hone {

class FeedsAhead {
 public:
  /// They come in a stream of their own. The device outlives it.
  explicit FeedsAhead(Device& device);

  Stream stream() const { return stream_; }
  /// Begins to bring in those that have a version, in place of those of two calls before, which no work uses any more. Where the device has no memory for them nothing is fed ahead from then on.
  void begin(NamedFeeds feeds);
  /// Where the view's content lies on the device, for the work that is put into `user` from now on; null if it is not there.
  const std::byte* find(const TensorView& view, std::size_t bytes, Stream user);

 private:
  struct Content {
    const void* data = nullptr;
    std::uint64_t version = 0;
    std::size_t bytes = 0;
    std::size_t offset = 0;
  };
  struct Batch {
    DeviceMemory memory;
    std::vector<Content> contents;
    Event arrived = {};
    bool is_waited_for = false;
  };
  bool make_room(Batch& batch, std::size_t bytes);

  Device& device_;
  const Stream stream_;
  std::array<Batch, 2> batches_;
  std::size_t turn_ = 0;  // of what comes next
  bool is_off_ = false;
};

}  // namespace hone
