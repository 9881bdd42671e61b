#include "frontend/onnx/export_step.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "frontend/onnx/exporter.h"
#include "ir/op.h"
#include "ir/rewriter.h"

namespace hone::onnx {

namespace {

constexpr std::int64_t kStepIrVersion = 8;  // the first with functions

/// What is written in one piece: a group, or a node by itself.
struct Unit {
  std::vector<NodeId> nodes;  ///< in graph order
  std::vector<NodeId> owned;  ///< those of them whose results others have from here
  const NodeGroup* group = nullptr;
};

/// The graph's nodes as units, in an order in which they can run.
class Units {
 public:
  Units(const Graph& graph, std::span<const NodeGroup> groups) : graph_(graph), owner_(graph.node_count(), kNone) {
    for (const NodeGroup& group : groups) add(group);
    for (std::size_t unit = 0; unit < units_.size(); ++unit) add_between(unit);
    add_read_by_one();
    for (std::size_t i = 0; i < graph.node_count(); ++i) {
      if (owner_[i] == kNone) add_alone(NodeId(i));
      if (graph.node(NodeId(i)).op->binds) binds_.emplace_back(i);
    }
  }

  std::vector<Unit> in_order() {
    for (;;) {
      const std::vector<std::size_t> order = sorted();
      if (order.size() == units_.size()) {
        std::vector<Unit> result;
        for (const std::size_t unit : order) result.push_back(std::move(units_[unit]));
        return result;
      }
      dissolve(in_circle(order));
    }
  }

 private:
  static constexpr std::size_t kNone = SIZE_MAX;

  void add(const NodeGroup& group) {
    Unit unit{.nodes = {}, .owned = {}, .group = &group};
    for (const NodeId node : group.nodes)
      if (node.index < graph_.node_count() and is_part_of_units(node)) unit.nodes.push_back(node);
    std::ranges::sort(unit.nodes);
    unit.nodes.erase(std::unique(unit.nodes.begin(), unit.nodes.end()), unit.nodes.end());
    for (const NodeId node : unit.nodes)
      if (owner_[node.index] == kNone) unit.owned.push_back(node);
    if (unit.owned.empty()) return;
    for (const NodeId node : unit.owned) owner_[node.index] = units_.size();
    units_.push_back(std::move(unit));
  }

  bool is_part_of_units(NodeId id) const { return graph_.node(id).bodies.empty() and not graph_.node(id).op->binds; }

  template <typename Use>
  void for_each_producer(NodeId id, Use use) const {
    for (const ValueId operand : graph_.node(id).operands)
      if (operand.valid() and graph_.value(operand).producer.valid()) use(graph_.value(operand).producer);
  }

  void join(NodeId id, std::size_t unit) {
    owner_[id.index] = unit;
    for (auto* list : {&units_[unit].nodes, &units_[unit].owned}) list->insert(std::ranges::upper_bound(*list, id), id);
  }

  /// What belongs to nobody, is made from what the unit makes and is read by it: another shape of the same elements, which takes no step.
  void add_between(std::size_t unit) {
    const std::vector<NodeId> nodes = units_[unit].nodes;
    const std::size_t first = nodes.front().index, count = nodes.back().index - first + 1;
    std::vector<bool> follows(count), leads(count);
    for (const NodeId id : nodes) leads[id.index - first] = true;
    for (const NodeId id : units_[unit].owned) follows[id.index - first] = true;
    for (std::size_t i = 0; i < count; ++i)
      for_each_producer(NodeId(first + i), [&](NodeId producer) {
        if (producer.index >= first and follows[producer.index - first]) follows[i] = true;
      });
    for (std::size_t i = count; i-- > 0;)
      if (leads[i])
        for_each_producer(NodeId(first + i), [&](NodeId producer) {
          if (producer.index >= first) leads[producer.index - first] = true;
        });
    for (std::size_t i = 0; i < count; ++i)
      if (follows[i] and leads[i] and owner_[first + i] == kNone and is_part_of_units(NodeId(first + i))) join(NodeId(first + i), unit);
  }

  /// What belongs to nobody and is read by one group alone.
  void add_read_by_one() {
    constexpr std::size_t kSeveral = kNone - 1;
    std::vector<std::size_t> reader(graph_.node_count(), kNone);
    const auto read = [&](ValueId value, std::size_t by) {
      if (not value.valid() or not graph_.value(value).producer.valid()) return;
      std::size_t& one = reader[graph_.value(value).producer.index];
      one = one == kNone or one == by ? by : kSeveral;
    };
    for (const Output& output : graph_.outputs()) read(output.value, kSeveral);
    for (const Alias& alias : graph_.aliases()) read(alias.value, kSeveral);
    for (std::size_t i = 0; i < units_.size(); ++i)
      for (const NodeId id : units_[i].nodes)
        for (const ValueId operand : graph_.node(id).operands) read(operand, i);
    for (std::size_t i = graph_.node_count(); i-- > 0;) {
      const std::size_t unit = reader[i];
      const bool joins = owner_[i] == kNone and unit < kSeveral and is_part_of_units(NodeId(i));
      if (joins) join(NodeId(i), unit);
      for (const ValueId operand : graph_.node(NodeId(i)).operands)
        if (joins or owner_[i] == kNone) read(operand, joins ? unit : kSeveral);
    }
  }

  void add_alone(NodeId node) {
    owner_[node.index] = units_.size();
    units_.push_back({.nodes = {node}, .owned = {node}});
  }

  /// The units that must run before `unit`.
  std::set<std::size_t> before(std::size_t unit) const {
    std::set<std::size_t> result;
    const auto& nodes = units_[unit].nodes;
    for (const NodeId id : nodes)
      for (const ValueId operand : graph_.node(id).operands) {
        if (not operand.valid() or not graph_.value(operand).producer.valid()) continue;
        const NodeId producer = graph_.value(operand).producer;
        if (not std::ranges::binary_search(nodes, producer)) result.insert(owner_[producer.index]);
      }
    for (const NodeId binds : binds_)  // sizes that are read are known from there on
      if (nodes.back() > binds) result.insert(owner_[binds.index]);
    result.erase(unit);
    return result;
  }

  /// As many units as can be put in order, those with the first nodes first.
  std::vector<std::size_t> sorted() const {
    std::vector<std::size_t> waits(units_.size());
    std::vector<std::vector<std::size_t>> readers(units_.size());
    std::set<std::pair<NodeId, std::size_t>> ready;
    for (std::size_t unit = 0; unit < units_.size(); ++unit) {
      const std::set<std::size_t> needed = before(unit);
      waits[unit] = needed.size();
      for (const std::size_t other : needed) readers[other].push_back(unit);
      if (needed.empty()) ready.emplace(units_[unit].nodes.back(), unit);
    }
    std::vector<std::size_t> order;
    while (not ready.empty()) {
      const std::size_t unit = ready.begin()->second;
      ready.erase(ready.begin());
      order.push_back(unit);
      for (const std::size_t reader : readers[unit])
        if (--waits[reader] == 0) ready.emplace(units_[reader].nodes.back(), reader);
    }
    return order;
  }

  /// A group that waits for itself, beyond those in `order`.
  std::size_t in_circle(const std::vector<std::size_t>& order) const {
    std::vector<bool> done(units_.size()), seen(units_.size());
    for (const std::size_t unit : order) done[unit] = true;
    std::size_t at = static_cast<std::size_t>(std::ranges::find(done, false) - done.begin());
    while (not seen[at]) {  // from one to another that it waits for: there is always one
      seen[at] = true;
      for (const std::size_t other : before(at))
        if (not done[other]) {
          at = other;
          break;
        }
    }
    std::size_t largest = at;
    for (std::size_t next = at;;) {
      for (const std::size_t other : before(next))
        if (not done[other]) {
          next = other;
          break;
        }
      if (units_[next].nodes.size() > units_[largest].nodes.size()) largest = next;
      if (next == at) return largest;
    }
  }

  void dissolve(std::size_t unit) {
    const std::vector<NodeId> nodes = std::move(units_[unit].owned);
    units_[unit] = {.nodes = {nodes[0]}, .owned = {nodes[0]}};
    for (std::size_t i = 1; i < nodes.size(); ++i) add_alone(nodes[i]);
  }

  const Graph& graph_;
  std::vector<std::size_t> owner_;  ///< by node
  std::vector<Unit> units_;
  std::vector<NodeId> binds_;  ///< nodes from which on sizes are known
};

/// A unit as a function, and what its call reads and gives.
struct Part {
  FunctionProto function;
  std::vector<ValueId> operands, results;
  std::vector<std::string> symbols;  ///< of sizes, given behind the operands
  std::size_t operators = 0;
};

class StepExporter {
 public:
  explicit StepExporter(const Graph& graph) : graph_(graph), exporter_(graph, *model_.mutable_graph(), kFormulaOpset, Formulas::kWritten, taken_names(graph), given_names(graph)) {
    model_.set_ir_version(kStepIrVersion);
    model_.set_producer_name("hone");
    model_.mutable_graph()->set_name(graph.name.empty() ? "step" : graph.name);
    for (const auto& [domain, version] : {std::pair<const char*, std::int64_t>("", kFormulaOpset), {kFunctionDomain, 1}}) {
      OperatorSetIdProto& import = *model_.add_opset_import();
      import.set_domain(domain);
      import.set_version(version);
    }
  }

  ModelProto run(std::span<const NodeGroup> groups) {
    write_inputs();
    name_results();
    const std::vector<Unit> units = Units(graph_, groups).in_order();
    find_shared(units);
    for (const Unit& unit : units) write(unit);
    problems_.throw_if_errors();
    write_outputs();
    return std::move(model_);
  }

 private:
  static std::vector<std::string> given_names(const Graph& graph) {
    std::vector<std::string> given(graph.value_count());
    for (const Input& input : graph.inputs()) given[input.value.index] = input.name;
    return given;
  }

  static std::string new_name(const Graph& graph, const Alias& alias) { return kNewPrefix + graph.input_of(alias.state)->name; }

  static std::set<std::string> taken_names(const Graph& graph) {
    std::set<std::string> names;
    for (const Input& input : graph.inputs()) names.insert(input.name);
    for (const Output& output : graph.outputs()) names.insert(output.name);
    for (const Alias& alias : graph.aliases()) names.insert(new_name(graph, alias));
    return names;
  }

  void write_inputs() {
    for (const Input& input : graph_.inputs()) {
      if (input.role != Role::kConstant) write_value_info(*model_.mutable_graph()->add_input(), exporter_.name(input.value), graph_.type(input.value));
      if (input.data) exporter_.initializer(input.value, *input.data);
    }
  }

  /// What is an output has its name; the second of two gets a copy.
  void name_results() {
    std::set<std::string> used;
    for (const Input& input : graph_.inputs()) used.insert(input.name);
    const auto name = [&](ValueId value, std::string wanted) {
      if (not used.insert(wanted).second) wanted = exporter_.fresh(wanted);  // an input has that name
      outputs_.emplace_back(wanted, value);
      if (graph_.input_of(value) == nullptr and named_.insert(value).second) exporter_.rename(value, wanted);
    };
    for (const Output& output : graph_.outputs()) name(output.value, output.name);
    for (const Alias& alias : graph_.aliases()) name(alias.value, new_name(graph_, alias));
  }

  void write_outputs() {
    for (const auto& [name, value] : outputs_) {
      if (exporter_.name(value) != name) {
        NodeProto& copy = *model_.mutable_graph()->add_node();
        copy.set_op_type("Identity");
        copy.set_name("copy of " + name);
        copy.add_input(exporter_.name(value));
        copy.add_output(name);
      }
      write_value_info(*model_.mutable_graph()->add_output(), name, graph_.type(value));
    }
  }

  /// What a unit reads that it does not make, and outputs.
  void find_shared(const std::vector<Unit>& units) {
    shared_.resize(graph_.value_count());
    for (const auto& [name, output] : outputs_) shared_[output.index] = true;
    for (const Unit& unit : units)
      for (const NodeId id : unit.nodes)
        for (const ValueId operand : graph_.node(id).operands)
          if (operand.valid() and not std::ranges::binary_search(unit.nodes, graph_.value(operand).producer)) shared_[operand.index] = true;
  }

  void write(const Unit& unit) {
    const Node& first = graph_.node(unit.nodes[0]);
    if (first.bodies.empty() and not first.op->binds) {
      const std::optional<Part> part = part_of(unit);
      if (not part) return;
      if (unit.nodes.size() > 1 or part->operators > 1) return call(unit, *part);
    }
    if (not exporter_.write(first)) refuse(first);
  }

  void refuse(const Node& node) { problems_.error(Code::kUnknownOp, fmt::format("{} {} cannot be written as ONNX", node.op->name, node.attrs.text()), node.loc); }

  /// Is the value written into functions that read it?
  bool is_number(ValueId value) const {
    const Tensor* constant = graph_.constant_of(value);
    return constant != nullptr and constant->element_count() == 1;
  }

  /// Values are called after their place, so that equal parts are equal functions.
  std::optional<Part> part_of(const Unit& unit) {
    Part part;
    Exporter inside(graph_, part.function, kFormulaOpset);
    std::set<ValueId> known;
    for (const NodeId id : unit.nodes) {
      const Node& node = graph_.node(id);
      for (const ValueId operand : node.operands) {
        if (not operand.valid() or not known.insert(operand).second) continue;
        if (is_number(operand)) {
          inside.rename(operand, inside.constant(*graph_.constant_of(operand), "number"));
          continue;
        }
        inside.rename(operand, inside.fresh(fmt::format("x{}", part.operands.size())));
        part.function.add_input(inside.name(operand));
        part.operands.push_back(operand);
      }
      const bool is_owned = std::ranges::binary_search(unit.owned, id);
      for (const ValueId result : node.results) {
        known.insert(result);
        const bool is_result = is_owned and shared_[result.index];
        inside.rename(result, inside.fresh(is_result ? fmt::format("y{}", part.results.size()) : "t"));
        if (not is_result) continue;
        part.function.add_output(inside.name(result));
        part.results.push_back(result);
      }
      if (not inside.write(node)) return refuse(node), std::nullopt;
    }
    for (const auto& [symbol, name] : inside.symbol_inputs()) {
      part.function.add_input(name);
      part.symbols.push_back(symbol);
    }
    for (const NodeProto& node : part.function.node()) part.operators += node.op_type() != "Constant";
    return part;
  }

  void call(const Unit& unit, const Part& part) {
    const Node& last = graph_.node(unit.nodes.back());
    std::vector<std::string> operands, results;
    for (const ValueId operand : part.operands) operands.push_back(exporter_.name(operand));
    for (const std::string& symbol : part.symbols) {
      operands.push_back(exporter_.symbol(symbol, last));
      if (operands.back().empty()) return refuse(last);
    }
    for (const ValueId result : part.results) results.push_back(exporter_.name(result));
    if (results.empty()) return;  // nobody wants it
    const std::string name = function_of(part.function, unit.group != nullptr ? unit.group->name : std::string(last.op->name));
    NodeProto& node = exporter_.node(name, operands, results, last);
    node.set_domain(kFunctionDomain);
    if (unit.group != nullptr) node.set_doc_string(unit.group->origin);
  }

  /// The name under which the model has this function.
  std::string function_of(FunctionProto function, const std::string& wanted) {
    std::string& name = functions_[wanted + '\0' + function.SerializeAsString()];
    if (not name.empty()) return name;
    name = wanted;
    for (int i = 2; not function_names_.insert(name).second; ++i) name = fmt::format("{}_{}", wanted, i);
    function.set_name(name);
    function.set_domain(kFunctionDomain);
    OperatorSetIdProto& import = *function.add_opset_import();
    import.set_domain("");
    import.set_version(kFormulaOpset);
    *model_.add_functions() = std::move(function);
    return name;
  }

  const Graph& graph_;
  ModelProto model_;
  Exporter exporter_;
  Diags problems_;
  std::vector<std::pair<std::string, ValueId>> outputs_;
  std::set<ValueId> named_;
  std::vector<bool> shared_;  ///< by value
  std::map<std::string, std::string> functions_;  ///< names by what they do
  std::set<std::string> function_names_;
};

/// Replicas exchange nothing where there is one: a bucket of gradients would wait for all of them. Renumbers the nodes of groups.
void drop_exchanges(Graph& graph, std::vector<NodeGroup>& groups) {
  std::vector<NodeId> renumbered(graph.node_count());
  std::size_t next = 0;
  for (std::size_t i = 0; i < graph.node_count(); ++i)
    if (not graph.node(NodeId(i)).op->collective) renumbered[i] = NodeId(next++);
  const Changed changed = Rewriter::rewrite(graph, [](Rewriter& rewriter, NodeId id) {
    const Node& node = rewriter.node(id);
    if (not node.op->collective) return false;
    for (std::size_t k = 0; k < node.results.size(); ++k) rewriter.replace(node.results[k], rewriter.operand(node, k));
    return true;
  });
  if (changed == Changed::kNo) return;
  for (NodeGroup& group : groups) {
    std::erase_if(group.nodes, [&](NodeId node) { return node.index >= renumbered.size() or not renumbered[node.index].valid(); });
    for (NodeId& node : group.nodes) node = renumbered[node.index];
  }
}

}  // namespace

ModelProto export_step(Graph graph, std::vector<NodeGroup> groups) {
  drop_exchanges(graph, groups);
  ModelProto model = StepExporter(graph).run(groups);
  constexpr std::uint64_t kMostBytes = 0x7fff'ffff;
  if (model.ByteSizeLong() > kMostBytes)
    throw Error(Code::kTooLarge, fmt::format("the graph with its weights and states takes {} bytes, and an ONNX file of one piece holds {}", model.ByteSizeLong(), kMostBytes), {},
                {"an optimizer with fewer states takes less: loss and gradients do not depend on it"});
  return model;
}

}  // namespace hone::onnx
