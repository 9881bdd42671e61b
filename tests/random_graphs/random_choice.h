// Random choices that are the same everywhere: the distributions of the standard library differ between implementations.
#pragma once

#include <algorithm>
#include <numeric>
#include <random>
#include <vector>

#include "ir/attributes.h"

namespace hone::test {

class RandomChoice {
 public:
  explicit RandomChoice(std::uint64_t seed) : random_(seed * 2 + 1) {}

  /// Both included.
  std::int64_t between(std::int64_t low, std::int64_t high) { return low + static_cast<std::int64_t>(random_() % static_cast<std::uint64_t>(high - low + 1)); }
  bool one_in(std::int64_t n) { return between(1, n) == 1; }
  /// From -1 to 1.
  double signed_unit() { return static_cast<double>(random_() >> 11) * 0x1p-52 - 1; }
  template <typename T>
  const T& of(const std::vector<T>& list) {
    return list[static_cast<std::size_t>(between(0, static_cast<std::int64_t>(list.size()) - 1))];
  }

  std::int64_t axis(std::size_t rank) { return between(0, static_cast<std::int64_t>(rank) - 1); }
  Ints permutation(std::size_t rank) {
    Ints order(rank);
    std::iota(order.begin(), order.end(), 0);
    for (std::size_t i = rank; i > 1; --i) std::swap(order[i - 1], order[static_cast<std::size_t>(axis(i))]);
    return order;
  }
  /// At least one, sorted.
  Ints some_axes(std::size_t rank) {
    Ints axes = permutation(rank);
    axes.resize(static_cast<std::size_t>(between(1, static_cast<std::int64_t>(rank))));
    std::sort(axes.begin(), axes.end());
    return axes;
  }
  /// As many elements: two axes in one, one in two, or an axis of extent 1 more.
  Shape other_shape(Shape shape) {
    const auto at = static_cast<std::size_t>(axis(shape.size()));
    const std::int64_t extent = shape[at].is_constant() ? shape[at].value() : 1;
    if (between(0, 2) == 0 and at + 1 < shape.size()) {
      shape[at] = shape[at] * shape[at + 1];
      shape.erase(shape.begin() + static_cast<std::ptrdiff_t>(at) + 1);
    } else if (const std::int64_t factor = between(2, 3); extent > 1 and extent % factor == 0) {
      shape[at] = extent / factor;
      shape.insert(shape.begin() + static_cast<std::ptrdiff_t>(at), factor);
    } else {
      shape.insert(shape.begin() + static_cast<std::ptrdiff_t>(at), 1);
    }
    return shape;
  }

 private:
  std::mt19937_64 random_;
};

}  // namespace hone::test
