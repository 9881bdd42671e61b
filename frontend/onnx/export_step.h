// A graph that runs, of whatever ops, as a plain ONNX model: a training step that any runtime can run.
#pragma once

#include <string>
#include <vector>

#include "formats/onnx_file.h"
#include "ir/graph.h"

namespace hone::onnx {

/// Nodes that belong together, as those of one kernel do.
struct NodeGroup {
  std::string name;           ///< of the function that they become
  std::string origin = {};    ///< for people: the doc_string of its call
  std::vector<NodeId> nodes;  ///< a node may be in several groups: each works it out for itself
};

inline constexpr const char* kFunctionDomain = "ai.hone";
inline constexpr const char* kNewPrefix = "new:";  ///< before the name of a weight or state: what it is after the step

/// Inputs: those of the graph under their names. Weights and states, and what else has data, are initializers, too: they need not be fed, and may be. Constants are initializers.
/// Outputs: the graph's, and new:NAME for each alias; with a number behind it where an input is called so. A group is a function of kFunctionDomain, and so is a node that takes several operators; equal functions are one. Groups that
/// are no part of a graph that can be run, one after the other, are written node by node. Throws Error kUnknownOp that lists the ops without ONNX form, or kTooLarge for a model
/// beyond what protobuf can hold.
ModelProto export_step(Graph graph, std::vector<NodeGroup> groups = {});

}  // namespace hone::onnx
