// Weights of f16 and bf16 that are trained are kept in f32 and rounded where the model reads them ("master weights", Micikevicius et al. 2018): an update smaller than a narrow weight's last place is
// not lost, and an epsilon of 1e-8 is not 0, as it is in f16, where 0 / (sqrt(0) + 0) would make a weight NaN.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "passes/frozen_precision.h"

namespace hone {

/// Does `graph` have weights for which this is?
bool has_narrow_weights(const Graph& graph);

/// The weights of `graph` that `trained` names and that are f16 or bf16 become inputs of f32 of the same name; who reads them reads them rounded. Gradients are then of f32, sums of what the model's own
/// type gives, and so are the optimizer's states. `graph` must be as imported, perhaps with adapters.
std::vector<NarrowedWeight> keep_master_weights(Graph& graph, std::span<const std::string> trained);

}  // namespace hone
