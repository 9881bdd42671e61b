// What targets with library rows have in common: a table of them, and what has to hold for any library to take a product.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "ir/op.h"
#include "passes/target.h"

namespace hone {

/// Which op a row of runtime/library does for a target.
struct TargetRow {
  const OpDef* op;
  std::string_view row;
  std::string (*accepts)(const Graph&, const Node&);  ///< "" it fits, else why not
};

/// The first row of the table that takes the node; or why none does. `better_as_kernel` says why a generated kernel is faster, or "".
RowChoice choose_among(std::span<const TargetRow> rows, const Graph& graph, NodeId node, std::string (*better_as_kernel)(const Graph&, const Node&));

/// "" or why a library cannot know how the leading axes of a matrix product's operands belong together.
std::string fits_matmul(const Graph& graph, const Node& node);
/// "" or why a convolution, or one of its gradients, is none that libraries have.
std::string fits_conv(const Node& node);

/// Multiplications of a product or a convolution. Sizes that are not known count as 64.
std::int64_t products_of(const Graph& graph, const Node& node);
/// "" or why so few are better a kernel, which can be one with its neighbours.
std::string too_few_products(const Graph& graph, const Node& node);

}  // namespace hone
