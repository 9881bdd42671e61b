#include "passes/pass_log.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "base/text.h"
#include "ir/op.h"

namespace hone {

std::string part_text(const Graph& graph, const Node& node) {
  std::string types;
  for (const ValueId result : node.results) types += (types.empty() ? "" : ", ") + to_string(graph.type(result));
  return fmt::format("{}: {}{} -> {}{}", to_string(node.part), node.op->name, node.attrs.text(), types, node.loc.derived.empty() ? "" : fmt::format("  ({})", printable(node.loc.derived, 200)));
}

std::vector<std::string> PassLog::parts_of(const Graph& graph) const {
  std::vector<std::string> parts;
  for (const Node& node : graph.nodes())
    if (node.loc.node == node_) parts.push_back(part_text(graph, node));
  return parts;
}

void PassLog::fired(const Node& node, std::string_view rule) {
  if (node.loc.node == node_ and std::ranges::find(rules_, rule) == rules_.end()) rules_.emplace_back(rule);
}

/// Loops within loops are a matter of the loop's own body.
std::vector<std::string> PassLog::nodes_in_loops(const Graph& graph) {
  std::vector<std::string> nodes;
  for (const Node& loop : graph.nodes())
    for (const auto& body : loop.bodies)
      for (const Node& node : body->nodes()) nodes.push_back(fmt::format("{:<18} {}", node.op->name, to_string(node.loc)));
  return nodes;
}

void PassLog::keep_taken(std::string_view what, std::vector<std::string> before, std::vector<std::string> after) {
  std::ranges::sort(before);
  std::ranges::sort(after);
  std::vector<std::string> taken;
  std::ranges::set_difference(before, after, std::back_inserter(taken));
  if (taken.empty()) return;
  told_.push_back(fmt::format("of loops, {}:", what));
  for (const std::string& node : taken) told_.push_back("  " + node);
}

/// What is on both sides is left out: each part as often as it is there.
void PassLog::keep(std::string_view pass, std::vector<std::string> before, std::vector<std::string> after) {
  std::ranges::sort(before);
  std::ranges::sort(after);
  PassEvent event{.pass = std::string(pass), .rules = rules_, .before = {}, .after = {}};
  std::ranges::set_difference(before, after, std::back_inserter(event.before));
  std::ranges::set_difference(after, before, std::back_inserter(event.after));
  if (not event.before.empty() or not event.after.empty()) events_.push_back(std::move(event));
}

}  // namespace hone
