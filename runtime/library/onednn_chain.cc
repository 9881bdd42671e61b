#include <fmt/format.h>

#include <algorithm>

#include "base/alignment.h"
#include "base/check.h"
#include "runtime/library/onednn.h"

namespace hone::onednn {
namespace {

dnnl::memory::dims row_major_strides(const dnnl::memory::dims& dims) {
  dnnl::memory::dims strides(dims.size(), 1);
  for (std::size_t axis = dims.size(); axis-- > 1;) strides[axis - 1] = strides[axis] * std::max<std::int64_t>(dims[axis], 1);
  return strides;
}

}  // namespace

const dnnl::engine& engine() {
  static const dnnl::engine cpu(dnnl::engine::kind::cpu, 0);
  return cpu;
}

dnnl::primitive_attr attributes() {
  dnnl::primitive_attr attributes;
  attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  return attributes;
}

dnnl::memory::data_type data_type(DType dtype) {
  HONE_CHECK(dtype == DType::kF32 or dtype == DType::kBF16, fmt::format("oneDNN rows compute with f32 and bf16, not with {}", to_string(dtype)));
  return dtype == DType::kF32 ? dnnl::memory::data_type::f32 : dnnl::memory::data_type::bf16;
}

DType computed_type(DType dtype) {
  static const bool multiplies_bf16 = [] {
    const auto isa = static_cast<unsigned>(dnnl::get_effective_cpu_isa()), needed = static_cast<unsigned>(dnnl::cpu_isa::avx512_core_bf16);
    return (isa & needed) == needed;  // later sets of instructions have the bits of earlier ones
  }();
  return dtype == DType::kBF16 and not multiplies_bf16 ? DType::kF32 : dtype;
}

dnnl::memory::desc plain(const dnnl::memory::dims& dims, DType dtype) { return {dims, data_type(dtype), row_major_strides(dims)}; }

bool has_channels_last(const LibrarySpec& spec) { return attribute_or(spec, "channels_last", 0) != 0; }

dnnl::memory::dims activation_dims(const LibrarySpec& spec, const TensorType& type) {
  dnnl::memory::dims dims = type.shape;
  if (has_channels_last(spec) and dims.size() > 2) std::rotate(dims.begin() + 1, dims.end() - 1, dims.end());
  return dims;
}

dnnl::memory::desc channels_last(const dnnl::memory::dims& dims, DType dtype) {
  dnnl::memory::dims stored = dims;
  std::rotate(stored.begin() + 1, stored.begin() + 2, stored.end());
  std::vector<int> permutation(dims.size());  // where each stored axis belongs
  for (std::size_t axis = 0; axis < dims.size(); ++axis) permutation[axis] = static_cast<int>(axis == 0 ? 0 : axis + 1);
  permutation.back() = 1;
  return plain(stored, dtype).permute_axes(permutation);
}

dnnl::memory::desc given_activation(const LibrarySpec& spec, const dnnl::memory::dims& dims, DType dtype) {
  return has_channels_last(spec) ? channels_last(dims, dtype) : plain(dims, dtype);
}

dnnl::memory::desc any(const dnnl::memory::dims& dims, DType dtype) { return {dims, data_type(dtype), dnnl::memory::format_tag::any}; }

MemoryId Chain::operand(std::size_t index, const dnnl::memory::desc& given, const dnnl::memory::desc& wanted) {
  const MemoryId there = add_memory(given, Place::kOperand, index);
  if (given == wanted) return there;
  const MemoryId copy = add_scratch(wanted);
  add_reorder(there, copy);
  return copy;
}

MemoryId Chain::result(std::size_t index, const dnnl::memory::desc& wanted, const dnnl::memory::desc& written) {
  description_.result_bytes[index] = wanted.get_size();
  const MemoryId there = add_memory(wanted, Place::kResult, index);
  if (wanted == written) return there;
  const MemoryId first = add_scratch(written);
  result_copies_.emplace_back(first, there);
  return first;
}

void Chain::add(const dnnl::primitive& primitive, std::span<const std::pair<int, MemoryId>> arguments, const dnnl::memory::desc& scratchpad) {
  add_stage(primitive, arguments, scratchpad);
  for (const auto& [written, wanted] : result_copies_) add_reorder(written, wanted);
  result_copies_.clear();
}

MemoryId Chain::add_memory(const dnnl::memory::desc& desc, Place place, std::size_t index) {
  memories_.push_back({.memory = dnnl::memory(desc, engine(), nullptr), .place = place, .index = index});
  return static_cast<MemoryId>(memories_.size() - 1);
}

MemoryId Chain::add_scratch(const dnnl::memory::desc& desc) {
  const std::size_t offset = description_.scratch_bytes;
  description_.scratch_bytes += round_up(desc.get_size(), kTensorAlignment, "library scratch");
  return add_memory(desc, Place::kScratch, offset);
}

void Chain::add_reorder(MemoryId from, MemoryId to) {
  const auto desc = [this](MemoryId id) { return memories_[static_cast<std::size_t>(id)].memory.get_desc(); };
  const dnnl::reorder::primitive_desc primitive_desc(engine(), desc(from), engine(), desc(to), attributes());
  const std::pair<int, MemoryId> arguments[] = {{DNNL_ARG_FROM, from}, {DNNL_ARG_TO, to}};
  add_stage(dnnl::reorder(primitive_desc), arguments, primitive_desc.scratchpad_desc());
}

void Chain::add_stage(const dnnl::primitive& primitive, std::span<const std::pair<int, MemoryId>> arguments, const dnnl::memory::desc& scratchpad) {
  Stage stage{.primitive = primitive, .arguments = {}};
  for (const auto& [argument, id] : arguments) stage.arguments.push_back({argument, memories_[static_cast<std::size_t>(id)].memory.get()});
  if (scratchpad.get_size() > 0) stage.arguments.push_back({DNNL_ARG_SCRATCHPAD, memories_[static_cast<std::size_t>(add_scratch(scratchpad))].memory.get()});
  stages_.push_back(std::move(stage));
}

void Chain::execute(std::span<const void* const> operands, std::span<void* const> results, void* scratch) {
  for (Memory& memory : memories_) {
    void* pointer = nullptr;
    switch (memory.place) {
      case Place::kOperand: pointer = const_cast<void*>(operands[memory.index]); break;  // oneDNN has no read-only memory, but does not write to operands
      case Place::kResult: pointer = results[memory.index]; break;
      case Place::kScratch: pointer = static_cast<std::byte*>(scratch) + memory.index; break;
    }
    if (pointer == memory.current) continue;
    memory.memory.set_data_handle(pointer);
    memory.current = pointer;
  }
  for (const Stage& stage : stages_) {
    const dnnl_status_t status = dnnl_primitive_execute(stage.primitive.get(), stream_.get(), static_cast<int>(stage.arguments.size()), stage.arguments.data());
    HONE_CHECK(status == dnnl_success, fmt::format("oneDNN could not run a primitive it had made (status {})", static_cast<int>(status)));
  }
}

Window window_of(const LibrarySpec& spec, std::span<const std::int64_t> input, std::span<const std::int64_t> kernel, std::span<const std::int64_t> output) {
  const std::size_t space = input.size();
  HONE_CHECK(space >= 1 and space <= 3 and kernel.size() == space and output.size() == space, "a window over another number of spatial axes");
  Window window{.strides = attribute_or(spec, "strides", std::vector<std::int64_t>(space, 1)),
                .dilations = attribute_or(spec, "dilations", std::vector<std::int64_t>(space, 1)),
                .pads_begin = attribute_or(spec, "pads_begin", std::vector<std::int64_t>(space, 0)),
                .pads_end = dnnl::memory::dims(space)};
  for (std::size_t axis = 0; axis < space; ++axis) {
    const std::int64_t reach = (kernel[axis] - 1) * window.dilations[axis] + 1;
    window.dilations[axis] = kernel[axis] == 1 ? 0 : window.dilations[axis] - 1;  // of one element there is no dilation, and oneDNN checks it all the same
    window.pads_end[axis] = (output[axis] - 1) * window.strides[axis] + reach - input[axis] - window.pads_begin[axis];
  }
  return window;
}

}  // namespace hone::onednn
