// Models in f16 and bf16, trained with weights in f32 behind what they read, against PyTorch (master_weights.json, which make_master_weights.py writes).
#include "passes/master_weights.h"

#include "ir/kernel/interpret.h"
#include "ir/ops/ops.h"
#include "ir/verify.h"
#include "passes/pipeline.h"
#include "tests/golden_numbers/golden_file.h"
#include "tests/support/tensor_values.h"

namespace hone::test {
namespace {

/// y = x w + b as PyTorch's script has it, in a narrow type; `x` is fed in f32.
Graph dense(DType dtype) {
  Graph graph;
  Builder builder(graph);
  const Val x = cast(builder.input(Role::kInput, "x", {DType::kF32, {Dim::symbol("N"), 3}}), dtype);
  const Val w = builder.input(Role::kWeight, "w", {dtype, {3, 2}}, Tensor::of<double>({3, 2}, std::vector<double>{0.5, -1.25, 2, 0.375, 1, -0.5}).cast(dtype));
  const Val b = builder.input(Role::kWeight, "b", {dtype, {2}}, Tensor::of<double>({2}, std::vector<double>{0.25, 0}).cast(dtype));
  builder.output("y", op::matmul(x, w) + b);
  return graph;
}

TEST(GoldenNumbers, MasterWeights) {
  for (const Json& golden : golden_cases("master_weights")) {
    SCOPED_TRACE(golden["dtype"].get<std::string>() + " " + golden["recipe"].get<std::string>());
    const Recipe recipe = recipe_of(golden);
    const DType dtype = *dtype_from_name(golden["dtype"].get<std::string>());
    TrainingReport report;
    const std::vector<EntryGraph> entries = build_entries(dense(dtype), recipe, report);
    ASSERT_EQ(entries[0].name, "train_step");
    verify(entries[0].graph);
    ASSERT_EQ(report.narrowed.size(), 2U);
    EXPECT_EQ(report.narrowed[0].kept, DType::kF32);
    EXPECT_EQ(report.narrowed[0].outside, dtype);
    Feeds feeds;
    feeds["learning_rate"] = Tensor::scalar(recipe.optimizer.learning_rate);
    for (const Json& step : golden["steps"]) {
      feeds["x"] = Tensor::of<double>({2, 3}, numbers_of(step["x"])).cast(DType::kF32);
      feeds["target"] = Tensor::of<double>({2, 2}, numbers_of(step["target"])).cast(DType::kF32);
      const GraphResults results = interpret(entries[0].graph, feeds, Precision::kFloat);
      for (const NamedTensor& state : results.states) feeds[state.name] = state.value;
      expect_same({results["loss_sum"].at(0) / results["target_count"].at(0)}, {step["loss"].get<double>()}, "loss");
      expect_same(elements(feeds.at("w")), numbers_of(step["weight"]), "weight");
      expect_same(elements(feeds.at("b")), numbers_of(step["bias"]), "bias");
    }
  }
}

TEST(MasterWeights, AreOfTrainedWeightsAlone) {
  Recipe recipe = recipe_of(golden_cases("master_weights")[0]);
  recipe.model.freeze = {"w"};
  TrainingReport report;
  const std::vector<EntryGraph> entries = build_entries(dense(DType::kF16), recipe, report);
  ASSERT_EQ(report.narrowed.size(), 1U);
  EXPECT_EQ(report.narrowed[0].name, "b");
  for (const EntryGraph& entry : entries) {  // all entries read the same weights
    EXPECT_EQ(entry.graph.type(entry.graph.find_input("w")->value).dtype, DType::kF16) << entry.name;
    EXPECT_EQ(entry.graph.type(entry.graph.find_input("b")->value).dtype, DType::kF32) << entry.name;
  }
}

TEST(MasterWeights, AreNotThereWhereNothingTrains) {
  TrainingReport report;
  const std::vector<EntryGraph> entries = build_entries(dense(DType::kF16), {}, report);
  EXPECT_TRUE(report.narrowed.empty());
  EXPECT_EQ(entries[0].graph.type(entries[0].graph.find_input("w")->value).dtype, DType::kF16);
}

}  // namespace
}  // namespace hone::test
