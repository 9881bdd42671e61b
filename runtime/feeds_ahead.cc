#include "runtime/feeds_ahead.h"

#include <algorithm>

#include "base/checked.h"
#include "base/diag.h"

namespace hone {

FeedsAhead::FeedsAhead(Device& device) : device_(device), stream_(device.make_stream()) {
  for (Batch& batch : batches_) batch.arrived = device.make_event();
}

bool FeedsAhead::make_room(Batch& batch, std::size_t bytes) {
  if (batch.memory.size() >= bytes) return true;
  device_.synchronize(stream_);
  batch.memory = DeviceMemory();  // first, so that there are never two
  try {
    batch.memory = DeviceMemory(device_, bytes, "the batch after the one in use");
  } catch (const Error& error) {
    if (error.diags().front().code != Code::kMemory) throw;
    is_off_ = true;
  }
  return not is_off_;
}

void FeedsAhead::begin(NamedFeeds feeds) {
  if (is_off_) return;
  std::vector<Content> contents;
  std::size_t total = 0;
  for (const auto& [name, view] : feeds) {
    const std::size_t bytes = view.version == 0 ? 0 : checked_multiply(checked_cast<std::size_t>(checked_element_count(view.shape), "a feed"), size_of(view.dtype), "a feed");
    if (bytes == 0) continue;
    contents.push_back({.data = view.data, .version = view.version, .bytes = bytes, .offset = total});
    total = checked_add(total, round_up(bytes, kTensorAlignment, "the batch after the one in use"), "the batch after the one in use");
  }
  Batch& batch = batches_[turn_];
  turn_ = 1 - turn_;
  batch.contents.clear();
  if (contents.empty() or not make_room(batch, total)) return;
  for (const Content& content : contents) device_.copy_in(stream_, batch.memory.data() + content.offset, content.data, content.bytes);
  device_.record(batch.arrived, stream_);
  batch.is_waited_for = false;
  batch.contents = std::move(contents);
}

const std::byte* FeedsAhead::find(const TensorView& view, std::size_t bytes, Stream user) {
  if (view.version == 0) return nullptr;
  for (Batch& batch : batches_) {
    const auto found = std::ranges::find_if(batch.contents, [&](const Content& content) { return content.data == view.data and content.version == view.version and content.bytes == bytes; });
    if (found == batch.contents.end()) continue;
    if (not batch.is_waited_for) device_.wait(user, batch.arrived);
    batch.is_waited_for = true;
    return batch.memory.data() + found->offset;
  }
  return nullptr;
}

}  // namespace hone
