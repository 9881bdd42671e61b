// differentiate, train_batch_norm, select_weights.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "ir/kernel/interpret.h"
#include "ir/op.h"
#include "ir/ops/ops.h"
#include "ir/verify.h"
#include "passes/passes.h"
#include "tests/passes/pass_case.h"
#include "tests/support/temp_folder.h"

namespace hone::test {
namespace {

using testing::ElementsAre;

/// d sum(y) / d x as an expression; "none" where no gradient reaches x.
std::string gradient(std::string_view inputs, std::string_view statements, std::string_view wrt = "x") {
  Graph graph = small_graph(inputs, statements);
  const ValueId variables[] = {graph.find_input(wrt)->value};
  const ValueId result = differentiate(graph, graph.find_output("y")->value, variables)[0];
  verify(graph);
  return result.valid() ? expression(graph, result) : "none";
}

TEST(Differentiate, StartsWithOnesAndFollowsTheFormulas) {
  EXPECT_EQ(gradient("input %x: f32[2]", "%y = neg(%x)"), "neg(broadcast_to(1){shape=[2]})");
  EXPECT_EQ(gradient("input %x: f32[]", "%y = exp(%x)"), "mul(1, exp(x))");
  EXPECT_EQ(gradient("input %x: f32[], input %z: f32[]", "%y = mul(%x, %z)"), "mul(1, z)");
}

TEST(Differentiate, AddsWhatFlowsFromSeveralReaders) {
  EXPECT_EQ(gradient("input %x: f32[], input %z: f32[]", "%y = add(%x, %x)"), "add(1, 1)");
  EXPECT_EQ(gradient("input %x: f32[]", "%a = neg(%x); %y = add(%a, %x)"), "add(1, neg(1))");
}

TEST(Differentiate, SumsOverBroadcastAxes) {
  EXPECT_EQ(gradient("input %x: f32[3], input %z: f32[2,3]", "%y = add(%z, %x)"),
            "reshape(reduce_sum(broadcast_to(1){shape=[2,3]}){axes=[0], keep_dims=true}){shape=[3]}");
  EXPECT_EQ(gradient("input %x: f32[2,1], input %z: f32[2,3]", "%y = add(%z, %x)"), "reduce_sum(broadcast_to(1){shape=[2,3]}){axes=[1], keep_dims=true}");
}

TEST(Differentiate, NothingReachesWhatYDoesNotDependOn) {
  EXPECT_EQ(gradient("input %x: f32[], input %z: f32[]", "%y = neg(%z)"), "none");
  EXPECT_EQ(gradient("input %x: f32[]", "%a = stop_gradient(%x); %y = neg(%a)"), "none");
  EXPECT_EQ(gradient("input %x: f32[]", "%a = cast(%x) {to=i64}; %y = cast(%a) {to=f32}"), "none") << "integers carry no gradient";
  EXPECT_EQ(gradient("input %x: f32[], input %z: f32[]", "%c = less(%x, %z); %y = where(%c, %z, %z)"), "none");
}

TEST(Differentiate, NoNodesWhereNothingIsWanted) {
  Graph graph = small_graph("input %x: f32[], input %z: f32[]", "%a = exp(%z); %y = mul(%a, %x)");
  const ValueId variables[] = {graph.find_input("x")->value};
  (void)differentiate(graph, graph.find_output("y")->value, variables);
  for (const Node& node : graph.nodes())
    if (node.part == Part::kBackward) EXPECT_NE(node.loc.derived, "") << "backward nodes say what they derive from";
}

TEST(Differentiate, OpsThatMustBeExpandedFirstAreNamed) {
  expect_error(Code::kNoGradient, "reduce_mean", [] { gradient("input %x: f32[2,3]", "%y = reduce_mean(%x) {axes=[1]}"); });
}

constexpr std::string_view kStatistics =
    "input %x: f32[N,2], weight %s: f32[2] = [1, 1], weight %b: f32[2] = [0, 0], weight %mean: f32[2] = [1, 2], weight %variance: f32[2] = [4, 9]";
constexpr std::string_view kNormalize = "%y = batch_norm(%x, %s, %b, %mean, %variance) {epsilon=0.5, momentum=0.75}";

TEST(TrainBatchNorm, NormalizesWithTheBatchAndMovesTheStatistics) {
  for (const Convention convention : {Convention::kTorch, Convention::kKeras}) {
    Graph graph = small_graph(kStatistics, kNormalize);
    EXPECT_EQ(train_batch_norm(graph, convention), Changed::kYes);
    EXPECT_EQ(graph.find_input("mean")->role, Role::kState);
    EXPECT_EQ(graph.find_input("variance")->role, Role::kState);
    (void)expand(graph);
    verify(graph);
    // Column 0: 1, 3, 5: mean 3, variance 8/3, unbiased 4. Column 1 is 7 throughout.
    const GraphResults results = interpret(graph, {{"x", Tensor::of<double>({3, 2}, std::vector<double>{1, 7, 3, 7, 5, 7})}}, Precision::kDouble);
    const double biased = 8. / 3, observed = convention == Convention::kTorch ? 4 : biased;
    EXPECT_NEAR(results["y"].at(0), -2 / std::sqrt(biased + 0.5), 1e-12);
    EXPECT_NEAR(results["y"].at(1), 0, 1e-12);
    EXPECT_NEAR(results["mean"].at(0), 0.75 * 1 + 0.25 * 3, 1e-12);
    EXPECT_NEAR(results["mean"].at(1), 0.75 * 2 + 0.25 * 7, 1e-12);
    EXPECT_NEAR(results["variance"].at(0), 0.75 * 4 + 0.25 * observed, 1e-12);
    EXPECT_NEAR(results["variance"].at(1), 0.75 * 9, 1e-12);
  }
}

TEST(TrainBatchNorm, StatisticsThatTwoNodesShareAreMovedByOneAfterTheOther) {
  Graph graph = small_graph(kStatistics, std::string(kNormalize) + "\n%z = batch_norm(%y, %s, %b, %mean, %variance) {epsilon=0.5, momentum=0.75}");
  EXPECT_EQ(train_batch_norm(graph, Convention::kKeras), Changed::kYes);
  (void)expand(graph);
  verify(graph);
  const GraphResults results = interpret(graph, {{"x", Tensor::of<double>({3, 2}, std::vector<double>{1, 7, 3, 7, 5, 7})}}, Precision::kDouble);
  const double first = 8. / 3, second = first / (first + 0.5);  // the second node sees normalized values
  EXPECT_NEAR(results["mean"].at(0), 0.75 * (0.75 * 1 + 0.25 * 3), 1e-12);
  EXPECT_NEAR(results["variance"].at(0), 0.75 * (0.75 * 4 + 0.25 * first) + 0.25 * second, 1e-12);
}

constexpr std::string_view kNormalizeTraining =
    "%y, %new_mean, %new_variance = batch_norm_train(%x, %s, %b, %mean, %variance) {epsilon=0.5, keras=true, momentum=0.75}";

TEST(TrainBatchNorm, TakesNodesExportedForTrainingToo) {
  Graph graph = small_graph(kStatistics, kNormalizeTraining);
  EXPECT_EQ(train_batch_norm(graph, Convention::kTorch), Changed::kYes);
  EXPECT_EQ(graph.find_input("mean")->role, Role::kState);
  EXPECT_EQ(graph.aliases().size(), 2U);
  EXPECT_FALSE(graph.nodes()[0].attrs[kKeras]);
  verify(graph);
}

TEST(FreezeBatchNorm, NormalizesWithStatisticsThatNothingTrains) {
  for (const std::string_view node : {kNormalize, kNormalizeTraining}) {
    Graph graph = small_graph(kStatistics, node);
    EXPECT_EQ(freeze_batch_norm(graph), Changed::kYes);
    EXPECT_EQ(*graph.nodes()[0].op, op::batch_norm);
    EXPECT_EQ(graph.find_input("mean")->role, Role::kState);
    EXPECT_TRUE(graph.aliases().empty());
    (void)expand(graph);
    verify(graph);
    for (const TrainedWeight& weight : select_weights(graph, Recipe{})) EXPECT_TRUE(weight.name == "s" or weight.name == "b") << weight.name;
  }
}

TEST(TrainBatchNorm, LeavesStatisticsThatAreNoWeights) {
  Graph fed =
      small_graph("input %x: f32[N,2], weight %s: f32[2] = [1, 1], weight %b: f32[2] = [0, 0], input %mean: f32[2], input %variance: f32[2]", kNormalize);
  EXPECT_EQ(train_batch_norm(fed, Convention::kTorch), Changed::kNo);
  Graph none = small_graph("input %x: f32[2]", "%y = neg(%x)");
  EXPECT_EQ(train_batch_norm(none, Convention::kTorch), Changed::kNo);
}

Graph weights_graph() {
  return small_graph(
      "input %x: f32[2], weight %conv1.w: f32[2] = [1, 2], weight %conv1.b: f32[2] = [0, 0], weight %fc.w: f32[2] = [1, 1], weight %ids: i64[2] = [1, 2], "
      "constant %fixed: f32[2] = "
      "[1, 2]",
      "%a = mul(%x, %conv1.w); %b = add(%a, %conv1.b); %c = mul(%b, %fc.w); %y = mul(%c, %fixed)");
}

std::vector<std::string> selected(std::vector<std::string> train_only, std::vector<std::string> freeze) {
  Graph graph = weights_graph();
  Recipe recipe;
  recipe.model.train_only = std::move(train_only);
  recipe.model.freeze = std::move(freeze);
  std::vector<std::string> names;
  for (const TrainedWeight& weight : select_weights(graph, recipe)) {
    EXPECT_EQ(graph.input_of(weight.value)->role, Role::kWeight);
    EXPECT_EQ(graph.input_of(weight.value)->name, weight.name);
    names.push_back(weight.name + weight.part);
  }
  return names;
}

TEST(SelectWeights, AllFloatsByDefault) { EXPECT_THAT(selected({}, {}), ElementsAre("conv1.w", "conv1.b", "fc.w")); }

TEST(SelectWeights, PatternsAndParts) {
  EXPECT_THAT(selected({}, {"conv1.*"}), ElementsAre("fc.w"));
  EXPECT_THAT(selected({}, {"conv1.b"}), ElementsAre("conv1.w", "fc.w"));
  EXPECT_THAT(selected({"*.w"}, {}), ElementsAre("conv1.w", "fc.w"));
  EXPECT_THAT(selected({"*.w"}, {"fc*"}), ElementsAre("conv1.w"));
  EXPECT_THAT(selected({"fc.w[0:1]"}, {}), ElementsAre("fc.w[0:1]"));
  EXPECT_THAT(selected({"fc.w", "*"}, {}), ElementsAre("fc.w", "conv1.w", "conv1.b")) << "each once";
}

TEST(SelectWeights, ConstantsOfTheFileAreWeightsWhenTheyAreNamed) {
  EXPECT_THAT(selected({"fixed"}, {}), ElementsAre("fixed")) << "a rank-0 parameter, for one, looks like an epsilon";
  EXPECT_THAT(selected({"fix*"}, {}), ElementsAre("fixed"));
  EXPECT_THAT(selected({"f*"}, {}), ElementsAre("fc.w")) << "where a pattern finds weights, it means those";
}

struct Drawn {
  double deviation = 0, largest = 0;
};
/// What he_normal gives a matrix that the model reads as it is, or transposed.
Drawn drawn(bool transposed, Convention convention = Convention::kTorch) {
  Graph graph;
  Builder builder(graph);
  const Val x = builder.input(Role::kInput, "x", {DType::kF32, {4, 50}});
  const std::vector<std::int64_t> shape = transposed ? std::vector<std::int64_t>{800, 50} : std::vector<std::int64_t>{50, 800};
  const Val w = builder.input(Role::kWeight, "w", {DType::kF32, shape_of(shape)}, Tensor::zeros(DType::kF32, shape));
  builder.output("y", op::matmul(x, transposed ? op::transpose(w, {kPerm = Ints{1, 0}}) : w));
  Recipe recipe;
  recipe.model.initialize = "he_normal";
  recipe.train.convention = convention;
  const TrainedWeight weight{w.id(), "w", ""};
  initialize_weights(graph, recipe, std::span(&weight, 1));
  double sum = 0, largest = 0;
  for (std::int64_t i = 0; i < 40000; ++i) {
    const double number = graph.find_input("w")->data->at(i);
    sum += number * number;
    largest = std::max(largest, std::abs(number));
  }
  return {std::sqrt(sum / 40000), largest};
}

TEST(InitializeWeights, CountsWhatGoesIntoAnOutput) {
  EXPECT_NEAR(drawn(false).deviation, std::sqrt(2.0 / 50), 0.004);
  EXPECT_NEAR(drawn(true).deviation, std::sqrt(2.0 / 50), 0.004) << "as PyTorch stores it";
}

/// Keras's VarianceScaling draws from a truncated distribution of that deviation, PyTorch's kaiming_normal_ from a whole one.
TEST(InitializeWeights, KerasCutsNormalsOff) {
  const double deviation = std::sqrt(2.0 / 50), end = 2 * deviation / 0.8796;
  EXPECT_GT(drawn(false).largest, 3.5 * deviation);
  const Drawn cut = drawn(false, Convention::kKeras);
  EXPECT_NEAR(cut.deviation, deviation, 0.004);
  EXPECT_LT(cut.largest, end);
  EXPECT_GT(cut.largest, 0.99 * end);
}

TEST(SelectWeights, APatternThatMatchesNothingIsRefusedWithTheNearestName) {
  expect_error(Code::kRecipeModel, "did you mean \"fc.w\"", [] { selected({"fc.v"}, {}); });
  expect_error(Code::kRecipeModel, "model.freeze", [] { selected({}, {"nothing*"}); });
  expect_error(Code::kRecipeModel, "ids", [] { selected({"ids"}, {}); });
}

TEST(SelectWeights, RunningStatisticsAreMovedNotTrained) {
  Graph graph = small_graph(kStatistics, kNormalize);
  std::vector<std::string> names;
  for (const TrainedWeight& weight : select_weights(graph, {})) names.push_back(weight.name);
  EXPECT_THAT(names, ElementsAre("s", "b"));
}

TEST(SelectWeights, BiasesAndScalesAreNoMatricesHoweverTheyAreStored) {
  Graph graph = small_graph(
      "input %x: f32[N,3,4,1], weight %scale: f32[3,1,1] = [1, 1, 1], weight %bias: f32[1,3,1,1] = [0, 0, 0], weight %folded: f32[3,1] = [0, 0, 0], weight %vector: f32[1] = [0], "
      "weight %one: f32[1,3] = [1, 2, 3], weight %table: f32[3,1] = [1, 2, 3], input %ids: i64[N]",
      "%a = mul(%x, %scale); %b = add(%a, %bias); %c = reshape(%folded) {shape=[3,1,1]}; %d = add(%b, %c); %e = add(%d, %vector); %g = gather(%table, %ids) {axis=0}; %y = matmul(%e, %one)");
  std::vector<std::string> matrices;
  for (const TrainedWeight& weight : select_weights(graph, {}))
    if (weight.is_matrix) matrices.push_back(weight.name);
  EXPECT_THAT(matrices, ElementsAre("one", "table"));
}

TEST(RemoveDropout, KeepsEverything) {
  Graph graph = small_graph("input %x: f32[4], input %r: f32[]", "%d, %kept = dropout(%x, %r, -) {seed=2, stream=1}; %y = where(%kept, %d, %d)");
  ASSERT_EQ(remove_dropout(graph), Changed::kYes);
  verify(graph);
  EXPECT_EQ(expression(graph), "where(broadcast_to(1){shape=[4]}, x, x)");
}

}  // namespace
}  // namespace hone::test
