// Arithmetic on sizes that came from a file: what does not fit throws kTooLarge instead of wrapping around.
#pragma once

#include <concepts>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "base/diag.h"

namespace hone {

namespace detail {
[[noreturn]] inline void size_overflow(std::string_view what) {
  throw Error(Code::kTooLarge, std::string(what) + " are larger than any machine can address", {}, {"the sizes in the file are damaged or made up"});
}
}  // namespace detail

/// a + b; `what` names the result in the message.
template <std::integral T>
T checked_add(T a, T b, std::string_view what) {
  T result{};
  if (__builtin_add_overflow(a, b, &result)) detail::size_overflow(what);
  return result;
}

/// a * b; `what` names the result in the message.
template <std::integral T>
T checked_multiply(T a, T b, std::string_view what) {
  T result{};
  if (__builtin_mul_overflow(a, b, &result)) detail::size_overflow(what);
  return result;
}

/// `value` as a To; `what` names it in the message.
template <std::integral To, std::integral From>
To checked_cast(From value, std::string_view what) {
  To result{};
  if (__builtin_add_overflow(value, From{0}, &result)) detail::size_overflow(what);
  return result;
}

}  // namespace hone
