// All targets that a model can be compiled for.
#pragma once

#include <span>
#include <string_view>

#include "backends/backend.h"

namespace hone {

std::span<const Backend* const> all_backends();

/// Throws Error kUsage for a name that is none.
const Backend& find_backend(std::string_view name);

}  // namespace hone
