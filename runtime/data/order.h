// The order in which samples are visited: a function of seed and epoch, the same on every machine.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace hone {

/// Numbers that look random: SplitMix64 (Steele, Lea, Flood, "Fast splittable pseudorandom number generators", 2014), started from two words.
class RandomWords {
 public:
  RandomWords(std::uint64_t a, std::uint64_t b);
  std::uint64_t next();
  /// A number in [0, bound), bound > 0: the upper half of a 128-bit product, so the bias is at most bound / 2^64.
  std::uint64_t below(std::uint64_t bound);

 private:
  std::uint64_t state_;
};

struct ShuffleOptions {
  bool shuffle = true;
  std::int64_t buffer = 0;  ///< choose each next sample among this many; 0, or as many as there are samples: a full permutation
  std::int64_t seed = 0;
};

/// Visits each of `count` samples once an epoch. The order of epoch e depends on (count, options, e) alone, not on epochs before.
class SampleOrder {
 public:
  SampleOrder(std::int64_t count, ShuffleOptions options);

  /// Makes the order of `epoch`; allocates only the first time.
  std::span<const std::int64_t> start_epoch(std::int64_t epoch);

 private:
  void permute(RandomWords& random);
  void shuffle_through_buffer(RandomWords& random);

  ShuffleOptions options_;
  std::vector<std::int64_t> order_;
  std::vector<std::int64_t> buffer_;
};

}  // namespace hone
