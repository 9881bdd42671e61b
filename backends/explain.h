// hone-compile --why: what was decided, and the reasons, as a person reads them.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "backends/step_nodes.h"
#include "passes/choice.h"
#include "passes/pass_log.h"
#include "passes/pipeline.h"
#include "runtime/plan/plan.h"

namespace hone {

/// Who does a node's work: "calls onednn.conv, channels last", "host function", or "generated kernel; " and why it is no call.
std::string runner_of(const Target& target, const Graph& graph, NodeId id);

/// Of each entry: the row or kernel of each node and why not a faster one; in what precision it runs; how activations lie; what passes told of it (reductions in parts, what
/// left its loop; `logs`, one for each entry, or none); what was fused, what was not and why; what is worked out again.
std::string explain(const Target& target, const std::vector<EntryGraph>& entries, std::span<const PassLog> logs, const Recipe& recipe, const PassChoice& passes);

/// When in a step each trained weight is updated: in the kernel that makes its gradient, during the backward pass, or behind it. A line for each, of an entry that updates weights;
/// `nodes`: what of `graph` each step stands for.
std::vector<std::string> updates_of(const plan::Entry& entry, const std::vector<plan::Persistent>& persistents, const Graph& graph, const StepNodes& nodes);
std::string explain_updates(const std::vector<std::string>& lines);

/// A line for each pair of steps that a device may make one (backends/epilogues.h).
std::string explain_epilogues(const std::vector<std::string>& lines);

/// What became of each attention (passes/fuse_attention.h).
std::string explain_attention(const std::vector<std::string>& lines);
/// What became of each loop (passes/fuse_recurrences.h).
std::string explain_recurrences(const std::vector<std::string>& lines);

/// How weights lie in memory: a line for each that products read.
std::string explain_weights(const std::vector<std::string>& lines);

/// Of which states of the optimizer each of several replicas can hold a part: a line for each.
std::string explain_shares(const std::vector<std::string>& lines);

}  // namespace hone
