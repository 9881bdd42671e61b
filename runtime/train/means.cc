#include "runtime/train/means.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <limits>

#include "base/diag.h"
#include "base/text.h"
#include "runtime/plan/adapters.h"
#include "runtime/train/weights.h"

namespace hone {

void SessionRunner::feed_ahead(std::string_view, BatchSource& batches) {
  if (session_.device() == nullptr) return;  // which reads batches where they lie
  if (const NamedViews* next = batches.ahead()) session_.feed_ahead(*next);
}

NamedTensors SessionRunner::weights() {
  NamedTensors weights;
  for (const plan::Persistent& persistent : session_.program().persistents)
    if (plan::is_of_model(persistent)) weights.emplace_back(persistent.name, session_.read(persistent.name));
  return weights;
}

void SessionRunner::set_weights(const NamedTensors& weights) {
  for (const auto& [name, value] : weights) session_.write(name, value);
}

std::string SessionRunner::weight_gone() { return hone::weight_gone(session_); }

void SessionRunner::forget_accumulated() { hone::forget_accumulated(session_); }

namespace {

double element(const TensorView& view, std::size_t i) {
  if (view.dtype == DType::kF64) {
    double value = 0;
    std::memcpy(&value, static_cast<const std::byte*>(view.data) + i * sizeof(value), sizeof(value));
    return value;
  }
  HONE_CHECK(view.dtype == DType::kF32, "a result that is neither f32 nor f64");
  float value = 0;
  std::memcpy(&value, static_cast<const std::byte*>(view.data) + i * sizeof(value), sizeof(value));
  return value;
}

}  // namespace

double scalar_result(StepRunner& runner, std::string_view name) {
  const TensorView view = runner.result(name);
  HONE_CHECK(view.data != nullptr, "the result " + std::string(name) + " is not there");
  return element(view, 0);
}

namespace {

[[noreturn]] void refuse_state(std::string_view why) {
  throw Error(Code::kPlanMismatch, fmt::format("the sums of loss and metrics that were kept do not belong to this plan: {}", why), {},
              {"train on with the plan that they were kept by"});
}

}  // namespace

double value_of(const NamedNumbers& values, std::string_view name) {
  const auto found = std::ranges::find(values, name, &NamedNumbers::value_type::first);
  return found == values.end() ? std::numeric_limits<double>::quiet_NaN() : found->second;
}

Means::Means(const plan::Entry& entry, std::string_view prefix) {
  const std::string_view metric = plan::kMetricPrefix;
  const bool has_loss = std::any_of(entry.results.begin(), entry.results.end(), [](const plan::Result& result) { return result.name == plan::kLossSum; });
  if (not has_loss)
    throw Error(Code::kPlanEntry, fmt::format("the plan's {} computes no loss", entry.name), {},
                {"compile the model with a recipe: hone-compile MODEL.onnx -r train.toml"});
  values_.emplace_back(std::string(prefix) + "loss", 0);
  for (const plan::Result& result : entry.results) {
    if (not result.name.starts_with(metric)) continue;
    const std::string_view name = std::string_view(result.name).substr(metric.size());
    metrics_.push_back(metric_of(entry, result, name));
    values_.emplace_back(std::string(prefix) + std::string(name), 0);
  }
}

/// One number is what a model's own training reports, whatever it is called.
Means::Metric Means::metric_of(const plan::Entry& entry, const plan::Result& result, std::string_view name) {
  const Shape shape = result.buffer < entry.buffers.size() ? entry.buffers[result.buffer].shape : Shape{};
  if (shape.empty()) return {result.name, nullptr, std::vector<double>(2)};
  const MetricKind* kind = find_metric(name);
  const std::int64_t size = shape.size() == 1 and shape[0].is_constant() ? shape[0].value() : 0;
  if (kind == nullptr or not kind->takes(static_cast<std::size_t>(size)))
    throw Error(Code::kPlanMismatch, fmt::format("the plan's {} gives {} as [{}], from which this version cannot make the metric", entry.name, quoted(result.name), to_string(shape)),
                {}, {"compile it again with this version of hone-compile"});
  return {result.name, kind, std::vector<double>(static_cast<std::size_t>(size))};
}

void Means::reset() {
  for (Metric& metric : metrics_) std::fill(metric.sums.begin(), metric.sums.end(), 0.0);
  loss_sum_ = count_ = 0;
}

double Means::add(StepRunner& runner) {
  const double count = scalar_result(runner, plan::kTargetCount);
  const double loss = scalar_result(runner, plan::kLossSum);
  for (Metric& metric : metrics_) {
    const TensorView batch = runner.result(metric.result);
    const std::size_t given = metric.kind == nullptr ? 1 : metric.sums.size();
    for (std::size_t i = 0; i < given; ++i) metric.sums[i] += element(batch, i);
    if (metric.kind == nullptr) metric.sums[1] += count;
  }
  loss_sum_ += loss;
  count_ += count;
  return count == 0 and loss == 0 ? std::numeric_limits<double>::quiet_NaN() : loss / count;
}

const NamedNumbers& Means::values() {
  values_[0].second = count_ == 0 ? std::numeric_limits<double>::quiet_NaN() : loss_sum_ / count_;
  for (std::size_t i = 0; i < metrics_.size(); ++i) {
    const Metric& metric = metrics_[i];
    values_[i + 1].second = metric.kind != nullptr ? metric.kind->value(metric.sums) : metric.sums[0] / metric.sums[1];
  }
  return values_;
}

std::vector<std::string> Means::names() const {
  std::vector<std::string> names;
  for (const auto& [name, value] : values_) names.push_back(name);
  return names;
}

std::vector<double> Means::state() const {
  std::vector<double> state = {loss_sum_, count_};
  for (const Metric& metric : metrics_) {
    state.push_back(static_cast<double>(metric.sums.size()));
    state.insert(state.end(), metric.sums.begin(), metric.sums.end());
  }
  return state;
}

void Means::restore(std::span<const double> state) {
  if (state.size() < 2) refuse_state("loss and count are missing");
  std::size_t at = 2;
  for (const Metric& metric : metrics_) {
    if (at >= state.size()) refuse_state(fmt::format("{} is missing", metric.result));
    if (state[at] != static_cast<double>(metric.sums.size()) or metric.sums.size() > state.size() - at - 1) refuse_state(fmt::format("{} has {} sums", metric.result, metric.sums.size()));
    at += 1 + metric.sums.size();
  }
  if (at != state.size()) refuse_state("there are more metrics");
  loss_sum_ = state[0];
  count_ = state[1];
  at = 2;
  for (Metric& metric : metrics_) {
    std::copy_n(state.begin() + static_cast<std::ptrdiff_t>(++at), metric.sums.size(), metric.sums.begin());
    at += metric.sums.size();
  }
}

}  // namespace hone
