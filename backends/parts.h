// Entries that are parts of another one: fewer of its steps, so that a step for replicas is fused once, and its parts give the same bits.
#pragma once

#include <string>

#include "runtime/plan/plan.h"

namespace hone {

/// Gives each arena buffer the range of steps in which it is used, directly or through a view.
void find_live_ranges(plan::Entry& entry);

/// The entry of replicas as one that is alone runs it: nothing is exchanged.
plan::Entry without_exchanges(const plan::Entry& entry, std::string name);

/// The entry without its gradient norms, and without the steps that only they need.
plan::Entry without_norms(const plan::Entry& entry, std::string name);

/// The entry of a replica without samples, which does not read the data, without the feeds for them: nobody has any for it.
plan::Entry without_data(const plan::Entry& entry);

/// What a replica's shard computes: all that is exchanged, which is collected instead, and the results that do not wait for an exchange. No state changes. `entry` exchanges nothing
/// that depends on another exchange.
plan::Entry shard_of(const plan::Entry& entry, std::string name);

}  // namespace hone
