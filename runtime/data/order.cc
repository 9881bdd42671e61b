#include "runtime/data/order.h"

#include <fmt/format.h>

#include <algorithm>
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

SampleOrder::SampleOrder(std::int64_t count, ShuffleOptions options, std::int64_t most_listed) : options_(options), count_(count), random_(0, 0) {
  HONE_CHECK(count >= 0 and options.buffer >= 0, "a negative number of samples");
  buffered_ = options_.shuffle and options_.buffer > 0 and options_.buffer < count;
  listed_ = options_.shuffle and count <= most_listed;
  if (buffered_) buffer_.resize(static_cast<std::size_t>(options_.buffer));
  if (listed_) order_.resize(static_cast<std::size_t>(count));
  while (half_bits_ < 31 and (std::uint64_t{1} << 2 * half_bits_) < static_cast<std::uint64_t>(count)) ++half_bits_;
}

std::string SampleOrder::text() const {
  if (not options_.shuffle) return ", in their order";
  return fmt::format(", shuffled with seed {}", options_.seed) + (options_.buffer == 0 ? "" : fmt::format(" through a buffer of {}", options_.buffer));
}

void SampleOrder::start_epoch(std::int64_t epoch) {
  epoch_ = static_cast<std::uint64_t>(epoch);
  RandomWords random(static_cast<std::uint64_t>(options_.seed), epoch_);
  if (buffered_) {
    start_buffer(random);
    for (std::int64_t& sample : order_) sample = draw_from_buffer();
  } else if (listed_) {
    permute(random);
  } else {
    for (std::uint64_t& key : keys_) key = random.next();
  }
}

void SampleOrder::copy(std::int64_t begin, std::span<std::int64_t> to) {
  if (listed_) {
    std::copy_n(order_.begin() + begin, to.size(), to.begin());
  } else if (buffered_) {
    if (begin < drawn_) start_buffer({static_cast<std::uint64_t>(options_.seed), epoch_});
    while (drawn_ < begin) draw_from_buffer();
    for (std::int64_t& sample : to) sample = draw_from_buffer();
  } else {
    for (std::int64_t& sample : to) sample = options_.shuffle ? place_of(begin++) : begin++;
  }
}

/// Fisher and Yates, from the back.
void SampleOrder::permute(RandomWords random) {
  std::iota(order_.begin(), order_.end(), std::int64_t{0});
  for (std::size_t left = order_.size(); left > 1; --left) std::swap(order_[left - 1], order_[random.below(left)]);
}

void SampleOrder::start_buffer(RandomWords random) {
  random_ = random;
  std::iota(buffer_.begin(), buffer_.end(), std::int64_t{0});
  held_ = buffer_.size();
  next_ = static_cast<std::int64_t>(held_);
  drawn_ = 0;
}

/// A buffer holds the next samples of the file; one of them is drawn, and the next of the file takes its place. So reading stays
/// close to sequential. When the file is at its end the buffer is drawn empty.
std::int64_t SampleOrder::draw_from_buffer() {
  std::int64_t& place = buffer_[random_.below(held_)];
  const std::int64_t drawn = place;
  place = next_ < count_ ? next_++ : buffer_[--held_];
  ++drawn_;
  return drawn;
}

/// Luby and Rackoff, "How to construct pseudorandom permutations from pseudorandom functions", 1988; from what lies beyond the count it goes on until it is
/// back (Black and Rogaway, "Ciphers with arbitrary finite domains", 2002).
std::int64_t SampleOrder::place_of(std::int64_t number) const {
  const std::uint64_t mask = (std::uint64_t{1} << half_bits_) - 1;
  auto value = static_cast<std::uint64_t>(number);
  do {
    std::uint64_t left = value >> half_bits_, right = value & mask;
    for (const std::uint64_t key : keys_) {
      const std::uint64_t swapped = left ^ (mix(right + key) & mask);
      left = right;
      right = swapped;
    }
    value = left << half_bits_ | right;
  } while (value >= static_cast<std::uint64_t>(count_));
  return static_cast<std::int64_t>(value);
}

}  // namespace hone
