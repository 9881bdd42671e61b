#include "runtime/library/elements.h"

#include <cstring>

#include "base/float_format.h"
#include "base/tensor.h"

namespace hone {

std::size_t element_count_of(const TensorType& type) { return static_cast<std::size_t>(checked_element_count(type.shape)); }

double read_element(DType dtype, const void* data, std::size_t at) {
  const auto* const element = static_cast<const std::byte*>(data) + at * size_of(dtype);
  if (dtype != DType::kF32) return read_storage(dtype, element);
  float value = 0;
  std::memcpy(&value, element, sizeof(value));
  return static_cast<double>(value);
}

void write_element(DType dtype, void* data, std::size_t at, double value) {
  auto* const element = static_cast<std::byte*>(data) + at * size_of(dtype);
  if (dtype != DType::kF32) return write_storage(dtype, element, value);
  const auto rounded = static_cast<float>(value);
  std::memcpy(element, &rounded, sizeof(rounded));
}

std::vector<float> read_all(const TensorType& type, const void* data) {
  std::vector<float> numbers(element_count_of(type));
  for (std::size_t i = 0; i < numbers.size(); ++i) numbers[i] = static_cast<float>(read_element(type.dtype, data, i));
  return numbers;
}

}  // namespace hone
