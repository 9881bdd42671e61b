// The processors that a plan has code for, by their names.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "backends/backend.h"

namespace hone {

inline constexpr std::string_view kNativeLevel = "native";

/// Kinds of processors and of GPUs, kNativeLevel for this machine's processor; of what is named none of, the usual ones. Throws Error kUsage for a name that is none.
CodeLevels code_levels(std::span<const std::string> names);

}  // namespace hone
