// A graph's entry and kernels, as the CPU's schedule has them before anything is placed.
#pragma once

#include "backends/recompute.h"
#include "backends/schedule.h"

namespace hone {

inline plan::Entry scheduled(const Graph& graph, KernelSet& kernels, const PassChoice& passes = {}, Exchange exchange = Exchange::kNone) {
  PersistentSet persistents;
  return schedule(fuse_and_recompute(graph, passes, exchange), kernels, persistents, passes, [](const Graph& g, const Input& input) {
    plan::Feed feed;
    feed.name = input.name;
    feed.dtype = g.type(input.value).dtype;
    feed.shape = g.type(input.value).shape;
    return feed;
  }).entry;
}

inline plan::Entry scheduled(const Graph& graph, const PassChoice& passes = {}) {
  KernelSet kernels;
  return scheduled(graph, kernels, passes);
}

}  // namespace hone
