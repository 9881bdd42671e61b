// Counters that come from a checkpoint, checked before anything counts on.
#pragma once

#include <fmt/format.h>

#include <cmath>
#include <cstdint>
#include <span>
#include <string_view>

#include "base/diag.h"

namespace hone {

/// The state of `what`, of `size` numbers. Throws Error kPlanMismatch if it has another size, or where a count is none.
class CounterState {
 public:
  CounterState(std::span<const double> state, std::size_t size, std::string_view what) : state_(state), what_(what) {
    if (state.size() != size) refuse();
  }
  std::int64_t count(std::size_t i) const {
    constexpr double kMost = 0x1p53;
    if (not(state_[i] >= 0 and state_[i] <= kMost) or std::floor(state_[i]) != state_[i]) refuse();
    return static_cast<std::int64_t>(state_[i]);
  }

 private:
  [[noreturn]] void refuse() const {
    throw Error(Code::kPlanMismatch, fmt::format("what was kept of {} cannot be read", what_), {}, {"the file is damaged, or of another version: begin anew"});
  }
  std::span<const double> state_;
  std::string_view what_;
};

}  // namespace hone
