// Sums of many terms in a fixed tree: neighbours first, then neighbouring pairs, and so on; a term without a neighbour waits for the next level. So a sum of all shards
// does not depend on how they are spread over devices, as long as each device has those under one node of the tree (cut_tree). Terms of bf16 are
// added up in f32, and what leaves is rounded: so of those each device must have one, or one device all.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

#include "runtime/collective/communicator.h"
#include "runtime/device/team.h"

namespace hone {

/// How many of `terms` neighbouring terms each of `parts` devices gets, one or more each, so that the tree of the devices' sums is the rest of the tree of all terms. Equally many where that can be; of
/// eight terms three devices get 2, 2 and 4. Nothing: the tree cannot be cut so. A power of two of terms can, for up to so many devices.
std::optional<std::vector<int>> cut_tree(int terms, int parts);

/// Sums of elements [range.begin, range.end) of terms that lie in memory at the same time, one or more. They go to the same elements of each of `sums`, which may be terms
/// themselves; no other elements are read or written.
void sum_in_tree(DType dtype, std::span<const void* const> terms, RangePiece range, std::span<void* const> sums);

/// What elements of a type are added up as: f32 for bf16.
DType summed_as(DType dtype);
/// The same sum as it is added up, before it is rounded: elements of summed_as(dtype).
void sum_unrounded(DType dtype, std::span<const void* const> terms, RangePiece range, void* sum);
/// Such sums as elements of the type.
void round_sums(DType dtype, const void* sums, std::int64_t count, void* to);

/// The same sum, of terms that come one after the other. It keeps as many as the tree has levels, and their memory for the next sum.
class TreeSum {
 public:
  /// All terms have the same types and numbers of elements.
  void add(std::span<const ExchangedTensor> term);
  /// Writes the sum of `terms` terms, of which those that were not added are zeros, and begins anew.
  void take(std::size_t terms, std::span<const ExchangedTensor> to);

 private:
  struct Sum {
    std::size_t terms = 0;
    std::vector<DType> dtypes;
    std::vector<std::vector<std::byte>> elements;  // by tensor
  };
  Sum& add_zeros(std::span<const ExchangedTensor> like);
  void merge_last();

  std::vector<Sum> sums_;  // of fewer and fewer terms; the memory of those behind `used_` waits
  std::size_t used_ = 0, terms_ = 0;
};

/// Terms of shards that come batch by batch: each shard's are added up in the order of the batches, and their sums in the tree. So bits do not depend on how shards are spread, as with TreeSum.
/// It keeps a sum for every shard, and their memory for the next time.
class ShardSums {
 public:
  /// All terms have the same types and numbers of elements.
  void add(std::size_t shard, std::span<const ExchangedTensor> term);
  /// Writes the sum of so many shards, of which those without terms are zeros, and begins anew. What a shard adds to it is rounded to the tensors' types, as if it travelled.
  void take(std::size_t shards, std::span<const ExchangedTensor> to);

 private:
  struct Shard {
    bool is_empty = true;
    std::vector<std::vector<std::byte>> elements;  // by tensor
  };
  std::vector<Shard> shards_;
  TreeSum tree_;
};

}  // namespace hone
