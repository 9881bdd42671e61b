// Steps of several replicas as one: a batch is dealt out, each replica runs the plan's step on its part, and what the steps report is added up.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "runtime/plan/plan.h"
#include "runtime/train/means.h"
#include "runtime/train/replicas.h"
#include "runtime/train/train_state.h"
#include "runtime/device/worker_threads.h"

namespace hone {

/// A batch's samples go to the replicas as Replicas::part_of() says. A model that takes a fixed number of samples gets so many at a time; what has no samples goes to the first one. Every process
/// gives a batch of the same size, of which it needs its own part alone.
class ReplicaRunner : public StepRunner {
 public:
  /// `batch_symbol` is the plan's.
  ReplicaRunner(Replicas& replicas, std::string batch_symbol);

  /// Before the next step all get the first one's weights: they were changed.
  void share_weights() { weights_are_shared_ = false; }
  /// Updates before those that are made here, for what is said of errors.
  void set_step(std::int64_t step) { step_ = step; }
  /// Before the first step, before each save counts and every so many updates: all replicas must have the same weights and states, else kPeer. 0: only before the first step.
  void compare_every(std::int64_t steps) { compare_every_ = steps; }
  /// Why training should end.
  struct Wishes {
    bool stop = false, out_of_time = false;
  };
  /// Of several processes: `stop` is asked in every step, and the time that is over by then, with a limit of `max_seconds` from now on, if that is not 0; what one of them wishes is agreed() in all, after the same step.
  /// An empty `stop`: nothing is asked.
  void ask(const std::function<bool()>& stop, double max_seconds);
  Wishes agreed() const { return agreed_; }

  /// Throws the first error of a local replica; of those that failed because another one did, only if there is none else. Before the first step all get the first one's weights.
  void run(std::string_view entry, const NamedViews& feeds) override;
  void feed_ahead(std::string_view entry, BatchSource& batches) override;
  /// Sums over all replicas, f64, for losses, targets and metrics; else what the first local replica has.
  TensorView result(std::string_view name) override;
  std::vector<std::string> find_not_finite(std::string_view entry, const NamedViews& feeds) override;
  NamedTensors weights() override { return first_.weights(); }
  void set_weights(const NamedTensors& weights) override;
  std::string weight_gone() override { return first_.weight_gone(); }
  void forget_accumulated() override;
  /// Where replicas hold parts of states, who keeps them gets them whole, one after the other.
  void save(const KeepState& keep, Kept what = Kept::kAll) override;

 private:
  /// What one local replica does.
  struct Work {
    std::vector<BatchPart> parts;       ///< one for each shard
    std::vector<NamedViews> feeds; ///< of each part
    std::vector<double> sums;      ///< of what its steps have reported
  };
  /// The samples of the feeds, and of how many the model takes a multiple.
  struct Samples {
    std::int64_t count = 1, at_a_time = 1;
  };
  Samples samples_in(const plan::Entry& entry, const NamedViews& feeds) const;
  void deal_out(const plan::Entry& entry, const NamedViews& feeds);
  NamedViews feeds_of(const plan::Entry& entry, const NamedViews& feeds, const BatchPart& part) const;
  void run_replica(int local, const plan::Entry& entry);
  void run_part(int local, const std::string& entry, const NamedViews& feeds);
  void run_step(const plan::Entry& entry, const NamedViews& feeds);
  template <typename Job>
  void do_in_step(std::int64_t step, Job job);
  void share();
  /// By name, of what has been read to be kept.
  using Hashes = std::map<std::string, std::uint64_t>;
  void compare_weights(const Hashes& kept = {});
  std::uint64_t hash_of_weights(int local, const Hashes& kept = {});
  std::string entry_for(const std::string& replica_entry) const;
  void list_sums(const plan::Entry& entry);
  void add_up();

  Replicas& replicas_;
  std::string batch_symbol_;
  SessionRunner first_;
  WorkerThreads workers_;
  bool weights_are_shared_ = false;
  std::int64_t step_ = 0, compare_every_ = 0;
  std::function<Wishes()> wishes_;
  Wishes agreed_;
  struct Summed {
    std::string name;
    std::vector<std::int64_t> shape;
    std::size_t offset = 0, count = 0;
  };
  std::string summed_entry_;     // whose results these are
  std::vector<Summed> summed_;
  std::vector<double> sums_;     // of all replicas
  std::vector<Work> work_;       // by local replica
};

/// Where the first process's run is, in all processes.
std::optional<TrainState> state_of_first(Communicator& processes, const std::optional<TrainState>& own);

}  // namespace hone
