// Size: a polynomial over a kernel's size arguments. Strides and extents are Sizes, because the emitter must know how to compute them.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <vector>

#include "base/dims.h"

namespace hone {

class Size {
 public:
  /// Product of arguments (their numbers, sorted, with repetition) -> coefficient; none is 0.
  using Terms = std::map<std::vector<std::uint32_t>, std::int64_t>;

  Size(std::int64_t value = 0);  // NOLINT: a number is a size
  /// `dim` is a number or one of `arguments`.
  static Size of(const Dim& dim, std::span<const Dim> arguments);

  bool is_constant() const { return terms_.empty() or (terms_.size() == 1 and terms_.begin()->first.empty()); }
  bool is_constant(std::int64_t value) const { return is_constant() and this->value() == value; }
  /// The number; only when is_constant().
  std::int64_t value() const { return terms_.empty() ? 0 : terms_.begin()->second; }
  const Terms& terms() const { return terms_; }

  friend Size operator+(const Size& a, const Size& b);
  friend Size operator*(const Size& a, const Size& b);
  friend bool operator==(const Size& a, const Size& b) = default;

 private:
  Terms terms_;
};

}  // namespace hone
