// ONNX import: a ModelProto becomes a Graph of our ops, shape arithmetic folded, exporters' oddities resolved.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "formats/onnx_file.h"
#include "frontend/onnx/mend.h"
#include "ir/graph.h"

namespace hone::onnx {

struct ImportOptions {
  std::map<std::string, std::int64_t> dims = {};  ///< symbolic sizes to fix, by name (--dim T=128)
  std::map<std::string, Tensor> bind = {};        ///< inputs that become constants, by name (--bind axes=axes.npy)
  MendOptions mend = {};                          ///< what to do about weights that the exporter changed
};

struct Imported {
  /// Inputs: the model's inputs (role input, ONNX names and declared types; unknown extents get symbols; extents that must be equal get one), float initializers (role
  /// weight; those of rank 0, and those of one element that stand where models keep no parameter, role constant), other initializers (role constant), each with data.
  /// Outputs: all of the model's, by name. Values carry ONNX names, nodes their Loc. Shape arithmetic is folded, and its nodes, which nobody reads any more, are left in.
  /// Batch normalization is `batch_norm`, whatever mode the file was exported in. `lower` ops are not expanded.
  Graph graph;
  ModelProto model;             ///< as it came in, data included, dense, its weights mended (frontend/onnx/mend.h)
  std::vector<Diag> warnings;   ///< oddities worth a note
};

/// As much of the model as can be imported; what cannot, and everything else that is wrong, goes to `diags`. The graph is whole only if they have no errors.
Imported import_parts(ModelProto model, const std::string& file_name, const std::string& folder, const ImportOptions& options, Diags& diags);

/// Throws one Error with every problem of the file: unknown operators (all listed), opsets, attributes, shapes, weights.
Imported import_model(const std::string& path, const ImportOptions& options = {});

/// The same from memory; external data are looked for in `folder`.
Imported import_model(ModelProto model, const std::string& file_name, const std::string& folder, const ImportOptions& options = {});

}  // namespace hone::onnx
