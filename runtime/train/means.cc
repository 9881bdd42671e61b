#include "runtime/train/means.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <limits>

#include "base/diag.h"

namespace hone {

double scalar_result(StepRunner& runner, std::string_view name) {
  const TensorView view = runner.result(name);
  HONE_CHECK(view.dtype == DType::kF32 and view.data != nullptr, "the result " + std::string(name) + " is no f32");
  float value = 0;
  std::memcpy(&value, view.data, sizeof(value));
  return value;
}

Means::Means(const plan::Entry& entry, std::string_view prefix) {
  const std::string_view metric = plan::kMetricPrefix;
  const auto add = [&](const std::string& result, std::string_view name) {
    results_.push_back(result);
    values_.emplace_back(std::string(prefix) + std::string(name), 0);
  };
  const bool has_loss = std::any_of(entry.results.begin(), entry.results.end(), [](const plan::Result& result) { return result.name == plan::kLossSum; });
  if (not has_loss)
    throw Error(Code::kPlanEntry, fmt::format("the plan's {} computes no loss", entry.name), {},
                {"compile the model with a recipe: hone-compile MODEL.onnx -r train.toml"});
  add(plan::kLossSum, "loss");
  for (const plan::Result& result : entry.results)
    if (result.name.starts_with(metric)) add(result.name, std::string_view(result.name).substr(metric.size()));
  sums_.resize(results_.size());
}

void Means::reset() {
  std::fill(sums_.begin(), sums_.end(), 0.0);
  count_ = 0;
}

double Means::add(StepRunner& runner) {
  const double count = scalar_result(runner, plan::kTargetCount);
  const double loss = scalar_result(runner, plan::kLossSum);
  sums_[0] += loss;
  for (std::size_t i = 1; i < results_.size(); ++i) sums_[i] += scalar_result(runner, results_[i]);
  count_ += count;
  return count == 0 and loss == 0 ? std::numeric_limits<double>::quiet_NaN() : loss / count;
}

const NamedNumbers& Means::values() {
  for (std::size_t i = 0; i < sums_.size(); ++i) values_[i].second = count_ == 0 ? std::numeric_limits<double>::quiet_NaN() : sums_[i] / count_;
  return values_;
}

std::vector<double> Means::state() const {
  std::vector<double> state = sums_;
  state.push_back(count_);
  return state;
}

void Means::restore(std::span<const double> state) {
  if (state.size() != sums_.size() + 1) throw Error(Code::kPlanMismatch, "the metrics so far are those of another plan", {}, {"go on with the plan that the run began with"});
  std::copy(state.begin(), state.end() - 1, sums_.begin());
  count_ = state.back();
}

}  // namespace hone
