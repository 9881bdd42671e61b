// A graph that shows a mistake, made small: outputs go, and nodes become inputs that hold what the nodes gave.
#include <fmt/format.h>

#include <set>

#include "ir/op.h"
#include "ir/print.h"
#include "passes/passes.h"
#include "tests/random_graphs/proof.h"

namespace hone::test {

namespace {

struct Smaller {
  Graph graph;
  Feeds feeds;
};

/// Every value of an expanded graph.
std::vector<Tensor> values_of(const Graph& graph, const Feeds& feeds) {
  if (graph.node_count() == 0) return {};
  Graph all = graph.clone();
  Builder builder(all);
  builder.clear_outputs();
  for (std::uint32_t i = 0; i < graph.value_count(); ++i) builder.output(fmt::format("v{}", i), builder.val(ValueId(i)));
  std::vector<Tensor> values;
  for (NamedTensor& output : interpret(all, feeds).outputs) values.push_back(std::move(output.value));
  return values;
}

/// The graph with `keep` of its outputs (by number) and aliases (behind them), in which the results of node `cut` are fed.
Smaller reduced(const Graph& graph, const Feeds& feeds, const std::vector<Tensor>& values, const std::set<std::size_t>& keep, std::optional<NodeId> cut) {
  Smaller made;
  made.graph.name = graph.name;
  Builder builder(made.graph);
  std::vector<Val> map(graph.value_count());
  for (const Input& input : graph.inputs()) {
    map[input.value.index] = builder.input(input.role, input.name, graph.type(input.value), input.data);
    if (input.role == Role::kInput) made.feeds.emplace(input.name, feeds.find(input.name)->second);
  }
  for (std::uint32_t i = 0; i < graph.node_count(); ++i) {
    const Node& node = graph.node(NodeId(i));
    std::vector<Val> results;
    if (cut == NodeId(i)) {
      for (const ValueId result : node.results) {
        const std::string name = fmt::format("{}.v{}", graph.name, result.index);
        results.push_back(builder.input(Role::kInput, name, graph.type(result)));
        made.feeds.emplace(name, values[result.index]);
      }
    } else {
      std::vector<Val> operands;
      for (const ValueId operand : node.operands) operands.push_back(operand.valid() ? map[operand.index] : Val());
      std::vector<std::unique_ptr<Graph>> bodies;
      for (const auto& body : node.bodies) bodies.push_back(std::make_unique<Graph>(body->clone()));
      results = builder.add(*node.op, operands, node.attrs, std::move(bodies));
    }
    for (std::size_t k = 0; k < results.size(); ++k) map[node.results[k].index] = results[k];
  }
  for (std::size_t i = 0; i < graph.outputs().size(); ++i)
    if (keep.contains(i)) builder.output(graph.outputs()[i].name, map[graph.outputs()[i].value.index]);
  for (std::size_t i = 0; i < graph.aliases().size(); ++i)
    if (keep.contains(graph.outputs().size() + i)) builder.alias(map[graph.aliases()[i].state.index], map[graph.aliases()[i].value.index]);
  (void)eliminate_dead_code(made.graph);
  return made;
}

class Shrinker {
 public:
  Shrinker(const Graph& graph, const Feeds& feeds, const Making& making, std::string stage) : now_{graph.clone(), feeds}, making_(making), stage_(std::move(stage)) {}

  Smaller run() {
    while (tries_ > 0 and (drop_results() or cut_nodes())) {}
    return std::move(now_);
  }

 private:
  bool still_fails(Smaller candidate) {
    if (tries_-- <= 0) return false;
    const auto finding = try_all(candidate.graph, candidate.feeds, making_);
    if (not finding or finding->stage != stage_) return false;
    now_ = std::move(candidate);
    return true;
  }

  std::set<std::size_t> all_results() const {
    std::set<std::size_t> all;
    for (std::size_t i = 0; i < now_.graph.outputs().size() + now_.graph.aliases().size(); ++i) all.insert(i);
    return all;
  }

  Smaller candidate(const std::set<std::size_t>& keep, std::optional<NodeId> cut) const {
    return reduced(now_.graph, now_.feeds, values_of(now_.graph, now_.feeds), keep, cut);
  }

  bool drop_results() {
    const std::set<std::size_t> all = all_results();
    if (all.size() < 2) return false;
    for (const std::size_t only : all)
      if (still_fails(candidate({only}, std::nullopt))) return true;
    for (const std::size_t one : all) {
      std::set<std::size_t> others = all;
      others.erase(one);
      if (still_fails(candidate(others, std::nullopt))) return true;
    }
    return false;
  }

  /// From the last node on: what is cut late makes most of the graph dead.
  bool cut_nodes() {
    for (std::size_t i = now_.graph.node_count(); i-- > 0;) {
      Smaller cut = candidate(all_results(), NodeId(i));
      if (cut.graph.node_count() < now_.graph.node_count() and still_fails(std::move(cut))) return true;
    }
    return false;
  }

  Smaller now_;
  const Making& making_;
  std::string stage_;
  int tries_ = 400;
};

}  // namespace

std::string report(const Graph& graph, const Feeds& feeds, const Making& making) {
  const Graph plain = expanded(graph);
  const auto again = try_all(plain, feeds, making);
  if (not again) return "it does not happen to the graph alone, expanded first:\n" + print(graph);
  const Smaller small = Shrinker(plain, feeds, making, again->stage).run();
  const auto last = try_all(small.graph, small.feeds, making);
  std::string text = fmt::format("made smaller: {}: {}\n{}", last ? last->stage : "", last ? last->what : "it does not happen any more", print(small.graph));
  for (const auto& [name, tensor] : small.feeds) {
    text += fmt::format("fed {}:", name);
    for (std::int64_t i = 0; i < std::min<std::int64_t>(tensor.element_count(), 12); ++i) text += fmt::format(" {}", tensor.at(i));
    text += "\n";
  }
  return text;
}

}  // namespace hone::test
