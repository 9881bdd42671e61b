#include <fmt/format.h>

#include "base/check.h"
#include "runtime/library/onednn.h"

namespace hone::onednn {
namespace {

using Dims = dnnl::memory::dims;
using Desc = dnnl::memory::desc;

/// A convolution seen from the forward direction, whichever of its three tensors a row computes.
struct ConvProblem {
  enum class Pass : std::uint8_t { kForward, kInputGrad, kWeightGrad };
  Pass pass;
  Dims x, weight, y;  ///< [N,C,s..]; weight: [O, C/g, k..], or [g, O/g, C/g, k..] with more than one group
  Window window;
  DType x_type, weight_type, y_type;
  bool channels_last;
  Desc given_x, given_y;
};

ConvProblem problem_of(ConvProblem::Pass pass, const LibrarySpec& spec, const TensorType& x, const TensorType& weight, const TensorType& y) {
  HONE_CHECK(x.shape.size() >= 3 and x.shape.size() == weight.shape.size() and x.shape.size() == y.shape.size(), "a convolution of tensors of different ranks");
  const auto spatial = [](const Dims& dims) { return std::span(dims).subspan(2); };
  const Dims x_dims = activation_dims(spec, x), y_dims = activation_dims(spec, y);
  ConvProblem problem{.pass = pass,
                  .x = x_dims,
                  .weight = weight.shape,
                  .y = y_dims,
                  .window = window_of(spec, spatial(x_dims), spatial(weight.shape), spatial(y_dims)),
                  .x_type = x.dtype,
                  .weight_type = weight.dtype,
                  .y_type = y.dtype,
                  .channels_last = has_channels_last(spec),
                  .given_x = given_activation(spec, x_dims, x.dtype),
                  .given_y = given_activation(spec, y_dims, y.dtype)};
  const std::int64_t groups = attribute_or(spec, "groups", 1);
  HONE_CHECK(groups >= 1 and weight.shape[0] % groups == 0, fmt::format("{} output channels in {} groups", weight.shape[0], groups));
  if (groups > 1) {
    problem.weight.insert(problem.weight.begin(), groups);
    problem.weight[1] /= groups;
  }
  return problem;
}

/// How activations that are plain outside lie for oneDNN: anything but kPlain copies them in and out, which nearly always pays off.
enum class Activations : std::uint8_t {
  kPlain,         ///< NCHW: a matrix product over unfolded windows
  kBlocked,       ///< what oneDNN likes best, sixteen channels together
  kChannelsLast,  ///< NHWC
};

/// Measured with oneDNN 2.6.3 and AVX-512 on one core, copies included: milliseconds plain / blocked / channels last.
Activations activations_of(const ConvProblem& problem) {
  const bool grouped = problem.weight.size() > problem.x.size();
  const std::size_t first = grouped ? 1 : 0;
  const std::int64_t outputs = problem.weight[first], channels = problem.weight[first + 1];  // of one group
  std::int64_t kernel = 1, output = 1, pads = 0;
  for (std::size_t axis = 2; axis < problem.x.size(); ++axis) {
    kernel *= problem.weight[first + axis];
    output *= problem.y[axis];
    pads += problem.window.pads_begin[axis - 2] + problem.window.pads_end[axis - 2];
  }
  // Nothing is unfolded for a 1x1 kernel. 256 to 64 channels at 56x56: 5.3 / 10.3 / 15.7; but 512 to 2048 at 7x7: 6.4 / 5.6 / 5.9.
  if (not grouped and kernel == 1 and pads <= 0 and output >= 128) return Activations::kPlain;
  switch (problem.pass) {
    case ConvProblem::Pass::kForward: break;
    case ConvProblem::Pass::kInputGrad:
      if (not grouped and channels <= 3) return Activations::kPlain;        // 7x7, 3 channels: 24 / 72 / 71
      if (not grouped and outputs <= 8) return Activations::kChannelsLast;  // 3x3, 64 to 3 channels: 19 / 4.1 / 1.6
      break;
    case ConvProblem::Pass::kWeightGrad:
      if (not grouped and channels > 3 and channels < 16) return Activations::kChannelsLast;                    // 3x3, 4 to 16 channels: 3.3 / 1.9 / 0.8
      if (grouped and channels > 1 and (channels % 16 + outputs % 16) != 0) return Activations::kChannelsLast;  // 32 groups of 4 to 4: 9.0 / 8.8 / 2.1
      break;
  }
  return Activations::kBlocked;
}

/// On channels last, oneDNN works along rows of outputs. Where they are short it is faster with sixteen channels together, and so few elements are quickly
/// copied. Milliseconds as they are / copied, kernels of 3x3. Forward: 512 to 512 channels, 2x2 outputs: 93 / 24; 256 to 512, 2x2: 28 / 5.0; 256 to 256, 4x4:
/// 23 / 11; 64 to 64, 8x8: 2.5 / 3.5. Gradient of x: 128 to 128, 8x8: 9.9 / 6.5; 64 to 64, 8x8: 4.4 / 2.8; 16 to 16, 32x32: 5.5 / 20.
bool has_short_rows(const ConvProblem& problem) {
  switch (problem.pass) {
    case ConvProblem::Pass::kForward: return problem.y.back() <= 4;
    case ConvProblem::Pass::kInputGrad: return problem.y.back() <= 8;
    case ConvProblem::Pass::kWeightGrad: break;
  }
  return false;
}

/// Activations that are stored channels last are taken as they are, where that is not slow.
Desc activation(const ConvProblem& problem, const Dims& dims, DType dtype) {
  if (problem.channels_last) return has_short_rows(problem) ? any(dims, dtype) : channels_last(dims, dtype);
  switch (activations_of(problem)) {
    case Activations::kPlain: break;
    case Activations::kBlocked: return any(dims, dtype);
    case Activations::kChannelsLast: return channels_last(dims, dtype);
  }
  return plain(dims, dtype);
}

/// oneDNN 2.6.3 leaves terms out of weights' gradients over three spatial axes in bf16 (channels last, strides of 2 and 3): those widen their operands.
DType computed_type(const ConvProblem& problem, DType dtype) {
  const bool is_wrong = problem.pass == ConvProblem::Pass::kWeightGrad and problem.x.size() == 5;
  return is_wrong ? DType::kF32 : onednn::computed_type(dtype);
}

/// What oneDNN is asked for: activations as above, the weight as it likes.
struct Layouts {
  explicit Layouts(const ConvProblem& problem)
      : x(activation(problem, problem.x, computed_type(problem, problem.x_type))),
        weight(any(problem.weight, computed_type(problem, problem.weight_type))),
        y(activation(problem, problem.y, computed_type(problem, problem.y_type))) {}
  Desc x, weight, y;
};

/// The forward convolution of a backward one: all of its tensors have the type of the operands.
ConvProblem with_operands_type(ConvProblem problem) {
  const DType dtype = problem.pass == ConvProblem::Pass::kInputGrad ? problem.weight_type : problem.x_type;
  problem.x_type = problem.weight_type = dtype;
  if (problem.pass != ConvProblem::Pass::kForward) problem.y_type = dtype;
  return problem;
}

constexpr auto kAlgorithm = dnnl::algorithm::convolution_direct;

/// Backward convolutions must be told of their forward one.
dnnl::convolution_forward::primitive_desc forward(const ConvProblem& problem) {
  const Window& window = problem.window;
  const Layouts layouts(with_operands_type(problem));
  const dnnl::convolution_forward::desc desc(dnnl::prop_kind::forward_training, kAlgorithm, layouts.x, layouts.weight, layouts.y, window.strides, window.dilations, window.pads_begin,
                                             window.pads_end);
  return {desc, attributes(), engine()};
}

}  // namespace

std::unique_ptr<LibraryCall> create_conv(const LibrarySpec& spec) {
  const ConvProblem problem = problem_of(ConvProblem::Pass::kForward, spec, *spec.operands[0], *spec.operands[1], spec.results[0]);
  const auto primitive_desc = forward(problem);
  auto chain = std::make_unique<Chain>(1);
  const std::pair<int, MemoryId> arguments[] = {
      {DNNL_ARG_SRC, chain->operand(0, problem.given_x, primitive_desc.src_desc())},
      {DNNL_ARG_WEIGHTS, chain->operand(1, plain(problem.weight, problem.weight_type), primitive_desc.weights_desc())},
      {DNNL_ARG_DST, chain->result(0, problem.given_y, primitive_desc.dst_desc())}};
  chain->add(dnnl::convolution_forward(primitive_desc), arguments, primitive_desc.scratchpad_desc());
  return chain;
}

std::unique_ptr<LibraryCall> create_conv_input_grad(const LibrarySpec& spec) {
  const ConvProblem problem = problem_of(ConvProblem::Pass::kInputGrad, spec, spec.results[0], *spec.operands[1], *spec.operands[0]);
  const Window& window = problem.window;
  const Layouts layouts(problem);
  const dnnl::convolution_backward_data::desc desc(kAlgorithm, layouts.x, layouts.weight, layouts.y, window.strides, window.dilations, window.pads_begin,
                                                   window.pads_end);
  const dnnl::convolution_backward_data::primitive_desc primitive_desc(desc, attributes(), engine(), forward(problem));
  auto chain = std::make_unique<Chain>(1);
  const std::pair<int, MemoryId> arguments[] = {
      {DNNL_ARG_DIFF_DST, chain->operand(0, problem.given_y, primitive_desc.diff_dst_desc())},
      {DNNL_ARG_WEIGHTS, chain->operand(1, plain(problem.weight, problem.weight_type), primitive_desc.weights_desc())},
      {DNNL_ARG_DIFF_SRC, chain->result(0, problem.given_x, primitive_desc.diff_src_desc())}};
  chain->add(dnnl::convolution_backward_data(primitive_desc), arguments, primitive_desc.scratchpad_desc());
  return chain;
}

std::unique_ptr<LibraryCall> create_conv_weight_grad(const LibrarySpec& spec) {
  const ConvProblem problem = problem_of(ConvProblem::Pass::kWeightGrad, spec, *spec.operands[0], spec.results[0], *spec.operands[1]);
  const Window& window = problem.window;
  const Layouts layouts(problem);
  const dnnl::convolution_backward_weights::desc desc(kAlgorithm, layouts.x, layouts.weight, layouts.y, window.strides, window.dilations, window.pads_begin,
                                                      window.pads_end);
  const dnnl::convolution_backward_weights::primitive_desc primitive_desc(desc, attributes(), engine(), forward(problem));
  auto chain = std::make_unique<Chain>(1);
  const std::pair<int, MemoryId> arguments[] = {
      {DNNL_ARG_SRC, chain->operand(0, problem.given_x, primitive_desc.src_desc())},
      {DNNL_ARG_DIFF_DST, chain->operand(1, problem.given_y, primitive_desc.diff_dst_desc())},
      {DNNL_ARG_DIFF_WEIGHTS, chain->result(0, plain(problem.weight, problem.weight_type), primitive_desc.diff_weights_desc())}};
  chain->add(dnnl::convolution_backward_weights(primitive_desc), arguments, primitive_desc.scratchpad_desc());
  return chain;
}

}  // namespace hone::onednn
