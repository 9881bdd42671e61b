// Nodes of ours as nodes of ONNX, at opset 13 or later.
#pragma once

#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "formats/onnx_file.h"
#include "ir/graph.h"
#include "ir/op.h"

namespace hone::onnx {

/// Writes one graph's nodes; names are made up where values have none.
class Exporter {
 public:
  /// `taken`: names that values may not have; `given`: by value, the names of those that are there already, "" for others.
  Exporter(const Graph& graph, GraphProto& proto, std::int64_t opset, std::set<std::string> taken = {}, const std::vector<std::string>& given = {});

  /// Of the body of a loop within `outer`, which stays alive: no name of one is a name of the other.
  Exporter(const Graph& body, GraphProto& proto, const Exporter& outer);

  const Graph& graph;
  const std::int64_t opset;

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
  /// An initializer.
  std::string constant(const Tensor& tensor, const std::string& hint);
  /// `value` as an initializer.
  void initializer(ValueId value, const Tensor& tensor);
  /// An initializer holding small integers.
  std::string ints(const Ints& values, const std::string& hint);
  /// The sizes as a vector of i64; "" if some of them cannot be had from the shapes of the graph's inputs.
  std::string sizes(const Shape& dims, const std::string& hint, const Node& from);
  /// `hint`, or with a number behind it as a name that nothing has.
  std::string fresh(const std::string& hint);

 private:
  void name_values(const std::vector<std::string>& given);
  /// One symbolic size as a vector of one element; "" if it is no sum of a number and a product of sizes, nor the larger of that and 1.
  std::string size(const Dim& dim, const std::string& hint, const Node& from);

  struct Taken {
    std::set<std::string> values, nodes;
  };

  GraphProto& proto_;
  const Exporter* outer_ = nullptr;
  std::shared_ptr<Taken> taken_;
  std::vector<std::string> names_;
  std::vector<std::string> output_names_;
};

/// Writes `node` as ONNX nodes (export_ops.cc); false if it, with these attributes, has no ONNX form.
bool write_node(Exporter& exporter, const Node& node);

/// Adds an attribute.
void set(NodeProto& node, const std::string& name, std::int64_t value);
void set(NodeProto& node, const std::string& name, double value);
void set(NodeProto& node, const std::string& name, const Ints& values);

/// The declaration of an input or output.
void write_value_info(ValueInfoProto& info, const std::string& name, const Type& type);

}  // namespace hone::onnx
