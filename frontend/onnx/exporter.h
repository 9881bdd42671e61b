// Nodes of ours as nodes of ONNX, at opset 13 or later.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "formats/onnx_file.h"
#include "ir/graph.h"
#include "ir/op.h"

namespace hone::onnx {

/// How ops are written that no operator of ONNX stands for.
enum class Formulas : std::uint8_t {
  kRefused,  ///< not at all: who reads the file is to differentiate it, or looks for operators
  kWritten,  ///< as what they mean: their index formulas in ordinary operators (frontend/onnx/export_kernel.cc), from kFormulaOpset on
};
inline constexpr std::int64_t kFormulaOpset = 18;  ///< the first with operators on bits, and with reductions by axes that are fed

/// Writes one graph's nodes; names are made up where values have none.
class Exporter {
 public:
  /// `taken`: names that values may not have; `given`: by value, the names of those that are there already, "" for others.
  Exporter(const Graph& graph, GraphProto& proto, std::int64_t opset, Formulas formulas = Formulas::kRefused, std::set<std::string> taken = {},
           const std::vector<std::string>& given = {});

  /// Of the body of a loop within `outer`, which stays alive: no name of one is a name of the other.
  Exporter(const Graph& body, GraphProto& proto, Exporter& outer);

  /// Of some nodes of `graph` as a function. All values that they read or make must be renamed first. Constants are nodes, nodes have no names, and the symbolic sizes
  /// that are needed become inputs: symbol_inputs().
  Exporter(const Graph& graph, FunctionProto& proto, std::int64_t opset);

  const Graph& graph;
  const std::int64_t opset;
  const Formulas formulas;

  const std::string& name(ValueId value) const { return names_[value.index]; }
  void rename(ValueId value, std::string name) { names_[value.index] = std::move(name); }

  /// Writes `node`; false if it has no ONNX form.
  bool write(const Node& node);
  /// Gives the values that are outputs the outputs' names (in a body, which nobody sees, names like them). Before the first node is written.
  void name_outputs();
  /// Declares the outputs. A value that is two of them, or an input that is one, gets the other name by an Identity. After the last node.
  void write_outputs();

  /// A node with these inputs and output names; attributes are added by the caller.
  NodeProto& node(std::string_view type, const std::vector<std::string>& inputs, const std::vector<std::string>& outputs, const Node& from);
  /// The same with one new output, called after `hint`, whose name it returns.
  std::string value(std::string_view type, const std::vector<std::string>& inputs, const std::string& hint, const Node& from);
  /// Gives what `made` names the name of `value`: it is the output of the node written last, or else is copied.
  void finish(const std::string& made, ValueId value, const Node& from);
  /// An initializer.
  std::string constant(const Tensor& tensor, const std::string& hint);
  /// `value` as an initializer.
  void initializer(ValueId value, const Tensor& tensor);
  /// An initializer holding small integers.
  std::string ints(const Ints& values, const std::string& hint);
  /// The sizes as a vector of i64; "" if some of them cannot be had from the graph's inputs.
  std::string sizes(const Shape& dims, const std::string& hint, const Node& from);
  /// A symbol of sizes, as a vector of one i64; "" if it cannot be had.
  std::string symbol(const std::string& symbol, const Node& from);
  /// `value` in another element type.
  std::string cast(const std::string& value, DType to, const std::string& hint, const Node& from);
  /// `hint`, or with a number behind it as a name that nothing has.
  std::string fresh(const std::string& hint);

  /// The symbols that became inputs of a function, with the inputs' names.
  const std::map<std::string, std::string>& symbol_inputs() const { return symbols_; }

 private:
  void name_values(const std::vector<std::string>& given);
  std::string size(const Dim& dim, const std::string& hint, const Node& from);
  /// The symbol's size as an axis of an input, an element that is read, or by an equation; "" if it is none of these.
  std::string find_symbol(const std::string& symbol, const Node& from);
  NodeProto& add_node();

  struct Taken {
    std::set<std::string> values, nodes;
  };

  GraphProto* proto_ = nullptr;        ///< or
  FunctionProto* function_ = nullptr;
  Exporter* outer_ = nullptr;
  std::shared_ptr<Taken> taken_;
  std::vector<std::string> names_;
  std::vector<std::string> output_names_;
  std::map<std::string, std::string> symbols_;    ///< names of what holds them
  std::map<std::string, std::string> constants_;  ///< of a function, by their bytes
};

/// Writes `node` as ONNX nodes (export_ops.cc); false if it, with these attributes, has no ONNX form.
bool write_node(Exporter& exporter, const Node& node);

/// Adds an attribute.
void set(NodeProto& node, const std::string& name, std::int64_t value);
void set(NodeProto& node, const std::string& name, double value);
void set(NodeProto& node, const std::string& name, const Ints& values);
void set(NodeProto& node, const std::string& name, const std::string& value);

/// The declaration of an input or output.
void write_value_info(ValueInfoProto& info, const std::string& name, const Type& type);

}  // namespace hone::onnx
