// A scan taken apart, and put together again otherwise: what the passes over loops share.
#pragma once

#include <vector>

#include "ir/rewriter.h"

namespace hone {

/// A scan (ir/ops/regions.cc) with the values of its graph and of its body side by side.
class LoopView {
 public:
  struct State {
    ValueId initial;      ///< operand
    ValueId in, next;     ///< in the body: what an iteration begins with, and what it leaves
    ValueId last, began;  ///< results: after the loop, and what each iteration began with
  };
  struct Fed {
    ValueId operand, in;  ///< an operand, and what it, or its slice, is in the body
  };
  struct Stack {
    ValueId made, result;  ///< in the body, and stacked
  };

  /// Of a node that may_rearrange(); it must outlive the view.
  explicit LoopView(const Node& scan);

  const Node& node;
  const Graph& body;
  Dim trips;
  ValueId iteration;
  std::vector<State> states;
  std::vector<Fed> slices, whole;
  std::vector<Stack> stacks;
};

/// Is `node` a loop between which and the graph around it nodes may move? Not where its body reads sizes: what uses them means something in there only.
bool may_rearrange(const Node& node);

/// What a loop is to be, in values of the old body.
struct LoopPlan {
  struct State {
    Val initial;
    ValueId in, next;
  };
  struct Fed {
    Val operand;
    ValueId stands_for;  ///< what the operand, or its slice, is: an input of the old body, or what a node of it makes
  };
  std::vector<State> states;
  std::vector<Fed> slices, whole;
  std::vector<ValueId> stacks;

  /// The loop as it is.
  LoopPlan(Rewriter& rewriter, const LoopView& loop);
};

struct BuiltLoop {
  std::vector<Val> last, began, stacks;  ///< in the plan's order
};
/// The loop of the plan. Nodes that it does not need are left out, and so are operands that nothing in it reads; an operand fed twice is fed once.
BuiltLoop build_loop(Builder& builder, const LoopView& old, LoopPlan plan);
/// The results of a loop whose plan kept all states and, as the first, all stacks.
void replace_results(Rewriter& rewriter, const LoopView& old, const BuiltLoop& built);

/// For each value: is it one of `values`, or do they need it?
std::vector<bool> find_needed(const Graph& graph, std::span<const ValueId> values);

}  // namespace hone
