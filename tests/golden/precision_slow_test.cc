// Every recorded run in bf16: it stays within 3 % of its f32 loss, or the report finds the nodes that need f32 for that.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "api/precision_report.h"
#include "frontend/onnx/import.h"
#include "frontend/recipe_toml.h"
#include "tests/golden/precision.h"
#include "tests/golden/recorded_run.h"

namespace hone::test {
namespace {

class Bf16Report : public testing::TestWithParam<std::string> {};

TEST_P(Bf16Report, FindsWhatNeedsF32) {
  if (not is_recorded(GetParam())) GTEST_SKIP() << kNotRecorded;
  constexpr double kTolerance = 0.03;
  const TempFolder folder;
  write_recorded(folder, GetParam());
  Recipe recipe = resolve(read_recipe(folder / "train.toml"));
  recipe.train.precision = "bf16";
  const onnx::Imported model = onnx::import_model(folder / "model.onnx", {.mend = onnx::mend_options(recipe)});
  const LossesOf losses = [](const Recipe& wanted, double moved) {
    return losses_of_training(GetParam(), {.precision = wanted.train.precision, .keep_f32 = wanted.train.keep_f32, .moved = moved});
  };
  const PrecisionReport report = report_precision(model.graph, recipe, nullptr, kTolerance, losses, [](const std::string&) {});
  const std::string text = to_text(report, recipe, kTolerance);
  fmt::print("{}", text);
  ASSERT_TRUE(report.holds) << text;
  expect_trains_as_in_f32(GetParam(), "bf16", report.chosen.kept);  // as the recipe has it, in a training of its own
  EXPECT_GT(report.narrow.distance, 0) << "nothing ran in bf16";
}

INSTANTIATE_TEST_SUITE_P(, Bf16Report, testing::ValuesIn(recorded(Recorded::kRuns)), [](const auto& info) { return info.param; });

}  // namespace
}  // namespace hone::test
