// The order in which samples are visited: a function of seed and epoch, the same on every machine.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
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

/// Which samples an epoch visits, one after the other. For one thread at a time.
class Order {
 public:
  virtual ~Order() = default;
  virtual void start_epoch(std::int64_t epoch) = 0;
  /// The samples at places [begin, begin + to.size()) of the order; there are so many. Going forward costs little.
  virtual void copy(std::int64_t begin, std::span<std::int64_t> to) = 0;
  /// The same without going there, where they are known already; else none.
  virtual std::span<const std::int64_t> kept(std::int64_t begin, std::int64_t count) const = 0;
  /// In words, behind how many there are: ", shuffled with seed 0"; empty where others say it.
  virtual std::string text() const { return ""; }
};

/// Visits each of `count` samples once an epoch. The order of epoch e depends on (count, options, e) alone, not on epochs before.
class SampleOrder : public Order {
 public:
  /// Up to so many samples the order is made at the start of an epoch and kept; of more, each sample is worked out when it is asked for, so that memory stays
  /// as it is.
  static constexpr std::int64_t kListed = std::int64_t{1} << 22;

  SampleOrder(std::int64_t count, ShuffleOptions options, std::int64_t most_listed = kListed);

  /// Begins `epoch`; allocates only the first time.
  void start_epoch(std::int64_t epoch) override;
  void copy(std::int64_t begin, std::span<std::int64_t> to) override;
  std::span<const std::int64_t> kept(std::int64_t begin, std::int64_t count) const override {
    return listed_ ? std::span(order_).subspan(static_cast<std::size_t>(begin), static_cast<std::size_t>(count)) : std::span<const std::int64_t>();
  }
  std::string text() const override;

 private:
  void permute(RandomWords random);
  void start_buffer(RandomWords random);
  std::int64_t draw_from_buffer();
  std::int64_t place_of(std::int64_t number) const;

  ShuffleOptions options_;
  std::int64_t count_;
  bool buffered_ = false, listed_ = false;
  std::uint64_t epoch_ = 0;
  std::vector<std::int64_t> order_;  // if listed
  // Through a buffer: the samples in it, and how far it has come.
  std::vector<std::int64_t> buffer_;
  RandomWords random_;
  std::size_t held_ = 0;
  std::int64_t next_ = 0, drawn_ = 0;
  // Not listed, all shuffled: a Feistel network over the next power of 4, whose values beyond the count are passed over.
  static constexpr int kRounds = 6;
  std::array<std::uint64_t, kRounds> keys_{};
  int half_bits_ = 1;
};

}  // namespace hone
