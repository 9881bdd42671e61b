#include <fmt/format.h>

#include "base/check.h"
#include "runtime/library/onednn.h"

namespace hone::onednn {
namespace {

using Desc = dnnl::memory::desc;

/// A pooling seen from the forward direction.
struct PoolProblem {
  dnnl::memory::dims kernel;
  Window window;
  Desc x, y;
};

PoolProblem problem_of(const LibrarySpec& spec, const TensorType& x, const TensorType& y) {
  HONE_CHECK(x.shape.size() >= 3 and x.shape.size() == y.shape.size() and x.dtype == y.dtype, "a pooling between tensors of different ranks or types");
  const dnnl::memory::dims x_dims = activation_dims(spec, x), y_dims = activation_dims(spec, y);
  const dnnl::memory::dims kernel = attribute_or(spec, "kernel", std::vector<std::int64_t>(x.shape.size() - 2, 0));
  return {.kernel = kernel,
          .window = window_of(spec, std::span(x_dims).subspan(2), kernel, std::span(y_dims).subspan(2)),
          .x = given_activation(spec, x_dims, x.dtype),
          .y = given_activation(spec, y_dims, y.dtype)};
}

dnnl::pooling_v2_forward::primitive_desc forward(const PoolProblem& problem, dnnl::prop_kind kind, dnnl::algorithm algorithm) {
  const Window& window = problem.window;
  const dnnl::pooling_v2_forward::desc desc(kind, algorithm, problem.x, problem.y, window.strides, problem.kernel, window.dilations, window.pads_begin,
                                            window.pads_end);
  return {desc, attributes(), engine()};
}

dnnl::pooling_v2_backward::primitive_desc backward(const PoolProblem& problem, dnnl::algorithm algorithm, const dnnl::pooling_v2_forward::primitive_desc& hint) {
  const Window& window = problem.window;
  const dnnl::pooling_v2_backward::desc desc(algorithm, problem.x, problem.y, window.strides, problem.kernel, window.dilations, window.pads_begin,
                                             window.pads_end);
  return {desc, attributes(), engine(), hint};
}

dnnl::algorithm average(const LibrarySpec& spec) {
  return attribute_or(spec, "count_pads", 0) != 0 ? dnnl::algorithm::pooling_avg_include_padding : dnnl::algorithm::pooling_avg_exclude_padding;
}

std::unique_ptr<LibraryCall> create_pool(const LibrarySpec& spec, dnnl::algorithm algorithm, bool with_workspace) {
  const PoolProblem problem = problem_of(spec, *spec.operands[0], spec.results[0]);
  const auto primitive_desc = forward(problem, with_workspace ? dnnl::prop_kind::forward_training : dnnl::prop_kind::forward_inference, algorithm);
  auto chain = std::make_unique<Chain>(spec.results.size());
  std::vector<std::pair<int, MemoryId>> arguments = {{DNNL_ARG_SRC, chain->operand(0, problem.x)}, {DNNL_ARG_DST, chain->result(0, problem.y)}};
  if (with_workspace) arguments.emplace_back(DNNL_ARG_WORKSPACE, chain->result(1, primitive_desc.workspace_desc()));
  chain->add(dnnl::pooling_v2_forward(primitive_desc), arguments, primitive_desc.scratchpad_desc());
  return chain;
}

std::unique_ptr<LibraryCall> create_pool_grad(const LibrarySpec& spec, dnnl::algorithm algorithm, bool with_workspace) {
  const PoolProblem problem = problem_of(spec, spec.results[0], *spec.operands[0]);
  const auto forward_desc = forward(problem, dnnl::prop_kind::forward_training, algorithm);
  const auto primitive_desc = backward(problem, algorithm, forward_desc);
  auto chain = std::make_unique<Chain>(1);
  std::vector<std::pair<int, MemoryId>> arguments = {{DNNL_ARG_DIFF_DST, chain->operand(0, problem.y)}, {DNNL_ARG_DIFF_SRC, chain->result(0, problem.x)}};
  if (with_workspace) chain->set_opaque_operand(forward_desc.workspace_desc().get_size());
  // The forward row made it from this very descriptor, so both know its layout.
  if (with_workspace) arguments.emplace_back(DNNL_ARG_WORKSPACE, chain->operand(1, forward_desc.workspace_desc(), primitive_desc.workspace_desc()));
  chain->add(dnnl::pooling_v2_backward(primitive_desc), arguments, primitive_desc.scratchpad_desc());
  return chain;
}

}  // namespace

std::unique_ptr<LibraryCall> create_max_pool(const LibrarySpec& spec) { return create_pool(spec, dnnl::algorithm::pooling_max, spec.results.size() > 1); }
std::unique_ptr<LibraryCall> create_max_pool_grad(const LibrarySpec& spec) { return create_pool_grad(spec, dnnl::algorithm::pooling_max, true); }
std::unique_ptr<LibraryCall> create_avg_pool(const LibrarySpec& spec) { return create_pool(spec, average(spec), false); }
std::unique_ptr<LibraryCall> create_avg_pool_grad(const LibrarySpec& spec) { return create_pool_grad(spec, average(spec), false); }

}  // namespace hone::onednn
