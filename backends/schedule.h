// Graph to schedule: an entry of the plan. Each node becomes a generated kernel, a library call or a view; buffers get storage and live ranges;
// states are updated in place where nothing reads them later, by a copy at the end of the step otherwise.
#pragma once

#include <functional>

#include "backends/fuse.h"
#include "backends/kernel_set.h"
#include "backends/recompute.h"
#include "backends/step_nodes.h"
#include "ir/graph.h"
#include "passes/choice.h"
#include "runtime/plan/plan.h"

namespace hone {

/// The persistent tensors of a program, shared by its entries.
class PersistentSet {
 public:
  /// The number of the persistent tensor that `input` (a weight, state or constant with data) is. The first entry that names it decides its role;
  /// `trained` adds up over entries.
  std::uint32_t add(const Graph& graph, const Input& input);
  void mark_trained(std::uint32_t index) { persistents_[index].trained = true; }
  /// Gives constants names that no weight and no state has: when all of those are there. take() does it, too.
  void name_constants();
  std::vector<plan::Persistent> take() && { return name_constants(), std::move(persistents_); }
  /// The name of the persistent that holds the constant `input`; "" if there is none.
  std::string name_of_constant(const Graph& graph, const Input& input) const;
  const std::vector<plan::Persistent>& all() const { return persistents_; }
  std::vector<plan::Persistent>& all() { return persistents_; }

 private:
  std::vector<plan::Persistent> persistents_;
  std::map<std::string, std::uint32_t> by_name_;
  std::map<std::string, std::uint32_t> constants_;  // by type and contents
};

/// What the schedule cannot know of an input that is fed.
using DescribeFeed = std::function<plan::Feed(const Graph&, const Input&)>;

struct ScheduledEntry {
  plan::Entry entry;
  Graph graph;      ///< what was scheduled: the fusion's
  StepNodes nodes;  ///< of `graph`, by step of the entry
};

/// `fusion` is of a graph that is optimized, its `lower` ops expanded, its library rows chosen (attribute kRow): fuse_and_recompute().
ScheduledEntry schedule(Fusion fusion, KernelSet& kernels, PersistentSet& persistents, const PassChoice& passes, const DescribeFeed& describe_feed);

/// The schedule as a person reads it: steps with their buffers, then buffers with their live ranges.
std::string print(const plan::Entry& entry, const std::vector<plan::Persistent>& persistents);

}  // namespace hone
