#include "backends/explain.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>

#include "backends/parts.h"
#include "backends/recompute.h"
#include "base/text.h"
#include "ir/op.h"
#include "ir/ops/ops.h"
#include "ir/ops/window.h"
#include "passes/precision.h"
#include "passes/target.h"

namespace hone {

namespace {

std::string line_of(const Node& node) { return fmt::format("    {:<18} {}\n", node.op->name, to_string(node.loc)); }

/// Pairs that were tried and are in two kernels, by reason.
std::string explain_cuts(const Fusion& fusion) {
  std::vector<std::string> reasons;  // in the order of the pairs
  std::map<std::string, std::string> pairs;
  for (const FusionDecision& decision : fusion.decisions) {
    if (fusion.group_of[decision.node.index] == fusion.group_of[decision.producer.index]) continue;  // joined, or by way of others
    const Node& node = fusion.graph.node(decision.node);
    const std::string pair = line_of(fusion.graph.node(decision.producer)) + fmt::format("      and {:<12} {}\n", node.op->name, to_string(node.loc));
    std::string& text = pairs[decision.why_not];
    if (text.empty()) reasons.push_back(decision.why_not);
    if (text.find(pair) == std::string::npos) text += pair;
  }
  std::string text;
  for (const std::string& reason : reasons) text += fmt::format("  not one kernel, because {}:\n{}", reason, pairs[reason]);
  return text;
}

/// What the scheduler fuses in the graph and in the loops of it.
std::string explain_fusion(const Graph& graph, const PassChoice& passes, const Target& target) {
  const Fusion fusion = fuse_and_recompute(graph, passes, Exchange::kNone, target.parallelism());
  std::string text;
  for (const Group& group : fusion.groups) {
    if (group.members.size() < 2) continue;
    text += fmt::format("  one kernel of {} nodes:\n", group.members.size());
    for (const NodeId member : group.members) text += line_of(fusion.graph.node(member));
  }
  text += explain_cuts(fusion);
  if (not fusion.recomputed.empty()) text += "  worked out again in the backward pass, which costs less than keeping it:\n";
  for (const std::string& name : fusion.recomputed) text += fmt::format("    {}\n", name);
  for (const Node& node : graph.nodes())
    for (const auto& body : node.bodies)
      if (const std::string inside = explain_fusion(*body, passes, target); not inside.empty())
        text += fmt::format("  in a body of {} {}:\n{}", node.op->name, to_string(node.loc), inside);
  return text;
}

/// Of what schedule.cc makes no kernel: in its order. "" for others.
std::string other_than_kernel(const Target& target, const Node& node, const std::string& row) {
  if (*node.op == op::reshape) return "a view, no work";
  if (not row.empty()) return "calls " + row;
  if (*node.op == op::library_call) return fmt::format("calls {}, or runs its body", node.attrs[kRow]);
  if (node.op->host != nullptr) return target.has_own_memory() ? "host function, between copies from the device and back" : "host function";
  if (node.op->binds) return "the host reads sizes";
  if (node.op->collective) return "an exchange between replicas, where there are several";
  return node.op->region != Region::kNone ? "runs its bodies" : "";
}

}  // namespace

std::string runner_of(const Target& target, const Graph& graph, NodeId id) {
  const Node& node = graph.node(id);
  const RowChoice choice = target.choose_row(graph, id);
  const std::string other = other_than_kernel(target, node, choice.row);
  return (other.empty() ? "generated kernel; " + choice.reason : other) + (node.attrs[kChannelsLast] ? ", channels last" : "");
}

std::string explain(const Target& target, const std::vector<EntryGraph>& entries, std::span<const PassLog> logs, const Recipe& recipe, const PassChoice& passes) {
  std::string text;
  for (std::size_t number = 0; number < entries.size(); ++number) {
    const EntryGraph& entry = entries[number];
    text += fmt::format("{} for {}:\n", entry.name, target.name());
    for (std::size_t i = 0; i < entry.graph.node_count(); ++i) {
      const Node& node = entry.graph.node(NodeId(i));
      text += fmt::format("  {:<18} {:<44} {}\n", node.op->name, runner_of(target, entry.graph, NodeId(i)), to_string(node.loc));
    }
    for (const std::string& line : explain_precision(entry.graph, recipe)) text += fmt::format("  {}\n", line);
    for (const std::string& reason : explain_layout(entry.graph)) text += fmt::format("  {}\n", reason);
    if (number < logs.size())
      for (const std::string& line : logs[number].told()) text += fmt::format("  {}\n", line);
    text += explain_fusion(entry.graph, passes, target);
  }
  return text;
}

namespace {

/// The step that gives the weight its new value; none where it lies elsewhere, or is not updated.
std::optional<std::uint32_t> update_of(const plan::Entry& entry, std::uint32_t persistent) {
  std::optional<std::uint32_t> last;
  for (std::uint32_t i = 0; i < entry.steps.size(); ++i)
    for_each_root(entry, entry.steps[i], [&](std::uint32_t root, bool, bool writes) {
      const plan::Buffer& buffer = entry.buffers[root];
      if (writes and buffer.storage == plan::Buffer::Storage::kPersistent and buffer.index == persistent) last = i;
    });
  return last;
}

bool has_part(const Graph& graph, const std::vector<NodeId>& nodes, Part part) {
  return std::ranges::any_of(nodes, [&](NodeId node) { return graph.node(node).part == part; });
}

std::string listed(std::string_view heading, const std::vector<std::string>& lines) {
  std::string text = lines.empty() ? "" : fmt::format("{}:\n", heading);
  for (const std::string& line : lines) text += fmt::format("  {}\n", line);
  return text;
}

}  // namespace

std::vector<std::string> updates_of(const plan::Entry& entry, const std::vector<plan::Persistent>& persistents, const Graph& graph, const StepNodes& nodes) {
  std::uint32_t end = 0;
  for (std::uint32_t i = 0; i < nodes.size(); ++i)
    if (has_part(graph, nodes[i], Part::kBackward)) end = i;
  std::vector<std::string> lines;
  for (std::uint32_t i = 0; i < persistents.size(); ++i) {
    const auto step = persistents[i].role == plan::Persistent::Role::kWeight ? update_of(entry, i) : std::nullopt;
    if (not step) continue;
    const bool with_gradient = has_part(graph, nodes[*step], Part::kBackward) and has_part(graph, nodes[*step], Part::kUpdate);
    const std::string_view how = with_gradient ? ", in the kernel that makes its gradient" : std::holds_alternative<plan::CopyStep>(entry.steps[*step].what) ? ", by a copy: something reads its old value until then" : "";
    lines.push_back(fmt::format("{}: {} at step {} of {}{}; the backward pass ends with step {}", entry.name, printable(persistents[i].name, 200), *step, entry.steps.size(), how, end));
  }
  return lines;
}

std::string explain_updates(const std::vector<std::string>& lines) { return listed("when weights are updated", lines); }

std::string explain_weights(const std::vector<std::string>& lines) { return listed("how weights lie", lines); }

std::string explain_epilogues(const std::vector<std::string>& lines) { return listed("calls that may do the next kernel's work as well, where a timing on the device says so", lines); }

std::string explain_attention(const std::vector<std::string>& lines) { return listed("attention", lines); }
std::string explain_recurrences(const std::vector<std::string>& lines) { return listed("loops over steps", lines); }

std::string explain_shares(const std::vector<std::string>& lines) { return listed("what --shard-optimizer can spare", lines); }

}  // namespace hone
