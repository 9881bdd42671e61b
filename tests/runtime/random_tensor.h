// Tensors of random numbers, and rows that are run over them on the host.
#pragma once

#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "runtime/library/rows.h"

namespace hone::test {

class RandomTensors {
 public:
  explicit RandomTensors(unsigned seed) : engine_(seed) {}
  std::int64_t between(std::int64_t low, std::int64_t high) { return std::uniform_int_distribution(low, high)(engine_); }
  bool flip() { return between(0, 1) == 1; }
  /// Of f32, bf16 or f16, from -1 to 1.
  std::vector<std::byte> numbers(const TensorType& type);

 private:
  std::mt19937 engine_;
};

/// The row's first result.
std::vector<std::byte> run_on_host(const LibraryRow& row, const LibrarySpec& spec, const std::vector<const void*>& operands);

/// Between elements, relative where they are larger than 1.
double largest_difference(const TensorType& type, const std::vector<std::byte>& a, const std::vector<std::byte>& b);

/// Shapes and attributes.
std::string text_of(const LibrarySpec& spec);

}  // namespace hone::test
