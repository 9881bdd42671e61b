// Reads the .hir text form of ir/print.h. Written by hand, a text may leave out the types of results and the parts.
#pragma once

#include <string_view>

#include "ir/graph.h"

namespace hone {

/// The graph that `text` is; `file` stands in messages and in the nodes' Locs. Types are inferred anew, and must be what the text says.
/// Throws kBadHir with file and line for text that does not parse, what an op's infer throws, and what verify() (ir/verify.h) throws.
Graph parse_graph(std::string_view text, std::string_view file = "text");

}  // namespace hone
