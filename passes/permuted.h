// Nodes that work on their axes in any order.
#pragma once

#include "passes/axis_order.h"

namespace hone {

/// Has the node's one result the axes of its operands (or, where it is a reduction, would have them with keep_dims), so that it can as well work on permuted
/// ones?
bool may_be_permuted(const Node& node);
/// The attributes with which it works on operands whose axes stand in `order`.
Attrs permuted_attributes(const Node& node, const AxisOrder& order);

}  // namespace hone
