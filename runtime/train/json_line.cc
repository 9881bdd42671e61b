#include "runtime/train/json_line.h"

#include <fmt/format.h>

#include <cmath>

namespace hone {

namespace {

/// The bytes of the well-formed UTF-8 character at the start of `text`; 0 if there is none.
std::size_t character_length(std::string_view text) {
  const auto first = static_cast<unsigned char>(text[0]);
  const std::size_t length = first < 0x80 ? 1 : first < 0xc2 ? 0 : first < 0xe0 ? 2 : first < 0xf0 ? 3 : first < 0xf5 ? 4 : 0;
  if (length == 0 or length > text.size()) return 0;
  for (std::size_t i = 1; i < length; ++i)
    if ((static_cast<unsigned char>(text[i]) & 0xc0) != 0x80) return 0;
  const auto second = length > 2 ? static_cast<unsigned char>(text[1]) : 0x80;
  const bool overlong_or_surrogate =
      (first == 0xe0 and second < 0xa0) or (first == 0xed and second >= 0xa0) or (first == 0xf0 and second < 0x90) or (first == 0xf4 and second >= 0x90);
  return length > 2 and overlong_or_surrogate ? 0 : length;
}

}  // namespace

std::string json_string(std::string_view text) {
  std::string result = "\"";
  while (not text.empty()) {
    const char c = text[0];
    const std::size_t length = character_length(text);
    if (c == '"' or c == '\\') result += {'\\', c};
    else if (static_cast<unsigned char>(c) < 0x20) result += fmt::format("\\u{:04x}", static_cast<unsigned>(c));
    else if (length == 0) result += "\\ufffd";
    else result += text.substr(0, length);
    text.remove_prefix(length == 0 ? 1 : length);
  }
  return result + '"';
}

void JsonLine::key(std::string_view name) {
  if (not body_.empty()) body_ += ',';
  body_ += json_string(name);
  body_ += ':';
}

JsonLine& JsonLine::text(std::string_view name, std::string_view value) {
  key(name);
  body_ += json_string(value);
  return *this;
}

JsonLine& JsonLine::integer(std::string_view name, std::int64_t value) {
  key(name);
  body_ += fmt::format("{}", value);
  return *this;
}

JsonLine& JsonLine::boolean(std::string_view name, bool value) {
  key(name);
  body_ += value ? "true" : "false";
  return *this;
}

JsonLine& JsonLine::number(std::string_view name, double value) {
  key(name);
  body_ += std::isfinite(value) ? fmt::format("{}", value) : "null";
  return *this;
}

JsonLine& JsonLine::object(std::string_view name, const JsonLine& value) {
  key(name);
  body_ += value.str();
  return *this;
}

}  // namespace hone
