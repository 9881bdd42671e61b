// How an executor runs on a device: feeds go there, kernels are put into its stream, and what only the host can do comes back in between. A segment without such things is captured when it
// runs for the second time, and then replayed, if the device makes graphs.
#include <algorithm>

#include "base/alignment.h"
#include "base/check.h"
#include "base/diag.h"
#include "runtime/executor.h"

namespace hone {
namespace {

std::size_t aligned(std::size_t bytes) { return round_up(bytes, kTensorAlignment, "device memory"); }

}  // namespace

/// Puts the matched feeds into memory of the device, and lets feeds_ say where.
void Executor::feed_device(const BoundSegment& bound) {
  DeviceWork& device = *state_.device;
  device.begin_run();
  std::vector<std::size_t> bytes;
  std::size_t total = 0;
  for (std::size_t i = 0; i < matched_.size(); ++i) {
    std::size_t count = 1;
    for (const std::int64_t extent : bound.feed_shapes[i]) count *= static_cast<std::size_t>(extent);  // the binding has checked it
    bytes.push_back(count * size_of(entry_.feeds[i].dtype));
    total += aligned(bytes.back());
  }
  reserve_arena(feed_memory_, total, &device);
  std::byte* place = feed_memory_.data();
  for (std::size_t i = 0; i < matched_.size(); ++i) {
    device.feed(place, *matched_[i], bytes[i]);
    feeds_[i] = place;
    place += aligned(bytes[i]);
  }
}

/// All steps of the segment in their order.
void Executor::run_steps_on_device(BoundSegment& bound) {
  DeviceWork& device = *state_.device;
  const auto run_all = [&] {
    for (std::size_t i = 0; i < bound.steps.size(); ++i) execute_shown(bound, i);
    end_exchanges();  // so that they are part of what is captured
  };
  const bool is_body = shared_arena_ == nullptr;
  if (is_body or bound.on_host_between or not device.device().makes_graphs()) return run_all();
  if (bound.captured and bound.last_memory_moved != device.memory_moved()) bound.captured.reset();
  if (not bound.captured) {
    if (bound.last_memory_moved != device.memory_moved()) {  // for one run a graph is not worth making, and the first may still move memory
      run_all();
      bound.last_memory_moved = device.memory_moved();
      return;
    }
    device.begin_capture();
    run_all();
    bound.captured = std::make_unique<CapturedSteps>(device);
  }
  bound.captured->replay();
}

/// On the track of its stream, or the host's, where there is a trace: a kernel and an exchange from device to device show themselves.
void Executor::execute_shown(BoundSegment& bound, std::size_t number) {
  BoundStep& bound_step = bound.steps[number];
  const plan::Step& step = entry_.steps[bound.step_numbers[number]];
  const auto execute_it = [&] { std::visit([this](auto& what) { execute(what); }, bound_step); };
  const bool computes = std::holds_alternative<BoundLibrary>(bound_step) or std::holds_alternative<BoundRegion>(bound_step);
  if (computes) return state_.device->timed(step, execute_it);
  const auto* exchange = std::get_if<BoundExchange>(&bound_step);
  const bool on_host = std::holds_alternative<BoundHost>(bound_step) or (exchange != nullptr and (exchange->collects or not device_exchanges()));
  if (not on_host or state_.tracks.empty()) return execute_it();
  const std::int64_t begin = state_.tracks.front()->now();
  execute_it();
  state_.tracks.front()->add(step, begin);
}

void Executor::execute_on_device(const KernelRun& run) {
  for (const BoundKernel& kernel : run.kernels) state_.device->timed(entry_.steps[kernel.step], [&] { state_.device->run(kernel); });
}

void Executor::execute_on_device(const BoundLibrary& step) {
  if (step.on_device != nullptr) {
    std::vector<const std::byte*> operands;
    std::vector<std::byte*> results;
    for (const std::int64_t operand : step.operands) operands.push_back(operand < 0 ? nullptr : pointer(operand));
    for (const std::uint32_t result : step.results) results.push_back(pointer(result));
    state_.device->call(*step.on_device, operands, results, scratch_);
  }
  for (const BoundKernel& kernel : step.kernels) state_.device->run(kernel);
}

/// Between copies to the host and back.
void Executor::execute_on_device(BoundHost& step) {
  DeviceWork& device = *state_.device;
  std::vector<std::vector<std::byte>> contents;
  const auto bytes_of = [this](std::int64_t buffer) { return current_->buffers[static_cast<std::size_t>(buffer)].bytes; };
  for (std::size_t i = 0; i < step.operands.size(); ++i) {
    const std::int64_t buffer = step.operand_buffers[i];
    contents.push_back(buffer < 0 ? std::vector<std::byte>() : device.read(pointer(buffer), bytes_of(buffer)));
    step.operands[i].data = buffer < 0 ? nullptr : contents.back().data();
  }
  for (std::size_t i = 0; i < step.results.size(); ++i) {
    const std::int64_t buffer = step.result_buffers[i];
    contents.emplace_back(buffer < 0 ? 0 : bytes_of(buffer));
    step.results[i].data = buffer < 0 ? nullptr : contents.back().data();
  }
  step.function->call(step.attributes, step.operands, step.results, step.scratch);
  for (std::size_t i = 0; i < step.results.size(); ++i)
    if (step.result_buffers[i] >= 0) device.write(pointer(step.result_buffers[i]), contents[step.operands.size() + i].data(), contents[step.operands.size() + i].size());
}

/// From device to device; or through the host, whose sums are those of replicas on the host.
void Executor::execute_on_device(BoundExchange& step) {
  DeviceWork& device = *state_.device;
  if (device_exchanges() and not step.collects) {
    for (std::size_t i = 0; i < step.buffers.size(); ++i) step.tensors[i].data = pointer(step.buffers[i]);
    try {
      return device.begin_exchange(entry_.steps[step.step], step.operation, step.tensors);
    } catch (const Error& error) { throw with_note(error, step.name); }
  }
  std::vector<std::vector<std::byte>> contents;
  for (std::size_t i = 0; i < step.buffers.size(); ++i) {
    contents.push_back(device.read(pointer(step.buffers[i]), current_->buffers[step.buffers[i]].bytes));
    step.tensors[i].data = contents.back().data();
  }
  if (step.collects) return state_.collected.add(step.bucket, step.tensors);
  if (state_.collected.is_used() and step.operation != plan::AllReduceStep::Operation::kAllGather) state_.collected.take(step.bucket, step.tensors);
  state_.exchanges.begin(step);
  state_.exchanges.end_begun();
  for (std::size_t i = 0; i < step.buffers.size(); ++i) device.write(pointer(step.buffers[i]), contents[i].data(), contents[i].size());
}

TensorView Executor::read_from_device(const BoundSegment& bound, std::uint32_t buffer, std::vector<std::byte>& content) const {
  const BoundBuffer& read = bound.buffers[buffer];
  content.resize(std::max<std::size_t>(read.bytes, 1));
  if (read.bytes > 0) state_.device->read(content.data(), static_cast<const std::byte*>(pointers_[buffer]), read.bytes);
  return {read.type.dtype, read.type.shape, content.data()};
}

}  // namespace hone
