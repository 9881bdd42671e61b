#include "backends/node_story.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <utility>

#include "backends/explain.h"
#include "backends/recompute.h"
#include "base/text.h"
#include "ir/op.h"
#include "passes/target.h"
#include "runtime/library/arena.h"
#include "runtime/plan/step_name.h"

namespace hone {

namespace {

/// A graph, or a body in it.
struct Place {
  const Graph* graph;
  std::string where = {};  ///< "in the body of scan: "
};

/// The graph and the bodies in it, whose depth import and parser limit.
std::vector<Place> places_in(const Graph& graph) {
  std::vector<Place> places = {{&graph}};
  for (std::size_t i = 0; i < places.size(); ++i)
    for (const Node& node : places[i].graph->nodes())
      for (const auto& body : node.bodies) places.push_back({body.get(), fmt::format("in the body of {}: ", node.op->name)});
  return places;
}

std::vector<std::string> parts_of(const Graph& graph, const std::string& node) {
  std::vector<std::string> parts;
  for (const Place& place : places_in(graph))
    for (const Node& each : place.graph->nodes())
      if (each.loc.node == node) parts.push_back(place.where + part_text(*place.graph, each));
  return parts;
}

/// An entry, or a body of one of its loops and branches.
struct Steps {
  const plan::Entry* entry;
  std::string where = {};  ///< "step 3, body 0, "
};

/// plan::check limits the depth.
std::vector<Steps> steps_in(const plan::Entry& entry) {
  std::vector<Steps> all = {{&entry}};
  for (std::size_t i = 0; i < all.size(); ++i)
    for (std::size_t number = 0; number < all[i].entry->steps.size(); ++number)
      if (const auto* region = std::get_if<plan::RegionStep>(&all[i].entry->steps[number].what))
        for (std::size_t body = 0; body < region->bodies.size(); ++body) all.push_back({&region->bodies[body], fmt::format("{}step {}, body {}, ", all[i].where, number, body)});
  return all;
}

template <typename Names>
std::string list_of(const Names& names) {
  std::vector<std::string> list;
  for (const std::string& name : names) list.push_back(name.empty() ? "-" : printable(name, 100));
  return join(list, ", ");
}

std::string attribute_names(const onnx::NodeProto& node) {
  std::vector<std::string> names;
  for (const auto& attribute : node.attribute()) names.push_back(printable(attribute.name(), 100));
  return names.empty() ? "" : fmt::format("; attributes {}", join(names, ", "));
}

/// A node is called what its file calls it, else what its first result is called.
const onnx::NodeProto* find(const onnx::ModelProto& model, const std::string& name) {
  for (const auto& node : model.graph().node())
    if (node.name() == name) return &node;
  for (const auto& node : model.graph().node())
    if (node.name().empty() and node.output_size() > 0 and node.output(0) == name) return &node;
  return nullptr;
}

std::vector<std::string> names_of_nodes(const Graph& graph) {
  std::set<std::string> names;
  for (const Node& node : graph.nodes())
    if (not node.loc.node.empty()) names.insert(node.loc.node);
  return {names.begin(), names.end()};
}

std::string short_text(const Node& node) { return fmt::format("{} {}", node.op->name, to_string(node.loc)); }

/// "f32[N,16], arena, 64 KiB at batch 32, alive in steps 3 to 41"
class BufferTexts {
 public:
  BufferTexts(const plan::Entry& entry, const std::vector<plan::Persistent>& persistents, const std::string& batch_symbol, std::int64_t batch) : entry_(entry), persistents_(persistents), batch_(batch) {
    if (const auto needs = arena_needs(entry, sizes_for(batch_symbol, batch))) bytes_ = needs->buffers;
  }

  std::string text(std::uint64_t buffer) const {
    const plan::Buffer& shown = entry_.buffers[buffer];
    const std::uint32_t root = plan::root_of(entry_, buffer);
    const plan::Buffer& lies = entry_.buffers[root];
    using Storage = plan::Buffer::Storage;
    std::string where;
    if (lies.storage == Storage::kArena) where = fmt::format("arena, alive in steps {} to {}{}", lies.first_step, lies.last_step, lies.opaque ? ", laid out by its library call" : "");
    if (lies.storage == Storage::kPersistent) where = "is " + quoted(persistents_[lies.index].name) + (persistents_[lies.index].panels ? ", in panels" : "");
    if (lies.storage == Storage::kFeed) where = "is fed as " + quoted(entry_.feeds[lies.index].name);
    const std::string size = bytes_.empty() ? "" : fmt::format(", {} at batch {}", human_bytes(static_cast<std::uint64_t>(bytes_[root])), batch_);
    return fmt::format("{}: {}[{}], {}{}", shown.name.empty() ? fmt::format("buffer {}", buffer) : printable(shown.name, 100), to_string(shown.dtype), to_string(shown.shape), where, size);
  }

 private:
  const plan::Entry& entry_;
  const std::vector<plan::Persistent>& persistents_;
  std::int64_t batch_;
  std::vector<std::int64_t> bytes_;
};

/// An origin quotes nodes itself, but not all that it names.
std::string origin_text(const plan::Step& step) {
  std::string text = printable(step.origin, 300);
  for (std::size_t at = 0; (at = text.find("\\\"", at)) != std::string::npos; ++at) text.erase(at, 1);
  return text;
}

std::string amount_text(const plan::Step& step) {
  if (step.flops.is_constant(0) and step.bytes.is_constant(0)) return "";
  return fmt::format("; {} FLOPs, {} bytes", step.flops.text(), step.bytes.text());
}

/// The name that is most like `node`, or else those that it is a part of, as a layer's name is.
std::string like_it(const std::string& node, const std::vector<std::string>& names) {
  constexpr std::size_t kShown = 5;
  if (std::string hint = did_you_mean(node, names); not hint.empty() or node.empty()) return hint;
  std::vector<std::string> with_it;
  for (const std::string& name : names)
    if (name.find(node) != std::string::npos and std::ranges::find(with_it, name) == with_it.end()) with_it.push_back(name);
  if (with_it.empty()) return "";
  const std::size_t more = with_it.size() - std::min(with_it.size(), kShown);
  with_it.resize(with_it.size() - more);
  return fmt::format("nodes with it in their names: {}{}", quoted_list(with_it), more == 0 ? "" : fmt::format(" and {} more", more));
}

}  // namespace

NodeStory::NodeStory(std::string node, const onnx::ModelProto& proto, const Graph& imported) : node_(std::move(node)), log_(node_) {
  const onnx::NodeProto* const from = find(proto, node_);
  std::vector<std::string> names = names_of_nodes(imported);
  if (from == nullptr and not std::ranges::binary_search(names, node_)) {
    for (const auto& each : proto.graph().node())
      if (not each.name().empty()) names.push_back(each.name());
    throw Error(Code::kUsage, fmt::format("--why {}: the model has no such node", quoted(node_)), {}, {like_it(node_, names), "hone-compile MODEL.onnx --emit imported shows all nodes, or --why alone tells of all"});
  }
  std::vector<std::string> lines;
  if (from != nullptr) lines.push_back(fmt::format("{}({}) -> {}{}", printable(from->op_type(), 100), list_of(from->input()), list_of(from->output()), attribute_names(*from)));
  const std::vector<std::string> parts = parts_of(imported, node_);
  for (const std::string& part : parts) lines.push_back("becomes " + part);
  if (parts.empty()) lines.emplace_back("nothing is left of it: it was folded into constants, or computed sizes alone");
  add("imported", std::move(lines));
  for (const Node& each : imported.nodes())
    if (each.loc.node == node_)
      for (const ValueId operand : each.operands)
        if (const Input* input = operand.valid() ? imported.input_of(operand) : nullptr; input != nullptr and input->role == Role::kWeight) weights_.push_back(input->name);
}

void NodeStory::add(std::string heading, std::vector<std::string> lines) {
  if (not lines.empty()) chapters_.push_back({std::move(heading), std::move(lines)});
}

void NodeStory::built(const EntryGraph& entry, bool several_targets) {
  entry_ = entry.name;
  several_targets_ = several_targets;
  add(fmt::format("{} as it is built: ops expanded, gradients attached", entry.name), parts_of(entry.graph, node_));
}

void NodeStory::tell_passes() {
  std::vector<std::string> lines;
  for (const PassEvent& event : log_.events()) {
    lines.push_back(event.pass + (event.rules.empty() ? "" : ", by the rules:"));
    for (const std::string& rule : event.rules) lines.push_back("    " + rule);
    for (const std::string& part : event.before) lines.push_back("  - " + part);
    for (const std::string& part : event.after) lines.push_back("  + " + part);
  }
  if (lines.empty()) lines.emplace_back("none changed it");
  add("passes that changed it", std::move(lines));
}

void NodeStory::prepared(const EntryGraph& entry, const Target& target, const PassChoice& passes) {
  if (std::exchange(passes_told_, true) == false) tell_passes();
  std::vector<std::string> choices, fused;
  for (const Place& place : places_in(entry.graph)) {
    const Graph& graph = *place.graph;
    for (std::size_t i = 0; i < graph.node_count(); ++i) {
      const Node& node = graph.node(NodeId(i));
      if (node.loc.node != node_) continue;
      choices.push_back(fmt::format("{}{}: {}", place.where, part_text(graph, node), runner_of(target, graph, NodeId(i))));
    }
    tell_fusion(fuse_and_recompute(graph, passes, entry.exchange, target.parallelism()), place.where, fused);
  }
  const std::string in = entry.name == entry_ ? "" : ", in " + entry.name;
  add(fmt::format("what runs it on {}{}", target.name(), in), std::move(choices));
  add("fused" + (in.empty() and not several_targets_ ? "" : fmt::format(" on {}{}", target.name(), in)), std::move(fused));
}

void NodeStory::tell_fusion(const Fusion& fusion, const std::string& where, std::vector<std::string>& lines) const {
  for (const Group& group : fusion.groups) {
    const auto is_its = [&](NodeId id) { return fusion.graph.node(id).loc.node == node_; };
    if (group.members.size() < 2 or std::ranges::none_of(group.members, is_its)) continue;
    lines.push_back(fmt::format("{}one kernel of {} nodes:", where, group.members.size()));
    for (const NodeId member : group.members) lines.push_back(fmt::format("  {} {}", is_its(member) ? "*" : " ", short_text(fusion.graph.node(member))));
  }
  for (const FusionDecision& decision : fusion.decisions) {
    const Node &node = fusion.graph.node(decision.node), &producer = fusion.graph.node(decision.producer);
    if ((node.loc.node != node_ and producer.loc.node != node_) or fusion.group_of[decision.node.index] == fusion.group_of[decision.producer.index]) continue;
    std::string line = fmt::format("{}{} and {}: not one kernel, because {}", where, short_text(producer), short_text(node), decision.why_not);
    if (std::ranges::find(lines, line) == lines.end()) lines.push_back(std::move(line));
  }
}

void NodeStory::scheduled(const plan::Entry& entry, const std::string& target, const std::vector<plan::Persistent>& persistents, const std::string& batch_symbol, std::int64_t batch) {
  std::vector<std::string> lines, updates;
  for (const Steps& steps : steps_in(entry)) tell_steps(*steps.entry, steps.where, {persistents, batch_symbol, batch}, lines, updates);
  if (lines.empty()) lines.emplace_back("no step: what is left of it is a view of another buffer, or a constant");
  for (const std::string& weight : weights_)
    if (std::ranges::none_of(updates, [&](const std::string& line) { return line.starts_with(quoted(weight)); })) updates.push_back(quoted(weight) + " is not trained");
  add(fmt::format("steps of {}{}", entry.name, several_targets_ ? " on " + target : ""), std::move(lines));
  if (entry.name == entry_) add("its weights", std::move(updates));
}

void NodeStory::tell_steps(const plan::Entry& entry, const std::string& where, const Around& around, std::vector<std::string>& lines, std::vector<std::string>& updates) const {
  const std::vector<plan::Persistent>& persistents = around.persistents;
  const BufferTexts buffers(entry, persistents, around.batch_symbol, around.batch);
  for (std::size_t i = 0; i < entry.steps.size(); ++i) {
    const plan::Step& step = entry.steps[i];
    const bool is_its = std::ranges::find(step.nodes, node_) != step.nodes.end();
    const auto* kernel = std::get_if<plan::KernelStep>(&step.what);
    if (is_its) lines.push_back(fmt::format("{}step {}: {} ({}){}", where, i, printable(name_of(step), 100), origin_text(step), amount_text(step)));
    if (is_its and step.nodes.size() > 1) lines.push_back("  with the work of " + list_of(step.nodes));
    std::size_t number = 0;
    plan::for_each_buffer(step, [&](std::uint64_t buffer, plan::Access access) {
      const bool writes = kernel != nullptr ? number >= kernel->read_only : access != plan::Access::kRead;
      if (is_its) lines.push_back(fmt::format("  {} {}", writes ? "writes" : "reads ", buffers.text(buffer)));
      const plan::Buffer& root = entry.buffers[plan::root_of(entry, buffer)];
      const bool is_weight = root.storage == plan::Buffer::Storage::kPersistent and std::ranges::find(weights_, persistents[root.index].name) != weights_.end();
      if (writes and is_weight) updates.push_back(fmt::format("{} is updated in step {}: {}{}", quoted(persistents[root.index].name), i, printable(name_of(step), 100),
                                                              is_its ? ", the kernel that makes its gradient" : ""));
      ++number;
    });
  }
}

std::string NodeStory::text() const {
  std::string text = printable(node_, 300) + "\n";
  for (const Chapter& chapter : chapters_) {
    text += "\n" + chapter.heading + "\n";
    for (const std::string& line : chapter.lines) text += "  " + line + "\n";
  }
  return text;
}

}  // namespace hone
