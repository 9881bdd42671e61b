// One JSON object on one line, for logs and --json.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace hone {

/// JsonLine().text("kind", "step").integer("step", 3).number("loss", 0.5).str() is {"kind":"step","step":3,"loss":0.5}
class JsonLine {
 public:
  JsonLine& text(std::string_view key, std::string_view value);
  JsonLine& integer(std::string_view key, std::int64_t value);
  JsonLine& boolean(std::string_view key, bool value);
  /// As few digits as are read back as this number; null for what is not finite, which JSON cannot hold.
  JsonLine& number(std::string_view key, double value);
  JsonLine& object(std::string_view key, const JsonLine& value);
  std::string str() const { return "{" + body_ + "}"; }

 private:
  void key(std::string_view name);
  std::string body_;
};

/// `text` as a JSON string, quotes included; bytes that are not UTF-8 become U+FFFD.
std::string json_string(std::string_view text);

}  // namespace hone
