// The replicas of one process: sessions of the same plan, each with its own weights, states, memory and threads, that exchange what their steps say.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/collective/communicator.h"
#include "runtime/collective/nested_communicators.h"
#include "runtime/collective/thread_communicators.h"
#include "runtime/data/batches.h"
#include "runtime/plan/plan.h"
#include "runtime/session.h"

namespace hone {

struct ReplicaOptions {
  /// Of this process, shared out among its replicas: the first ones get the first device, and so on. Empty: all get SessionOptions::device.
  std::vector<std::string> devices = {};
  int local = 1;                       ///< in this process
  Communicator* processes = nullptr;   ///< between the processes, which all have as many replicas; outlives them. Null: there is one
  /// Gradients are formed as so many partial sums in a fixed tree (runtime/collective/tree_sum.h), so that the weights are the same bits for any number of replicas. Each
  /// replica computes its shards (cut_tree) one after the other. 0: each replica's gradients are one sum
  int shards = 0;
  /// Each replica updates its part of the weights and holds its part of the optimizer's states, of those that can be cut (plan::Persistent::in_parts). The weights are the same bits.
  bool shard_optimizer = false;
};

class Replicas {
 public:
  /// `options.threads` are shared out among the replicas of this process, at least one to each; with shards each computes with threads / shards of them, or with one if none
  /// are asked for, so that it is the same however they are spread. Throws what Session and NestedCommunicators throw; kUsage for numbers of replicas and shards that do not go together, and for one that
  /// is to share the optimizer's work with nobody; kPlanEntry for a plan that cannot be trained so.
  Replicas(const plan::Plan& plan, ReplicaOptions replicas, SessionOptions options);

  int local() const { return local_; }
  int total() const { return local() * processes(); }
  /// The number of the first one here, among all.
  int first() const { return process() * local(); }
  int processes() const { return processes_ == nullptr ? 1 : processes_->size(); }
  int process() const { return processes_ == nullptr ? 0 : processes_->rank(); }
  /// Are gradients formed in shards?
  bool in_shards() const { return in_shards_; }
  /// Of a batch, for all replicas: the shards, or without those the replicas.
  int parts() const { return first_part_.back(); }
  /// How many of them a local replica computes.
  int parts_of(int local) const { return first_part_of(local + 1) - first_part_of(local); }
  /// How many share the optimizer's work; 1: each does all of it.
  int optimizer_shares() const { return optimizer_shares_; }
  /// A batch's samples go to the shards of all replicas (without shards: to the replicas) in their order, `at_a_time` together, as equally many to each as can be, the first ones getting one more.
  /// Those of part `part` of a local replica.
  BatchPart part_of(std::int64_t samples, std::int64_t at_a_time, int local, int part) const;
  /// Those of all replicas of this process.
  BatchPart part_here(std::int64_t samples, std::int64_t at_a_time) const;
  /// They compute as one alone does: nothing is exchanged.
  bool is_alone() const { return total() == 1 and not in_shards_; }

  Session& session(int local = 0) { return sessions_[static_cast<std::size_t>(local)]; }
  const Session& session(int local = 0) const { return sessions_[static_cast<std::size_t>(local)]; }
  /// Between processes; null where there is one.
  Communicator* between_processes() const { return processes_; }
  /// A local replica fails: nobody waits for it.
  void fail(int local, const char* why) noexcept;
  /// When all local replicas have come back from steps that failed: they may try again, unless there are several processes. Their weights may differ.
  void renew();

  /// All local replicas get the weights and states of the first one, and that of the first process.
  void share_weights();
  /// All of a state that is held in parts, from all replicas. Called by all processes, one state after the other.
  Tensor gathered(const std::string& state);
  /// The first local replica of each process that says `here` knows all of what is held in parts, of the states whose names end so, until the next step. Called by all processes.
  void gather_states(bool here, std::string_view ending = "");

 private:
  int first_part_of(int local) const { return first_part_[static_cast<std::size_t>(first() + local)]; }
  Communicator* communicator(int local);
  void connect_devices();
  void share_states();
  std::vector<std::byte> gathered_bytes(const plan::Persistent& persistent);
  Tensor value_of_first(const std::string& state);

  Communicator* processes_;
  ThreadCommunicators threads_;                   // where there is one process
  std::unique_ptr<NestedCommunicators> nested_;  // where several have several replicas each
  int local_;
  bool in_shards_ = false;
  std::vector<int> first_part_;  // of each of all replicas, and behind the last one
  int optimizer_shares_ = 1;
  std::vector<Session> sessions_;
};

/// How batches are gathered that go to all replicas.
GatherOptions gather_for(Replicas& replicas);

}  // namespace hone
