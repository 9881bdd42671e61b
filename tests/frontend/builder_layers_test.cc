// Convolutions, attention to another sequence, and formulas of the C++ builder.
#include <cmath>
#include <functional>

#include "tests/frontend/built_model.h"
#include "tests/support/temp_folder.h"

namespace hone::test {
namespace {

using nn::Value;

/// What `build` makes of x[N, shape of one sample].
Tensor built(const Tensor& x, const std::function<Value(Value)>& build, nn::Model& model) {
  model.output("y", build(model.input("x", Shape(x.shape().begin() + 1, x.shape().end()))));
  return output_of(model, x);
}
Tensor built(const Tensor& x, const std::function<Value(Value)>& build) {
  nn::Model model("formulas");
  return built(x, build, model);
}

/// x[in,length] along one axis, for each output channel the sum over windows w[out,in/groups,kernel], zeros `before` it.
Numbers conv_by_hand(const Numbers& x, std::size_t in, const Numbers& w, std::size_t out, std::size_t groups, std::size_t kernel, std::size_t stride, std::size_t before, std::size_t positions) {
  const std::size_t length = x.size() / in, each = in / groups;
  Numbers y(out * positions);
  for (std::size_t o = 0; o < out; ++o)
    for (std::size_t p = 0; p < positions; ++p)
      for (std::size_t c = 0; c < each; ++c)
        for (std::size_t k = 0; k < kernel; ++k) {
          const std::size_t at = p * stride + k;
          if (at < before or at - before >= length) continue;
          y[o * positions + p] += w[(o * each + c) * kernel + k] * x[(o / (out / groups) * each + c) * length + at - before];
        }
  return y;
}

TEST(BuilderLayers, DepthwiseConvolutionsKeepChannelsApart) {
  nn::Model model("depthwise");
  const Tensor x = wavy({1, 3, 5});
  const Tensor y = built(x, [](Value v) { return nn::depthwise_conv(v, 3, 2, {.stride = 2, .padding = 1, .use_bias = false}); }, model);
  EXPECT_EQ(y.shape(), (std::vector<std::int64_t>{1, 6, 3}));
  expect_near(y, conv_by_hand(values_of(x), 3, weight_values(model, "depthwise_conv/kernel"), 6, 3, 3, 2, 1, 3));
}

TEST(BuilderLayers, SeparableConvolutionsMixWhatEachChannelGave) {
  nn::Model model("separable");
  const Tensor x = wavy({1, 2, 5});
  const Tensor y = built(x, [](Value v) { return nn::separable_conv(v, 4, 3, {.same = true}); }, model);
  EXPECT_EQ(y.shape(), (std::vector<std::int64_t>{1, 4, 5}));
  const Numbers each = conv_by_hand(values_of(x), 2, weight_values(model, "separable_conv/depthwise_kernel"), 2, 2, 3, 1, 1, 5);
  expect_near(y, conv_by_hand(each, 2, weight_values(model, "separable_conv/pointwise_kernel"), 4, 1, 1, 1, 0, 5));
  EXPECT_EQ(weight_values(model, "separable_conv/bias"), Numbers(4, 0.0));
}

TEST(BuilderLayers, WindowsMayHaveAnExtentForEachAxis) {
  nn::Model model("tall");
  const Tensor y = built(wavy({1, 1, 4, 5}), [](Value v) { return nn::conv(v, 2, {3, 1}, {.use_bias = false}); }, model);
  EXPECT_EQ(y.shape(), (std::vector<std::int64_t>{1, 2, 2, 5}));
  const Numbers x = values_of(wavy({1, 1, 4, 5})), w = weight_values(model, "conv/kernel");
  Numbers expected;
  for (std::size_t o = 0; o < 2; ++o)
    for (std::size_t i = 0; i < 2; ++i)
      for (std::size_t j = 0; j < 5; ++j) expected.push_back(w[o * 3] * x[i * 5 + j] + w[o * 3 + 1] * x[(i + 1) * 5 + j] + w[o * 3 + 2] * x[(i + 2) * 5 + j]);
  expect_near(y, expected);
  expect_error(Code::kShape, "conv_1: its windows have 2 extents, and its input [N,1,4] has 1 spatial axes", [&] { nn::conv(model.input("row", {1, 4}), 2, {3, 1}); });
}

/// x[in,length] along one axis, each element times the window w[in,out,kernel], `before` elements cut off at the beginning.
Numbers conv_transpose_by_hand(const Numbers& x, std::size_t in, const Numbers& w, std::size_t out, std::size_t kernel, std::size_t stride, std::size_t before, std::size_t positions) {
  const std::size_t length = x.size() / in;
  Numbers y(out * positions);
  for (std::size_t c = 0; c < in; ++c)
    for (std::size_t o = 0; o < out; ++o)
      for (std::size_t i = 0; i < length; ++i)
        for (std::size_t k = 0; k < kernel; ++k)
          if (const std::size_t at = i * stride + k; at >= before and at - before < positions) y[o * positions + at - before] += x[c * length + i] * w[(c * out + o) * kernel + k];
  return y;
}

TEST(BuilderLayers, TransposedConvolutionsFollowTheFormula) {
  struct {
    nn::ConvTransposeOptions options;
    std::size_t kernel, before, positions;
  } const cases[] = {
      {{}, 3, 0, 6},                                         // (4 - 1) + 3
      {{.stride = 2, .padding = 1}, 3, 1, 7},                // 3 * 2 + 3 - 2
      {{.stride = 3, .output_padding = 2}, 2, 0, 13},        // 3 * 3 + 2 + 2
      {{.stride = 2, .same = true}, 3, 0, 8},                // as TensorFlow cuts it: one element, at the end
      {{.stride = 2, .same = true}, 4, 1, 8},
      {{.stride = 3, .same = true}, 2, 0, 12},
  };
  for (const auto& each : cases) {
    nn::Model model("transposed");
    const Tensor x = wavy({1, 2, 4});
    const Tensor y = built(x, [&](Value v) { return nn::conv_transpose(v, 3, static_cast<std::int64_t>(each.kernel), each.options); }, model);
    EXPECT_EQ(y.shape(), (std::vector<std::int64_t>{1, 3, static_cast<std::int64_t>(each.positions)}));
    expect_near(y, conv_transpose_by_hand(values_of(x), 2, weight_values(model, "conv_transpose/kernel"), 3, each.kernel, static_cast<std::size_t>(each.options.stride), each.before, each.positions));
  }
  nn::Model model("wrong");
  const Value x = model.input("x", {2, 4});
  expect_error(Code::kShape, "conv_transpose: the output's padding is 2, and the stride 2", [&] { nn::conv_transpose(x, 3, 3, {.stride = 2, .output_padding = 2}); });
  expect_error(Code::kShape, "a padding of 9 leaves nothing", [&] { nn::conv_transpose(x, 3, 3, {.padding = 9}); });
}

TEST(BuilderLayers, PoolsHaveAWindowForEachAxisAndPadAsAsked) {
  const Tensor x = f32({1, 1, 2, 5}, {1, 5, 2, 4, 3, -1, -5, -2, -4, -3});
  expect_near(built(x, [](Value v) { return nn::max_pool(v, {1, 2}); }), {5, 4, -1, -2});
  expect_near(built(x, [](Value v) { return nn::average_pool(v, {2, 1}); }), {0, 0, 0, 0, 0});
  expect_near(built(x, [](Value v) { return nn::max_pool(v, {2, 3}, {.stride = 1}); }), {5, 5, 4});
  // TensorFlow's SAME: an element more at the end, which is not counted.
  expect_near(built(x, [](Value v) { return nn::max_pool(v, {1, 2}, {.same = true}); }), {5, 4, 3, -1, -2, -3});
  expect_near(built(x, [](Value v) { return nn::average_pool(v, {1, 2}, {.same = true}); }), {3, 3, 3, -3, -3, -3});
  expect_near(built(x, [](Value v) { return nn::average_pool(v, {1, 3}, {.stride = 2, .same = true}); }), {3, 11.0 / 3, 3.5});
  nn::Model model("wrong");
  const Value image = model.input("x", {1, 4, 4});
  expect_error(Code::kShape, "max_pool: its windows have 3 extents, and its input [N,1,4,4] has 2 spatial axes", [&] { nn::max_pool(image, {1, 2, 3}); });
  expect_error(Code::kShape, "the padding is 1, and the window's extent 1", [&] { nn::max_pool(image, {1, 2}, {.padding = 1}); });
}

TEST(BuilderLayers, GlobalPoolsLookAtAllPositions) {
  const Tensor x = f32({1, 2, 2, 2}, {1, 2, 3, -6, -1, -2, -3, -4});
  expect_near(built(x, nn::global_max_pool), {3, -1});
  expect_near(built(x, nn::global_average_pool), {0, -2.5});
}

/// With one head and weights that are known: shares are the softmax of scaled products.
TEST(BuilderLayers, CrossAttentionLooksAtAnotherSequence) {
  nn::Model model("cross");
  constexpr std::size_t kPositions = 3, kSize = 4, kOthers = 2, kOtherSize = 5;
  const Value x = model.input("x", {kPositions, kSize}), memory = model.input("memory", {kOthers, kOtherSize});
  model.output("y", nn::cross_attention(x, memory, 1));
  const Tensor queries = wavy({1, kPositions, kSize}), others = wavy({1, kOthers, kOtherSize});
  const Numbers q = product(values_of(queries), weight_values(model, "cross_attention/query_kernel"), kSize), kv = product(values_of(others), weight_values(model, "cross_attention/key_value_kernel"), kOtherSize);
  Numbers attended(kPositions * kSize);
  for (std::size_t i = 0; i < kPositions; ++i) {
    Numbers share(kOthers);
    double all = 0;
    for (std::size_t j = 0; j < kOthers; ++j) {
      double score = 0;
      for (std::size_t c = 0; c < kSize; ++c) score += q[i * kSize + c] * kv[j * 2 * kSize + c];
      all += share[j] = std::exp(score / 2);
    }
    for (std::size_t j = 0; j < kOthers; ++j)
      for (std::size_t c = 0; c < kSize; ++c) attended[i * kSize + c] += share[j] / all * kv[j * 2 * kSize + kSize + c];
  }
  expect_near(output_of(model.graph(), {{"x", queries}, {"memory", others}}), product(attended, weight_values(model, "cross_attention/projection_kernel"), kSize));
  expect_error(Code::kShape, "is_causal is about positions of one sequence", [&] { nn::cross_attention(x, memory, 1, {.is_causal = true}); });
}

TEST(BuilderLayers, FormulasAreWhatTheirNamesSay) {
  const Numbers numbers = {-2, -0.5, 0.25, 3};
  const Tensor x = f32({1, 4}, {-2, -0.5, 0.25, 3});
  const auto expect_formula = [&](const std::function<Value(Value)>& layer, const std::function<double(double)>& formula) {
    Numbers expected;
    for (const double number : numbers) expected.push_back(formula(number));
    expect_near(built(x, layer), expected);
  };
  expect_formula(nn::silu, [](double v) { return v / (1 + std::exp(-v)); });
  expect_formula(nn::softplus, [](double v) { return std::log1p(std::exp(v)); });
  expect_formula([](Value v) { return nn::leaky_relu(v); }, [](double v) { return v > 0 ? v : 0.3 * v; });
  expect_formula([](Value v) { return nn::elu(v, 2); }, [](double v) { return v > 0 ? v : 2 * std::expm1(v); });
  expect_formula([](Value v) { return nn::log(nn::exp(nn::abs(v)) + 1); }, [](double v) { return std::log(std::exp(std::abs(v)) + 1); });
  expect_formula([](Value v) { return nn::sqrt(v * v) / 2 - 1; }, [](double v) { return std::abs(v) / 2 - 1; });
  expect_formula([](Value v) { return 2 * (1 - v) + 3 / (v - 4); }, [](double v) { return 2 * (1 - v) + 3 / (v - 4); });
  expect_formula([](Value v) { return nn::maximum(v, -v) - nn::minimum(v, 0.5 + v) / v; }, [](double v) { return std::abs(v) - 1; });
}

TEST(BuilderLayers, SumsMeansAndPartsAreAlongAxes) {
  const Tensor x = f32({1, 2, 3}, {1, 2, 3, 4, 5, 9});
  expect_near(built(x, [](Value v) { return nn::mean(v); }), {4});
  expect_near(built(x, [](Value v) { return nn::sum(v, {1}); }), {5, 7, 12});
  expect_near(built(x, [](Value v) { return nn::max(v, {-1}); }), {3, 9});
  const Tensor kept = built(x, [](Value v) { return v - nn::mean(v, {2}, true); });
  expect_near(kept, {-1, 0, 1, -2, -1, 3});
  expect_near(built(x, [](Value v) { return nn::mean(v, {2, 1}); }), {4});
  expect_near(built(x, [](Value v) { return nn::slice(v, 1, -1); }), {4, 5, 9});
  expect_near(built(x, [](Value v) { return nn::slice(v, -1, 0, -1); }), {1, 2, 4, 5});
  expect_near(built(x, [](Value v) { return nn::sum(nn::exp(nn::log_softmax(v)), {2}); }), {1, 1});
  nn::Model model("wrong");
  const Value v = model.input("x", {2, 3});
  expect_error(Code::kShape, "sum: its axes are 1, 1", [&] { nn::sum(v, {1, 1}); });
  expect_error(Code::kShape, "has no axis 0 beside", [&] { nn::mean(v, {0}); });
  expect_error(Code::kShape, "has no elements from 2 to before 2", [&] { nn::slice(v, 2, 2, 2); });
  expect_error(Code::kShape, "has no elements from -3 to before 2", [&] { nn::slice(v, 1, -3); });
}

}  // namespace
}  // namespace hone::test
