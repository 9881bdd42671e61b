#include "tests/runtime/random_tensor.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "base/float_format.h"
#include "base/tensor.h"
#include "runtime/device/host_memory.h"
#include "runtime/device/team.h"

namespace hone::test {

namespace {

double number_at(const TensorType& type, const std::vector<std::byte>& bytes, std::size_t i) {
  if (type.dtype != DType::kF32) return read_storage(type.dtype, bytes.data() + i * size_of(type.dtype));
  float value = 0;
  std::memcpy(&value, bytes.data() + i * sizeof(value), sizeof(value));
  return value;
}

}  // namespace

std::vector<std::byte> RandomTensors::numbers(const TensorType& type) {
  const auto count = static_cast<std::size_t>(checked_element_count(type.shape));
  std::vector<std::byte> bytes(count * size_of(type.dtype));
  for (std::size_t i = 0; i < count; ++i) {
    const float value = std::uniform_real_distribution<float>(-1, 1)(engine_);
    if (type.dtype == DType::kF32) std::memcpy(bytes.data() + i * sizeof(value), &value, sizeof(value));
    else write_storage(type.dtype, bytes.data() + i * size_of(type.dtype), value);
  }
  return bytes;
}

std::vector<std::byte> run_on_host(const LibraryRow& row, const LibrarySpec& spec, const std::vector<const void*>& operands) {
  const LibraryOnOneThread one_thread;
  const auto call = row.make(spec);
  const HostMemory scratch(call->description().scratch_bytes, "scratch");
  std::vector<std::byte> result(call->description().result_bytes.front());
  void* const results[] = {result.data()};
  call->execute(operands, results, scratch.data());
  return result;
}

double largest_difference(const TensorType& type, const std::vector<std::byte>& a, const std::vector<std::byte>& b) {
  EXPECT_EQ(a.size(), b.size());
  double largest = 0;
  for (std::size_t i = 0; i < std::min(a.size(), b.size()) / size_of(type.dtype); ++i) {
    const double x = number_at(type, a, i), y = number_at(type, b, i), difference = std::abs(x - y) / std::max(1.0, std::abs(y));
    largest = difference <= largest ? largest : std::isnan(difference) ? INFINITY : difference;
  }
  return largest;
}

std::string text_of(const LibrarySpec& spec) {
  std::string text;
  for (const auto& operand : spec.operands)
    if (operand) text += testing::PrintToString(operand->shape);
  return text + " -> " + testing::PrintToString(spec.results[0].shape) + " " + testing::PrintToString(spec.attributes);
}

}  // namespace hone::test
