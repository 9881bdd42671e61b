// hone-compile --why: what was decided, and the reasons, as a person reads them.
#pragma once

#include <string>
#include <vector>

#include "passes/choice.h"
#include "passes/pipeline.h"

namespace hone {

/// Who does a node's work: "calls onednn.conv, channels last", "host function", or "generated kernel; " and why it is no call.
std::string runner_of(const Target& target, const Graph& graph, NodeId id);

/// Of each entry: the row or kernel of each node and why not a faster one; in what precision it runs; how activations lie; what was fused, what was not and why; what is worked out again.
std::string explain(const Target& target, const std::vector<EntryGraph>& entries, const Recipe& recipe, const PassChoice& passes);

/// A line for each pair of steps that a device may make one (backends/epilogues.h).
std::string explain_epilogues(const std::vector<std::string>& lines);

/// How weights lie in memory: a line for each that products read.
std::string explain_weights(const std::vector<std::string>& lines);

/// Of which states of the optimizer each of several replicas can hold a part: a line for each.
std::string explain_shares(const std::vector<std::string>& lines);

}  // namespace hone
