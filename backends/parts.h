// Entries that are parts of another one: fewer of its steps, so that a step for replicas is fused once, and its parts give the same bits.
#pragma once

#include <string>

#include "runtime/plan/plan.h"

namespace hone {

/// Calls use(root, reads, writes) for every buffer of the step.
template <typename Use>
void for_each_root(const plan::Entry& entry, const plan::Step& step, Use use) {
  if (const auto* kernel = std::get_if<plan::KernelStep>(&step.what)) {
    for (std::size_t i = 0; i < kernel->buffers.size(); ++i) use(plan::root_of(entry, kernel->buffers[i]), true, i >= kernel->read_only);
    return;
  }
  plan::for_each_buffer(step, [&](std::uint64_t buffer, plan::Access access) { use(plan::root_of(entry, buffer), access != plan::Access::kWrite, access != plan::Access::kRead); });
}

/// Replaces the numbers of the step's buffers by what number(buffer) gives.
template <typename Number>
void renumber(plan::Step& step, Number number) {
  const auto one = [&](std::uint32_t& buffer) { buffer = number(buffer); };
  const auto all = [&](auto& buffers) {
    for (auto& buffer : buffers)
      if (static_cast<std::int64_t>(buffer) != -1) buffer = number(static_cast<std::uint64_t>(buffer));
  };
  const auto own = [&](std::optional<plan::KernelStep>& kernel) {
    if (kernel) all(kernel->buffers);
  };
  if (auto* kernel = std::get_if<plan::KernelStep>(&step.what)) all(kernel->buffers);
  else if (auto* library = std::get_if<plan::LibraryStep>(&step.what)) {
    all(library->operands), all(library->results), own(library->own_kernel);
    if (library->epilogue) all(library->epilogue->kernel.buffers), all(library->epilogue->operands), all(library->epilogue->results);
  }
  else if (auto* host = std::get_if<plan::HostStep>(&step.what)) all(host->operands), all(host->results);
  else if (auto* copy = std::get_if<plan::CopyStep>(&step.what)) one(copy->from), one(copy->to);
  else if (auto* reduce = std::get_if<plan::AllReduceStep>(&step.what)) all(reduce->buffers);
  else if (auto* read = std::get_if<plan::ReadSizesStep>(&step.what)) one(read->buffer);
  else if (auto* region = std::get_if<plan::RegionStep>(&step.what)) all(region->operands), all(region->results);
}

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
