// Where things begin in memory and in files.
#pragma once

#include <concepts>
#include <cstddef>
#include <string_view>
#include <type_traits>

#include "base/checked.h"

namespace hone {

/// Every tensor the runtime owns begins at a multiple of this: a cache line, and the widest vector register.
inline constexpr std::size_t kTensorAlignment = 64;

/// The least multiple of `multiple` that is at least `value`; `what` names the sum in the message. Throws kTooLarge.
template <std::integral T>
T round_up(T value, std::type_identity_t<T> multiple, std::string_view what) {
  return checked_add<T>(value, static_cast<T>(multiple - 1), what) / multiple * multiple;
}

}  // namespace hone
