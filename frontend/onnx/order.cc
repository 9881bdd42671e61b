#include "frontend/onnx/order.h"

#include <fmt/format.h>

#include <algorithm>
#include <queue>
#include <set>
#include <string_view>
#include <unordered_map>

#include "base/text.h"
#include "frontend/onnx/exported_program.h"

namespace hone::onnx {

namespace {

constexpr int kGiven = -1;  // an input or initializer, not a node's result

/// Who makes which value, and which nodes are needed.
class Connections {
 public:
  Connections(const Body& body, Outside outside, const Locations& locations, Diags& diags)
      : body_(body), outside_(outside), locations_(locations), diags_(diags), captured_(static_cast<std::size_t>(body.nodes->size())) {
    collect_given();
    for (int i = 0; i < body.nodes->size(); ++i) {
      for (const std::string& name : node(i).output())
        if (not name.empty()) define(name, i);
      captured_[static_cast<std::size_t>(i)] = captured_names(node(i));
    }
    find_needed();
  }

  std::vector<int> order() {
    std::vector<int> waits(needed_.size()), result;  // operands not yet made
    std::vector<std::vector<int>> users(waits.size());
    std::priority_queue<int, std::vector<int>, std::greater<>> ready;
    for (int i = 0; i < body_.nodes->size(); ++i) {
      if (not needed_[static_cast<std::size_t>(i)]) continue;
      for (const int from : operands_of(i)) {
        users[static_cast<std::size_t>(from)].push_back(i);
        ++waits[static_cast<std::size_t>(i)];
      }
      if (waits[static_cast<std::size_t>(i)] == 0) ready.push(i);
    }
    while (not ready.empty()) {
      const int node = ready.top();
      ready.pop();
      result.push_back(node);
      for (const int user : users[static_cast<std::size_t>(node)])
        if (--waits[static_cast<std::size_t>(user)] == 0) ready.push(user);
    }
    report_cycles(waits);
    return result;
  }

 private:
  const NodeProto& node(int i) const { return body_.nodes->Get(i); }

  void collect_given() {
    std::set<std::string_view> inputs;
    for (const std::string_view input : body_.inputs) {
      if (not inputs.insert(input).second) diags_.error(Code::kBadGraph, fmt::format("there are two inputs named {}", quoted(input)), locations_.file(), {kRenameValues});
      makers_.emplace(input, kGiven);
    }
    if (body_.graph == nullptr) return;
    std::set<std::string_view> initializers;
    for (const TensorProto& tensor : body_.graph->initializer()) {
      if (not initializers.insert(tensor.name()).second)
        diags_.error(Code::kBadGraph, fmt::format("there are two initializers named {}", quoted(tensor.name())), locations_.file(), {kRenameValues});
      makers_.emplace(tensor.name(), kGiven);
    }
    for (const SparseTensorProto& sparse : body_.graph->sparse_initializer()) makers_.emplace(sparse.values().name(), kGiven);
  }

  void define(const std::string& name, int maker) {
    const auto [found, is_new] = makers_.emplace(name, maker);
    if (is_new or (outside_ == Outside::kReplaced and found->second == kGiven)) return;
    const std::string other =
        found->second == kGiven ? "an input or initializer" : fmt::format("the result of {}", to_string(locations_.of(node(found->second))));
    diags_.error(Code::kBadGraph, fmt::format("the value {} is made twice", quoted(name)), locations_.of(node(maker)), {"it is also " + other});
  }

  void report_missing(std::string_view name, const std::string& what, const Loc& loc) {
    constexpr std::size_t kMostHints = 20;  // each looks at every name
    if (outside_ != Outside::kNothing or not reported_.insert(name).second) return;
    std::vector<std::string> names, notes;
    if (reported_.size() <= kMostHints)
      for (const auto& [known, maker] : makers_) names.emplace_back(known);
    std::sort(names.begin(), names.end());
    if (const std::string hint = did_you_mean(name, names); not hint.empty()) notes.push_back(hint);
    else notes.emplace_back("the file is damaged, or was cut out of a larger model: export it again");
    diags_.error(Code::kBadGraph, fmt::format("{} is {}, which nothing produces", what, quoted(name)), loc, std::move(notes));
  }

  void find_needed() {
    needed_.resize(captured_.size());
    std::vector<int> open;
    const auto need = [&](int maker) {
      if (maker == kGiven or needed_[static_cast<std::size_t>(maker)]) return;
      needed_[static_cast<std::size_t>(maker)] = true;
      open.push_back(maker);
    };
    for (const std::string_view output : body_.outputs) {
      if (const auto maker = makers_.find(output); maker != makers_.end()) need(maker->second);
      else report_missing(output, body_.graph != nullptr ? "an output of the model" : "an output of the function", locations_.file());
    }
    while (not open.empty()) {
      const int reader = open.back();
      open.pop_back();
      const std::string& op_type = node(reader).op_type();
      for (int i = 0; i < node(reader).input_size(); ++i) {
        const std::string& name = node(reader).input(i);
        if (name.empty()) continue;
        if (const auto maker = makers_.find(name); maker != makers_.end()) need(maker->second);
        else report_missing(name, fmt::format("{}: input {}", printable(op_type), i), locations_.of(node(reader)));
      }
      for (const std::string_view name : captured_[static_cast<std::size_t>(reader)]) {
        if (const auto maker = makers_.find(name); maker != makers_.end()) need(maker->second);
        else report_missing(name, fmt::format("{}: what its {}", printable(op_type), bodies_of(node(reader)).empty() ? "attributes name" : "body reads"), locations_.of(node(reader)));
      }
    }
  }

  /// The nodes whose results node `reader` reads, one entry a read.
  std::vector<int> operands_of(int reader) const {
    std::vector<int> operands;
    const auto add = [&](std::string_view name) {
      if (const auto maker = makers_.find(name); not name.empty() and maker != makers_.end() and maker->second != kGiven) operands.push_back(maker->second);
    };
    for (const std::string& name : node(reader).input()) add(name);
    for (const std::string_view name : captured_[static_cast<std::size_t>(reader)]) add(name);
    return operands;
  }

  /// Every node that still waits has an operand that waits, so walking from operand to operand comes back to itself.
  void report_cycles(const std::vector<int>& waits) {
    std::vector<int> visit(waits.size());  // the walk that came by; 0: none
    for (int start = 0, walk = 1; start < static_cast<int>(waits.size()); ++start) {
      if (waits[static_cast<std::size_t>(start)] == 0 or visit[static_cast<std::size_t>(start)] != 0) continue;
      std::vector<int> path;
      int at = start;
      for (; visit[static_cast<std::size_t>(at)] == 0; at = waiting_operand(at, waits)) {
        visit[static_cast<std::size_t>(at)] = walk;
        path.push_back(at);
      }
      if (visit[static_cast<std::size_t>(at)] == walk) report_cycle({std::find(path.begin(), path.end(), at), path.end()});
      ++walk;
    }
  }

  int waiting_operand(int reader, const std::vector<int>& waits) const {
    for (const int operand : operands_of(reader))
      if (waits[static_cast<std::size_t>(operand)] > 0) return operand;
    return reader;
  }

  void report_cycle(const std::vector<int>& cycle) {
    constexpr std::size_t kMostNamed = 8;
    std::string names;
    for (std::size_t i = 0; i < std::min(cycle.size(), kMostNamed); ++i) names += quoted(locations_.of(node(cycle[i])).node) + " reads ";
    if (cycle.size() > kMostNamed) names += fmt::format("({} more) reads ", cycle.size() - kMostNamed);
    diags_.error(Code::kBadGraph, "nodes depend on themselves: " + names + quoted(locations_.of(node(cycle[0])).node),
                 locations_.of(node(cycle[0])), {"an ONNX graph goes from inputs to outputs only: what wrote this file connected the names wrongly"});
  }

  const Body& body_;
  const Outside outside_;
  const Locations& locations_;
  Diags& diags_;
  std::vector<std::vector<std::string_view>> captured_;  ///< what a node's bodies read
  std::unordered_map<std::string_view, int> makers_;
  std::vector<bool> needed_;
  std::set<std::string_view> reported_;
};

/// PyTorch's exporter leaves "['', 'encoder', 'encoder.0', 'linear']": modules from the outside in, then the node; others "encoder/encoder.0: Linear/linear:
/// aten.linear".
std::string layer_from_metadata(const NodeProto& node) {
  const std::string scopes = metadata_of(node, "pkg.torch.onnx.name_scopes");
  std::vector<std::string> quotes = split(scopes, '\'');  // every second piece stands in quotes
  if (quotes.size() >= 5) return quotes[quotes.size() - 4];
  const std::vector<std::string> levels = split(metadata_of(node, "namespace"), '/');
  return levels.size() < 2 ? "" : std::string(trim(split(levels[levels.size() - 2], ':')[0]));
}

std::string layer_from_name(const std::string& name) {
  const std::size_t last = name.rfind('/');
  if (last == std::string::npos) return {};
  const std::size_t first = name.find_first_not_of('/');
  return first >= last ? "" : name.substr(first, last - first);
}

}  // namespace

Locations::Locations(const NodeList& nodes, std::string file) : file_(std::move(file)) {
  for (const NodeProto& node : nodes) ++uses_[node.name()];
}

Loc Locations::of(const NodeProto& node) const {
  Loc loc{.file = file_, .node = node.name()};
  const std::string first = node.output_size() > 0 ? node.output(0) : "";
  if (node.name().empty()) loc.node = first.empty() ? "unnamed " + node.op_type() : first;
  else if (const auto uses = uses_.find(node.name()); uses != uses_.end() and uses->second > 1) loc.node = fmt::format("{} (makes {})", node.name(), first);
  loc.layer = layer_from_metadata(node);
  if (loc.layer.empty()) loc.layer = layer_from_name(node.name());
  return loc;
}

std::vector<int> build_order(const Body& body, Outside outside, const Locations& locations, Diags& diags) {
  return Connections(body, outside, locations, diags).order();
}

}  // namespace hone::onnx
