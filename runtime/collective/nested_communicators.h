// Replicas that are threads of several processes: those of one process add up what they have, and one of them exchanges the sums with the other processes.
//
// Replica `local` of process p is rank p * local + ...; so the tree of all ranks (runtime/collective/tree_sum.h) begins within the processes, if each has a number of replicas that is a power of two,
// and sums are the same bits as those of a process for each. Between processes travels what one replica of each would send; of bf16 the sums of a process are f32 until all are added up.
#pragma once

#include <memory>
#include <span>

#include "runtime/collective/communicator.h"

namespace hone {

class NestedCommunicators {
 public:
  /// `between` the processes outlives this; while one of these communicators is used, nobody else uses it. All processes give the same `local`: throws Error kUsage unless that is a power of two.
  NestedCommunicators(Communicator& between, int local);
  ~NestedCommunicators();
  NestedCommunicators(const NestedCommunicators&) = delete;
  NestedCommunicators& operator=(const NestedCommunicators&) = delete;

  /// Of the replica number `local` of this process. For one thread at a time; lives as long as this. A failure is told to this process and to the others, and is for good.
  Communicator& of(int local);
  /// Of tensors that hold the parts of all replicas of this process: gets those of the other processes' replicas. Called by one thread of each process, while its communicators are not used.
  void all_gather_of_process(std::span<const ExchangedTensor> tensors);

 private:
  struct Shared;
  class Member;
  std::unique_ptr<Shared> shared_;
};

}  // namespace hone
