// A dense array in plain row-major layout whose bytes never change once it is made: copying shares them.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/check.h"
#include "base/dtype.h"

namespace hone {

class Tensor {
 public:
  Tensor() = default;
  Tensor(const Tensor&) = default;
  Tensor& operator=(const Tensor&) = default;
  /// What was moved from has no elements.
  Tensor(Tensor&& other) noexcept : dtype_(other.dtype_), shape_(std::move(other.shape_)), count_(std::exchange(other.count_, 0)), bytes_(std::move(other.bytes_)) {}
  Tensor& operator=(Tensor&& other) noexcept {
    dtype_ = other.dtype_;
    shape_ = std::move(other.shape_);
    count_ = std::exchange(other.count_, 0);
    bytes_ = std::move(other.bytes_);
    return *this;
  }

  /// Copies `values`; their number is the product of `shape`: kUsage.
  template <typename T>
  static Tensor of(std::vector<std::int64_t> shape, std::span<const T> values) {
    return copy(kDTypeOf<T>, std::move(shape), std::as_bytes(values));
  }
  template <typename T>
  static Tensor scalar(T value) { return of<T>({}, std::span<const T>(&value, 1)); }
  /// Copies `bytes`; their number fits dtype and shape: kUsage.
  static Tensor copy(DType dtype, std::vector<std::int64_t> shape, std::span<const std::byte> bytes);
  /// All bytes zero.
  static Tensor zeros(DType dtype, std::vector<std::int64_t> shape);
  /// Lets `fill` write the bytes once, before anyone can see them.
  template <typename Fill>
  static Tensor make(DType dtype, std::vector<std::int64_t> shape, Fill&& fill) {
    Tensor tensor = zeros(dtype, std::move(shape));
    fill(std::span<std::byte>(tensor.bytes_.get(), tensor.byte_count()));
    return tensor;
  }

  DType dtype() const { return dtype_; }
  const std::vector<std::int64_t>& shape() const { return shape_; }
  std::int64_t element_count() const { return count_; }
  std::size_t byte_count() const { return static_cast<std::size_t>(count_) * size_of(dtype_); }
  std::span<const std::byte> bytes() const { return {bytes_.get(), byte_count()}; }

  /// The elements; T must be the dtype's own type: kUsage.
  template <typename T>
  std::span<const T> data() const {
    if (kDTypeOf<T> != dtype_) refuse_type(kDTypeOf<T>);
    return {reinterpret_cast<const T*>(bytes_.get()), static_cast<std::size_t>(count_)};
  }
  /// Element i (row-major), whatever the dtype, as a number. Throws kUsage where there is none.
  double at(std::int64_t i) const;
  /// Element i of an integer or bool tensor, exactly. Throws kUsage where there is none, and for floats.
  std::int64_t int_at(std::int64_t i) const;
  /// Each element converted as C does it (floats to integers truncate, integers keep their low bits); the small floats are rounded to nearest even.
  Tensor cast(DType dtype) const;
  /// The same bytes under another shape of the same element count: kUsage.
  Tensor reshaped(std::vector<std::int64_t> shape) const;

 private:
  std::string type_text() const;
  [[noreturn]] void refuse_type(DType asked) const;
  void check_index(std::int64_t i) const {
    if (i < 0 or i >= count_) refuse_index(i);
  }
  [[noreturn]] void refuse_index(std::int64_t i) const;

  DType dtype_ = DType::kF32;
  std::vector<std::int64_t> shape_ = {0};
  std::int64_t count_ = 0;
  std::shared_ptr<std::byte[]> bytes_;  // shared, and const to everyone but make()
};

/// Product of `shape`; throws Error kTooLarge when negative, or beyond 2^40 elements.
std::int64_t checked_element_count(std::span<const std::int64_t> shape);

}  // namespace hone
