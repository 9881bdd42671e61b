// Running values: what importers compose linear_recurrence from.
#pragma once

#include "ir/builder.h"

namespace hone {

enum class Move { kForward, kBack };
/// y[i] = x[i - 1] along the axis, or x[i + 1] where it moves back; 0 where there is no such element.
Val moved(Val x, std::size_t axis, Move move);

}  // namespace hone
