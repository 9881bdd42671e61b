// Which tensors lie in panels (runtime/plan/panels.h).
#pragma once

#include <optional>
#include <vector>

#include "backends/kernel_set.h"
#include "runtime/plan/plan.h"

namespace hone {

/// Lays out weights in panels along the axis of a product's columns, where all that touches them are kernels, and with them the states that are updated as they
/// are. Threads then share weights out as they share products out, and products copy no columns together. Returns a line for each weight that a product would
/// read so: how it lies, or what is against it.
std::vector<std::string> lay_out_in_panels(std::vector<plan::Entry>& entries, std::vector<plan::Persistent>& persistents, KernelSet& kernels);

/// The same for what a loop's body finds in every iteration: changes feed number `feed` of the body, whose kernels read it, and says how; what is fed must then be
/// laid out so. Nothing if a product does not read it, or something else than kernels does.
std::optional<plan::Panels> lay_out_feed_in_panels(plan::Entry& body, std::uint32_t feed, KernelSet& kernels);

}  // namespace hone
