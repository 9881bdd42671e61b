// Metrics as sums over a batch: base/objectives.h says what becomes of them.
#pragma once

#include <string>

#include "base/objectives.h"
#include "ir/builder.h"

namespace hone {

/// What metrics judge.
struct Judged {
  Val output;            ///< at least f32, as the model gives it
  Val target;
  const LossKind& loss;  ///< what the two are to each other
  const OpDef& op;       ///< the op of that loss
  Attrs classes;         ///< the axis of the classes and the ignored one, where there are classes
};

/// The sums of metric `name` over the batch, a vector of f64 in the layout that MetricKind::value takes. No weights of classes or samples enter.
/// Throws Error kRecipeModel when output and metric do not fit.
Val metric_sums(const std::string& name, const Judged& judged);

}  // namespace hone
