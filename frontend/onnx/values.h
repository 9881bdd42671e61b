// What a graph starts from: its inputs and initializers as inputs of ours.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "frontend/onnx/scope.h"
#include "frontend/onnx/symbols.h"
#include "ir/builder.h"

namespace hone::onnx {

/// The contents of the graph's initializers, in their order; nothing where they could not be read, which is reported.
std::vector<std::optional<Tensor>> read_initializers(const GraphProto& graph, const std::string& folder, const Loc& file, Diags& diags);

/// What initializers are, by name, where the exporter's account or training decides it.
struct Roles {
  std::map<std::string, Role, std::less<>> of = {};
  /// Weights of which only so many columns, the first of the last axis, are parameters of the model: no gradient reaches the rest.
  std::map<std::string, std::int64_t, std::less<>> learned_columns = {};
};

/// Names of values that stand where models keep what they learn: operands that an importer calls parameters, and what is added to a product, also behind a cast of it or where its axes were moved.
std::set<std::string_view> learned_places(const GraphProto& graph);

/// Adds inputs, then initializers. A sequence of n tensors (n is set as the size of its name) is n inputs NAME.0, NAME.1, ...; an optional is what it may hold, or
/// nothing if the size of its name is set to 0. A float initializer is a weight if it has more than one element, or an axis and a place where models keep what they learn
/// (a bias of one unit); all others are constants, unless `roles` say otherwise. Inputs that are initializers too, as old files have them, are initializers. Inputs that are not in `wanted` (null: all are) are left out.
Items add_inputs(Builder& builder, const GraphProto& graph, const std::vector<std::optional<Tensor>>& initializers, const Roles& roles, Symbols& symbols,
                  const Locations& locations, const std::unordered_set<std::string_view>* wanted, Diags& diags);

/// Adds an initializer of a body inside of the model, as one of the model's. Throws Error when it cannot be read.
Val add_inner_initializer(Builder& builder, const TensorProto& proto, const std::string& folder, const Loc& file);

/// Throws kTooLarge or kShape for what no machine can hold: too many axes or elements, a negative extent.
void check_size(const Type& type, const std::string& what, const Loc& loc);

}  // namespace hone::onnx
