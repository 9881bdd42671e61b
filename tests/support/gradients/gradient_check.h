// Gradients against central differences in double, over whole graphs with one scalar output.
#pragma once

#include <string>

#include "ir/kernel/interpret.h"

namespace hone::test {

/// Elements in (-1, 1) that depend on `seed` only.
Tensor random_tensor(const std::vector<std::int64_t>& shape, std::uint64_t seed);

/// The float inputs of role kInput whose names start with "x".
std::vector<std::string> variables_of(const Graph& graph);

/// A scalar that weighs every element of the graph's first `results` float outputs (their squares, where `squared`) differently: sum of y * w with
/// random constants w fed as inputs w0, w1, ... It becomes the only output, "p".
enum class Projection { kLinear, kSquared };
void project(Graph& graph, std::size_t results, Projection projection, Feeds& feeds, const DimBindings& sizes);

/// Appends outputs "g:NAME" with d p / d NAME for each variable that a gradient reaches. The graph is left expanded.
void add_gradients(Graph& graph);

/// Expects, by EXPECT, that differentiate() gives what differences of output "p" give: for each element of each variable, and along a random direction
/// of all of them together (the dot test). `graph` is as project() left it, with ops of meaning `lower` or without.
void expect_gradients_match(const Graph& graph, const Feeds& feeds, const DimBindings& sizes);

}  // namespace hone::test
