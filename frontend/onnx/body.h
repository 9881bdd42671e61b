// The parts of a graph or of a function that say what is connected to what, and what the nodes inside of a node's bodies read from outside.
#pragma once

#include <string_view>
#include <vector>

#include "formats/onnx.pb.h"

namespace hone::onnx {

using NodeList = google::protobuf::RepeatedPtrField<NodeProto>;

/// Of the operators that train: Gradient, Adam, Adagrad, Momentum.
inline constexpr std::string_view kTrainingDomain = "ai.onnx.preview.training";

/// A graph, a node's body, or a function: what is common to them. The proto must outlive it.
struct Body {
  explicit Body(const GraphProto& graph);
  explicit Body(const FunctionProto& function);

  const NodeList* nodes;
  const GraphProto* graph = nullptr;  ///< null for a function, which has no initializers
  std::vector<std::string_view> inputs, outputs;
};

/// The node's bodies: its attributes that are graphs.
std::vector<const GraphProto*> bodies_of(const NodeProto& node);

/// Names of values that the node's attributes hold: Gradient's xs, zs and y.
std::vector<std::string_view> referred_names(const NodeProto& node);

/// Names that the node refers to, and those that its bodies read, to any depth, and do not make themselves; each once.
std::vector<std::string_view> captured_names(const NodeProto& node);

/// How deep bodies lie in bodies: 0 for nodes without any.
int nesting_depth(const NodeList& nodes);

}  // namespace hone::onnx
