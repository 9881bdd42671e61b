// Where numbers stop being finite in a model whose data are good: the step is run again kernel by kernel, and the first bad one is named.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "api/hone.h"
#include "backends/compile.h"
#include "frontend/onnx/import.h"
#include "runtime/data/batches.h"
#include "runtime/train/evaluate.h"
#include "runtime/train/weights.h"
#include "tests/frontend/test_model.h"
#include "tests/support/host_level.h"
#include "tests/support/temp_folder.h"

namespace hone::test {
namespace {

using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::Not;

/// What it does to a batch whose last sample is all zeros; the samples before are 1 to 4.
enum class Ends { kInLogOfZero, kInZeroOverZero, kWell };

/// y = Log(Relu(x w)), or x w over its sum, or x w.
plan::Plan plan_that(Ends ends, std::int64_t accumulated = 1) {
  const TempFolder folder;
  TestModel model;
  model.input("x", {"N", 4}).initializer("w", f32({4, 2}, {1, 2, 3, 4, 5, 6, 7, 8})).initializer("last", ints({1})).output("y");
  model.node("MatMul", {"x", "w"}, {"h"}).named("dense");
  if (ends == Ends::kInLogOfZero) {
    model.node("Relu", {"h"}, {"r"}).named("relu");
    model.node("Log", {"r"}, {"y"}).named("logarithm");
  } else if (ends == Ends::kInZeroOverZero) {
    model.node("ReduceSum", {"h", "last"}, {"s"}).named("total");
    model.node("Div", {"h", "s"}, {"y"}).named("share");
  } else {
    model.node("Identity", {"h"}, {"y"}).named("as_it_is");
  }
  folder.write("model.onnx", model.proto.SerializeAsString());
  const std::string recipe = fmt::format("[loss]\nkind = \"mse\"\n[optimizer]\nkind = \"sgd\"\nlearning_rate = 1e-6\n[train]\ngradient_accumulation_steps = {}\n", accumulated);
  const onnx::Imported imported = onnx::import_model(folder / "model.onnx");
  return compile({imported.graph, imported.model, "model.onnx"}, read_recipe_text(recipe), {.levels = {.cpu = {host_level()}}}).plan;
}

/// Batches of four; of the last one the last sample is zero.
Dataset samples(std::int64_t batches = 3) {
  const std::int64_t rows = 4 * batches;
  std::vector<float> x;
  for (std::int64_t i = 0; i < rows * 4; ++i) x.push_back(i < (rows - 1) * 4 ? static_cast<float>(1 + i % 4) : 0.0F);
  return Dataset::from_tensor_slices({{"x", Tensor::of<float>({rows, 4}, std::span<const float>(x))}, {"y", Tensor::zeros(DType::kF32, {rows, 2})}}).batch(4);
}

std::string said_by(Trainer& trainer, const Dataset& data = samples(), const std::string& run_dir = "") {
  try {
    trainer.fit(data, {.epochs = 1, .run_dir = run_dir, .quiet = true});
  } catch (const Error& error) {
    EXPECT_EQ(error.exit_code(), 8);
    return error.what();
  }
  return "it went well";
}

const plan::Plan& plan_of(Ends ends, std::int64_t accumulated) {
  static std::map<std::pair<Ends, std::int64_t>, plan::Plan> plans;
  const auto [found, is_new] = plans.try_emplace({ends, accumulated});
  if (is_new) found->second = plan_that(ends, accumulated);
  return found->second;
}

/// On one device and on two, which get two samples each; with an update after every batch, and after two.
class WhereItEnds : public ::testing::TestWithParam<std::tuple<int, std::int64_t>> {
 protected:
  int replicas() const { return std::get<0>(GetParam()); }
  Trainer trainer(Ends ends) const { return Trainer(plan_of(ends, std::get<1>(GetParam())), {.device = "cpu", .threads = 1}, {.local = replicas()}); }
  /// The third batch is in the third step, or in the second.
  std::string place(const char* loss) const { return fmt::format("the loss is {} at epoch 1, step {}\n", loss, std::get<1>(GetParam()) == 1 ? 3 : 2); }
  /// A value of a batch, as `rows` of it are seen.
  std::string range(const std::string& name, const std::string& row, const std::string& numbers) const { return fmt::format("{} f32[{},{}]: {}\n", name, 4 / replicas(), row, numbers); }
};

TEST_P(WhereItEnds, ALogarithmOfZero) {
  Trainer trainer = this->trainer(Ends::kInLogOfZero);
  const std::string said = said_by(trainer);
  EXPECT_THAT(said, HasSubstr(place("inf")));
  EXPECT_THAT(said, ContainsRegex("the first inf is made by [a-z0-9_]+ \\([a-z]+: [^;]*; its nodes: [^)]*logarithm[^)]*\\), which gives a value f32"));
  EXPECT_THAT(said, HasSubstr(range("which gives a value", "2", "15.3039 to 16.7637, 2 inf")));
  EXPECT_THAT(said, HasSubstr(range("it reads \"x\"", "4", "0 to 4")));
  EXPECT_THAT(said, HasSubstr("it reads \"w\" f32[4,2]: 1 to 8\n"));
  EXPECT_THAT(said, Not(HasSubstr("are not finite")));
}

TEST_P(WhereItEnds, ZeroOverZero) {
  Trainer trainer = this->trainer(Ends::kInZeroOverZero);
  const std::string said = said_by(trainer);
  EXPECT_THAT(said, HasSubstr(place("nan")));
  EXPECT_THAT(said, ContainsRegex("the first nan is made by [a-z0-9_]+ \\([a-z]+: [^;]*; its nodes: [^)]*share[^)]*\\), which gives a value f32"));
  EXPECT_THAT(said, HasSubstr(range("which gives a value", "2", "0.206612 to 0.297521, 2 nan")));
  EXPECT_THAT(said, HasSubstr(range("it reads \"h\"", "2", "0 to 60")));
}

TEST_P(WhereItEnds, AWeightThatIsNoNumber) {
  Trainer trainer = this->trainer(Ends::kWell);
  EXPECT_EQ(said_by(trainer), "it went well");
  trainer.session().write("w", f32({4, 2}, {1, 2, 3, std::numeric_limits<float>::quiet_NaN(), 5, 6, 7, 8}));
  const std::string said = said_by(trainer);
  EXPECT_THAT(said, HasSubstr("the loss is nan at epoch 1, step 1\n"));
  EXPECT_THAT(said, HasSubstr("the weight or state \"w\" f32[4,2]: 1 to 8, 1 nan was not finite before the step\n"));
  EXPECT_THAT(said, Not(HasSubstr("is made by"))) << "all else follows from it";
}

/// Of a group of batches, too, the second of which has it.
TEST_P(WhereItEnds, ACheckpointIsWhereTheStepBegan) {
  const TempFolder folder;
  const std::int64_t accumulated = std::get<1>(GetParam());
  const std::int64_t batches = 2 * accumulated;
  Trainer failed = trainer(Ends::kInLogOfZero), good = trainer(Ends::kInLogOfZero);
  EXPECT_THAT(said_by(failed, samples(batches), folder / "run"), HasSubstr("run/checkpoint-000001; --resume goes on there"));
  const TrainState state = load_checkpoint(folder / "run/checkpoint-000001", failed.session());
  EXPECT_EQ(state.batch, accumulated);
  EXPECT_EQ(state.batches, accumulated);
  good.fit(samples(batches), {.epochs = 1, .steps = 1, .run_dir = folder / "good", .quiet = true});
  EXPECT_EQ(state.means, load_checkpoint(folder / "good/checkpoint-000001", good.session()).means);
  for (const plan::Persistent& persistent : good.session().program().persistents)
    EXPECT_TRUE(std::ranges::equal(failed.session().read(persistent.name).bytes(), good.session().read(persistent.name).bytes())) << persistent.name;
}

TEST(NotFiniteWeights, ThatBeganSoAreNotGone) {
  plan::Plan plan = plan_of(Ends::kWell, 1);
  const auto not_finite = f32({4, 2}, {1, 2, 3, -std::numeric_limits<float>::infinity(), 5, 6, 7, 8});
  {
    Session session(plan, {.device = "cpu", .threads = 1});
    session.write("w", not_finite);
    EXPECT_EQ(weight_gone(session), "w");
  }
  for (plan::Program& program : plan.programs)
    for (plan::Persistent& persistent : program.persistents)
      if (persistent.name == "w") persistent.initial = not_finite;
  const Session session(plan, {.device = "cpu", .threads = 1});
  EXPECT_EQ(weight_gone(session), "");
}

/// Training goes on, as no weight is touched; who reads the numbers is told why they are none.
TEST(NotFiniteEvaluation, SaysWhichBatchAndRowOnce) {
  Session session(plan_of(Ends::kWell, 1), {.device = "cpu", .threads = 1});
  SessionRunner runner(session);
  std::vector<float> x(10 * 4, 1.0F);
  for (const std::size_t row : {6, 9}) x[row * 4] = std::numeric_limits<float>::quiet_NaN();
  NamedArrays arrays;
  arrays.emplace_back("x", Array("x.npy", Tensor::of<float>({10, 4}, std::span<const float>(x))));
  arrays.emplace_back("y", Array("y.npy", Tensor::zeros(DType::kF32, {10, 2})));
  const plan::Entry& entry = session.entry(plan::kEvalStep);
  const BoundArrays data(entry, std::move(arrays), {.batch_symbol = plan_of(Ends::kWell, 1).batch_symbol});
  BatchReader batches(data, 4, {.shuffle = false});
  std::vector<std::string> said;
  const NamedNumbers values = *evaluate(runner, entry, batches, {.prefix = "val_", .say = [&](const std::string& text) { said.push_back(text); }});
  EXPECT_TRUE(std::isnan(value_of(values, "val_loss")));
  ASSERT_EQ(said.size(), 1U);
  EXPECT_THAT(said[0], HasSubstr("warning: val_loss: nan in batch 2 of the evaluation, and so for all of it\n"));
  EXPECT_THAT(said[0], HasSubstr("note: row 2 of \"x\" in this batch is row 6 of x.npy"));
}

INSTANTIATE_TEST_SUITE_P(NotFinite, WhereItEnds, ::testing::Combine(::testing::Values(1, 2), ::testing::Values(1, 2)));

}  // namespace
}  // namespace hone::test
