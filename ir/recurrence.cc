#include "ir/recurrence.h"

#include <fmt/format.h>

#include <memory>

#include "ir/ops/ops.h"

namespace hone {

namespace {

/// Fresh inputs of the body, one for each of `vals`; `slices`: without their first axis.
std::vector<Val> inputs_like(Builder& body, const std::vector<Val>& vals, const char* name, bool slices = false) {
  std::vector<Val> inputs;
  for (const Val& val : vals) {
    Type type = val.type();
    if (slices) type.shape.erase(type.shape.begin());
    inputs.push_back(body.input(Role::kInput, fmt::format("{}.{}", name, inputs.size()), type));
  }
  return inputs;
}

}  // namespace

StepResults write_recurrence(Builder& builder, const Recurrence& loop, const std::function<StepResults(Builder&, const Step&)>& step) {
  auto graph = std::make_unique<Graph>();
  graph->name = "step";
  Builder body(*graph);
  const Builder::Scope in(body, builder.loc(), builder.part());
  Step given{body.input(Role::kInput, "position", {DType::kI64, {}}), {}, {}, {}};
  given.states = inputs_like(body, loop.states, "state");
  given.slices = inputs_like(body, loop.scanned, "slice", true);
  given.whole = inputs_like(body, loop.whole, "whole");
  const StepResults made = step(body, given);
  std::size_t outputs = 0;
  for (const std::vector<Val>& some : {made.states, made.stacked})
    for (const Val& val : some) body.output(fmt::format("result.{}", outputs++), val);

  std::vector<Val> operands = loop.states;
  operands.insert(operands.end(), loop.scanned.begin(), loop.scanned.end());
  operands.insert(operands.end(), loop.whole.begin(), loop.whole.end());
  std::vector<std::unique_ptr<Graph>> bodies;
  bodies.push_back(std::move(graph));
  const std::size_t states = loop.states.size();
  const std::vector<Val> results = builder.add(op::scan, operands,
                                               {kTrips = Shape{loop.steps}, kReverse = loop.reverse, kStates = static_cast<std::int64_t>(states),
                                                kScanned = static_cast<std::int64_t>(loop.scanned.size())},
                                               std::move(bodies));
  const auto first_stacked = results.begin() + static_cast<std::ptrdiff_t>(2 * states);
  return {{results.begin(), results.begin() + static_cast<std::ptrdiff_t>(states)}, {first_stacked, results.end()}};
}

}  // namespace hone
