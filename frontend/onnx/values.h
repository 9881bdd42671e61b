// What a graph starts from: its inputs and initializers as inputs of ours.
#pragma once

#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "frontend/onnx/order.h"
#include "frontend/onnx/symbols.h"
#include "ir/builder.h"

namespace hone::onnx {

/// Values by ONNX name; an invalid one could not be made, for a reason that has been reported.
using Values = std::unordered_map<std::string_view, Val>;

/// The contents of the graph's initializers, in their order; nothing where they could not be read, which is reported.
std::vector<std::optional<Tensor>> read_initializers(const GraphProto& graph, const std::string& folder, const Loc& file, Diags& diags);

/// Adds inputs, then initializers. A float initializer is a weight if it has more than one element, or an axis and a place where models keep what they learn
/// (a bias of one unit); all others are constants. Inputs that are initializers too, as old files have them, are initializers.
Values add_inputs(Builder& builder, const GraphProto& graph, const std::vector<std::optional<Tensor>>& initializers, Symbols& symbols,
                  const Locations& locations, Diags& diags);

/// The type that the file declares; nothing but tensors of element types that Hone has, and of known rank. Throws Error.
Type declared_type(const ValueInfoProto& info, const std::string& what, Symbols& symbols, const Loc& loc);

/// Throws kTooLarge or kShape for what no machine can hold: too many axes or elements, a negative extent.
void check_size(const Type& type, const std::string& what, const Loc& loc);

}  // namespace hone::onnx
