#include "runtime/device_work.h"

#include <algorithm>
#include <numeric>

#include "base/check.h"

namespace hone {

DeviceWork::DeviceWork(std::unique_ptr<Device> device) : device_(std::move(device)), compute_(device_->make_stream()), copies_(device_->make_stream()), fed_(device_->make_event()) {}

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

void DeviceWork::begin_exchange(plan::AllReduceStep::Operation operation, std::span<const ExchangedTensor> tensors) {
  device_->record(computed_, compute_);
  device_->wait(exchange_, computed_);
  switch (operation) {
    case plan::AllReduceStep::Operation::kAllReduce: communicator_->all_reduce(exchange_, tensors); break;
    case plan::AllReduceStep::Operation::kReduceScatter: communicator_->reduce_scatter(exchange_, tensors); break;
    case plan::AllReduceStep::Operation::kAllGather: communicator_->all_gather(exchange_, tensors); break;
  }
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
}

void DeviceWork::feed(std::byte* to, const void* from, std::size_t bytes) {
  if (bytes > 0) device_->copy_in(copies_, to, from, bytes);
}

void DeviceWork::end_of_feeds() {
  device_->record(fed_, copies_);
  device_->wait(compute_, fed_);
}

void DeviceWork::read(void* to, const std::byte* from, std::size_t bytes) {
  device_->copy_out(compute_, to, from, bytes);
  synchronize(compute_);
}

std::vector<std::byte> DeviceWork::read(const std::byte* from, std::size_t bytes) {
  std::vector<std::byte> content(bytes);
  read(content.data(), from, bytes);
  return content;
}

void DeviceWork::write(std::byte* to, const void* from, std::size_t bytes) {
  device_->copy_in(compute_, to, from, bytes);
  synchronize(compute_);
}

void DeviceWork::finish() {
  device_->synchronize(copies_);
  synchronize(compute_);
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
