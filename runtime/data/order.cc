#include "runtime/data/order.h"

#include <numeric>
#include <utility>

#include "base/check.h"

namespace hone {

namespace {

std::uint64_t mix(std::uint64_t word) {
  word = (word ^ (word >> 30)) * 0xbf58476d1ce4e5b9u;
  word = (word ^ (word >> 27)) * 0x94d049bb133111ebu;
  return word ^ (word >> 31);
}

}  // namespace

RandomWords::RandomWords(std::uint64_t a, std::uint64_t b) : state_(mix(mix(a + 0x9e3779b97f4a7c15u) + b)) {}

std::uint64_t RandomWords::next() { return mix(state_ += 0x9e3779b97f4a7c15u); }

std::uint64_t RandomWords::below(std::uint64_t bound) {
  __extension__ using Wide = unsigned __int128;
  return static_cast<std::uint64_t>((static_cast<Wide>(next()) * bound) >> 64);
}

SampleOrder::SampleOrder(std::int64_t count, ShuffleOptions options) : options_(options), order_(static_cast<std::size_t>(count)) {
  HONE_CHECK(count >= 0 and options.buffer >= 0, "a negative number of samples");
  const bool buffered = options_.shuffle and options_.buffer > 0 and options_.buffer < count;
  if (buffered) buffer_.resize(static_cast<std::size_t>(options_.buffer));
}

std::span<const std::int64_t> SampleOrder::start_epoch(std::int64_t epoch) {
  RandomWords random(static_cast<std::uint64_t>(options_.seed), static_cast<std::uint64_t>(epoch));
  if (not buffer_.empty()) {
    shuffle_through_buffer(random);
  } else {
    std::iota(order_.begin(), order_.end(), std::int64_t{0});
    if (options_.shuffle) permute(random);
  }
  return order_;
}

/// Fisher and Yates, from the back.
void SampleOrder::permute(RandomWords& random) {
  for (std::size_t left = order_.size(); left > 1; --left) std::swap(order_[left - 1], order_[random.below(left)]);
}

/// A buffer holds the next samples of the file; one of them is drawn, and the next of the file takes its place. So reading stays
/// close to sequential. When the file is at its end the buffer is drawn empty.
void SampleOrder::shuffle_through_buffer(RandomWords& random) {
  std::iota(buffer_.begin(), buffer_.end(), std::int64_t{0});
  std::size_t held = buffer_.size();
  std::size_t next = held;
  for (std::int64_t& sample : order_) {
    std::int64_t& drawn = buffer_[random.below(held)];
    sample = drawn;
    drawn = next < order_.size() ? static_cast<std::int64_t>(next++) : buffer_[--held];
  }
}

}  // namespace hone
