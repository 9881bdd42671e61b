// oneDNN behind LibraryCall: a chain of primitives whose memories are operands, results and scratch. Only the files onednn_*.cc include this.
#pragma once

#include <oneapi/dnnl/dnnl.hpp>
#include <span>
#include <utility>
#include <vector>

#include "runtime/library/rows.h"

namespace hone::onednn {

/// The host's engine, one a process: the library's cache of primitives belongs to it.
const dnnl::engine& engine();

/// Scratch is the caller's.
dnnl::primitive_attr attributes();

/// Throws InternalError for what oneDNN does not compute with: the compiler asks for f32 and bf16 only.
dnnl::memory::data_type data_type(DType dtype);

/// What is computed with where an operand or result is stored as `dtype`: bf16 is widened to f32 on processors without instructions for it, where the library would
/// imitate them more slowly, or has no fast code at all.
DType computed_type(DType dtype);

/// Plain row-major.
dnnl::memory::desc plain(const dnnl::memory::dims& dims, DType dtype);
/// The attribute channels_last: activations are stored as [N,s..,C], not [N,C,s..].
bool has_channels_last(const LibrarySpec& spec);
/// The sizes of an activation as oneDNN counts them, [N,C,s..].
dnnl::memory::dims activation_dims(const LibrarySpec& spec, const TensorType& type);
/// [N,s..,C] for `dims` [N,C,s..].
dnnl::memory::desc channels_last(const dnnl::memory::dims& dims, DType dtype);
/// As the activation lies in memory.
dnnl::memory::desc given_activation(const LibrarySpec& spec, const dnnl::memory::dims& dims, DType dtype);
/// Whatever layout the primitive likes best.
dnnl::memory::desc any(const dnnl::memory::dims& dims, DType dtype);

/// A memory of a chain.
enum class MemoryId : std::size_t {};

/// Primitives that run one after the other. Built once; executing it makes no tensors and no primitives.
class Chain : public LibraryCall {
 public:
  explicit Chain(std::size_t result_count) { description_.result_bytes.resize(result_count); }

  /// Operand `index`, which lies as `given`, in the layout `wanted`: itself, or a copy that each execution makes.
  MemoryId operand(std::size_t index, const dnnl::memory::desc& given, const dnnl::memory::desc& wanted);
  MemoryId operand(std::size_t index, const dnnl::memory::desc& given) { return operand(index, given, given); }
  /// Result `index`, to which a primitive writes in the layout `written`; it is brought into `wanted` behind that primitive.
  MemoryId result(std::size_t index, const dnnl::memory::desc& wanted, const dnnl::memory::desc& written);
  MemoryId result(std::size_t index, const dnnl::memory::desc& wanted) { return result(index, wanted, wanted); }

  /// The operand whose layout is the library's own has so many bytes.
  void set_opaque_operand(std::size_t bytes) { description_.opaque_operand_bytes = bytes; }

  /// Runs behind those before it, and in front of the copies of results declared so far. `scratchpad` is its primitive descriptor's.
  void add(const dnnl::primitive& primitive, std::span<const std::pair<int, MemoryId>> arguments, const dnnl::memory::desc& scratchpad);

  void execute(std::span<const void* const> operands, std::span<void* const> results, void* scratch) override;

 private:
  enum class Place : std::uint8_t { kOperand, kResult, kScratch };
  struct Memory {
    dnnl::memory memory;
    Place place;
    std::size_t index;  ///< of the operand or result; offset in the scratch
    void* current = nullptr;
  };
  struct Stage {
    dnnl::primitive primitive;
    std::vector<dnnl_exec_arg_t> arguments;
  };

  MemoryId add_memory(const dnnl::memory::desc& desc, Place place, std::size_t index);
  MemoryId add_scratch(const dnnl::memory::desc& desc);
  void add_reorder(MemoryId from, MemoryId to);
  void add_stage(const dnnl::primitive& primitive, std::span<const std::pair<int, MemoryId>> arguments, const dnnl::memory::desc& scratchpad);

  dnnl::stream stream_{engine()};
  std::vector<Memory> memories_;
  std::vector<Stage> stages_;
  std::vector<std::pair<MemoryId, MemoryId>> result_copies_;  // (written, wanted), not yet stages
};

/// The geometry of a convolution or pooling over `space` spatial axes, as oneDNN wants it: dilation 0 is none.
struct Window {
  dnnl::memory::dims strides, dilations, pads_begin, pads_end;
};
/// From the attributes strides, dilations (default: ones), pads_begin and pads_end (default: zeros). `input` and `output` are spatial extents. oneDNN
/// wants the padding behind that makes the last window fit exactly: it follows from the extents, and takes the place of pads_end.
Window window_of(const LibrarySpec& spec, std::span<const std::int64_t> input, std::span<const std::int64_t> kernel, std::span<const std::int64_t> output);

// The rows.
std::unique_ptr<LibraryCall> create_matmul(const LibrarySpec& spec);
std::unique_ptr<LibraryCall> create_conv(const LibrarySpec& spec);
std::unique_ptr<LibraryCall> create_conv_input_grad(const LibrarySpec& spec);
std::unique_ptr<LibraryCall> create_conv_weight_grad(const LibrarySpec& spec);
std::unique_ptr<LibraryCall> create_max_pool(const LibrarySpec& spec);
std::unique_ptr<LibraryCall> create_max_pool_grad(const LibrarySpec& spec);
std::unique_ptr<LibraryCall> create_avg_pool(const LibrarySpec& spec);
std::unique_ptr<LibraryCall> create_avg_pool_grad(const LibrarySpec& spec);

}  // namespace hone::onednn
