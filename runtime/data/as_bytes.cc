#include "runtime/data/as_bytes.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <set>
#include <span>
#include <utility>
#include <vector>

#include "base/check.h"
#include "runtime/data/order.h"

namespace hone {

namespace {

constexpr std::size_t kValues = 256;

std::span<const float> floats_of(const Array& array, std::int64_t first, std::int64_t rows, std::vector<std::byte>& scratch) {
  const std::byte* const elements = array.rows(first, rows, scratch);
  return {reinterpret_cast<const float*>(elements), static_cast<std::size_t>(rows * array.row_elements())};
}

/// Bytes times a factor.
class Multiples {
 public:
  Multiples(double factor, SplitFactor split) : split_(split), inverse_(static_cast<float>(1 / factor)) {}

  /// Writes `floats` as bytes, a block at a time. False where one of them is not what its byte gives.
  bool narrow(std::span<const float> floats, std::uint8_t* to) const {
    std::array<float, 1024> back{};
    for (std::size_t at = 0; at < floats.size(); at += back.size()) {
      const std::span<const float> block = floats.subspan(at, std::min(back.size(), floats.size() - at));
      for (std::size_t i = 0; i < block.size(); ++i) to[at + i] = nearest(block[i]);
      scale_bytes(to + at, back.data(), block.size(), split_);
      if (std::memcmp(back.data(), block.data(), block.size_bytes()) != 0) return false;
    }
    return true;
  }

 private:
  /// Any byte for what is none.
  std::uint8_t nearest(float value) const {
    const float byte = value * inverse_ + 0.5F;
    return byte >= 0 and byte < static_cast<float>(kValues) ? static_cast<std::uint8_t>(byte) : 0;
  }

  SplitFactor split_;
  float inverse_;
};

/// Any floats, numbered in the order in which they are seen. The number of one is found by its bits, in a table where each has a slot of its own.
class Numbering {
 public:
  explicit Numbering(float first) { bits_.fill(std::bit_cast<std::uint32_t>(first)); }

  /// Writes the numbers of `floats`. False where there are too many.
  bool narrow(std::span<const float> floats, std::uint8_t* to) {
    for (std::size_t i = 0; i < floats.size(); ++i) {
      const auto bits = std::bit_cast<std::uint32_t>(floats[i]);
      if (bits_[numbers_[slot_of(bits)]] != bits and not add(bits)) return false;
      to[i] = numbers_[slot_of(bits)];
    }
    return true;
  }
  /// What each byte stands for; those that are no number, for the first one.
  std::array<float, kValues> values() const { return std::bit_cast<std::array<float, kValues>>(bits_); }

 private:
  static constexpr int kSlotBits = 13;
  static constexpr int kMostTries = 100'000;  // one in 50 leaves 256 that are nothing to each other apart, some 3000 are needed for those that are hardest

  std::size_t slot_of(std::uint32_t bits) const { return bits * multiplier_ >> (32 - kSlotBits); }

  bool add(std::uint32_t bits) {
    if (count_ == kValues) return false;
    bits_[count_++] = bits;
    for (int tries = 0; tries < kMostTries; ++tries, multiplier_ = static_cast<std::uint32_t>(random_.below(std::uint64_t{1} << 31)) * 2 + 1)
      if (are_apart()) return true;
    return false;
  }

  bool are_apart() {
    numbers_.fill(0);
    for (std::size_t i = 1; i < count_; ++i) {
      std::uint8_t& number = numbers_[slot_of(bits_[i])];
      if (number != 0 or slot_of(bits_[i]) == slot_of(bits_[0])) return false;
      number = static_cast<std::uint8_t>(i);
    }
    return true;
  }

  std::array<std::uint8_t, std::size_t{1} << kSlotBits> numbers_{};  // 0, too, where nothing is
  std::array<std::uint32_t, kValues> bits_;  // of each number, and the first one's for what is none yet
  std::size_t count_ = 1;
  std::uint32_t multiplier_ = 2654435761U;
  RandomWords random_{0, 0};
};

/// What the values may be multiples of, the likeliest first: they lie as far apart as two of them do that are neighbours.
std::vector<double> possible_factors(std::span<const float> in_any_order) {
  const std::set<float> values(in_any_order.begin(), in_any_order.end());
  if (values.size() < 2 or not std::ranges::all_of(values, [](float value) { return std::isfinite(value) and value >= 0; })) return {};
  double gap = std::numeric_limits<double>::infinity();
  for (auto value = values.begin(), next = std::next(value); next != values.end(); ++value, ++next) gap = std::min(gap, static_cast<double>(*next) - static_cast<double>(*value));
  const double most = *values.rbegin(), count = std::round(most / gap);
  if (count >= static_cast<double>(kValues)) return {};
  const double least = *std::ranges::find_if(values, [](float value) { return value > 0; });
  return {1 / std::round(count / most), least / std::round(least / gap), most / count};  // x / 255, x * (1 / 255 as a float), and whole numbers
}

/// All of `floats`, as `way` makes bytes of them; nothing if it cannot of one.
template <typename Way>
std::optional<Array> narrowed(const Array& floats, Way& way) {
  constexpr std::int64_t kRows = 64;
  std::vector<std::byte> scratch;
  bool are_all = true;
  Tensor narrow = Tensor::make(DType::kU8, floats.shape(), [&](std::span<std::byte> to) {
    for (std::int64_t row = 0; row < floats.row_count() and are_all; row += kRows) {
      const std::int64_t rows = std::min(kRows, floats.row_count() - row);
      are_all = way.narrow(floats_of(floats, row, rows, scratch), reinterpret_cast<std::uint8_t*>(to.data()) + row * floats.row_elements());
    }
  });
  if (not are_all) return std::nullopt;
  Array bytes(floats.label(), std::move(narrow));
  bytes.number_rows_from(floats.first_row());
  return bytes;
}

}  // namespace

std::optional<BytesForFloats> as_bytes(const Array& floats) {
  HONE_CHECK(floats.dtype() == DType::kF32, "floats of another type as bytes");
  if (floats.element_count() == 0) return std::nullopt;
  constexpr std::int64_t kFirstRows = 64, kFirstElements = 1 << 18;
  std::vector<std::byte> scratch;
  const std::span<const float> first = floats_of(floats, 0, std::min({floats.row_count(), kFirstRows, std::max<std::int64_t>(1, kFirstElements / floats.row_elements())}), scratch);
  Numbering numbering(first[0]);
  std::vector<std::uint8_t> bytes(first.size());
  if (not numbering.narrow(first, bytes.data())) return std::nullopt;
  const std::array<float, kValues> values = numbering.values();
  for (const double factor : possible_factors(values)) {
    const std::optional<SplitFactor> split = std::isfinite(factor) ? factor_for_bytes(factor) : std::nullopt;
    if (not split) continue;
    const Multiples multiples(factor, *split);
    if (std::array<std::uint8_t, kValues> unused; not multiples.narrow(values, unused.data())) continue;
    if (std::optional<Array> array = narrowed(floats, multiples)) return BytesForFloats{std::move(*array), Converter(DType::kU8, DType::kF32, factor)};
  }
  if (not ByteTable::is_fast_here()) return std::nullopt;
  std::optional<Array> array = narrowed(floats, numbering);
  if (not array) return std::nullopt;
  return BytesForFloats{std::move(*array), Converter(numbering.values())};
}

}  // namespace hone
