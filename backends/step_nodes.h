// Which nodes of an entry's graph each step of its schedule stands for: "which nodes became one kernel". Kept in the plan for hone-dump; the runtime never reads it.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ir/graph.h"
#include "runtime/plan/plan.h"

namespace hone {

/// By step. Copies between buffers stand for no node; nodes in the bodies of loops and branches are not listed.
using StepNodes = std::vector<std::vector<NodeId>>;

/// The same steps in terms of `graph`, of which `scheduled` is a version: in another order, without exchanges, with nodes that are worked out twice. Nodes correspond when they compute the
/// same from the same inputs, else when they are of one op and the same results come from them in the same way, and else when they are of one op and come from one place.
/// A node that is not there any more belongs to the step of those that read it, if that is one step.
StepNodes same_nodes(const Graph& graph, const Graph& scheduled, const StepNodes& nodes);

/// Of the steps that were, or repeat, those numbered in `step_before`.
StepNodes nodes_again(const StepNodes& nodes, std::span<const std::optional<std::uint32_t>> step_before);

/// `graph` as text (ir/print.h), node by node in the order in which `steps` compute them, each step's nodes behind a comment that names it. What is worked out in several steps stands in the first of them, which the comments of the others say,
/// and what is no work of any (a reshape) in front of what reads it.
std::string fused_text(const Graph& graph, const StepNodes& nodes, std::span<const plan::Step> steps);

/// In the text of a plan's graphs, constants that are too large to be written are called as the persistent that holds them; or so, with a number behind it, where no step reads what is in
/// them: a choice that is known to fall on the other operand. They may hold anything.
inline constexpr const char* kUnreadConstant = "unread constant ";
/// What a graph's constant is called that is equal to so many before it: equal ones are held once, and two values of one name would have none.
std::string name_of_equal(std::string_view held, std::size_t before);
/// The persistent that holds what is called so.
std::string_view held_as(std::string_view name);

/// The name under which a plan's graphs have a stage of a program that is not its first: "train_step@cuda". The first one's have their plain names.
std::string stage_for(std::string_view stage, std::string_view target);
/// The stage of a plan that holds the step nodes of `entry`: "train_step.nodes".
std::string step_nodes_stage(std::string_view entry);
/// A JSON array of arrays of node numbers.
std::string to_text(const StepNodes& nodes);

}  // namespace hone
