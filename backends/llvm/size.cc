#include "backends/llvm/size.h"

#include <algorithm>

#include "base/check.h"

namespace hone {

Size::Size(std::int64_t value) {
  if (value != 0) terms_[{}] = value;
}

Size Size::of(const Dim& dim, std::span<const Dim> arguments) {
  if (dim.is_constant()) return dim.value();
  const auto at = std::ranges::find(arguments, dim);
  HONE_CHECK(at != arguments.end(), "size " + dim.text() + " is not among the kernel's arguments");
  Size size;
  size.terms_[{static_cast<std::uint32_t>(at - arguments.begin())}] = 1;
  return size;
}

Size operator+(const Size& a, const Size& b) {
  Size sum = a;
  for (const auto& [product, coefficient] : b.terms_)
    if ((sum.terms_[product] += coefficient) == 0) sum.terms_.erase(product);
  return sum;
}

Size operator*(const Size& a, const Size& b) {
  Size result;
  for (const auto& [left, x] : a.terms_) {
    for (const auto& [right, y] : b.terms_) {
      std::vector<std::uint32_t> product = left;
      product.insert(product.end(), right.begin(), right.end());
      std::ranges::sort(product);
      if ((result.terms_[product] += x * y) == 0) result.terms_.erase(product);
    }
  }
  return result;
}

}  // namespace hone
