// Names that a recipe gives, whole or as patterns.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace hone {

/// Is `name` the pattern itself, or matched by it (glob_match)? Names may hold "*", "?" and brackets of their own.
bool matches_name(std::string_view pattern, std::string_view name);
bool matches_any(std::span<const std::string> patterns, std::string_view name);

/// Throws Error kRecipeModel: the pattern under `key` matches no `what`. Its notes: the nearest of `names`, all of them behind `title`.
[[noreturn]] void refuse_pattern(std::string_view key, std::string_view pattern, std::string_view what, std::string_view title, std::span<const std::string> names);

}  // namespace hone
