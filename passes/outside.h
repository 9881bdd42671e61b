// What of a loop's body can be computed outside of the loop, and its values there.
#pragma once

#include <vector>

#include "passes/batch_axis.h"
#include "passes/loops.h"

namespace hone {

/// What a value of a body depends on.
enum class Dependence : std::uint8_t {
  kNothing,  ///< the same in all iterations
  kSlices,   ///< on what is fed slice by slice and on the number of the iteration: known before the loop begins
  kStates,   ///< on what the iteration before left; or there is no way to compute it for all iterations at once
};
/// By value of the loop's body.
std::vector<Dependence> find_dependences(const LoopView& loop);

/// Values of a body outside of the loop.
class Outside {
 public:
  /// Begins with what the loop is fed. Called where nodes may be added before the loop, or behind it.
  Outside(Rewriter& rewriter, const LoopView& loop);

  /// From now on `value` of the body is known to be this, slice by slice.
  void set_stacked(ValueId value, Val stacked) { values_[value.index] = {stacked, true}; }
  /// Computes those nodes of the body that `chosen` names, by node. What they read is chosen, too, or set, or fed.
  void compute(const std::vector<bool>& chosen);
  /// A value that is the same in all iterations.
  Val whole(ValueId value);
  /// A value as one slice an iteration.
  Val stacked(ValueId value);

 private:
  const Lifted& read(ValueId value);

  Builder& builder_;
  const LoopView& loop_;
  std::vector<Lifted> values_;  // by value of the body
};

}  // namespace hone
