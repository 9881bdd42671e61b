// Nine well-known networks whose files make their weights by ConstantOfShape (../shared/onnx-backend-tests/light): drawn afresh, each of them trains, and the
// slope of its loss along the gradient is the gradient's length. The files' scales are all 0.02, with which the signal of densenet121 and inception_v2 dies out
// on the way: of those the slope proves the last layers.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>

#include "backends/compile.h"
#include "frontend/onnx/import.h"
#include "runtime/session.h"
#include "tests/support/host_level.h"

namespace hone {
namespace {

const std::string kLight = std::string(HONE_SHARED_DIR) + "/onnx-backend-tests/light/";

Recipe light_recipe(const std::string& name) {
  RecipeSource source;
  add_override(source, "model.initialize=\"he_normal\"");
  add_override(source, fmt::format("loss.kind=\"{}\"", name == "densenet121" ? "softmax_cross_entropy" : "cross_entropy"));  // all others end in Softmax
  add_override(source, "loss.class_axis=1");
  add_override(source, "optimizer.kind=\"sgd\"");
  return resolve(source);
}

/// One batch that is fed again and again.
class LightRun {
 public:
  explicit LightRun(const std::string& name) {
    const Recipe recipe = light_recipe(name);
    onnx::Imported model = onnx::import_model(kLight + "light_" + name + ".onnx", {.mend = onnx::mend_options(recipe)});
    plan_ = compile({model.graph, model.model, name}, recipe, {.levels = {.cpu = {test::host_level()}}}).plan;
    session_.emplace(plan_, SessionOptions{.device = "cpu", .threads = 2});
    for (const plan::Feed& feed : session_->entry(plan::kTrainStep).feeds) {
      if (feed.kind == plan::Feed::Kind::kLearningRate) continue;
      batch_.emplace_back(feed.name, values_for(feed));
    }
  }

  /// The loss before a step of this size along the gradient.
  double step(double learning_rate, const std::string& entry = std::string(plan::kTrainStep)) {
    const Tensor rate = Tensor::scalar(learning_rate);
    std::vector<std::pair<std::string, TensorView>> feeds(batch_.begin(), batch_.end());
    feeds.emplace_back("learning_rate", rate);
    session_->run(entry, feeds);
    return session_->result_tensor(plan::kLossSum).at(0) / session_->result_tensor(plan::kTargetCount).at(0);
  }

  /// The loss where a step of this size leads; the weights stay.
  double loss_beside(double learning_rate) {
    std::vector<std::pair<std::string, Tensor>> weights;
    for (const plan::Persistent& weight : plan_.programs.front().persistents)
      if (weight.trained) weights.emplace_back(weight.name, session_->read(weight.name));
    step(learning_rate);
    const double loss = step(0);
    for (const auto& [name, values] : weights) session_->write(name, values);
    return loss;
  }

  /// The gradient's length squared, over all weights.
  double squared_gradient() {
    step(0, std::string(plan::kTrainStepNorms));
    double sum = 0;
    for (const plan::Persistent& weight : plan_.programs.front().persistents)
      if (weight.trained) sum += std::pow(session_->result_tensor(plan::kGradNormPrefix + weight.name).at(0), 2);
    return sum;
  }

 private:
  static Tensor values_for(const plan::Feed& feed) {
    std::vector<std::int64_t> shape;
    for (const Dim& extent : feed.shape) shape.push_back(extent.evaluate({}));
    std::vector<double> values(static_cast<std::size_t>(checked_element_count(shape)));
    for (std::size_t i = 0; i < values.size(); ++i) values[i] = is_float(feed.dtype) ? std::sin(0.37 * static_cast<double>(i % 1009)) : 7;
    return Tensor::of<double>(shape, std::span<const double>(values)).cast(feed.dtype);
  }

  plan::Plan plan_;
  std::optional<Session> session_;
  std::vector<std::pair<std::string, Tensor>> batch_;
};

class Light : public testing::TestWithParam<const char*> {};

TEST_P(Light, TrainsFromFreshWeights) {
  if (not std::filesystem::exists(kLight)) GTEST_SKIP() << "the networks of ../shared/onnx-backend-tests/light are not here";
  LightRun run(GetParam());
  const double slope = run.squared_gradient();
  ASSERT_TRUE(std::isfinite(slope) and slope > 0) << slope;
  const double loss = run.step(0), small = 0.01 * loss / slope;  // moves the loss by about a hundredth, far above f32's rounding
  const double below = run.loss_beside(small), above = run.loss_beside(-small);
  EXPECT_NEAR((above - below) / (2 * small), slope, 0.03 * slope) << "the loss along the gradient";
  const double rate = 5 * small;
  std::vector<double> losses;
  for (int i = 0; i < 10; ++i) losses.push_back(run.step(rate));
  EXPECT_LT(losses.back(), 0.95 * losses.front());
}

INSTANTIATE_TEST_SUITE_P(Networks, Light,
                         testing::Values("bvlc_alexnet", "densenet121", "inception_v1", "inception_v2", "resnet50", "shufflenet", "squeezenet", "vgg19", "zfnet512"),
                         [](const auto& info) { return std::string(info.param); });

}  // namespace
}  // namespace hone
