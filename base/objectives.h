// The losses and metrics that a recipe may name: what they compare, and how a metric follows from the sums that a plan gives of each batch.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "base/fixed_list.h"

namespace hone {

/// What a loss compares the output with, and so which metrics make sense beside it.
enum class Compared : std::uint8_t {
  kClasses,  ///< the number of a class along an axis of the output
  kLabels,   ///< yes or no for each element
  kValues,   ///< a number for each element
  kNothing,  ///< the output is the loss, and there is no target
};

struct LossKind {
  std::string_view name;
  Compared compared = Compared::kValues;
  bool has_class_axis = false;  ///< loss.class_axis is read
  bool knows_classes = false;   ///< loss.label_smoothing and loss.class_weights are read: of "no" and "yes" where it compares labels
};
std::span<const LossKind> loss_kinds();
/// The loss `name`, or null.
const LossKind* find_loss(std::string_view name);

/// A metric: a function of sums that are added up over batches, each batch's being a vector of f64 in the plan's results.
struct MetricKind {
  std::string_view name;           ///< "top_K_accuracy" stands for every K
  FixedList<Compared, 3> beside;   ///< losses that it makes sense with
  bool higher_is_better = true;
  bool is_mean = false;            ///< sums[0] / sums[1]
  bool (*takes)(std::size_t sums) = nullptr;                ///< so many
  double (*value)(std::span<const double> sums) = nullptr;  ///< NaN when nothing was counted
};
std::span<const MetricKind> metric_kinds();
/// The metric `name` ("top_5_accuracy" is a top_K_accuracy), or null.
const MetricKind* find_metric(std::string_view name);
/// K of "top_K_accuracy", 1 of "accuracy", 0 of anything else.
std::int64_t top_k_of_metric(std::string_view name);
/// What is reported of the validation data has this before its name.
inline constexpr std::string_view kOfValidation = "val_";
/// Is a larger value of what a run reports ("loss", "val_auc", ...) a better one? False for what is no metric.
bool higher_is_better(std::string_view reported);
/// What every value of it is better than: -infinity where larger ones are better, else infinity.
double worst_value(std::string_view reported);

/// auc: how many of the scores' positives and negatives lie above each of so many thresholds.
inline constexpr std::int64_t kAucThresholds = 200;
/// Threshold `i` of auc: evenly spread over [0, 1], the outer ones 1e-7 outside (keras.metrics.AUC).
double auc_threshold(std::int64_t i);

}  // namespace hone
