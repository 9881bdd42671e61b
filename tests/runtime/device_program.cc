#include "tests/runtime/device_program.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <stdexcept>

#include "base/checked.h"
#include "runtime/session.h"

namespace hone::test {

namespace {

constexpr float kTolerance = 2e-5F;

const plan::Program& program_of(const plan::Plan& plan, std::string_view target) {
  const auto found = std::ranges::find(plan.programs, target, &plan::Program::target);
  if (found == plan.programs.end()) throw std::runtime_error(fmt::format("the plan has no program for {}", target));
  return *found;
}

std::vector<std::int64_t> shape_for(const Shape& shape, const DimBindings& sizes) {
  std::vector<std::int64_t> extents;
  for (const Dim& extent : shape) extents.push_back(extent.evaluate(sizes));
  return extents;
}

}  // namespace

DeviceProgram::DeviceProgram(Device& device, std::string_view target, const plan::Plan& plan, std::int64_t samples)
    : device_(device), plan_(plan), program_(&program_of(plan, target)), entry_(program_->find(plan::kPredict)), sizes_({{plan.batch_symbol, samples}}) {
  for (const plan::Feed& feed : entry_->feeds)
    if (feed.dtype != DType::kF32) throw std::runtime_error(fmt::format("the plan's predict is fed {}, which is no f32", feed.name));
  device_.load(*program_);
  const Stream stream = device_.make_stream();
  for (const plan::Buffer& buffer : entry_->buffers) {
    const bool is_view = buffer.storage == plan::Buffer::Storage::kView;
    const std::size_t bytes = static_cast<std::size_t>(checked_element_count(shape_for(buffer.shape, sizes_))) * size_of(buffer.dtype);
    memory_.push_back(is_view ? nullptr : device_.allocate(bytes, buffer.name));
    if (buffer.storage == plan::Buffer::Storage::kPersistent) device_.copy_in(stream, memory_.back(), program_->persistents[buffer.index].initial.bytes().data(), bytes);
  }
  device_.synchronize(stream);
  for (const plan::Step& step : entry_->steps) {
    const auto* library = std::get_if<plan::LibraryStep>(&step.what);
    if (const auto* kernel = std::get_if<plan::KernelStep>(&step.what)) add(*kernel);
    else if (library != nullptr and library->own_kernel) add(*library->own_kernel);
    else throw std::runtime_error(fmt::format("the plan's predict has a step that is no kernel: {}", step.origin));
    if (library != nullptr and library->epilogue) add(library->epilogue->kernel);
  }
}

DeviceProgram::~DeviceProgram() {
  for (std::byte* const memory : memory_)
    if (memory != nullptr) device_.release(memory);
}

void DeviceProgram::add(const plan::KernelStep& step) {
  Step added{.kernel = device_.find(step.symbol), .read_only = step.read_only, .range = step.range.evaluate(sizes_)};
  if (added.kernel == nullptr) throw std::runtime_error(fmt::format("the device does not find the kernel {}", step.symbol));
  for (const std::uint32_t buffer : step.buffers) {
    const plan::Buffer& its = entry_->buffers[buffer];
    added.buffers.push_back(memory_[plan::root_of(*entry_, buffer)]);
    added.bytes.push_back(static_cast<std::size_t>(checked_element_count(shape_for(its.shape, sizes_))) * size_of(its.dtype));
  }
  for (const Dim& size : step.sizes) added.sizes.push_back(size.evaluate(sizes_));
  steps_.push_back(std::move(added));
}

/// Numbers around 0 that differ from each other, 1 and more samples alike.
Tensor DeviceProgram::fed(std::size_t feed, float factor) const {
  const std::vector<std::int64_t> shape = shape_for(entry_->feeds[feed].shape, sizes_);
  std::vector<float> values(static_cast<std::size_t>(checked_element_count(shape)));
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = factor * (static_cast<float>((i * 7919) % 1009) / 1009 - 0.5F);
  return Tensor::of<float>(shape, std::span<const float>(values));
}

void DeviceProgram::feed(Stream stream, float factor) {
  for (std::size_t i = 0; i < entry_->buffers.size(); ++i) {
    if (entry_->buffers[i].storage != plan::Buffer::Storage::kFeed) continue;
    const Tensor tensor = fed(entry_->buffers[i].index, factor);
    device_.copy_in(stream, memory_[i], tensor.bytes().data(), tensor.byte_count());
    device_.synchronize(stream);  // the tensor goes
  }
}

void DeviceProgram::launch(Stream stream, int pieces) {
  for (const Step& step : steps_)
    for (int piece = 0; piece < pieces; ++piece) {
      const RangePiece range = piece_of(step.range, pieces, piece);
      if (range.begin < range.end)
        device_.launch(stream, {.kernel = step.kernel, .buffers = step.buffers, .bytes = step.bytes, .read_only = step.read_only, .sizes = step.sizes, .begin = range.begin, .end = range.end});
    }
}

std::string DeviceProgram::difference(Stream stream, float factor) {
  std::vector<Tensor> tensors;
  for (std::size_t i = 0; i < entry_->feeds.size(); ++i) tensors.push_back(fed(i, factor));
  std::vector<std::pair<std::string, TensorView>> feeds;
  for (std::size_t i = 0; i < tensors.size(); ++i) feeds.emplace_back(entry_->feeds[i].name, tensors[i]);
  Session cpu(plan_, {.device = "cpu", .threads = 1});
  cpu.run(plan::kPredict, feeds);
  for (const plan::Result& result : entry_->results) {
    const Tensor expected = cpu.result_tensor(result.name);
    std::vector<float> found(static_cast<std::size_t>(expected.element_count()));
    device_.copy_out(stream, found.data(), memory_[plan::root_of(*entry_, result.buffer)], found.size() * sizeof(float));
    device_.synchronize(stream);
    const std::span<const float> values = expected.data<float>();
    for (std::size_t i = 0; i < found.size(); ++i)
      if (not(std::abs(found[i] - values[i]) <= kTolerance * std::max(1.0F, std::abs(values[i])))) return fmt::format("{}[{}] is {}, and on the cpu {}", result.name, i, found[i], values[i]);
  }
  return "";
}

}  // namespace hone::test
