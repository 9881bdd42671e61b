#include "runtime/data/as_bytes.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <limits>
#include <set>
#include <span>
#include <utility>
#include <vector>

#include "base/check.h"
#include "runtime/data/scale_bytes.h"

namespace hone {

namespace {

constexpr std::size_t kValues = 256;

std::span<const float> floats_of(const Array& array, std::int64_t first, std::int64_t rows, std::vector<std::byte>& scratch) {
  const std::byte* const elements = array.rows(first, rows, scratch);
  return {reinterpret_cast<const float*>(elements), static_cast<std::size_t>(rows * array.row_elements())};
}

/// Writes `floats` as bytes, a block at a time. False where one of them is not what its byte gives.
class Narrowing {
 public:
  Narrowing(double factor, SplitFactor split) : split_(split), inverse_(static_cast<float>(1 / factor)) {}

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

/// The different numbers in the first rows; nothing if there are too many, or one that is no multiple of a factor.
std::optional<std::set<float>> first_values(const Array& floats, std::vector<std::byte>& scratch) {
  constexpr std::int64_t kRows = 64, kElements = 1 << 18;
  std::set<float> values;
  const std::int64_t rows = std::min({floats.row_count(), kRows, std::max<std::int64_t>(1, kElements / floats.row_elements())});
  for (const float value : floats_of(floats, 0, rows, scratch)) {
    if (not std::isfinite(value) or value < 0) return std::nullopt;
    values.insert(value);
    if (values.size() > kValues) return std::nullopt;
  }
  return values;
}

/// What the values may be multiples of, the likeliest first: they lie as far apart as two of them do that are neighbours.
std::vector<double> possible_factors(const std::set<float>& values) {
  double gap = std::numeric_limits<double>::infinity();
  for (auto value = values.begin(), next = std::next(value); next != values.end(); ++value, ++next) gap = std::min(gap, static_cast<double>(*next) - static_cast<double>(*value));
  const double most = *values.rbegin(), count = std::round(most / gap);
  if (count >= static_cast<double>(kValues)) return {};
  const double least = *std::ranges::find_if(values, [](float value) { return value > 0; });
  return {1 / std::round(count / most), least / std::round(least / gap), most / count};  // x / 255, x * (1 / 255 as a float), and whole numbers
}

}  // namespace

std::optional<ScaledBytes> as_scaled_bytes(const Array& floats) {
  HONE_CHECK(floats.dtype() == DType::kF32, "floats of another type as bytes");
  if (floats.element_count() == 0) return std::nullopt;
  std::vector<std::byte> scratch;
  const std::optional<std::set<float>> values = first_values(floats, scratch);
  if (not values or values->size() < 2) return std::nullopt;
  const std::vector<float> all(values->begin(), values->end());
  for (const double factor : possible_factors(*values)) {
    if (not std::isfinite(factor)) continue;
    const std::optional<SplitFactor> split = factor_for_bytes(factor);
    if (not split) continue;
    const Narrowing narrowing(factor, *split);
    std::array<std::uint8_t, kValues> bytes{};
    if (not narrowing.narrow(all, bytes.data())) continue;
    constexpr std::int64_t kRows = 64;
    bool are_all = true;
    Tensor narrow = Tensor::make(DType::kU8, floats.shape(), [&](std::span<std::byte> to) {
      for (std::int64_t row = 0; row < floats.row_count() and are_all; row += kRows) {
        const std::int64_t rows = std::min(kRows, floats.row_count() - row);
        are_all = narrowing.narrow(floats_of(floats, row, rows, scratch), reinterpret_cast<std::uint8_t*>(to.data()) + row * floats.row_elements());
      }
    });
    if (not are_all) continue;
    Array bytes_array(floats.label(), std::move(narrow));
    bytes_array.number_rows_from(floats.first_row());
    return ScaledBytes{std::move(bytes_array), factor};
  }
  return std::nullopt;
}

}  // namespace hone
