// Frozen weights that are kept in bf16 or int8: what becomes of the graph, which weights are left, and what is refused.
#include "passes/frozen_precision.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "ir/kernel/interpret.h"
#include "ir/ops/ops.h"
#include "ir/verify.h"
#include "tests/passes/pass_case.h"
#include "tests/support/temp_folder.h"

namespace hone::test {
namespace {

using ::testing::HasSubstr;

Recipe recipe_with(std::string precision) {
  Recipe recipe;
  recipe.model.frozen_precision = std::move(precision);
  return recipe;
}

constexpr std::string_view kInputs = "input %x: f32[N,2], weight %w: f32[2,3] = [1.27, 2, 0.5, -1, 2.54, 0.25], weight %v: f32[4,3] = [1,1,1,1,1,1,1,1,1,1,1,1], weight %b: f32[3] = [1,2,3]";
constexpr std::string_view kDense = "%1 = matmul(%x, %w); %2 = add(%1, %b); %y = matmul(%2, %v) {tb=true}";

std::string narrowed(std::string_view precision, const std::vector<std::string>& trained) {
  Graph graph = small_graph(kInputs, kDense);
  (void)narrow_frozen_weights(graph, recipe_with(std::string(precision)), trained);
  verify(graph);
  return expression(graph);
}

TEST(FrozenPrecision, ReadersReadThemWidened) {
  EXPECT_EQ(narrowed("bf16", {"v"}), "matmul(add(matmul(x, cast(w){to=f32}), b), v){tb=true}");
  EXPECT_EQ(narrowed("int8", {"v"}), "matmul(add(matmul(x, mul(cast(w){to=f32}, reshape(w/int8_scale){shape=[1,3]})), b), v){tb=true}");
  EXPECT_EQ(narrowed("int8", {"w"}), "matmul(add(matmul(x, w), b), mul(cast(v){to=f32}, reshape(v/int8_scale){shape=[4,1]})){tb=true}") << "of a transposed matrix rows are the outputs";
}

/// A filter [inputs, outputs, extents]: outputs 0 and 1 have scales 0.01 and 0.02.
TEST(FrozenPrecision, OfTransposedConvolutionsHasAScaleForEachOutput) {
  Graph graph = small_graph("input %x: f32[N,2,3], weight %w: f32[2,2,1] = [1.27, 2, -1, 2.54]", "%y = conv_input_grad(%x, %w) {strides=[1], dilations=[1], pads_begin=[0], pads_end=[0], groups=1, spatial=[3]}");
  (void)narrow_frozen_weights(graph, recipe_with("int8"), {});
  verify(graph);
  EXPECT_THAT(expression(graph), HasSubstr("mul(cast(w){to=f32}, reshape(w/int8_scale){shape=[1,2,1]})"));
  const GraphResults results = interpret(graph, {{"x", Tensor::of<float>({1, 2, 3}, std::vector<float>{1, 0, 0, 1, 0, 0})}}, Precision::kFloat);
  EXPECT_NEAR(results["y"].at(0), 0.27, 1e-6);
  EXPECT_NEAR(results["y"].at(3), 4.54, 1e-6);
}

TEST(FrozenPrecision, GivesWhatTheRoundedWeightsGive) {
  Graph graph = small_graph(kInputs, "%y = matmul(%x, %w)");
  (void)narrow_frozen_weights(graph, recipe_with("int8"), {});
  const GraphResults results = interpret(graph, {{"x", Tensor::of<float>({1, 2}, std::vector<float>{1, 1})}}, Precision::kFloat);
  // Columns have scales 0.01, 0.02 and 0.5 / 127: 1.27 and -1, 2 and 2.54 are multiples of them; 0.25 is 63.5 steps, and the even one is 64.
  EXPECT_NEAR(results["y"].at(0), 0.27, 1e-6);
  EXPECT_NEAR(results["y"].at(1), 4.54, 1e-6);
  EXPECT_NEAR(results["y"].at(2), 0.5 + 64 * 0.5 / 127, 1e-6);
}

TEST(FrozenPrecision, IsWidenedForEachReader) {
  Graph graph = small_graph(kInputs, "%1 = matmul(%x, %w); %y = matmul(%1, %w) {tb=true}");
  const std::vector<NarrowedWeight> weights = narrow_frozen_weights(graph, recipe_with("int8"), std::vector<std::string>{"v"});
  const std::string before = expression(graph);
  const auto casts = [&] { return std::ranges::count_if(graph.nodes(), [](const Node& node) { return *node.op == op::cast; }); };
  EXPECT_EQ(casts(), 1);
  EXPECT_EQ(widen_where_read(graph, weights), Changed::kYes);
  verify(graph);
  EXPECT_EQ(casts(), 2);
  EXPECT_EQ(expression(graph), before);
}

TEST(FrozenPrecision, NothingToNarrowIsRefused) {
  const auto refused = [](std::string_view inputs, std::string_view statements, std::string_view precision, const std::vector<std::string>& trained) -> std::string {
    Graph graph = small_graph(inputs, statements);
    try {
      (void)narrow_frozen_weights(graph, recipe_with(std::string(precision)), trained);
    } catch (const Error& error) { return error.what(); }
    return "not refused";
  };
  EXPECT_THAT(refused(kInputs, kDense, "int8", {"w", "v"}), HasSubstr("no weight is frozen that could be kept so"));
  EXPECT_THAT(refused("input %x: f64[N,2], weight %w: f64[2,2] = [1,2,3,4]", "%y = matmul(%x, %w)", "bf16", {}), HasSubstr("no weight is frozen"));
  EXPECT_THAT(refused("input %x: f32[2,2], weight %w: f32[2,2] = [1,2,3,4]", "%y = add(%x, %w)", "int8", {}), HasSubstr("no weight is frozen")) << "nobody knows its channels";
  EXPECT_THAT(refused("input %x: f32[N,2], weight %w: f32[2,2] = [1,2,inf,4]", "%y = matmul(%x, %w)", "bf16", {}), HasSubstr("infinite or NaN"));
}

}  // namespace
}  // namespace hone::test
