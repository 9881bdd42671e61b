// A loop whose body is written by a function: recurrent layers.
#pragma once

#include <functional>
#include <vector>

#include "ir/builder.h"

namespace hone {

struct Recurrence {
  Dim steps;
  bool reverse = false;        ///< from the last slice to the first
  std::vector<Val> states;     ///< what the first step begins with
  std::vector<Val> scanned;    ///< a slice along axis 0 each step
  std::vector<Val> whole;      ///< read by every step as they are
};

/// What one step is given, and what it makes. All are values of the body that is being written.
struct Step {
  Val position;                ///< i64[]: which slice
  std::vector<Val> states, slices, whole;
};
struct StepResults {
  std::vector<Val> states;     ///< of the types that the states have
  std::vector<Val> stacked;    ///< become axis 0 of the loop's
};

/// Writes the loop. Results: the final states, and what each step stacked, in the order of the slices. `step` is called once for each body that is written.
StepResults write_recurrence(Builder& builder, const Recurrence& loop, const std::function<StepResults(Builder&, const Step&)>& step);

}  // namespace hone
