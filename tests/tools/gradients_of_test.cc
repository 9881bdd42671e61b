// hone-compile --gradients-of: plans that give gradients and train nothing.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "formats/npy.h"
#include "formats/npz.h"
#include "runtime/plan/plan.h"
#include "tests/support/tools/run_folders.h"
#include "tests/support/tools/run_tool.h"
#include "tests/support/tools/small_files.h"

namespace hone::test {
namespace {

using ::testing::HasSubstr;

/// x, one of whose elements is moved.
Tensor moved(const Tensor& x, std::int64_t element, double by) {
  std::vector<float> values(x.data<float>().begin(), x.data<float>().end());
  values[static_cast<std::size_t>(element)] += static_cast<float>(by);
  return Tensor::of<float>(x.shape(), values);
}

class GradientFunction : public testing::Test {
 protected:
  /// `of` of the model at `x`, fed to `input`, and everything else that the plan gives, as out.npz.
  double at(const Tensor& x, const std::string& input, const std::string& of, const std::string& feeds) const {
    write_npy(folder_ / "moved.npy", x);
    run_well(folder_.path(), fmt::format("hone-run call plan.hone --in {}=moved.npy{} --out out.npz", input, feeds));
    const Tensor value = read_npz(folder_ / "out.npz", of);
    double sum = 0;
    for (std::int64_t i = 0; i < value.element_count(); ++i) sum += value.at(i);
    return sum;
  }
  void expect_is_what_differences_say(const std::string& input, const std::string& of, const std::string& feeds = "") const {
    const Tensor x = read_npy(folder_ / "x.npy");
    at(x, input, of, feeds);
    const Tensor gradient = read_npz(folder_ / "out.npz", input + "_grad");
    ASSERT_EQ(gradient.shape(), x.shape());
    constexpr double kStep = 1e-2;
    double largest = 0;
    for (std::int64_t i = 0; i < x.element_count(); i += x.element_count() / 5) {
      const double difference = (at(moved(x, i, kStep), input, of, feeds) - at(moved(x, i, -kStep), input, of, feeds)) / (2 * kStep);
      EXPECT_NEAR(gradient.at(i), difference, 2e-4 + 0.02 * std::abs(difference)) << "element " << i;
      largest = std::max(largest, std::abs(difference));
    }
    EXPECT_GT(largest, 1e-3) << "nothing was compared";
  }

  TempFolder folder_;
};

TEST_F(GradientFunction, OfTheMeanLossTakesARecipeWithNothingElse) {
  write_mlp(folder_);
  folder_.write("loss.toml", "[loss]\nkind = \"softmax_cross_entropy\"\n");
  run_well(folder_.path(), "hone-compile mlp.onnx -r loss.toml --gradients-of loss --wrt x,dense/kernel -o plan.hone");
  expect_is_what_differences_say("x", "loss", ",target=y.npy");
}

TEST_F(GradientFunction, WithRespectToAWeightIsWhatTrainingUses) {
  write_mlp_plan(folder_);
  run_well(folder_.path(), "hone-compile mlp.onnx -r train.toml --gradients-of loss --wrt dense/kernel,dense_1/bias -o plan.hone");
  run_well(folder_.path(), "hone-run call plan.hone --in x=x.npy,target=y.npy --out out.npz");
  run_well(folder_.path(), "hone-run train mlp.hone --train x=x.npy,y=y.npy --batch 10 --no-shuffle --log-every 1 --log-grad-norms --run-dir run --quiet");
  const nlohmann::json step = lines_of_kind(folder_, "run", "step").front();
  EXPECT_NEAR(read_npz(folder_ / "out.npz", "loss").at(0), step.at("loss").get<double>(), 1e-6);
  for (const std::string name : {"dense/kernel", "dense_1/bias"}) {
    const Tensor gradient = read_npz(folder_ / "out.npz", name + "_grad");
    double squares = 0;
    for (std::int64_t i = 0; i < gradient.element_count(); ++i) squares += gradient.at(i) * gradient.at(i);
    EXPECT_NEAR(std::sqrt(squares), step.at("grad_norms").at(name).get<double>(), 1e-5) << name;
  }
}

TEST_F(GradientFunction, OfAnOutputIsOfItsSumAndNormalizesByRunningStatistics) {
  write_conv_net(folder_);
  run_well(folder_.path(), "hone-compile conv.onnx --gradients-of logits --wrt image -o plan.hone");
  expect_is_what_differences_say("image", "logits");
  EXPECT_THAT(run_tool(folder_.path(), "hone-run train plan.hone --train x=x.npy,y=y.npy --out trained.onnx").err, HasSubstr("it has no train_step"));
}

/// dL/dB = s dW' A' and dL/dA = s B' dW': with B zero the first is what W's own gradient says, and the second nothing.
TEST_F(GradientFunction, WithRespectToAnAdapterFollowsFromItsWeights) {
  write_mlp(folder_);
  run_well(folder_.path(), "hone-compile mlp.onnx -r train.toml --set lora.targets=[\"dense/kernel\"] --set lora.rank=2 --set lora.alpha=6 --gradients-of loss"
                           " --wrt dense/kernel,dense/kernel.lora_A,dense/kernel.lora_B -o plan.hone");
  run_well(folder_.path(), "hone-run call plan.hone --in x=x.npy,target=y.npy --out out.npz");
  const Tensor w = read_npz(folder_ / "out.npz", "dense/kernel_grad"), b = read_npz(folder_ / "out.npz", "dense/kernel.lora_B_grad");
  Tensor a;
  const plan::Plan plan = plan::load(folder_ / "plan.hone");
  for (const plan::Persistent& persistent : plan.programs[0].persistents)
    if (persistent.name == "dense/kernel.lora_A") a = persistent.initial;
  ASSERT_EQ(a.shape(), (std::vector<std::int64_t>{2, 4}));
  ASSERT_EQ(b.shape(), (std::vector<std::int64_t>{5, 2}));
  for (std::int64_t output = 0; output < 5; ++output)
    for (std::int64_t rank = 0; rank < 2; ++rank) {
      double wanted = 0;
      for (std::int64_t input = 0; input < 4; ++input) wanted += 3 * w.at(input * 5 + output) * a.at(rank * 4 + input);
      EXPECT_NEAR(b.at(output * 2 + rank), wanted, 1e-6);
    }
  const Tensor of_a = read_npz(folder_ / "out.npz", "dense/kernel.lora_A_grad");
  for (std::int64_t i = 0; i < of_a.element_count(); ++i) EXPECT_EQ(of_a.at(i), 0);
}

}  // namespace
}  // namespace hone::test
