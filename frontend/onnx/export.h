// ONNX export of a graph of ours: models built in C++ (frontend/builder.h) and imported ones before anything was lowered.
#pragma once

#include <string>

#include "formats/onnx_file.h"
#include "ir/graph.h"

namespace hone::onnx {

/// Opset 17, IR version 8. Weights and constants become initializers under their names. Throws Error kUnknownOp, which lists every op that has no ONNX form.
ModelProto export_model(const Graph& graph);

/// export_model() into a file, atomically.
void save(const Graph& graph, const std::string& path);

}  // namespace hone::onnx
