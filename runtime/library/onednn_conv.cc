#include <fmt/format.h>

#include "base/check.h"
#include "runtime/library/onednn.h"

namespace hone::onednn {
namespace {

using Dims = dnnl::memory::dims;
using Desc = dnnl::memory::desc;

/// A convolution seen from the forward direction, whichever of its three tensors a row computes.
struct Problem {
  Dims x, weight, y;  ///< weight: [O, C/g, k..], or [g, O/g, C/g, k..] with more than one group
  Window window;
  DType x_type, weight_type, y_type;
};

Problem problem_of(const LibrarySpec& spec, const TensorType& x, const TensorType& weight, const TensorType& y) {
  HONE_CHECK(x.shape.size() >= 3 and x.shape.size() == weight.shape.size() and x.shape.size() == y.shape.size(), "a convolution of tensors of different ranks");
  const auto spatial = [](const std::vector<std::int64_t>& shape) { return std::span(shape).subspan(2); };
  Problem problem{.x = x.shape,
                  .weight = weight.shape,
                  .y = y.shape,
                  .window = window_of(spec, spatial(x.shape), spatial(weight.shape), spatial(y.shape)),
                  .x_type = x.dtype,
                  .weight_type = weight.dtype,
                  .y_type = y.dtype};
  const std::int64_t groups = attribute_or(spec, "groups", 1);
  HONE_CHECK(groups >= 1 and weight.shape[0] % groups == 0, fmt::format("{} output channels in {} groups", weight.shape[0], groups));
  if (groups > 1) {
    problem.weight.insert(problem.weight.begin(), groups);
    problem.weight[1] /= groups;
  }
  return problem;
}

constexpr auto kAlgorithm = dnnl::algorithm::convolution_direct;

dnnl::convolution_forward::primitive_desc forward(const Problem& problem, dnnl::prop_kind kind, const Desc& x, const Desc& weight, const Desc* bias,
                                                  const Desc& y) {
  const Window& window = problem.window;
  const dnnl::convolution_forward::desc desc =
      bias != nullptr
          ? dnnl::convolution_forward::desc(kind, kAlgorithm, x, weight, *bias, y, window.strides, window.dilations, window.pads_begin, window.pads_end)
          : dnnl::convolution_forward::desc(kind, kAlgorithm, x, weight, y, window.strides, window.dilations, window.pads_begin, window.pads_end);
  return {desc, attributes(), engine()};
}

/// The forward convolution that a backward one must be told of.
dnnl::convolution_forward::primitive_desc hint(const Problem& problem) {
  return forward(problem, dnnl::prop_kind::forward_training, any(problem.x, problem.x_type), any(problem.weight, problem.weight_type), nullptr,
                 any(problem.y, problem.y_type));
}

}  // namespace

std::unique_ptr<LibraryCall> create_conv(const LibrarySpec& spec) {
  const Problem problem = problem_of(spec, *spec.operands[0], *spec.operands[1], spec.results[0]);
  const bool has_bias = spec.operands.size() > 2 and spec.operands[2].has_value();
  const Desc bias = has_bias ? plain(spec.operands[2]->shape, spec.operands[2]->dtype) : Desc();
  const auto primitive_desc = forward(problem, dnnl::prop_kind::forward_training, any(problem.x, problem.x_type), any(problem.weight, problem.weight_type),
                                      has_bias ? &bias : nullptr, any(problem.y, problem.y_type));
  auto chain = std::make_unique<Chain>(1);
  std::vector<std::pair<int, MemoryId>> arguments = {
      {DNNL_ARG_SRC, chain->operand(0, plain(problem.x, problem.x_type), primitive_desc.src_desc())},
      {DNNL_ARG_WEIGHTS, chain->operand(1, plain(problem.weight, problem.weight_type), primitive_desc.weights_desc())},
      {DNNL_ARG_DST, chain->result(0, plain(problem.y, problem.y_type), primitive_desc.dst_desc())}};
  if (has_bias) arguments.emplace_back(DNNL_ARG_BIAS, chain->operand(2, bias));
  chain->add(dnnl::convolution_forward(primitive_desc), arguments, primitive_desc.scratchpad_desc());
  return chain;
}

std::unique_ptr<LibraryCall> create_conv_input_grad(const LibrarySpec& spec) {
  const Problem problem = problem_of(spec, spec.results[0], *spec.operands[1], *spec.operands[0]);
  const Window& window = problem.window;
  const dnnl::convolution_backward_data::desc desc(kAlgorithm, any(problem.x, problem.x_type), any(problem.weight, problem.weight_type),
                                                   any(problem.y, problem.y_type), window.strides, window.dilations, window.pads_begin, window.pads_end);
  const dnnl::convolution_backward_data::primitive_desc primitive_desc(desc, attributes(), engine(), hint(problem));
  auto chain = std::make_unique<Chain>(1);
  const std::pair<int, MemoryId> arguments[] = {
      {DNNL_ARG_DIFF_DST, chain->operand(0, plain(problem.y, problem.y_type), primitive_desc.diff_dst_desc())},
      {DNNL_ARG_WEIGHTS, chain->operand(1, plain(problem.weight, problem.weight_type), primitive_desc.weights_desc())},
      {DNNL_ARG_DIFF_SRC, chain->result(0, plain(problem.x, problem.x_type), primitive_desc.diff_src_desc())}};
  chain->add(dnnl::convolution_backward_data(primitive_desc), arguments, primitive_desc.scratchpad_desc());
  return chain;
}

std::unique_ptr<LibraryCall> create_conv_weight_grad(const LibrarySpec& spec) {
  const Problem problem = problem_of(spec, *spec.operands[0], spec.results[0], *spec.operands[1]);
  const Window& window = problem.window;
  const dnnl::convolution_backward_weights::desc desc(kAlgorithm, any(problem.x, problem.x_type), any(problem.weight, problem.weight_type),
                                                      any(problem.y, problem.y_type), window.strides, window.dilations, window.pads_begin, window.pads_end);
  const dnnl::convolution_backward_weights::primitive_desc primitive_desc(desc, attributes(), engine(), hint(problem));
  auto chain = std::make_unique<Chain>(1);
  const std::pair<int, MemoryId> arguments[] = {
      {DNNL_ARG_SRC, chain->operand(0, plain(problem.x, problem.x_type), primitive_desc.src_desc())},
      {DNNL_ARG_DIFF_DST, chain->operand(1, plain(problem.y, problem.y_type), primitive_desc.diff_dst_desc())},
      {DNNL_ARG_DIFF_WEIGHTS, chain->result(0, plain(problem.weight, problem.weight_type), primitive_desc.diff_weights_desc())}};
  chain->add(dnnl::convolution_backward_weights(primitive_desc), arguments, primitive_desc.scratchpad_desc());
  return chain;
}

}  // namespace hone::onednn
