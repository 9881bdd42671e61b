// Products as a device's library multiplies them fastest.
#pragma once

#include "ir/rewriter.h"
#include "passes/pass_log.h"
#include "passes/target.h"

namespace hone {

/// Where Target::row_multiple asks for it, rows of a library product's factors and of its result become longer, to a multiple of that: zeros are multiplied, too, and what they give is left out again. And a product that
/// is wanted transposed is made so, from its factors the other way round. `log`, if given, is told of each.
Changed suit_products(Graph& graph, const Target& target, PassLog* log = nullptr);

}  // namespace hone
