// Entries for replicas that share the optimizer's work: each updates its part of the elements of every weight, and holds no more of the moments.
#pragma once

#include <string>
#include <vector>

#include "backends/kernel_set.h"
#include "runtime/plan/plan.h"

namespace hone {

/// Adds to each entry in which replicas update weights one of the name plan::sharded_entry(). Its steps are the same, but
///  - a kernel that reads and writes elements at its own point alone runs over the replica's part of the points, if that spares a state;
///  - sums of gradients that only such kernels read are reduce_scattered, a bucket at a time;
///  - at the end the weights that they write are all_gathered.
/// Marks the states of which a part is then enough, and says of the optimizer's others why it is not. Returns sentences about both.
std::vector<std::string> share_updates(std::vector<plan::Entry>& entries, std::vector<plan::Persistent>& persistents, const KernelSet& kernels);

}  // namespace hone
