// The functions that recurrent cells apply, by ONNX's names.
#pragma once

#include <string>
#include <vector>

#include "frontend/onnx/node.h"

namespace hone::onnx {

/// One of the functions with its scaling values.
struct CellActivation {
  Val (*apply)(Val x, double alpha, double beta);
  double alpha, beta;
  Val operator()(Val x) const { return apply(x, alpha, beta); }
};

/// The node's `activations`, `defaults` again for each direction where it names none. activation_alpha and activation_beta are taken in order by the functions that have
/// such a value. Throws kBadAttribute for names that ONNX does not have, and for a wrong number of them.
std::vector<CellActivation> cell_activations(const ImportNode& node, const std::vector<std::string>& defaults, std::size_t directions);

}  // namespace hone::onnx
