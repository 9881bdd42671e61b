// The rows of a row-major tensor along one of its axes.
#pragma once

#include <cstdint>
#include <vector>

namespace hone::host {

/// Element j of row i lies at start(i) + j * stride.
struct Rows {
  std::int64_t count = 1, length, stride = 1;
  Rows(const std::vector<std::int64_t>& shape, std::int64_t axis) : length(shape[static_cast<std::size_t>(axis)]) {
    for (std::size_t i = 0; i < shape.size(); ++i) {
      if (static_cast<std::int64_t>(i) != axis) count *= shape[i];
      if (static_cast<std::int64_t>(i) > axis) stride *= shape[i];
    }
  }
  std::int64_t start(std::int64_t row) const { return row / stride * stride * length + row % stride; }
};

}  // namespace hone::host
