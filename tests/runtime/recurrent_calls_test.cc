// Recurrent layers as calls of a device's library, end to end: small models whose plans have the calls and bodies beside them, which train alike, and as loops do on the CPU.
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

constexpr std::int64_t kLayerBatch = 4, kLayerSteps = 24, kLayerFeatures = 6, kLayerUnits = 16;

using WriteLayers = nn::Value (*)(nn::Value x);

/// A classifier of sequences.
plan::Plan plan_of_layers(WriteLayers write, const std::string& precision = "f32") {
  const test::TempFolder folder;
  nn::Model model("sequences");
  model.output("y", nn::dense(write(model.input("x", {kLayerSteps, kLayerFeatures})), 3));
  save_model(model, folder / "sequences.onnx");
  const std::string recipe = "[loss]\nkind = \"softmax_cross_entropy\"\n[optimizer]\nkind = \"adam\"\nlearning_rate = 0.02\n[train]\nprecision = \"" + precision + "\"\n";
  return compile_model(folder / "sequences.onnx", read_recipe_text(recipe), {.targets = {"sim", "cpu"}, .levels = {"native"}});
}

nn::Value one_lstm(nn::Value x) { return nn::lstm(x, kLayerUnits); }
nn::Value two_lstms(nn::Value x) { return nn::lstm(nn::lstm(x, kLayerUnits, {.return_sequences = true}), kLayerUnits); }
nn::Value one_gru(nn::Value x) { return nn::gru(x, kLayerUnits); }
nn::Value old_gru(nn::Value x) { return nn::gru(x, kLayerUnits, {.reset_after = false}); }

const plan::Program& program_of(const plan::Plan& plan, const std::string& target) {
  return *std::ranges::find_if(plan.programs, [&](const plan::Program& program) { return program.target == target; });
}

std::vector<std::string> layer_calls(const plan::Plan& plan) {
  std::vector<std::string> rows;
  for (const plan::Step& step : program_of(plan, "sim").find(plan::kTrainStep)->steps)
    if (const auto* region = std::get_if<plan::RegionStep>(&step.what); region != nullptr and region->kind == plan::RegionStep::Kind::kCall) rows.push_back(region->row);
  return rows;
}

struct TrainedLayers {
  std::vector<double> losses;
  MemoryReport memory;
};
TrainedLayers trained_layers(const plan::Plan& plan, const std::string& device = "sim") {
  std::vector<float> numbers(kLayerBatch * kLayerSteps * kLayerFeatures);
  for (std::size_t i = 0; i < numbers.size(); ++i) numbers[i] = std::sin(static_cast<float>(i) * 0.37F);
  std::vector<std::int64_t> classes(kLayerBatch);
  for (std::size_t i = 0; i < classes.size(); ++i) classes[i] = static_cast<std::int64_t>(i % 3);
  const Tensor x = Tensor::of<float>({kLayerBatch, kLayerSteps, kLayerFeatures}, std::span<const float>(numbers)), target = Tensor::of<std::int64_t>({kLayerBatch}, std::span<const std::int64_t>(classes)), rate = Tensor::scalar(0.02);
  Session session(plan, {.device = device, .threads = 1});
  TrainedLayers trained;
  for (int step = 0; step < 8; ++step) {
    session.run(plan::kTrainStep, Feeds{{"x", x}, {"target", target}, {"learning_rate", rate}});
    trained.losses.push_back(session.result_tensor(plan::kLossSum).at(0) / kLayerBatch);
  }
  trained.memory = session.memory(plan::kTrainStep);
  return trained;
}

void expect_near(const std::vector<double>& found, const std::vector<double>& wanted, double by, const std::string& what) {
  ASSERT_EQ(found.size(), wanted.size()) << what;
  for (std::size_t i = 0; i < found.size(); ++i) EXPECT_NEAR(found[i], wanted[i], by) << what << ", step " << i;
}

TEST(RecurrentCalls, AreOneForwardAndOneBackwardOfEachLayer) {
  using ::testing::ElementsAre;
  EXPECT_THAT(layer_calls(plan_of_layers(one_lstm)), ElementsAre("cudnn.recurrent", "cudnn.recurrent_grad"));
  EXPECT_THAT(layer_calls(plan_of_layers(two_lstms)), ElementsAre("cudnn.recurrent", "cudnn.recurrent", "cudnn.recurrent_grad", "cudnn.recurrent_grad"));
  EXPECT_THAT(layer_calls(plan_of_layers(one_gru)), ElementsAre("cudnn.recurrent", "cudnn.recurrent_grad"));
  EXPECT_THAT(layer_calls(plan_of_layers(old_gru)), testing::IsEmpty()) << "it resets h before it multiplies";
  for (const char* precision : {"bf16", "f16", "tf32"}) EXPECT_THAT(layer_calls(plan_of_layers(one_lstm, precision)), ElementsAre("cudnn.recurrent", "cudnn.recurrent_grad")) << precision;
}

TEST(RecurrentCalls, TrainAsTheirBodiesAndAsLoopsDo) {
  for (const WriteLayers write : {one_lstm, two_lstms, one_gru}) {
    const plan::Plan plan = plan_of_layers(write);
    const std::vector<double> calls = trained_layers(plan).losses;
    EXPECT_EQ(trained_layers(plan).losses, calls);
    EXPECT_LT(calls.back(), 0.9 * calls.front());
    expect_near(trained_layers(plan, "cpu").losses, calls, 1e-4, "loops");
    const test::ScopedVariable without("HONE_SIM", "libraries=0");
    const std::vector<double> bodies = trained_layers(plan).losses;
    EXPECT_EQ(trained_layers(plan).losses, bodies);
    expect_near(bodies, calls, 1e-4, "bodies");
    const test::ScopedVariable one_by_one("HONE_SIM", "libraries=0,graphs=0");
    EXPECT_EQ(trained_layers(plan).losses, bodies) << "whether or not steps are captured";
  }
}

TEST(RecurrentCalls, KeepF32StatesWhateverIsMultiplied) {
  const plan::Plan plan = plan_of_layers(one_lstm, "bf16");
  const std::vector<double> wanted = trained_layers(plan_of_layers(one_lstm), "cpu").losses;
  expect_near(trained_layers(plan).losses, wanted, 0.02, "calls");
  const test::ScopedVariable without("HONE_SIM", "libraries=0");
  expect_near(trained_layers(plan).losses, wanted, 0.02, "bodies");
}

/// On the way to the gradients a loop stacks its gates.
TEST(RecurrentCalls, TakeNoMemoryForGates) {
  const plan::Plan plan = plan_of_layers(two_lstms);
  constexpr std::int64_t kGates = 4 * kLayerSteps * kLayerBatch * kLayerUnits * 4;
  const std::int64_t promised = arena_size(*program_of(plan, "sim").find(plan::kTrainStep), sizes_for(plan.batch_symbol, kLayerBatch)).value().bytes;
  EXPECT_LT(promised, arena_size(*program_of(plan, "cpu").find(plan::kTrainStep), sizes_for(plan.batch_symbol, kLayerBatch)).value().bytes);
  EXPECT_EQ(trained_layers(plan).memory.arena, promised);
  const test::ScopedVariable without("HONE_SIM", "libraries=0");
  EXPECT_GT(trained_layers(plan).memory.arena, promised + kGates) << "bodies have them while they run";
}

}  // namespace
}  // namespace hone
