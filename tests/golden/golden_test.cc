// Training trajectories of PyTorch and Keras, recorded on real exports (../shared/models): the same batches must give the same losses, first gradients and
// outputs, within what float rounding alone does there (golden.json: spread).
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "backends/compile.h"
#include "formats/npy.h"
#include "formats/npz.h"
#include "frontend/onnx/import.h"
#include "runtime/session.h"

namespace hone {
namespace {

using Json = nlohmann::json;

const std::string kModels = std::string(HONE_SHARED_DIR) + "/models/";

Json read_golden(const std::string& name) {
  std::ifstream file(kModels + name + "/golden.json");
  return Json::parse(file);
}

/// The recipe that golden.json describes, in its framework's convention.
Recipe recipe_of(const Json& golden) {
  static const std::map<std::string, std::string> kKeys = {{"lr", "learning_rate"}, {"eps", "epsilon"}, {"alpha", "rho"}};
  RecipeSource source;
  const std::string loss = golden["loss"], kind = golden["optimizer"]["name"];
  add_override(source, fmt::format("loss.kind=\"{}\"", loss == "sparse_categorical_crossentropy_on_probabilities" ? "cross_entropy" : loss));
  add_override(source, fmt::format("optimizer.kind=\"{}\"", kind));
  add_override(source, fmt::format("train.convention=\"{}\"", golden["exporter"].get<std::string>().find("tf2onnx") == std::string::npos ? "torch" : "keras"));
  add_override(source, "model.output=" + golden["output"].dump());
  add_override(source, "model.train_only=" + golden["trainable"].dump());
  for (const auto& [key, value] : golden["optimizer"].items()) {
    const bool is_default = value == 0.0 or value == false;
    const bool needed = key == "lr" or key == "eps" or key == "beta1" or key == "beta2" or key == "initial_accumulator_value";
    if ((value.is_number() or value.is_boolean()) and (needed or not is_default)) add_override(source, fmt::format("optimizer.{}={}", kKeys.contains(key) ? kKeys.at(key) : key, value.dump()));
  }
  return resolve(source);
}

/// Slice `step` of an array with axes [step, batch, ...].
Tensor slice(const Tensor& all, std::int64_t step) {
  std::vector<std::int64_t> shape(all.shape().begin() + 1, all.shape().end());
  const auto bytes = static_cast<std::size_t>(checked_element_count(shape)) * size_of(all.dtype());
  return Tensor::copy(all.dtype(), shape, all.bytes().subspan(static_cast<std::size_t>(step) * bytes, bytes));
}

using Feeds = std::vector<std::pair<std::string, TensorView>>;

/// Trains a compiled golden model step by step.
class GoldenRun {
 public:
  explicit GoldenRun(const std::string& name, int threads) : golden_(read_golden(name)), folder_(kModels + name + "/") {
    const onnx::Imported model = onnx::import_model(folder_ + "model.onnx");
    plan_ = compile({model.graph, model.model, name}, recipe_of(golden_)).plan;
    session_.emplace(plan_, SessionOptions{.device = "cpu", .threads = threads});
    for (const auto& [key, array] : read_npz(folder_ + "train.npz")) arrays_.emplace_back(key, array);
  }

  const Json& golden() const { return golden_; }

  double train(std::int64_t step, bool norms) {
    feed(step);
    session_->run(norms ? plan::kTrainStepNorms : plan::kTrainStep, feeds_);
    return static_cast<double>(session_->result_tensor(plan::kLossSum).at(0)) / session_->result_tensor(plan::kTargetCount).at(0);
  }
  double grad_norm(const std::string& weight) const { return session_->result_tensor(plan::kGradNormPrefix + weight).at(0); }

  /// Output of the inference model on batch 0.
  Tensor predict() {
    feed(0);
    std::erase_if(feeds_, [](const auto& item) { return item.first == "target" or item.first == "learning_rate"; });
    session_->run(plan::kPredict, feeds_);
    return session_->result_tensor(golden_["output"].get<std::string>());
  }
  Tensor recorded_output() const { return read_npy(folder_ + golden_["eval_output_after"].get<std::string>()); }

 private:
  void feed(std::int64_t step) {
    batch_.clear();
    feeds_.clear();
    const plan::Entry& entry = session_->entry(plan::kTrainStep);
    for (const auto& [key, array] : arrays_) {
      const auto declared = std::find_if(entry.feeds.begin(), entry.feeds.end(), [&](const plan::Feed& f) { return f.name == key; });
      batch_.push_back(slice(array, step).cast(declared == entry.feeds.end() ? array.dtype() : declared->dtype));
      feeds_.emplace_back(key, TensorView{});
    }
    for (std::size_t i = 0; i < batch_.size(); ++i) feeds_[i].second = batch_[i];
    rate_ = Tensor::scalar(golden_["optimizer"]["lr"].get<double>());
    feeds_.emplace_back("learning_rate", rate_);
  }

  Json golden_;
  std::string folder_;
  plan::Plan plan_;
  std::optional<Session> session_;
  std::vector<std::pair<std::string, Tensor>> arrays_;
  std::vector<Tensor> batch_;
  Tensor rate_;
  Feeds feeds_;
};

class Golden : public testing::TestWithParam<const char*> {};

TEST_P(Golden, TrainsAsItsFramework) {
  if (not std::filesystem::exists(kModels)) GTEST_SKIP() << "the recorded training runs of ../shared/models are not here";
  GoldenRun run(GetParam(), 2);
  const Json& golden = run.golden();
  const Json& losses = golden["loss_f64"];
  const Json& norms = golden["grad_norms_first"];
  double spread = 0, largest_norm = 0;
  for (const auto& [weight, norm] : norms.items()) largest_norm = std::fmax(largest_norm, norm.get<double>());
  for (std::size_t step = 0; step < losses.size(); ++step) {
    const double wanted = losses[step], loss = run.train(static_cast<std::int64_t>(step), step == 0);
    spread = std::fmax(spread, golden["spread"]["loss_by_step"][step].get<double>());
    ASSERT_NEAR(loss, wanted, 5 * spread + 2e-5 * std::fmax(1, std::abs(wanted))) << "at step " << step;
    if (step != 0) continue;
    for (const auto& [weight, norm] : norms.items())
      EXPECT_NEAR(run.grad_norm(weight), norm.get<double>(), 1e-3 * norm.get<double>() + 1e-5 * largest_norm) << "gradient norm of " << weight;
  }
  const Tensor output = run.predict(), wanted = run.recorded_output();
  ASSERT_EQ(output.shape(), wanted.shape());
  double error = 0, scale = 1;
  for (std::int64_t i = 0; i < wanted.element_count(); ++i) {
    error = std::fmax(error, std::abs(output.at(i) - wanted.at(i)));
    scale = std::fmax(scale, std::abs(wanted.at(i)));
  }
  EXPECT_LE(error, 5 * golden["spread"]["eval_after"].get<double>() + 1e-4 * scale);
}

INSTANTIATE_TEST_SUITE_P(Models, Golden,
                         testing::Values("keras_fashion_mlp", "keras_mnist_cnn", "keras_reuters_cnn", "torch_mlp", "torch_lenet", "torch_resnet_tiny", "torch_resnet_folded", "torch_autoencoder"),
                         [](const auto& info) { return std::string(info.param); });

}  // namespace
}  // namespace hone
