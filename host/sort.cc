// Sorting along an axis.
#include <algorithm>
#include <cmath>
#include <numeric>

#include "host/by_dtype.h"
#include "host/functions.h"

namespace hone::host {

namespace {

/// Does `a` come before `b`? NaN counts as the largest.
template <typename T>
bool is_larger(T a, T b) {
  if constexpr (std::is_floating_point_v<T>) {
    if (std::isnan(a) or std::isnan(b)) return std::isnan(a) and not std::isnan(b);
  }
  return a > b;
}

/// The rows along an axis: element j of row i lies at start(i) + j * stride.
struct Rows {
  std::int64_t count, length, stride;
  Rows(const std::vector<std::int64_t>& shape, std::int64_t axis) : count(1), length(shape[static_cast<std::size_t>(axis)]), stride(1) {
    for (std::size_t i = 0; i < shape.size(); ++i) {
      if (static_cast<std::int64_t>(i) != axis) count *= shape[i];
      if (static_cast<std::int64_t>(i) > axis) stride *= shape[i];
    }
  }
  std::int64_t start(std::int64_t row) const { return row / stride * stride * length + row % stride; }
};

void run_arg_top_k(const HostAttributes& attributes, std::span<const HostTensor> operands, std::span<const HostTensor> results) {
  const Rows from(operands[0].shape, attributes.integer("axis")), to(results[0].shape, attributes.integer("axis"));
  const bool largest = not attributes.flag("smallest");
  by_dtype(operands[0].dtype, [&]<typename T>() {
    const std::span<T> x = operands[0].elements<T>();
    const std::span<std::int64_t> positions = results[0].elements<std::int64_t>();
    std::vector<std::int64_t> order(static_cast<std::size_t>(from.length));
    for (std::int64_t row = 0; row < from.count; ++row) {
      const auto at = [&](std::int64_t j) { return x[static_cast<std::size_t>(from.start(row) + j * from.stride)]; };
      std::iota(order.begin(), order.end(), 0);
      std::partial_sort(order.begin(), order.begin() + to.length, order.end(), [&](std::int64_t a, std::int64_t b) {
        if (is_larger(at(a), at(b))) return largest;
        if (is_larger(at(b), at(a))) return not largest;
        return a < b;
      });
      for (std::int64_t j = 0; j < to.length; ++j) positions[static_cast<std::size_t>(to.start(row) + j * to.stride)] = order[static_cast<std::size_t>(j)];
    }
  });
}

}  // namespace

constinit const HostFunction arg_top_k = {
    .name = "arg_top_k",
    .doc = "positions of the largest (or smallest) elements of each row along `axis`, as many as the result has, in order; of equal ones the first",
    .run = run_arg_top_k,
};

}  // namespace hone::host
