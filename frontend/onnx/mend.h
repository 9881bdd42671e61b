// What exporters do to the weights of a model, undone in the model itself before it is imported: so the weights that are trained and the
// weights that go back into the file are the same.
#pragma once

#include <string>
#include <vector>

#include "base/diag.h"
#include "base/recipe.h"
#include "formats/onnx.pb.h"
#include "frontend/onnx/new_head.h"
#include "frontend/onnx/values.h"

namespace hone::onnx {

struct MendOptions {
  /// Weights, by name pattern, that are one although the file or Hone has several of them: equal ones, also transposed.
  std::vector<std::string> tie;
  /// Products and convolutions that get a bias of zeros, by name pattern.
  std::vector<std::string> add_bias = {};
  /// The recipe's model.train_only. Two weights that it names are two, whatever they look like, and what it names is a weight.
  std::vector<std::string> train_only = {};
  /// Weights that the file makes by ConstantOfShape become initializers, so that they can be drawn afresh and trained.
  bool fill_weights = false;
  /// A fresh last layer.
  NewHead new_head = {};
  /// Is the model to be trained?
  bool trains = false;
};
/// What a recipe asks for.
inline MendOptions mend_options(const Recipe& recipe) {
  return {.tie = recipe.model.tie,
          .add_bias = recipe.model.add_bias,
          .train_only = recipe.model.train_only,
          .fill_weights = recipe.model.initialize != "keep",
          .new_head = {.classes = recipe.model.new_head_classes, .output = recipe.model.output, .seed = static_cast<std::uint64_t>(recipe.train.seed)},
          .trains = recipe.can_train()};
}

/// Changes the main graph, each change with a warning:
///  - Constant nodes that layers read as their weights become initializers, but beside the initializers of PyTorch's exporters, which know parameters from constants.
///  - A name that an Identity node gives to a weight becomes a weight of its own: exporters merge initializers of equal value, such as the
///    scales of a fresh model. An embedding and the head that shares it stay one, and so does what was folded for several calls of one layer
///    (base/module_names.h), also where it came as copies without such a name.
///  - A weight that nodes read as different parameters, by the record that PyTorch's exporter leaves, becomes one for each.
///  - A weight whose elements are all equal and that norms, biases, or scales of several layers read becomes one for each layer: others are merged
///    without leaving their names. Weights with different elements stay shared, and so do all others of a file that names what it merged.
///  - Weights that `tie` names and that are equal, or transposes of each other, become one; so does an embedding and the transpose of it that a product reads,
///    and a copy that was folded out of another weight, unless `train_only` names both. Other transposes get a warning.
///  - By the record that PyTorch's exporter leaves, initializers that are views of a parameter that the file has besides are made of it again, unless `train_only` names both;
///    functions of parameters that were folded get a warning.
///  - With `add_bias`, the layers without a bias that it names get one of zeros, those of one weight the same.
///  - With `new_head`, the last layer is replaced (frontend/onnx/new_head.h).
///  - With `fill_weights`, ConstantOfShape nodes where models keep weights become initializers.
///  - Of the two biases that ONNX gives a recurrent layer of Keras, one alone is learned; a model of Keras in which nothing has a bias gets a warning.
/// Convolutions that batch normalization was folded into are named by a warning. `file` is what messages call the model, `folder` where its external data are.
/// Weights that cannot be read are left to the importer to report. Returns what initializers are whose looks deceive: by the exporter's own account,
/// parameters of one element, and buffers and constants that look like weights, which get a warning unless `train_only` names them; so do masks that are added.
Roles mend_weights(ModelProto& model, const std::string& file, const std::string& folder, const MendOptions& options, Diags& diags);

}  // namespace hone::onnx
