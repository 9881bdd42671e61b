#include "base/patterns.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "base/diag.h"
#include "base/text.h"

namespace hone {

bool matches_name(std::string_view pattern, std::string_view name) { return name == pattern or glob_match(pattern, name); }

bool matches_any(std::span<const std::string> patterns, std::string_view name) {
  return std::any_of(patterns.begin(), patterns.end(), [&](const std::string& pattern) { return matches_name(pattern, name); });
}

void refuse_pattern(std::string_view key, std::string_view pattern, std::string_view what, std::string_view title, std::span<const std::string> names) {
  std::vector<std::string> notes;
  if (std::string hint = did_you_mean(pattern, names); not hint.empty()) notes.push_back(std::move(hint));
  notes.push_back(fmt::format("{}: {}", title, quoted_list(names)));
  throw Error(Code::kRecipeModel, fmt::format("{}: {} matches no {}", key, quoted(pattern), what), {}, std::move(notes));
}

}  // namespace hone
