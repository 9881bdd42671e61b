// How elements and shapes of data files become what a model takes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/dtype.h"
#include "runtime/data/byte_table.h"
#include "runtime/data/scale_bytes.h"

namespace hone {

/// May data of type `from` feed an input of type `to`: the same, integers or bools to floats, floats to floats, integers to integers
/// (whose values must fit), never floats to integers.
bool can_convert(DType from, DType to);

/// Converts elements one by one. Built once per input, then allocates nothing.
class Converter {
 public:
  /// `scale` multiplies what becomes a float; it is 1 for everything else.
  Converter(DType from, DType to, double scale);
  /// From u8 to f32: what each byte stands for.
  explicit Converter(std::span<const float, 256> values);

  /// Are the bytes left as they are?
  bool only_copies() const { return table_.empty() and from_ == to_ and scale_ == 1; }
  /// `count` elements from `from` to `to`.
  void convert(const std::byte* from, std::byte* to, std::size_t count) const;

 private:
  DType from_, to_;
  double scale_;
  std::vector<std::byte> table_;            // for element types of one byte: the result of each of the 256 values
  std::optional<SplitFactor> byte_factor_;  // for u8 to f32, where that is as exact
  std::optional<ByteTable> byte_table_;     // the same for any floats, where that is faster than one by one
};

/// The first of `count` integers at `from` outside [least, most] and not equal to *ignored: its position.
std::optional<std::size_t> find_outside(DType dtype, const std::byte* from, std::size_t count, std::int64_t least, std::int64_t most,
                                        std::optional<std::int64_t> ignored);
/// One integer (or bool); of u64 what i64 cannot hold is its largest.
std::int64_t integer_at(DType dtype, const std::byte* from, std::size_t index);
/// The same in digits, whatever it is.
std::string integer_text(DType dtype, const std::byte* from, std::size_t index);
/// The least and the most that an integer type holds, as far as i64 reaches.
std::pair<std::int64_t, std::int64_t> range_of(DType dtype);

/// May an array of shape `from` be read as shape `to` (same elements, same order): axes of size 1 come or go, or neighbouring axes are
/// merged or split.
bool is_same_but_for_grouping(std::span<const std::int64_t> from, std::span<const std::int64_t> to);

}  // namespace hone
