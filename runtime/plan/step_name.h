// What a step of a plan runs, as people call it.
#pragma once

#include <string>

#include "runtime/plan/plan.h"

namespace hone {

/// The kernel's symbol, the library's row, the host function, "copy", "all_reduce", "read_sizes", "scan", "while", "branch".
std::string name_of(const plan::Step& step);

}  // namespace hone
