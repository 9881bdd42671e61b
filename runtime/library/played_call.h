// Calls of a device's library that are played on the host: operands are read as numbers, in which all is worked out, and results are rounded where they are stored.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "runtime/library/elements.h"

namespace hone {

/// A matrix, row by row.
template <typename Number>
struct Rows {
  Number* data;
  std::int64_t columns;
  Number* operator[](std::int64_t row) const { return data + row * columns; }
};

/// Added up in the elements' order.
template <typename Number>
Number dot(const Number* a, const Number* b, std::int64_t count) {
  Number sum = 0;
  for (std::int64_t i = 0; i < count; ++i) sum += a[i] * b[i];
  return sum;
}

template <typename Number>
void add_scaled(Number* sums, const Number* row, Number factor, std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i) sums[i] += factor * row[i];
}

template <typename Number>
class PlayedCall : public LibraryCall {
 public:
  explicit PlayedCall(const LibrarySpec& spec) : spec_(spec) {
    for (const TensorType& result : spec.results) description_.result_bytes.push_back(element_count_of(result) * size_of(result.dtype));
  }

  void execute(std::span<const void* const> operands, std::span<void* const> results, void*) override {
    read_.clear();
    made_.clear();
    for (std::size_t i = 0; i < spec_.operands.size(); ++i) {
      const std::vector<float> values = spec_.operands[i] ? read_all(*spec_.operands[i], operands[i]) : std::vector<float>();
      read_.emplace_back(values.begin(), values.end());
    }
    for (const TensorType& result : spec_.results) made_.emplace_back(element_count_of(result), Number{0});
    play();
    for (std::size_t i = 0; i < made_.size(); ++i)
      for (std::size_t k = 0; k < made_[i].size(); ++k) write_element(spec_.results[i].dtype, results[i], k, static_cast<double>(made_[i][k]));
  }

 protected:
  /// Fills made_, which is 0 before, from read_.
  virtual void play() = 0;

  const LibrarySpec spec_;
  std::vector<std::vector<Number>> read_;  ///< by operand; of one that is not there, nothing
  std::vector<std::vector<Number>> made_;  ///< by result
};

}  // namespace hone
