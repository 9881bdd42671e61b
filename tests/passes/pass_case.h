// Small graphs written down, and what a pass makes of them, as expressions: "add(mul(x, 2), y)".
#pragma once

#include <string>
#include <string_view>

#include "ir/graph.h"
#include "ir/rewriter.h"

namespace hone::test {

/// The graph of these inputs (comma-separated, as in .hir) and statements (separated by "; "); %y is its output "y".
Graph small_graph(std::string_view inputs, std::string_view statements);

/// What a value is: inputs by name, one-element constants by number, others as "constant", nodes as op(operands){attributes}, further results as op(..).k
std::string expression(const Graph& graph, ValueId value);
/// The expression of output "y".
std::string expression(const Graph& graph);

/// One case of a pass over graphs.
struct PassCase {
  std::string_view says;
  std::string_view inputs, statements;
  std::string_view becomes;  ///< the expression of y after the pass; empty: the pass leaves the graph as it is
};
using Pass = Changed (*)(Graph&);
/// Runs the pass: the result is valid and is `becomes`; the pass says truly whether it changed something; run again it changes nothing.
void expect_pass(Pass pass, const PassCase& pass_case);

}  // namespace hone::test
