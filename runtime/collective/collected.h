// What the shards of one replica bring to exchanges, by bucket: collected by the steps of shards, until the replica's step exchanges it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>

#include "runtime/collective/tree_sum.h"

namespace hone {

class Collected {
 public:
  /// Of a batch, or of all batches since the bucket was last exchanged: that takes more memory.
  enum class Over : std::uint8_t { kOneBatch, kBatches };
  Collected() = default;
  Collected(std::size_t shards, Over over) : shards_(shards), over_(over) {}

  /// Does the replica have shards, so that what it exchanges is taken from here?
  bool is_used() const { return shards_ > 0; }

  /// Of the shard whose step runs.
  void add(std::int64_t bucket, std::span<const ExchangedTensor> term);
  /// The next step is of the next shard, or a batch begins.
  void end_shard() { ++shard_; }
  void end_batch() { shard_ = 0; }
  /// Writes the bucket's sum over all shards; zeros where none has collected anything.
  void take(std::int64_t bucket, std::span<const ExchangedTensor> to);
  /// Forgets all that was collected.
  void clear();

 private:
  std::size_t shards_ = 0;
  Over over_ = Over::kOneBatch;
  std::size_t shard_ = 0;
  std::map<std::int64_t, TreeSum> batch_;
  std::map<std::int64_t, ShardSums> batches_;
};

}  // namespace hone
