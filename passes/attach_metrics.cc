#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"
#include "ir/ops/formulas.h"
#include "ir/ops/infer.h"
#include "ir/ops/ops.h"
#include "passes/metrics.h"

namespace hone {

namespace {

Val f64(Val x) { return cast(x, DType::kF64); }

/// Vectors and scalars one behind the other.
Val joined(std::vector<Val> parts) {
  for (Val& part : parts)
    if (part.rank() == 0) part = reshape(part, {1});
  return op::concat.build(parts, {kAxis = std::int64_t{0}});
}

bool has_classes(const Judged& j) { return j.loss.compared == Compared::kClasses; }

/// True for targets that count; invalid if all do.
Val counted_targets(const Judged& j) {
  if (not has_classes(j) or not j.classes[kHasIgnoreIndex]) return {};
  return op::logical_not(op::equal(j.target, j.output.builder().constant(Tensor::scalar(j.classes[kIgnoreIndex]).cast(j.target.dtype()))));
}

Val count_targets(const Judged& j) {
  const Val counted = counted_targets(j);
  return counted.valid() ? sum_all(f64(counted)) : size_value(j.output.builder(), element_count(j.target.shape()), DType::kF64);
}

/// For labels: is the answer yes? Of logits and distances 0 is in the middle, of probabilities 1/2.
Val says_yes(const Judged& j) {
  const double middle = j.op == op::bce ? 0.5 : 0;
  return op::greater(j.output, j.output.builder().scalar(middle, j.output.dtype()));
}
/// Labels of hinges are -1 and 1.
bool has_sides(const Judged& j) { return j.op == op::hinge or j.op == op::squared_hinge; }
/// The same of the targets, which are 0 or -1 for no.
Val is_yes(const Judged& j) { return op::greater(j.target, j.target.builder().scalar(has_sides(j) ? 0 : 0.5, j.target.dtype())); }

Val accuracy_sums(const std::string& name, const Judged& j) {
  if (not has_classes(j)) return joined({sum_all(f64(op::equal(says_yes(j), is_yes(j)))), count_targets(j)});
  if (name == "accuracy") return joined({f64(op::accuracy(j.output, j.target, j.classes)), count_targets(j)});
  const std::int64_t k = top_k_of_metric(name);
  const Dim& classes = j.output.shape()[static_cast<std::size_t>(j.classes[kAxis])];
  if (classes.is_constant() and classes.value() < k)
    throw Error(Code::kRecipeModel, fmt::format("the metric {} is always 1, because the output has {} classes", name, classes.value()), {}, {"leave it out of metrics.list"});
  Attrs attrs = j.classes;
  attrs.set(kTopK = k);
  return joined({f64(op::top_k_accuracy(j.output, j.target, attrs)), count_targets(j)});
}

/// Right answers, wrong ones and misses: of each class, or of "yes".
Val confusion_sums(const std::string&, const Judged& j) {
  if (not has_classes(j)) {
    const Val said = f64(says_yes(j)), is = f64(is_yes(j)), right = said * is;
    return joined({sum_all(right), sum_all(said - right), sum_all(is - right)});
  }
  const auto axis = static_cast<std::size_t>(j.classes[kAxis]);
  Shape shape = j.target.shape();
  const Ints targets = all_axes(shape.size());
  shape.push_back(j.output.shape()[axis]);
  Val said = f64(op::one_hot(op::argmax(j.output, {kAxis = j.classes[kAxis]}), {kShape = shape})), is = f64(op::one_hot(j.target, {kShape = shape}));
  if (const Val counted = counted_targets(j); counted.valid()) {
    Shape aligned = j.target.shape();
    aligned.push_back(1);
    const Val factor = reshape(f64(counted), aligned);
    said = said * factor;
    is = is * factor;
  }
  const Val right = sum(said * is, targets, false);
  return joined({right, sum(said, targets, false) - right, sum(is, targets, false) - right});
}

/// What a value or a label is compared with: of logits their probability.
Val prediction(const Judged& j) { return j.op == op::bce_with_logits ? op::sigmoid(j.output) : j.output; }

/// Score and truth of each target, vectors. Of two classes the second is "yes".
std::pair<Val, Val> scores_and_truth(const Judged& j) {
  const Shape flat = {element_count(j.target.shape())};
  if (not has_classes(j)) {
    if (has_sides(j))
      throw Error(Code::kRecipeModel, fmt::format("the metric auc needs probabilities, and the loss {} has none", j.loss.name), {}, {"leave it out, or use bce or bce_with_logits"});
    return {reshape(prediction(j), flat), reshape(f64(is_yes(j)), flat)};
  }
  const auto axis = static_cast<std::size_t>(j.classes[kAxis]);
  if (not j.output.shape()[axis].is_constant(2))
    throw Error(Code::kRecipeModel, fmt::format("the metric auc is of two classes, and the output, {}, has {}", to_string(j.output.type()), j.output.shape()[axis].text()), {},
                {"leave it out of metrics.list"});
  if (j.classes[kHasIgnoreIndex])
    throw Error(Code::kRecipeModel, "the metric auc takes every target, and loss.ignore_index leaves some out", {}, {"leave one of the two out"});
  const Val last = move_axis_last(j.output, axis);
  const Val p = j.op == op::softmax_cross_entropy ? op::softmax(last, {kAxis = static_cast<std::int64_t>(last.rank()) - 1}) : j.op == op::nll ? op::exp(last) : last;
  const Val second = j.output.builder().constant(Tensor::of<double>({2}, std::vector<double>{0, 1}).cast(p.dtype()));
  return {reshape(sum(p * second, {static_cast<std::int64_t>(last.rank()) - 1}, false), flat), reshape(f64(j.target), flat)};
}

/// Hits and false alarms above each threshold, positives, negatives.
Val threshold_sums(const std::string&, const Judged& j) {
  const auto [scores, truth] = scores_and_truth(j);
  std::vector<double> values;
  for (std::int64_t i = 0; i < kAucThresholds; ++i) values.push_back(auc_threshold(i));
  const Val thresholds = j.output.builder().constant(Tensor::of<double>({kAucThresholds, 1}, values).cast(scores.dtype()));
  const Val above = f64(op::greater(reshape(scores, {1, scores.shape()[0]}), thresholds));
  const Val hits = sum(above * truth, {1}, false), alarms = sum(above * (1.0 - truth), {1}, false);
  return joined({hits, alarms, sum_all(truth), sum_all(1.0 - truth)});
}

Val error_sums(const std::string& name, const Judged& j) {
  const Val error = f64(prediction(j) - j.target);
  return joined({sum_all(name == "mse" ? square(error) : op::abs(error)), count_targets(j)});
}

/// Squared errors, targets and squared targets of each column, and the number of samples.
Val determination_sums(const std::string&, const Judged& j) {
  Dim columns = 1;
  for (std::size_t i = 1; i < j.output.rank(); ++i) columns = columns * j.output.shape()[i];
  if (j.output.rank() == 0 or not columns.is_constant())
    throw Error(Code::kRecipeModel, fmt::format("the metric r2 needs samples with a fixed number of values each, and the output is {}", to_string(j.output.type())), {},
                {"leave it out of metrics.list"});
  const Shape rows = {j.output.shape()[0], columns};
  const Val target = f64(reshape(j.target, rows)), error = f64(reshape(j.output, rows)) - target;
  return joined({sum(square(error), {0}, false), sum(target, {0}, false), sum(square(target), {0}, false), size_value(j.output.builder(), rows[0], DType::kF64)});
}

/// The negative log likelihood, neither smoothed nor weighted.
Val likelihood_sums(const std::string&, const Judged& j) {
  const std::vector<Val> sums = j.op.build_all({j.output, j.target}, j.classes);
  return joined({f64(sums[0]), f64(sums[1])});
}

struct MetricRow {
  std::string_view name;
  Val (*sums)(const std::string& name, const Judged& judged);
};
constexpr MetricRow kMetricRows[] = {
    {"accuracy", accuracy_sums}, {"top_K_accuracy", accuracy_sums}, {"precision", confusion_sums}, {"recall", confusion_sums}, {"f1", confusion_sums},
    {"auc", threshold_sums},     {"mse", error_sums},               {"mae", error_sums},           {"r2", determination_sums}, {"perplexity", likelihood_sums},
};

}  // namespace

Val metric_sums(const std::string& name, const Judged& judged) {
  const MetricKind* kind = find_metric(name);
  if (kind == nullptr) throw Error(Code::kRecipeValue, fmt::format("the metric {} is not in this version", quoted(name)));
  if (std::count(kind->beside.begin(), kind->beside.end(), judged.loss.compared) == 0)
    throw Error(Code::kRecipeModel, fmt::format("the metric {} says nothing about what the loss {} compares", name, judged.loss.name), {}, {"leave it out of metrics.list"});
  const auto row = std::find_if(std::begin(kMetricRows), std::end(kMetricRows), [&](const MetricRow& metric) { return metric.name == kind->name; });
  HONE_CHECK(row != std::end(kMetricRows), "a metric without sums: " + name);
  return row->sums(name, judged);
}

}  // namespace hone
