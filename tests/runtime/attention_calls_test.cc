// Attention as calls of a device's library, end to end: a small causal model whose plan has the calls and bodies beside them, which train alike, and in which no matrix of scores is memory.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>

#include "api/hone.h"
#include "runtime/library/arena.h"
#include "tests/runtime/hand_plan.h"
#include "tests/support/environment.h"
#include "tests/support/temp_folder.h"

namespace hone {
namespace {

constexpr std::int64_t kBatch = 4, kPositions = 128, kFeatures = 16, kHeads = 2;

plan::Plan compiled_in(const std::string& precision) {
  const test::TempFolder folder;
  nn::Model model("attentive");
  const nn::Value x = nn::self_attention(model.input("x", {kPositions, kFeatures}), kHeads, {.is_causal = true});
  model.output("y", nn::dense(x, 3));
  save_model(model, folder / "attentive.onnx");
  const std::string recipe = "[loss]\nkind = \"softmax_cross_entropy\"\n[optimizer]\nkind = \"adam\"\nlearning_rate = 0.02\n[train]\nprecision = \"" + precision + "\"\n";
  return compile_model(folder / "attentive.onnx", read_recipe_text(recipe), {.targets = {"sim"}, .levels = {"native"}});
}

const plan::Entry& train_step(const plan::Plan& plan) { return *plan.programs.front().find(plan::kTrainStep); }

std::vector<std::string> calls_of(const plan::Entry& entry) {
  std::vector<std::string> rows;
  for (const plan::Step& step : entry.steps)
    if (const auto* region = std::get_if<plan::RegionStep>(&step.what); region != nullptr and region->kind == plan::RegionStep::Kind::kCall) rows.push_back(region->row);
  return rows;
}

struct Trained {
  std::vector<double> losses;
  MemoryReport memory;
};
Trained trained_on_sim(const plan::Plan& plan) {
  std::vector<float> numbers(kBatch * kPositions * kFeatures);
  for (std::size_t i = 0; i < numbers.size(); ++i) numbers[i] = std::sin(static_cast<float>(i) * 0.37F);
  std::vector<std::int64_t> classes(kBatch * kPositions);
  for (std::size_t i = 0; i < classes.size(); ++i) classes[i] = static_cast<std::int64_t>(i * i % 3);
  const Tensor x = Tensor::of<float>({kBatch, kPositions, kFeatures}, std::span<const float>(numbers)), target = Tensor::of<std::int64_t>({kBatch, kPositions}, std::span<const std::int64_t>(classes)), rate = Tensor::scalar(0.02);
  Session session(plan, {.device = "sim", .threads = 1});
  Trained trained;
  for (int step = 0; step < 6; ++step) {
    session.run(plan::kTrainStep, Feeds{{"x", x}, {"target", target}, {"learning_rate", rate}});
    trained.losses.push_back(session.result_tensor(plan::kLossSum).at(0) / (kBatch * kPositions));
  }
  trained.memory = session.memory(plan::kTrainStep);
  return trained;
}

TEST(AttentionCalls, AreOneForwardAndOneBackwardInNarrowTypes) {
  for (const char* precision : {"bf16", "f16"}) EXPECT_THAT(calls_of(train_step(compiled_in(precision))), testing::ElementsAre("cudnn.attention", "cudnn.attention_grad")) << precision;
  EXPECT_THAT(calls_of(train_step(compiled_in("f32"))), testing::IsEmpty());
}

TEST(AttentionCalls, TrainAsTheirBodiesDoAndTheSameEveryTime) {
  const plan::Plan plan = compiled_in("bf16");
  const Trained calls = trained_on_sim(plan);
  EXPECT_EQ(trained_on_sim(plan).losses, calls.losses);
  EXPECT_LT(calls.losses.back(), calls.losses.front());
  const test::ScopedVariable without("HONE_SIM", "libraries=0");
  const Trained bodies = trained_on_sim(plan);
  EXPECT_EQ(trained_on_sim(plan).losses, bodies.losses);
  for (std::size_t i = 0; i < calls.losses.size(); ++i) EXPECT_NEAR(bodies.losses[i], calls.losses[i], 0.01) << "step " << i;
}

/// Nor without graphs, whose replays must have the same addresses.
TEST(AttentionCalls, BodiesDoNotDependOnWhetherStepsAreCaptured) {
  const plan::Plan plan = compiled_in("bf16");
  std::vector<double> captured;
  {
    const test::ScopedVariable without("HONE_SIM", "libraries=0");
    captured = trained_on_sim(plan).losses;
  }
  const test::ScopedVariable without("HONE_SIM", "libraries=0,graphs=0");
  EXPECT_EQ(trained_on_sim(plan).losses, captured);
}

TEST(AttentionCalls, TakeNoMemoryForScores) {
  constexpr std::int64_t kScores = kBatch * kHeads * kPositions * kPositions;
  const plan::Plan plan = compiled_in("bf16");
  const std::int64_t promised = arena_size(train_step(plan), sizes_for(plan.batch_symbol, kBatch)).value().bytes;
  EXPECT_LT(promised, 2 * kScores) << "a narrow number for each score";
  EXPECT_EQ(trained_on_sim(plan).memory.arena, promised);
  const test::ScopedVariable without("HONE_SIM", "libraries=0");
  EXPECT_GT(trained_on_sim(plan).memory.arena, promised + 4 * kScores) << "bodies have them while they run";
}

TEST(AttentionCalls, AreLeftOutWithTheLibrary) {
  const test::TempFolder folder;
  nn::Model model("attentive");
  model.output("y", nn::dense(nn::self_attention(model.input("x", {kPositions, kFeatures}), kHeads), 3));
  save_model(model, folder / "attentive.onnx");
  const Recipe recipe = read_recipe_text("[loss]\nkind = \"softmax_cross_entropy\"\n[optimizer]\nkind = \"sgd\"\n[train]\nprecision = \"bf16\"\nkeep_f32 = [\"*MatMul*\"]\n");
  EXPECT_THAT(calls_of(train_step(compile_model(folder / "attentive.onnx", recipe, {.targets = {"sim"}, .levels = {"native"}}))), testing::IsEmpty()) << "train.keep_f32 names its products";
}

}  // namespace
}  // namespace hone
