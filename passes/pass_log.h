// What passes make of what comes from one node of the model, for hone-compile --why NODE, and what they tell of all nodes, for --why alone. Nobody pays for it who does not ask.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "ir/rewriter.h"

namespace hone {

/// What one pass changed.
struct PassEvent {
  std::string pass;
  std::vector<std::string> rules;          ///< that fired, in order, each once
  std::vector<std::string> before, after;  ///< the node's parts in the graph: those that are not on both sides
};

class PassLog {
 public:
  /// `node` as the user knows it: Loc::node. "": of none, but what is told of all.
  explicit PassLog(std::string node = "") : node_(std::move(node)) {}

  /// Runs `pass` over `graph`, and keeps what changed, if anything did.
  template <typename Pass>
  void run(std::string_view name, Graph& graph, const Pass& pass) {
    if (node_.empty()) return pass();
    const std::vector<std::string> before = parts_of(graph);
    rules_.clear();
    pass();
    keep(name, before, parts_of(graph));
  }
  /// A rule is about to replace `node`.
  void fired(const Node& node, std::string_view rule);

  /// Runs a pass that takes nodes out of loops: those that it took are told, and `what` became of them.
  template <typename Pass>
  Changed run_over_loops(std::string_view what, Graph& graph, const Pass& pass) {
    const std::vector<std::string> before = nodes_in_loops(graph);
    const Changed changed = pass(graph);
    if (changed == Changed::kYes) keep_taken(what, before, nodes_in_loops(graph));
    return changed;
  }
  void tell(std::string line) { told_.push_back(std::move(line)); }

  const std::vector<PassEvent>& events() const { return events_; }
  /// A line each, or a heading and lines under it.
  const std::vector<std::string>& told() const { return told_; }

 private:
  static std::vector<std::string> nodes_in_loops(const Graph& graph);
  void keep_taken(std::string_view what, std::vector<std::string> before, std::vector<std::string> after);
  std::vector<std::string> parts_of(const Graph& graph) const;
  void keep(std::string_view pass, std::vector<std::string> before, std::vector<std::string> after);

  std::string node_;
  std::vector<std::string> rules_;  // of the pass that runs
  std::vector<PassEvent> events_;
  std::vector<std::string> told_;
};

/// "backward: matmul{ta=true} -> f32[784,10]": a node as stories tell it.
std::string part_text(const Graph& graph, const Node& node);

/// simplify() of passes.h, which tells `log` the rules that fire.
Changed simplify(Graph& graph, PassLog* log);

}  // namespace hone
