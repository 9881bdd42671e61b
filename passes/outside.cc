#include "passes/outside.h"

#include <algorithm>

#include "ir/ops/ops.h"

namespace hone {

namespace {

/// Of a node's results; `dependences` is filled for what it reads.
Dependence dependence_of(const Node& node, const std::vector<Dependence>& dependences) {
  Dependence most = Dependence::kNothing;
  std::vector<bool> stacked;
  for (const ValueId operand : node.operands) {
    const Dependence here = operand.valid() ? dependences[operand.index] : Dependence::kNothing;
    most = std::max(most, here);
    stacked.push_back(here != Dependence::kNothing);
  }
  return can_lift(node, stacked) ? most : Dependence::kStates;
}

}  // namespace

std::vector<Dependence> find_dependences(const LoopView& loop) {
  std::vector<Dependence> dependences(loop.body.value_count(), Dependence::kNothing);
  dependences[loop.iteration.index] = Dependence::kSlices;
  for (const LoopView::Fed& slice : loop.slices) dependences[slice.in.index] = Dependence::kSlices;
  for (const LoopView::State& state : loop.states) dependences[state.in.index] = Dependence::kStates;
  for (const Node& node : loop.body.nodes()) {
    const Dependence dependence = dependence_of(node, dependences);
    for (const ValueId result : node.results) dependences[result.index] = dependence;
  }
  return dependences;
}

Outside::Outside(Rewriter& rewriter, const LoopView& loop) : builder_(rewriter.builder()), loop_(loop), values_(loop.body.value_count()) {
  for (const LoopView::Fed& fed : loop.slices) {
    Shape shape = loop.body.type(fed.in).shape;
    shape.insert(shape.begin(), loop.trips);  // known to be equal, perhaps by another name
    values_[fed.in.index] = {reshape(rewriter.mapped(fed.operand), std::move(shape)), true};
  }
  for (const LoopView::Fed& fed : loop.whole) values_[fed.in.index] = {rewriter.mapped(fed.operand), false};
}

/// The number of the iteration and constants of the body are made when they are asked for.
const Lifted& Outside::read(ValueId value) {
  Lifted& lifted = values_[value.index];
  if (lifted.value.valid()) return lifted;
  if (value == loop_.iteration) return lifted = {builder_.add(op::iota, {}, {kAxis = std::int64_t{0}, kShape = Shape{loop_.trips}})[0], true};
  const Input* input = loop_.body.input_of(value);
  HONE_CHECK(input != nullptr and input->data.has_value(), "a value of a loop's body is read outside before it is there");
  return lifted = {builder_.constant(input->data.value()), false};
}

Val Outside::whole(ValueId value) {
  const Lifted& lifted = read(value);
  HONE_CHECK(not lifted.stacked, "a value of each iteration is read as one of all");
  return reshape(lifted.value, loop_.body.type(value).shape);
}

Val Outside::stacked(ValueId value) {
  Shape shape = loop_.body.type(value).shape;
  shape.insert(shape.begin(), loop_.trips);
  return reshape(hone::stacked(read(value), loop_.trips), std::move(shape));
}

void Outside::compute(const std::vector<bool>& chosen) {
  for (std::size_t i = 0; i < chosen.size(); ++i) {
    if (not chosen[i]) continue;
    const Node& node = loop_.body.node(NodeId(i));
    std::vector<Lifted> operands;
    for (const ValueId operand : node.operands) operands.push_back(operand.valid() ? read(operand) : Lifted{});
    const std::vector<Lifted> results = lift(builder_, loop_.body, node, operands, loop_.trips);
    for (std::size_t k = 0; k < results.size(); ++k) values_[node.results[k].index] = results[k];
  }
}

}  // namespace hone
