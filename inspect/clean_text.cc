#include "inspect/clean_text.h"

#include <cstdint>

namespace hone {

namespace {

constexpr std::uint32_t kReplacement = 0xFFFD;

void append(std::string& text, std::uint32_t code) {
  if (code < 0x80) {
    text += static_cast<char>(code);
  } else if (code < 0x800) {
    text += static_cast<char>(0xC0 | code >> 6);
    text += static_cast<char>(0x80 | (code & 0x3F));
  } else {
    text += static_cast<char>(code < 0x10000 ? 0xE0 | code >> 12 : 0xF0 | code >> 18);
    if (code >= 0x10000) text += static_cast<char>(0x80 | (code >> 12 & 0x3F));
    text += static_cast<char>(0x80 | (code >> 6 & 0x3F));
    text += static_cast<char>(0x80 | (code & 0x3F));
  }
}

/// Takes one character from the front: its code, or kReplacement for a byte that begins none.
std::uint32_t take(std::string_view& text) {
  const auto first = static_cast<unsigned char>(text[0]);
  const std::size_t length = first < 0x80 ? 1 : first >= 0xC2 and first < 0xE0 ? 2 : first >= 0xE0 and first < 0xF0 ? 3 : first >= 0xF0 and first < 0xF5 ? 4 : 0;
  std::uint32_t code = length < 2 ? first : first & (0x7F >> length);
  bool good = length > 0 and length <= text.size();
  for (std::size_t i = 1; good and i < length; ++i) {
    const auto next = static_cast<unsigned char>(text[i]);
    good = (next & 0xC0) == 0x80;
    code = code << 6 | (next & 0x3F);
  }
  constexpr std::uint32_t kLeast[] = {0, 0, 0x80, 0x800, 0x10000};
  good = good and code >= kLeast[length] and code <= 0x10FFFF and not(code >= 0xD800 and code < 0xE000);
  text.remove_prefix(good ? length : 1);
  return good ? code : kReplacement;
}

std::uint32_t visible(std::uint32_t code) {
  if (code < 0x20) return 0x2400 + code;
  if (code == 0x7F) return 0x2421;
  const bool acts = (code >= 0x80 and code < 0xA0) or (code >= 0x200B and code <= 0x200F) or (code >= 0x2028 and code <= 0x202E) or (code >= 0x2060 and code <= 0x206F) or code == 0xFEFF;
  return acts or (code & 0xFFFE) == 0xFFFE ? kReplacement : code;
}

}  // namespace

std::string clean_text(std::string_view text) {
  std::string clean;
  while (not text.empty()) append(clean, visible(take(text)));
  return clean;
}

std::string markup_text(std::string_view text) {
  std::string safe;
  for (const char c : clean_text(text)) {
    switch (c) {
      case '&': safe += "&amp;"; break;
      case '<': safe += "&lt;"; break;
      case '>': safe += "&gt;"; break;
      case '"': safe += "&quot;"; break;
      case '\'': safe += "&#39;"; break;
      default: safe += c;
    }
  }
  return safe;
}

}  // namespace hone
