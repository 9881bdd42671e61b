// JSON from files that nobody vouches for.
#pragma once

#include <nlohmann/json.hpp>
#include <string_view>

namespace hone {

/// Levels of lists and objects in one another that are read. The library copies, compares and writes values by recursion, so a file of nothing but brackets would use up the stack.
inline constexpr int kJsonDepth = 100;

/// Does `json` open more than `levels` lists and objects in one another? Says nothing of what is no JSON.
inline bool is_nested_deeper(std::string_view json, int levels) {
  int depth = 0;
  bool in_text = false;
  for (std::size_t i = 0; i < json.size(); ++i) {
    const char c = json[i];
    if (in_text) {
      if (c == '\\') ++i;
      else if (c == '"') in_text = false;
    } else if (c == '"') {
      in_text = true;
    } else if (c == '[' or c == '{') {
      if (++depth > levels) return true;
    } else if (c == ']' or c == '}') {
      --depth;
    }
  }
  return false;
}

/// The value that `text` stands for; one that is_discarded() for what is no JSON, or nested more deeply than kJsonDepth.
template <typename Json>
Json parse_untrusted_json(std::string_view text) {
  if (is_nested_deeper(text, kJsonDepth)) return Json(Json::value_t::discarded);
  return Json::parse(text, nullptr, false);
}

}  // namespace hone
