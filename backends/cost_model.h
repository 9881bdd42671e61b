// The one place that decides whether nodes are better off in one kernel. Every answer is a sentence, which --why prints.
#pragma once

#include <span>
#include <string>

#include "ir/kernel/fused.h"

namespace hone {

/// Why these members should not be one kernel though they could be; empty: they should.
std::string why_not_worth_fusing(NodeKernels& kernels, std::span<const NodeId> members, const FusedKernel& fused);

}  // namespace hone
