// Examples that are alike as one, with an axis more.
#pragma once

#include <cstdint>
#include <cstring>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "runtime/pipeline/stage.h"

namespace hone {

/// Where two examples first differ: in how many tensors they have, or in a tensor's name, or in its type or shape.
struct ExampleDifference {
  enum class What : std::uint8_t { kCount, kName, kType } what;
  std::size_t column = 0;  ///< of names and types
};

/// Nothing if the examples are alike, so that they can be stacked.
std::optional<ExampleDifference> difference(const Example& a, const Example& b);

/// One element of `dtype` with this value.
Tensor checked_filler(const char* step, DType dtype, double value);
/// A tensor all of whose elements are `value`, and what `write` then puts over them. Throws kUsage, in the name of `step`, for a value that the type does not hold.
template <typename Write>
Tensor filled(const char* step, DType dtype, std::vector<std::int64_t> shape, double value, Write&& write) {
  const Tensor filler = checked_filler(step, dtype, value);
  return Tensor::make(dtype, std::move(shape), [&](std::span<std::byte> to) {
    for (std::size_t at = 0; at < to.size(); at += size_of(dtype)) std::memcpy(to.data() + at, filler.bytes().data(), size_of(dtype));
    write(to);
  });
}

/// Fills up each tensor at the ends of its axes to the largest one of its name, with the number for its name, or with 0. Tensors that differ otherwise stay as they are. Throws kUsage for a number that a tensor's type does not hold, kDataName for a name that no
/// tensor has.
void pad_to_largest(std::vector<Example>& examples, const std::map<std::string, double>& padding);

/// The tensors number `column` of examples that are alike, one at least, behind each other from row `begin` on: [rows,...], with zeros before and after. Each tensor is let go of when it is copied, so that memory does not hold all of them twice.
Tensor stack_column(std::vector<Example>& examples, std::size_t column, std::int64_t begin, std::int64_t rows);

}  // namespace hone
