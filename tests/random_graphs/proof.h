// What must hold of every graph: each pass alone, all of them together and the compiled plan in several ways, on one thread and on two, give what the graph gives.
#pragma once

#include <optional>
#include <span>
#include <string>

#include "tests/random_graphs/compiled.h"
#include "tests/random_graphs/draw.h"
#include "tests/random_graphs/reference.h"

namespace hone::test {

/// Where a graph and what was made of it differ.
struct Finding {
  std::string stage;  ///< "pass cse", "compiled, on two threads, all passes", ...
  std::string what;
  Feeds feeds;
};

/// By the interpreter: after each pass that has a name, and after all. `references`: of the expanded graph.
std::optional<Finding> try_passes(const Graph& graph, std::span<Reference> references);
/// The references' graph is part of `compiled`.
std::optional<Finding> try_compiled(CompiledGraphs& compiled, const Making& making, std::span<Reference> references);
/// All of it for one graph. What is thrown is a finding, too.
std::optional<Finding> try_all(const Graph& graph, const Feeds& feeds, const Making& making);

/// A smaller graph with a finding of the same stage as this one's, as text: what becomes a case of its own.
std::string report(const Graph& graph, const Feeds& feeds, const Making& making);

Graph expanded(const Graph& graph);

}  // namespace hone::test
