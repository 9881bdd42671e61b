#include "passes/loops.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "ir/op.h"
#include "passes/names.h"

namespace hone {

LoopView::LoopView(const Node& scan) : node(scan), body(*scan.bodies[0]), trips(scan.attrs[kTrips][0]) {
  std::vector<ValueId> fed;
  for (const Input& input : body.inputs())
    if (input.role == Role::kInput) fed.push_back(input.value);
  iteration = fed[0];
  const auto state_count = static_cast<std::size_t>(scan.attrs[kStates]), first_whole = state_count + static_cast<std::size_t>(scan.attrs[kScanned]);
  for (std::size_t i = 0; i < scan.operands.size(); ++i) {
    if (i < state_count) states.push_back({scan.operands[i], fed[1 + i], body.outputs()[i].value, scan.results[i], scan.results[state_count + i]});
    else (i < first_whole ? slices : whole).push_back({scan.operands[i], fed[1 + i]});
  }
  for (std::size_t i = state_count; i < body.outputs().size(); ++i) stacks.push_back({body.outputs()[i].value, scan.results[state_count + i]});
}

namespace {

bool binds_sizes(const Graph& graph) {
  return std::any_of(graph.nodes().begin(), graph.nodes().end(), [](const Node& node) {
    return node.op->binds or
           std::any_of(node.bodies.begin(), node.bodies.end(), [](const auto& body) { return binds_sizes(*body); });  // depth is limited by import and parser
  });
}

}  // namespace

bool may_rearrange(const Node& node) { return node.op->region == Region::kScan and not binds_sizes(*node.bodies[0]); }

LoopPlan::LoopPlan(Rewriter& rewriter, const LoopView& loop) {
  for (const LoopView::State& state : loop.states) states.push_back({rewriter.mapped(state.initial), state.in, state.next});
  for (const LoopView::Fed& fed : loop.slices) slices.push_back({rewriter.mapped(fed.operand), fed.in});
  for (const LoopView::Fed& fed : loop.whole) whole.push_back({rewriter.mapped(fed.operand), fed.in});
  for (const LoopView::Stack& stack : loop.stacks) stacks.push_back(stack.made);
}

std::vector<bool> find_needed(const Graph& graph, std::span<const ValueId> values) {
  std::vector<bool> needed(graph.value_count());
  for (const ValueId value : values) needed[value.index] = true;
  for (std::size_t i = graph.node_count(); i-- > 0;) {
    const Node& node = graph.node(NodeId(i));
    if (std::none_of(node.results.begin(), node.results.end(), [&](ValueId result) { return needed[result.index]; })) continue;
    for (const ValueId operand : node.operands)
      if (operand.valid()) needed[operand.index] = true;
  }
  return needed;
}

namespace {

class LoopBuilder {
 public:
  LoopBuilder(Builder& outside, const LoopView& old, LoopPlan plan)
      : outside_(outside), old_(old), plan_(std::move(plan)), graph_(std::make_unique<Graph>()), inside_(*graph_), made_(old.body.value_count()) {
    graph_->name = old.body.name;
  }

  BuiltLoop run() {
    find_read();
    feed(old_.iteration, old_.body.type(old_.iteration));
    for (const LoopPlan::State& state : plan_.states) {
      operands_.push_back(state.initial);
      feed(state.in, state.initial.type());
    }
    const std::size_t scanned = feed_all(plan_.slices, true);
    feed_all(plan_.whole, false);
    copy_nodes();
    for (const LoopPlan::State& state : plan_.states) output(state.next);
    for (const ValueId stack : plan_.stacks) output(stack);
    return finish(scanned);
  }

 private:
  /// What the outputs need, as far as it is not fed.
  void find_read() {
    const Graph& body = old_.body;
    std::vector<bool> fed(body.value_count());
    for (const auto* list : {&plan_.slices, &plan_.whole})
      for (const LoopPlan::Fed& each : *list) fed[each.stands_for.index] = true;
    read_.resize(body.value_count());
    for (const LoopPlan::State& state : plan_.states) read_[state.next.index] = true;
    for (const ValueId stack : plan_.stacks) read_[stack.index] = true;
    runs_.resize(body.node_count());
    for (std::size_t i = body.node_count(); i-- > 0;) {
      const Node& node = body.node(NodeId(i));
      runs_[i] = std::any_of(node.results.begin(), node.results.end(), [&](ValueId result) { return read_[result.index] and not fed[result.index]; });
      if (not runs_[i]) continue;
      for (const ValueId operand : node.operands)
        if (operand.valid()) read_[operand.index] = true;
    }
  }

  Val feed(ValueId stands_for, Type type) {
    const std::string& name = old_.body.value(stands_for).name;
    return made_[stands_for.index] =
               inside_.input(Role::kInput, unused_name(*graph_, name.empty() ? fmt::format("fed{}", graph_->inputs().size()) : name), std::move(type));
  }

  /// How many inputs it takes.
  std::size_t feed_all(const std::vector<LoopPlan::Fed>& all, bool by_slice) {
    std::map<ValueId, Val> known;  // by operand
    for (const LoopPlan::Fed& fed : all) {
      if (not read_[fed.stands_for.index]) continue;
      Val& input = known[fed.operand.id()];
      if (input.valid()) {
        made_[fed.stands_for.index] = input;
        continue;
      }
      Type type = fed.operand.type();
      if (by_slice) type.shape.erase(type.shape.begin());
      operands_.push_back(fed.operand);
      input = feed(fed.stands_for, std::move(type));
    }
    return known.size();
  }

  void copy_nodes() {
    const Graph& body = old_.body;
    for (const Input& input : body.inputs())
      if (input.role != Role::kInput and read_[input.value.index])
        made_[input.value.index] = inside_.constant(input.data.value(), input.name.empty() ? "" : unused_name(*graph_, input.name));
    for (std::size_t i = 0; i < body.node_count(); ++i)
      if (runs_[i]) copy_node(body.node(NodeId(i)));
    for (const auto& [a, b] : body.equations())
      if (std::find(graph_->equations().begin(), graph_->equations().end(), std::pair(a, b)) == graph_->equations().end()) inside_.equate(a, b);
  }

  void copy_node(const Node& node) {
    const Builder::Scope scope(inside_, node.loc, node.part);
    std::vector<Val> operands;
    for (const ValueId operand : node.operands) operands.push_back(operand.valid() ? made_[operand.index] : Val{});
    std::vector<std::unique_ptr<Graph>> bodies;
    for (const auto& body : node.bodies) bodies.push_back(std::make_unique<Graph>(body->clone()));
    const std::vector<Val> results = inside_.add(*node.op, operands, node.attrs, std::move(bodies));
    for (std::size_t i = 0; i < results.size(); ++i) {
      inside_.set_name(results[i], old_.body.value(node.results[i]).name);
      if (not made_[node.results[i].index].valid()) made_[node.results[i].index] = results[i];
    }
  }

  void output(ValueId value) { inside_.output(fmt::format("out{}", graph_->outputs().size()), made_[value.index]); }

  BuiltLoop finish(std::size_t scanned) {
    Attrs attrs = old_.node.attrs;
    attrs.set(kStates = static_cast<std::int64_t>(plan_.states.size()));
    attrs.set(kScanned = static_cast<std::int64_t>(scanned));
    std::vector<std::unique_ptr<Graph>> bodies;
    bodies.push_back(std::move(graph_));
    const std::vector<Val> results = outside_.add(*old_.node.op, operands_, std::move(attrs), std::move(bodies));
    const auto first = results.begin(), began = first + static_cast<std::ptrdiff_t>(plan_.states.size()),
               stacked = began + static_cast<std::ptrdiff_t>(plan_.states.size());
    return {{first, began}, {began, stacked}, {stacked, results.end()}};
  }

  Builder& outside_;
  const LoopView& old_;
  const LoopPlan plan_;
  std::unique_ptr<Graph> graph_;
  Builder inside_;
  std::vector<Val> made_, operands_;  // made_: by value of the old body
  std::vector<bool> read_, runs_;     // by value, by node of the old body
};

}  // namespace

BuiltLoop build_loop(Builder& builder, const LoopView& old, LoopPlan plan) { return LoopBuilder(builder, old, std::move(plan)).run(); }

void replace_results(Rewriter& rewriter, const LoopView& old, const BuiltLoop& built) {
  for (std::size_t i = 0; i < old.states.size(); ++i) {
    rewriter.replace(old.states[i].last, built.last[i]);
    rewriter.replace(old.states[i].began, built.began[i]);
  }
  for (std::size_t i = 0; i < old.stacks.size(); ++i) rewriter.replace(old.stacks[i].result, built.stacks[i]);
}

}  // namespace hone
