// Graph: SSA nodes in topological order; forward first, later the whole training step. Nodes are pure; "result k replaces state j" stands in
// the alias table beside the graph. `const Graph&` reads; Builder (ir/builder.h) appends; Rewriter (ir/rewriter.h) changes.
#pragma once

#include <deque>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/diag.h"
#include "ir/attributes.h"
#include "ir/ids.h"

namespace hone {

struct OpDef;
class Graph;

struct Type {
  DType dtype = DType::kF32;
  Shape shape;
  friend bool operator==(const Type&, const Type&) = default;
};
/// "f32[N,784]"
std::string to_string(const Type& type);

/// What a graph input is to the training step.
enum class Role : std::uint8_t {
  kInput,     ///< fed at every call: model inputs, targets, the learning rate
  kWeight,    ///< a float initializer of the model; trained if an alias replaces it
  kState,     ///< moments, running statistics, counters
  kConstant,  ///< never changes
};
std::string_view to_string(Role role);

/// Which part of the training step a node belongs to; for people and for the schedule's report.
enum class Part : std::uint8_t { kForward, kLoss, kBackward, kAllReduce, kUpdate };
std::string_view to_string(Part part);

struct Value {
  Type type;
  NodeId producer;           ///< invalid for a graph input
  std::uint32_t result = 0;  ///< which result of the producer
  std::string name;          ///< the ONNX (or given) name, may be empty
  /// Contents of a small integer tensor as far as inference knows them, row-major: exporters compute shapes with graph ops.
  std::optional<std::vector<Dim>> known;
};

struct Node {
  const OpDef* op = nullptr;
  std::vector<ValueId> operands;  ///< an absent optional operand is an invalid id
  Attrs attrs;
  std::vector<ValueId> results;
  Loc loc;
  Part part = Part::kForward;
  std::vector<std::unique_ptr<Graph>> bodies;  ///< of a region op
};

struct Input {
  ValueId value;
  Role role = Role::kInput;
  std::string name;
  std::optional<Tensor> data;  ///< initial contents of weights and states, contents of constants
  /// Integer inputs whose values index something: each must be in [low, high). Checked where data are loaded.
  std::optional<std::pair<Dim, Dim>> bounds;
};

struct Output {
  ValueId value;
  std::string name;
};

/// After the step, `state` (an input of role weight or state) holds `value`.
struct Alias {
  ValueId state;
  ValueId value;
};

class Graph {
 public:
  Graph() = default;
  Graph(Graph&&) = default;
  Graph& operator=(Graph&&) = default;
  Graph clone() const;

  std::string name;  ///< "main", the entry's name, or the ONNX graph's

  std::size_t node_count() const { return nodes_.size(); }
  const Node& node(NodeId id) const { return nodes_.at(id.index); }
  const std::deque<Node>& nodes() const { return nodes_; }
  std::size_t value_count() const { return values_.size(); }
  const Value& value(ValueId id) const { return values_.at(id.index); }
  const Type& type(ValueId id) const { return value(id).type; }
  const std::vector<Input>& inputs() const { return inputs_; }
  const std::vector<Output>& outputs() const { return outputs_; }
  const std::vector<Alias>& aliases() const { return aliases_; }
  /// Sizes that inference took to be equal (two exporters' names for one batch); checked when sizes are bound.
  const std::vector<std::pair<Dim, Dim>>& equations() const { return equations_; }

  /// The input that `value` is, or nullptr.
  const Input* input_of(ValueId value) const;
  /// The input named `name`, or nullptr.
  const Input* find_input(std::string_view name) const;
  /// The output named `name`, or nullptr.
  const Output* find_output(std::string_view name) const;
  /// The contents of a constant input; nullptr for any other value.
  const Tensor* constant_of(ValueId value) const;
  /// The number in a one-element constant; nullopt for any other value.
  std::optional<double> scalar_constant(ValueId value) const;
  const Node& producer(ValueId value) const { return node(this->value(value).producer); }
  bool is_op(ValueId value, const OpDef& op) const;

 private:
  friend class Builder;
  friend class Rewriter;
  friend class Infer;
  std::deque<Node> nodes_;
  std::deque<Value> values_;  // deques: references stay valid while a Builder appends
  std::vector<Input> inputs_;
  std::vector<Output> outputs_;
  std::vector<Alias> aliases_;
  std::vector<std::pair<Dim, Dim>> equations_;
  std::vector<std::uint32_t> input_index_;  // by value id: position in inputs_ + 1, 0 for others
};

/// For each value, how many operands, outputs and aliases read it.
std::vector<std::uint32_t> count_uses(const Graph& graph);

}  // namespace hone
