// The elements of tensors as numbers.
#pragma once

#include <cstdint>
#include <vector>

#include "base/tensor.h"

namespace hone::test {

inline std::vector<double> elements(const Tensor& tensor) {
  std::vector<double> values;
  for (std::int64_t i = 0; i < tensor.element_count(); ++i) values.push_back(tensor.at(i));
  return values;
}

}  // namespace hone::test
