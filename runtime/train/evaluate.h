// Loss and metrics over a data set, without training.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/data/batch_source.h"
#include "runtime/plan/plan.h"
#include "runtime/train/means.h"

namespace hone {

struct EvaluateOptions {
  std::string_view prefix = "";             ///< goes before the values' names
  std::function<bool()> stop_requested = {};  ///< asked behind each batch; null: nobody asks it to stop
  std::int64_t limit = 0;                   ///< so many batches; 0: all
  std::function<void(const std::string&)> say = {};  ///< is told of the first batch whose loss is not finite, and why; null: nobody is
};

/// Means of loss and metrics of `entry` over an epoch of `data`, in order. Nothing if `stop_requested` said so before the end. Throws kDataLength where there is no batch.
std::optional<NamedNumbers> evaluate(StepRunner& runner, const plan::Entry& entry, BatchSource& data, const EvaluateOptions& options = {});

/// Why the loss of the batch that `entry` ran last is not finite, in sentences: where it begins, and which row of the data it is that a feed is not finite in.
std::vector<std::string> why_not_finite(StepRunner& runner, const plan::Entry& entry, const BatchSource& batches);

/// Throws kDataLength: there is no batch to `purpose`.
[[noreturn]] void refuse_no_batch(const char* purpose);

}  // namespace hone
