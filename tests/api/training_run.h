// A small classifier, compiled with a recipe for this machine alone, and its steps.
#pragma once

#include <cmath>
#include <map>
#include <string>
#include <vector>

#include "api/hone.h"
#include "backends/compile.h"
#include "frontend/onnx/import.h"
#include "tests/support/host_level.h"
#include "tests/support/temp_folder.h"

namespace hone::test {

inline constexpr std::int64_t kInputs = 5, kClasses = 3;

inline plan::Plan compiled(const std::string& recipe, double dropout = 0) {
  const TempFolder folder;
  nn::Model model("classifier");
  const nn::Value hidden = nn::tanh(nn::dense(model.input("x", {kInputs}), 4));
  model.output("y", nn::dense(hidden, kClasses));
  save_model(model, folder / "model.onnx");
  const std::string dropped = dropout > 0 ? "[model]\ndropout = { after = \"tanh*\", rate = " + std::to_string(dropout) + " }\n" : "";
  const onnx::Imported imported = onnx::import_model(folder / "model.onnx");
  return compile({imported.graph, imported.model, "model.onnx"}, read_recipe_text(dropped + recipe), {.levels = {.cpu = {host_level()}}}).plan;
}

inline const std::string kLoss = "[loss]\nkind = \"softmax_cross_entropy\"\n";

/// Samples `first` to `first + count` of an endless data set, with what they count.
struct Batch {
  Tensor x, target, sample_weight, rate = Tensor::scalar(0.05);

  Batch(std::int64_t first, std::int64_t count) {
    std::vector<float> xs, weights;
    std::vector<std::int64_t> classes;
    for (std::int64_t i = first; i < first + count; ++i) {
      for (std::int64_t k = 0; k < kInputs; ++k) xs.push_back(std::sin(static_cast<float>(i * kInputs + k) * 1.7F));
      classes.push_back((i * i + 1) % kClasses);
      weights.push_back(1 + static_cast<float>(i % 3));
    }
    x = Tensor::of<float>({count, kInputs}, std::span<const float>(xs));
    target = Tensor::of<std::int64_t>({count}, std::span<const std::int64_t>(classes));
    sample_weight = Tensor::of<float>({count}, std::span<const float>(weights));
  }
};

class TrainingRun {
 public:
  explicit TrainingRun(const std::string& recipe, double dropout = 0) : session_(compiled(recipe, dropout), {.device = "cpu", .threads = 1}) {}

  /// The mean loss that the step reports.
  double step(const char* entry, const Batch& batch) {
    std::vector<std::pair<std::string, TensorView>> feeds;
    const std::map<std::string, const Tensor*> all = {{"x", &batch.x}, {"target", &batch.target}, {"sample_weight", &batch.sample_weight}, {"learning_rate", &batch.rate}};
    for (const plan::Feed& feed : session_.entry(entry).feeds)
      if (all.contains(feed.name)) feeds.emplace_back(feed.name, *all.at(feed.name));
    session_.run(entry, feeds);
    return session_.result_tensor(plan::kLossSum).at(0) / session_.result_tensor(plan::kTargetCount).at(0);
  }
  Session& session() { return session_; }

  /// All weights and states by name.
  std::map<std::string, std::vector<double>> state() {
    std::map<std::string, std::vector<double>> all;
    for (const plan::Persistent& persistent : session_.program().persistents) {
      if (persistent.role == plan::Persistent::Role::kConstant) continue;
      const Tensor tensor = session_.read(persistent.name);
      for (std::int64_t i = 0; i < tensor.element_count(); ++i) all[persistent.name].push_back(tensor.at(i));
    }
    return all;
  }

 private:
  Session session_;
};

}  // namespace hone::test
