// Weights that exporters gave names of their own making, by the layers that read them: in patterns of model.freeze, model.train_only and
// optimizer.exclude_from_weight_decay.
#include <gmock/gmock.h>

#include "ir/builder.h"
#include "ir/ops/ops.h"
#include "passes/optimizers.h"
#include "passes/passes.h"
#include "passes/weight_names.h"
#include "tests/support/temp_folder.h"

namespace hone::test {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

/// y = x * cast(transpose(w)) + b in layer "enc/enc.0", behind it z = y * v in "head"; v has a name of its own.
Graph two_layers() {
  Graph graph;
  Builder builder(graph);
  const Type matrix{DType::kF32, {Dim(2), Dim(2)}};
  const auto weight = [&](const char* name, Type type) {
    return builder.input(Role::kWeight, name, type, Tensor::zeros(type.dtype, constant_shape(type.shape)));
  };
  const Val x = builder.input(Role::kInput, "x", matrix);
  const Val w = weight("onnx::MatMul_7", matrix), b = weight("val_3", {DType::kF32, {Dim(2)}}), v = weight("head.w", matrix);
  Val y;
  {
    const Builder::Scope scope(builder, Loc{.node = "/enc/enc.0/MatMul", .layer = "enc/enc.0"}, Part::kForward);
    y = op::matmul(x, transpose(w, {1, 0})) + b;
  }
  const Builder::Scope scope(builder, Loc{.node = "/head/MatMul", .layer = "head"}, Part::kForward);
  builder.output("z", op::matmul(y, v));
  return graph;
}

std::vector<std::string> trained(Recipe recipe) {
  Graph graph = two_layers();
  std::vector<std::string> names;
  for (const TrainedWeight& weight : select_weights(graph, recipe)) names.push_back(weight.name);
  return names;
}

TEST(WeightNames, AreThoseOfTheLayersThatReadThem) {
  const WeightNames names(two_layers());
  EXPECT_THAT(names.also_called("onnx::MatMul_7"), ElementsAre("enc.0.weight", "enc/enc.0/weight"));
  EXPECT_THAT(names.also_called("val_3"), ElementsAre("enc.0.bias", "enc/enc.0/bias"));
  EXPECT_THAT(names.also_called("head.w"), IsEmpty()) << "says itself where it is";
}

TEST(WeightNames, MayBeFrozenAndChosen) {
  EXPECT_THAT(trained({.model = {.freeze = {"enc.*"}}}), ElementsAre("head.w"));
  EXPECT_THAT(trained({.model = {.freeze = {"*.bias"}}}), ElementsAre("onnx::MatMul_7", "head.w"));
  EXPECT_THAT(trained({.model = {.train_only = {"enc.0.*"}}}), ElementsAre("onnx::MatMul_7", "val_3"));
  EXPECT_THAT(trained({.model = {.freeze = {"head.*"}}}), ElementsAre("onnx::MatMul_7", "val_3"));
  expect_error(Code::kRecipeModel, "did you mean \"enc.0.weight\"", [] { trained({.model = {.freeze = {"enc.0.weigth"}}}); });
}

TEST(WeightNames, MayBeLeftOutOfWeightDecay) {
  Recipe recipe;
  recipe.optimizer.kind = "adamw";
  recipe.optimizer.weight_decay = 0.5;
  recipe.optimizer.exclude_from_weight_decay = {"*.bias"};
  const Type vector{DType::kF32, {Dim(2)}};
  const auto decay = [&](std::vector<std::string> also_called) {
    const TrainedWeight weight{{}, "val_3", "", std::move(also_called)};
    return optimizer_attributes(recipe, *optimizer_for(recipe, weight, vector).op, weight)[kWeightDecay];
  };
  EXPECT_EQ(decay({}), 0.5);
  EXPECT_EQ(decay({"enc.0.bias"}), 0.0);
}

/// Keras's exclude_embeddings = True, where the recipe names nothing.
TEST(WeightNames, DecideWhatMuonLeavesToAdamW) {
  Recipe recipe;
  recipe.optimizer.kind = "muon";
  const Type matrix{DType::kF32, {Dim(4), Dim(2)}};
  const auto takes = [&](const std::string& name, bool is_matrix = true) { return optimizer_for(recipe, {.value = {}, .name = name, .part = "", .is_matrix = is_matrix}, matrix).kind == "muon"; };
  EXPECT_TRUE(takes("token_Embedding/embeddings"));
  EXPECT_FALSE(takes("bias", false)) << "[1,C]";
  recipe.train.convention = Convention::kKeras;
  EXPECT_FALSE(takes("token_Embedding/embeddings"));
  EXPECT_TRUE(takes("dense/kernel"));
  recipe.optimizer.exclude_from_muon = {"dense*"};
  EXPECT_TRUE(takes("token_Embedding/embeddings"));
  EXPECT_FALSE(takes("dense/kernel"));
}

}  // namespace
}  // namespace hone::test
