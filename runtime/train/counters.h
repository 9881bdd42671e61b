// Counters that come from a checkpoint, checked before anything counts on.
#pragma once

#include <fmt/format.h>

#include <cmath>
#include <cstdint>
#include <limits>
#include <span>
#include <string_view>

#include "base/diag.h"

namespace hone {

/// What a double, and JSON, holds exactly; beyond it no run has ever counted.
inline constexpr std::int64_t kMostCounted = std::int64_t{1} << 53;

/// The state of `what`, of `size` numbers. Throws Error kPlanMismatch if it has another size, where a count is none, or a number is out of bounds.
class CounterState {
 public:
  CounterState(std::span<const double> state, std::size_t size, std::string_view what) : state_(state), what_(what) {
    if (state.size() != size) refuse();
  }
  std::int64_t count(std::size_t i) const {
    if (not(state_[i] >= 0 and state_[i] <= static_cast<double>(kMostCounted)) or std::floor(state_[i]) != state_[i]) refuse();
    return static_cast<std::int64_t>(state_[i]);
  }

  /// Between the two, both included. Of nan no comparison holds, so what is compared with it would never change.
  double number(std::size_t i, double least = -std::numeric_limits<double>::infinity(), double most = std::numeric_limits<double>::infinity()) const {
    if (not(state_[i] >= least and state_[i] <= most)) refuse();
    return state_[i];
  }

 private:
  [[noreturn]] void refuse() const {
    throw Error(Code::kPlanMismatch, fmt::format("what was kept of {} cannot be read", what_), {}, {"the file is damaged, or of another version: begin anew"});
  }
  std::span<const double> state_;
  std::string_view what_;
};

}  // namespace hone
