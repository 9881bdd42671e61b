#include "base/patterns.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "base/diag.h"
#include "base/text.h"

namespace hone {

namespace {

/// The pattern with "*" before, behind, or around it, whichever matches a name first; "" if none does.
std::string wider_pattern(std::string_view pattern, std::span<const std::string> names) {
  if (pattern.empty()) return "";
  for (const char* form : {"*{}", "{}*", "*{}*"}) {
    std::string wider = fmt::format(fmt::runtime(form), pattern);
    if (std::ranges::any_of(names, [&](const std::string& name) { return glob_match(wider, name); })) return wider;
  }
  return "";
}

}  // namespace

bool matches_name(std::string_view pattern, std::string_view name) { return name == pattern or glob_match(pattern, name); }

bool matches_any(std::span<const std::string> patterns, std::string_view name) {
  return std::any_of(patterns.begin(), patterns.end(), [&](const std::string& pattern) { return matches_name(pattern, name); });
}

void refuse_pattern(std::string_view key, std::string_view pattern, std::string_view what, std::string_view title, std::span<const std::string> names) {
  std::vector<std::string> notes;
  if (const std::string wider = wider_pattern(pattern, names); not wider.empty()) notes.push_back(fmt::format("did you mean {}? A pattern means whole names", quoted(wider)));
  else if (std::string hint = did_you_mean(pattern, names); not hint.empty()) notes.push_back(std::move(hint));
  notes.push_back(fmt::format("{}: {}", title, names.empty() ? "there are none" : quoted_list(names)));
  throw Error(Code::kRecipeModel, fmt::format("{}: {} matches no {}", key, quoted(pattern), what), {}, std::move(notes));
}

}  // namespace hone
