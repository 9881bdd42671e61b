#include "runtime/device_work.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "base/check.h"

namespace hone {

namespace {

constexpr TraceSpan kFeed = {.phase = "feed"}, kFeedAhead = {.phase = "feed ahead"}, kToHost = {.phase = "copy to the host"}, kFromHost = {.phase = "copy from the host"};

}  // namespace

DeviceWork::DeviceWork(std::unique_ptr<Device> device) : device_(std::move(device)), compute_(device_->make_stream()), ahead_(*device_) {}

void DeviceWork::run(const BoundKernel& kernel) {
  if (kernel.on_device == nullptr) {  // a copy
    const auto begin = static_cast<std::size_t>(kernel.begin);
    return copy(static_cast<std::byte*>(kernel.arguments[1]) + begin, static_cast<const std::byte*>(kernel.arguments[0]) + begin, static_cast<std::size_t>(kernel.range));
  }
  device_->launch(compute_, {.kernel = kernel.on_device,
                             .buffers = kernel.arguments,
                             .bytes = kernel.bytes,
                             .skipped = kernel.skipped,
                             .read_only = kernel.read_only,
                             .sizes = kernel.sizes,
                             .begin = kernel.begin,
                             .end = kernel.begin + kernel.range});
}

void DeviceWork::copy(std::byte* to, const std::byte* from, std::size_t bytes) {
  if (bytes > 0 and to != from) device_->copy(compute_, to, from, bytes);
}

void DeviceWork::connect(std::unique_ptr<DeviceCommunicator> communicator) {
  exchange_ = device_->make_stream();
  computed_ = device_->make_event();
  communicator_ = std::move(communicator);
}

/// What was captured before has no events in it, or those of another trace.
void DeviceWork::trace(Trace* trace, const std::string& process) {
  if (timeline_ != nullptr) timeline_->flush();
  timeline_.reset();
  note_memory_moved();
  if (trace == nullptr) return;
  timeline_ = std::make_unique<DeviceTimeline>(*device_);
  const auto show = [&](Stream stream, const char* what) { timeline_->show(stream, trace->add_track(process, fmt::format("{}, {}", device_->name(), what))); };
  show(compute_, "computing");
  show(ahead_.stream(), "batches to come");
  if (communicator_ != nullptr) show(exchange_, "exchanges");
  timeline_->set_clock(compute_);
}

void DeviceWork::begin_exchange(const plan::Step& step, plan::AllReduceStep::Operation operation, std::span<const ExchangedTensor> tensors) {
  device_->record(computed_, compute_);
  device_->wait(exchange_, computed_);
  timed(exchange_, {.step = &step}, [&] {
    switch (operation) {
      case plan::AllReduceStep::Operation::kAllReduce: return communicator_->all_reduce(exchange_, tensors);
      case plan::AllReduceStep::Operation::kReduceScatter: return communicator_->reduce_scatter(exchange_, tensors);
      case plan::AllReduceStep::Operation::kAllGather: return communicator_->all_gather(exchange_, tensors);
    }
  });
  if (begun_ == exchanged_.size()) exchanged_.push_back(device_->make_event());
  device_->record(exchanged_[begun_++], exchange_);
}

void DeviceWork::wait_for_exchanges(std::size_t count) {
  if (const std::size_t last = std::min(count, begun_); last > 0) device_->wait(compute_, exchanged_[last - 1]);
}

void DeviceWork::end_exchanges() {
  wait_for_exchanges(begun_);
  begun_ = 0;
}

void DeviceWork::synchronize(Stream stream) {
  if (communicator_ != nullptr) communicator_->synchronize(stream);
  else device_->synchronize(stream);
  if (timeline_ != nullptr) timeline_->flush();
}

void DeviceWork::begin_run() {
  if (timeline_ != nullptr) timeline_->set_clock(compute_);
}

void DeviceWork::feed_ahead(NamedFeeds feeds) {
  timed(ahead_.stream(), kFeedAhead, [&] { ahead_.begin(feeds); });
}

void DeviceWork::feed(std::byte* to, const TensorView& from, std::size_t bytes) {
  if (bytes == 0) return;
  const std::byte* const there = ahead_.find(from, bytes, compute_);
  timed(compute_, kFeed, [&] { there == nullptr ? device_->copy_in(compute_, to, from.data, bytes) : device_->copy(compute_, to, there, bytes); });
}

void DeviceWork::read(void* to, const std::byte* from, std::size_t bytes) {
  timed(compute_, kToHost, [&] { device_->copy_out(compute_, to, from, bytes); });
  synchronize(compute_);
}

std::vector<std::byte> DeviceWork::read(const std::byte* from, std::size_t bytes) {
  std::vector<std::byte> content(bytes);
  read(content.data(), from, bytes);
  return content;
}

void DeviceWork::write(std::byte* to, const void* from, std::size_t bytes) {
  timed(compute_, kFromHost, [&] { device_->copy_in(compute_, to, from, bytes); });
  synchronize(compute_);
}

void DeviceWork::finish() {
  synchronize(compute_);
  device_->synchronize(ahead_.stream());
  if (timeline_ != nullptr) timeline_->flush();
}

/// What computes may wait for other replicas.
void DeviceWork::abandon_feeds() noexcept {
  try {
    device_->synchronize(ahead_.stream());
  } catch (...) {  // the run's own failure is told
  }
}

void DeviceWork::begin_capture() {
  device_->begin_capture(compute_);
  if (timeline_ != nullptr) timeline_->begin_capture();
}

CapturedSteps::CapturedSteps(DeviceWork& work) : work_(work), graph_(work.device_->end_capture(work.compute_)) {
  if (work_.timeline_ != nullptr) spans_ = work_.timeline_->end_capture();
}

CapturedSteps::~CapturedSteps() {
  work_.device_->forget(graph_);
  if (work_.timeline_ != nullptr) work_.timeline_->give_back(spans_);
}

void CapturedSteps::replay() {
  work_.device_->replay(work_.compute_, graph_);
  if (work_.timeline_ != nullptr) work_.timeline_->replayed(spans_);
}

const std::byte* DeviceWork::numbers(std::int64_t count) {
  if (count > number_count_) {
    const std::int64_t more = std::max<std::int64_t>({count, 2 * number_count_, 64});
    std::vector<std::int64_t> values(static_cast<std::size_t>(more));
    std::iota(values.begin(), values.end(), 0);
    number_tables_.emplace_back(*device_, values.size() * sizeof(std::int64_t), "the numbers of iterations");
    write(number_tables_.back().data(), values.data(), number_tables_.back().size());
    number_count_ = more;
  }
  return number_tables_.empty() ? nullptr : number_tables_.back().data();
}

DeviceWork::Word::Word(DeviceWork& work) : work_(work) {
  if (work.words_taken_ == work.words_.size()) work.words_.emplace_back(*work.device_, sizeof(std::int64_t), "a loop's condition");
  data_ = work.words_[work.words_taken_++].data();
}

WorkMemory::WorkMemory(std::size_t bytes, std::string_view what, DeviceWork* device) {
  if (device == nullptr) on_host_ = HostMemory(bytes, what);
  else on_device_ = DeviceMemory(device->device(), bytes, what);
}

}  // namespace hone
