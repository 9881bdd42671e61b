// What must hold of every graph: each pass alone, all of them together and the compiled plan, fused and not, on one thread and on two, give what the graph
// gives.
#pragma once

#include <optional>
#include <string>

#include "tests/random_graphs/compiled.h"
#include "tests/random_graphs/draw.h"

namespace hone::test {

/// Where a graph and what was made of it differ.
struct Finding {
  std::string stage;  ///< "pass cse", "all passes on 2 threads", ...
  std::string what;
};

/// By the interpreter: after each pass that has a name, and after all.
std::optional<Finding> try_passes(const Graph& graph, const Feeds& feeds);
/// `graph`: expanded, and part of `compiled`.
std::optional<Finding> try_compiled(CompiledGraphs& compiled, const Graph& graph, const Feeds& feeds);
/// All of it for one graph. What is thrown is a finding, too.
std::optional<Finding> try_all(const Graph& graph, const Feeds& feeds);

/// A smaller graph with a finding of the same stage as this one's, as text: what becomes a case of its own.
std::string report(const Graph& graph, const Feeds& feeds);

Graph expanded(const Graph& graph);

}  // namespace hone::test
