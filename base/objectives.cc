#include "base/objectives.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <limits>

namespace hone {

namespace {

using Sums = std::span<const double>;

constexpr auto kLosses = std::to_array<LossKind>({
    {"softmax_cross_entropy", Compared::kClasses, true, true},
    {"cross_entropy", Compared::kClasses, true, true},
    {"nll", Compared::kClasses, true, true},
    {"mse", Compared::kValues},
    {"mae", Compared::kValues},
    {"huber", Compared::kValues},
    {"bce", Compared::kLabels, false, true},
    {"bce_with_logits", Compared::kLabels, false, true},
    {"hinge", Compared::kLabels},
    {"squared_hinge", Compared::kLabels},
    {"log_cosh", Compared::kValues},
    {"msle", Compared::kValues},
    {"mape", Compared::kValues},
    {"poisson", Compared::kValues},
    {"kl_divergence", Compared::kValues, true},
    {"cosine", Compared::kValues, true},
    {"output", Compared::kNothing},
});

double ratio(double a, double b) { return b == 0 ? 0 : a / b; }

bool two(std::size_t sums) { return sums == 2; }
double mean(Sums s) { return s[0] / s[1]; }

/// The mean over the classes (one, for labels) of what `of_class` makes of the class's right answers, wrong answers, and misses: s = [right.., wrong.., missed..].
template <double (*of_class)(double right, double wrong, double missed)>
double macro(Sums s) {
  const std::size_t classes = s.size() / 3;
  double total = 0;
  for (std::size_t c = 0; c < classes; ++c) total += of_class(s[c], s[classes + c], s[2 * classes + c]);
  return total / static_cast<double>(classes);
}
bool three_a_class(std::size_t sums) { return sums > 0 and sums % 3 == 0; }
double precision(double right, double wrong, double) { return ratio(right, right + wrong); }
double recall(double right, double, double missed) { return ratio(right, right + missed); }
double f1(double right, double wrong, double missed) { return ratio(2 * right, 2 * right + wrong + missed); }

/// The area below the curve of hits over false alarms, by trapezoids: s = [hits above each threshold.., false alarms.., positives, negatives].
double area(Sums s) {
  const auto thresholds = static_cast<std::size_t>(kAucThresholds);
  const double positives = s[2 * thresholds], negatives = s[2 * thresholds + 1];
  double total = 0;
  for (std::size_t i = 0; i + 1 < thresholds; ++i)
    total += (ratio(s[thresholds + i], negatives) - ratio(s[thresholds + i + 1], negatives)) * (ratio(s[i], positives) + ratio(s[i + 1], positives)) / 2;
  return total;
}

/// The mean over the output's columns of 1 - residual / variance: s = [squared errors.., targets.., squared targets.., samples]. A column of one value counts 0 if it was
/// not met (keras.metrics.R2Score).
double determination(Sums s) {
  const std::size_t columns = s.size() / 3;
  const double samples = s[s.size() - 1];
  double total = 0;
  for (std::size_t c = 0; c < columns; ++c) {
    const double score = 1 - s[c] / (s[2 * columns + c] - s[columns + c] * s[columns + c] / samples);
    total += std::isinf(score) ? 0 : score;
  }
  return total / static_cast<double>(columns);
}

constexpr auto kClasses = Compared::kClasses, kLabels = Compared::kLabels, kValues = Compared::kValues;
constexpr auto kMetrics = std::to_array<MetricKind>({
    {.name = "accuracy", .beside = {kClasses, kLabels}, .is_mean = true, .takes = two, .value = mean},
    {.name = "top_K_accuracy", .beside = {kClasses}, .is_mean = true, .takes = two, .value = mean},
    {.name = "precision", .beside = {kClasses, kLabels}, .takes = three_a_class, .value = macro<precision>},
    {.name = "recall", .beside = {kClasses, kLabels}, .takes = three_a_class, .value = macro<recall>},
    {.name = "f1", .beside = {kClasses, kLabels}, .takes = three_a_class, .value = macro<f1>},
    {.name = "auc", .beside = {kClasses, kLabels}, .takes = [](std::size_t sums) { return sums == 2 * kAucThresholds + 2; }, .value = area},
    {.name = "mse", .beside = {kValues, kLabels}, .higher_is_better = false, .is_mean = true, .takes = two, .value = mean},
    {.name = "mae", .beside = {kValues, kLabels}, .higher_is_better = false, .is_mean = true, .takes = two, .value = mean},
    {.name = "r2", .beside = {kValues}, .takes = [](std::size_t sums) { return sums > 1 and sums % 3 == 1; }, .value = determination},
    {.name = "perplexity", .beside = {kClasses}, .higher_is_better = false, .takes = two, .value = [](Sums s) { return std::exp(mean(s)); }},
});

}  // namespace

std::span<const LossKind> loss_kinds() { return kLosses; }
std::span<const MetricKind> metric_kinds() { return kMetrics; }

const LossKind* find_loss(std::string_view name) {
  const auto found = std::find_if(kLosses.begin(), kLosses.end(), [&](const LossKind& kind) { return kind.name == name; });
  return found == kLosses.end() ? nullptr : &*found;
}

const MetricKind* find_metric(std::string_view name) {
  const std::string_view row = name != "accuracy" and top_k_of_metric(name) > 0 ? "top_K_accuracy" : name;
  if (name == "top_K_accuracy") return nullptr;
  const auto found = std::find_if(kMetrics.begin(), kMetrics.end(), [&](const MetricKind& kind) { return kind.name == row; });
  return found == kMetrics.end() ? nullptr : &*found;
}

std::int64_t top_k_of_metric(std::string_view name) {
  constexpr std::string_view kBefore = "top_", kAfter = "_accuracy";
  if (name == "accuracy") return 1;
  if (not name.starts_with(kBefore) or not name.ends_with(kAfter) or name.size() <= kBefore.size() + kAfter.size()) return 0;
  const std::string_view digits = name.substr(kBefore.size(), name.size() - kBefore.size() - kAfter.size());
  std::int64_t k = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), k);
  return error == std::errc{} and end == digits.data() + digits.size() and k > 0 ? k : 0;
}

bool higher_is_better(std::string_view reported) {
  const MetricKind* metric = find_metric(reported.starts_with(kOfValidation) ? reported.substr(kOfValidation.size()) : reported);
  return metric != nullptr and metric->higher_is_better;
}

double worst_value(std::string_view reported) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  return higher_is_better(reported) ? -kInfinity : kInfinity;
}

double auc_threshold(std::int64_t i) {
  constexpr double kOutside = 1e-7;
  if (i == 0) return -kOutside;
  return i == kAucThresholds - 1 ? 1 + kOutside : static_cast<double>(i) / static_cast<double>(kAucThresholds - 1);
}

}  // namespace hone
