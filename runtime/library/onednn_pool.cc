#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <span>

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

/// Is one of them NaN or -inf?
bool has_nan_or_lowest(std::span<const float> numbers) {
  const auto count = static_cast<std::int64_t>(numbers.size());
  int found = 0;
#if HONE_OPENMP
#pragma omp parallel for simd reduction(| : found)
#endif
  for (std::int64_t i = 0; i < count; ++i) found |= static_cast<int>(not(numbers[static_cast<std::size_t>(i)] > -std::numeric_limits<float>::infinity()));
  return found != 0;
}

/// Max-pooling as the op means it. The library passes over NaN, and gives the lowest finite number for a window of nothing but -inf: where x has either, which is seldom, y is worked out once more.
class MaxPool : public Chain {
 public:
  MaxPool(const LibrarySpec& spec, const PoolProblem& problem)
      : Chain(spec.results.size()), x_(extents(activation_dims(spec, *spec.operands[0]))), y_(extents(activation_dims(spec, spec.results[0]))), kernel_(spatial(problem.kernel, 1)), strides_(spatial(problem.window.strides, 1)), gaps_(spatial(problem.window.dilations, 0)), pads_(spatial(problem.window.pads_begin, 0)), channels_last_(has_channels_last(spec)) {}

  void execute(std::span<const void* const> operands, std::span<void* const> results, void* scratch) override {
    Chain::execute(operands, results, scratch);
    const auto* x = static_cast<const float*>(operands[0]);
    if (has_nan_or_lowest({x, static_cast<std::size_t>(x_.batch * x_.channels * volume(x_))})) pool(x, static_cast<float*>(results[0]));
  }

 private:
  using Triple = std::array<std::int64_t, 3>;
  struct Extents {
    std::int64_t batch, channels;
    Triple space;
  };

  /// Of one to three axes, with axes of no consequence in front.
  static Triple spatial(std::span<const std::int64_t> axes, std::int64_t neutral) {
    Triple all = {neutral, neutral, neutral};
    std::ranges::copy(axes, all.end() - static_cast<std::ptrdiff_t>(axes.size()));
    return all;
  }
  static Extents extents(const dnnl::memory::dims& dims) { return {dims[0], dims[1], spatial(std::span(dims).subspan(2), 1)}; }
  static std::int64_t volume(const Extents& of) { return of.space[0] * of.space[1] * of.space[2]; }

  std::size_t place(const Extents& of, std::int64_t sample, std::int64_t channel, const Triple& at) const {
    const std::int64_t point = (at[0] * of.space[1] + at[1]) * of.space[2] + at[2];
    return static_cast<std::size_t>(channels_last_ ? (sample * volume(of) + point) * of.channels + channel : (sample * of.channels + channel) * volume(of) + point);
  }

  void pool(const float* x, float* y) const {
    Triple at{};
    for (std::int64_t sample = 0; sample < y_.batch; ++sample)
      for (std::int64_t channel = 0; channel < y_.channels; ++channel)
        for (at[0] = 0; at[0] < y_.space[0]; ++at[0])
          for (at[1] = 0; at[1] < y_.space[1]; ++at[1])
            for (at[2] = 0; at[2] < y_.space[2]; ++at[2]) y[place(y_, sample, channel, at)] = largest(x, sample, channel, at);
  }

  float largest(const float* x, std::int64_t sample, std::int64_t channel, const Triple& window) const {
    float largest = -std::numeric_limits<float>::infinity();
    Triple i, at;
    for (i[0] = 0; i[0] < kernel_[0]; ++i[0])
      for (i[1] = 0; i[1] < kernel_[1]; ++i[1])
        for (i[2] = 0; i[2] < kernel_[2]; ++i[2]) {
          bool is_inside = true;
          for (std::size_t axis = 0; axis < 3; ++axis) {
            at[axis] = window[axis] * strides_[axis] - pads_[axis] + i[axis] * (gaps_[axis] + 1);
            is_inside = is_inside and at[axis] >= 0 and at[axis] < x_.space[axis];
          }
          if (not is_inside) continue;
          const float number = x[place(x_, sample, channel, at)];
          if (std::isnan(number)) return number;
          largest = std::max(largest, number);
        }
    return largest;
  }

  Extents x_, y_;
  Triple kernel_, strides_, gaps_, pads_;
  bool channels_last_;
};

std::unique_ptr<LibraryCall> create_pool(const LibrarySpec& spec, dnnl::algorithm algorithm, bool with_workspace) {
  const PoolProblem problem = problem_of(spec, *spec.operands[0], spec.results[0]);
  const auto primitive_desc = forward(problem, with_workspace ? dnnl::prop_kind::forward_training : dnnl::prop_kind::forward_inference, algorithm);
  std::unique_ptr<Chain> chain = algorithm == dnnl::algorithm::pooling_max ? std::make_unique<MaxPool>(spec, problem) : std::make_unique<Chain>(spec.results.size());
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
