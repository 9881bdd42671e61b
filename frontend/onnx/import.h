// ONNX import: a ModelProto becomes a Graph of our ops, shape arithmetic folded, exporters' oddities resolved.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "formats/onnx_file.h"
#include "frontend/onnx/mend.h"
#include "ir/graph.h"
#include "ir/own_training.h"

namespace hone::onnx {

struct ImportOptions {
  std::map<std::string, std::int64_t> dims = {};  ///< symbolic sizes to fix, by name (--dim T=128)
  std::map<std::string, std::string> equal_dims = {};  ///< symbolic sizes that are another one, by the names of both (--dim M=N)
  std::map<std::string, Tensor> bind = {};        ///< inputs that become constants, by name (--bind axes=axes.npy)
  std::string output = {};                        ///< the output that is asked for; others are left out, with a warning, where they cannot be imported. "": all are
  /// Samples of a batch that the model is wanted for. Where the file is fixed to another number, and its nodes take any, it gets a free batch. 0: whatever it may be, if the file is
  /// fixed to one sample, as exporters do it unasked. Nothing: the model is taken as it is.
  std::optional<std::int64_t> batch = {};
  MendOptions mend = {};                          ///< what to do about weights that the exporter changed
  bool own_training = true;                       ///< import how the model says itself that it is trained, if it does; then weights are not mended
  bool own_first_values = true;                   ///< with it: the values that training begins with, instead of those in the file
};

struct Imported {
  /// Inputs: the model's inputs (role input, ONNX names and declared types; unknown extents get symbols; extents that must be equal get one), float initializers (role
  /// weight; those of rank 0, and those of one element that stand where models keep no parameter, role constant), other initializers (role constant), each with data.
  /// Outputs: all of the model's, by name. Values carry ONNX names, nodes their Loc. Shape arithmetic is folded, and its nodes, which nobody reads any more, are left in.
  /// Batch normalization is `batch_norm`, whatever mode the file was exported in. `lower` ops are not expanded.
  Graph graph;
  /// From TrainingInfoProto. The first y of the algorithm's Gradient nodes that is one number is the loss, taken for the mean over the samples of the batch; else the first
  /// output of the algorithm that is one number and no update. Its other such outputs are metrics.
  OwnTraining own_training;
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
