// Ops written as what they mean.
#pragma once

#include "frontend/onnx/exporter.h"

namespace hone::onnx {

/// Writes a node of meaning `scalar` or `compute` as its formula in ordinary operators of kFormulaOpset; false for other nodes, for element types of fewer than 16 bits that are
/// storage only, and for sizes that cannot be had.
bool write_formula(Exporter& exporter, const Node& node);

}  // namespace hone::onnx
