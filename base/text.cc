#include "base/text.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>

namespace hone {

namespace {

char lower(char c) { return c >= 'A' and c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }
bool is_blank(char c) { return c == ' ' or c == '\t' or c == '\n' or c == '\r'; }

/// A number at the start of `text`, which keeps what follows it, trimmed.
std::optional<double> take_number(std::string_view* text) {
  double number = 0;
  const auto [end, error] = std::from_chars(text->data(), text->data() + text->size(), number, std::chars_format::fixed);
  if (error != std::errc{} or not std::isfinite(number) or number < 0) return std::nullopt;
  *text = trim(text->substr(static_cast<std::size_t>(end - text->data())));
  return number;
}

/// The length of the well-formed UTF-8 character at the start of `text`; 0 if there is none.
std::size_t utf8_length(std::string_view text) {
  const auto first = static_cast<unsigned char>(text[0]);
  const std::size_t length = first < 0x80                     ? 1
                             : first >= 0xc2 and first < 0xe0 ? 2
                             : first >= 0xe0 and first < 0xf0 ? 3
                             : first >= 0xf0 and first < 0xf5 ? 4
                                                              : 0;
  if (length == 0 or length > text.size()) return 0;
  std::uint32_t code = length == 1 ? first : first & (0x7fu >> length);
  for (std::size_t i = 1; i < length; ++i) {
    const auto byte = static_cast<unsigned char>(text[i]);
    if ((byte & 0xc0) != 0x80) return 0;
    code = code << 6 | (byte & 0x3f);
  }
  const bool overlong = (length == 3 and code < 0x800) or (length == 4 and code < 0x10000);
  const bool surrogate = code >= 0xd800 and code < 0xe000;
  return overlong or surrogate or code > 0x10ffff ? 0 : length;
}

/// Characters that would change how a terminal shows the rest: C1 controls, line and paragraph separators, text direction.
bool hides_text(std::string_view character) {
  if (character.size() == 2) return character[0] == '\xc2' and static_cast<unsigned char>(character[1]) < 0xa0;
  if (character.size() != 3) return false;
  const std::string_view start = character.substr(0, 2);
  const auto last = static_cast<unsigned char>(character[2]);
  return (start == "\xe2\x80" and (last == 0xa8 or last == 0xa9 or last == 0x8e or last == 0x8f or (last >= 0xaa and last <= 0xae))) or
         (start == "\xe2\x81" and last >= 0xa6 and last <= 0xa9) or character == "\xef\xbb\xbf";
}

std::string escaped(std::string_view text) {
  std::string result;
  while (not text.empty()) {
    const char c = text[0];
    const std::size_t length = utf8_length(text);
    const std::string_view character = text.substr(0, std::max<std::size_t>(length, 1));
    text.remove_prefix(character.size());
    if (c == '\n') result += "\\n";
    else if (c == '\t') result += "\\t";
    else if (c == '\r') result += "\\r";
    else if (c == '"' or c == '\\') result += std::string("\\") + c;
    else if (length == 0 or static_cast<unsigned char>(c) < 0x20 or c == 0x7f or hides_text(character))
      for (const char byte : character) result += fmt::format("\\x{:02x}", static_cast<unsigned char>(byte));
    else result += character;
  }
  return result;
}

/// The first and the last part of `text`, cut between characters, when it is longer than `longest`.
std::string shortened(std::string_view text, std::size_t longest) {
  if (text.size() <= longest) return escaped(text);
  const auto continues = [&](std::size_t i) { return i < text.size() and (static_cast<unsigned char>(text[i]) & 0xc0) == 0x80; };
  const std::size_t kept = longest > 3 ? longest - 3 : 0;
  std::size_t front = kept - kept / 2;
  std::size_t back = text.size() - kept / 2;
  for (int i = 0; i < 3 and front > 0 and continues(front); ++i) --front;
  for (int i = 0; i < 3 and continues(back); ++i) ++back;
  return escaped(text.substr(0, front)) + "..." + escaped(text.substr(back));
}

/// `number` with three digits at most: "1.5", "12.3", "123".
std::string short_number(double number) {
  std::string text = fmt::format("{:.{}f}", number, number < 9.995 ? 2 : number < 99.95 ? 1 : 0);
  if (text.find('.') != std::string::npos) {
    text.erase(text.find_last_not_of('0') + 1);
    if (text.back() == '.') text.pop_back();
  }
  return text;
}

}  // namespace

std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> before(b.size() + 1), last(b.size() + 1), row(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) last[j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      row[j] = std::min({last[j] + 1, row[j - 1] + 1, last[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1)});
      if (i > 1 and j > 1 and a[i - 1] == b[j - 2] and a[i - 2] == b[j - 1]) row[j] = std::min(row[j], before[j - 2] + 1);
    }
    std::swap(before, last);
    std::swap(last, row);
  }
  return last[b.size()];
}

std::optional<std::string> nearest(std::string_view word, std::span<const std::string> candidates) {
  constexpr std::size_t kLongest = 256;  // nobody types longer names, and the distance takes quadratic time
  if (word.empty() or word.size() > kLongest) return std::nullopt;
  const std::string wanted = lower_case(word);
  const std::string* best = nullptr;
  std::size_t best_score = 0;
  const auto begins_with_the_word = [&](const std::string& candidate) {
    return candidate.size() > word.size() and lower_case(candidate).starts_with(wanted) and (candidate[word.size()] == '_' or candidate[word.size()] == '.');
  };
  for (const std::string& candidate : candidates) {
    if (begins_with_the_word(candidate) and (best == nullptr or best_score > 1)) best = &candidate, best_score = 1;
    const std::size_t allowed = std::max(word.size(), candidate.size()) / 3 + (candidate.size() > 2 ? 0 : 1);
    const std::size_t difference = word.size() > candidate.size() ? word.size() - candidate.size() : candidate.size() - word.size();
    if (candidate.empty() or candidate.size() > kLongest or difference > allowed) continue;
    const std::size_t distance = edit_distance(wanted, lower_case(candidate));
    const std::size_t score = 2 * distance + (edit_distance(word, candidate) > distance ? 1 : 0);
    if (distance > allowed or distance >= std::max(word.size(), candidate.size())) continue;
    if (best == nullptr or score < best_score) best = &candidate, best_score = score;
  }
  return best == nullptr ? std::nullopt : std::optional(*best);
}

std::string did_you_mean(std::string_view word, std::span<const std::string> candidates) {
  const auto similar = nearest(word, candidates);
  return similar ? fmt::format("did you mean {}?", quoted(*similar)) : "";
}

bool glob_match(std::string_view pattern, std::string_view text) {
  std::size_t p = 0, t = 0;
  std::size_t star = std::string_view::npos, star_text = 0;  // the last "*" and how much of the text it has taken so far
  while (t < text.size()) {
    if (p < pattern.size() and pattern[p] == '*') {
      star = p++;
      star_text = t;
    } else if (p < pattern.size() and (pattern[p] == '?' or pattern[p] == text[t])) {
      ++p;
      ++t;
    } else if (star != std::string_view::npos) {
      p = star + 1;
      t = ++star_text;
    } else {
      return false;
    }
  }
  while (p < pattern.size() and pattern[p] == '*') ++p;
  return p == pattern.size();
}

std::string human_bytes(std::uint64_t bytes) {
  constexpr std::array kUnits = {"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
  auto number = static_cast<double>(bytes);
  std::size_t unit = 0;
  while (number >= 999.5 and unit + 1 < kUnits.size()) number /= 1024, ++unit;
  return fmt::format("{} {}", short_number(number), kUnits[unit]);
}

std::string human_duration(double seconds) {
  if (std::isnan(seconds)) return "?";
  if (seconds < 0) return "-" + human_duration(-seconds);
  if (seconds > 1e15) return "forever";
  if (seconds < 999.5e-6) return short_number(seconds * 1e6) + " us";
  if (seconds < 0.9995) return short_number(seconds * 1e3) + " ms";
  if (seconds < 59.95) return short_number(seconds) + " s";
  const auto whole = static_cast<std::int64_t>(std::llround(seconds));
  if (whole < 3600) return fmt::format("{}m {:02}s", whole / 60, whole % 60);
  if (whole < 24 * 3600) return fmt::format("{}h {:02}m", whole / 3600, whole / 60 % 60);
  return fmt::format("{}d {:02}h", whole / 86400, whole / 3600 % 24);
}

std::optional<std::uint64_t> parse_bytes(std::string_view text) {
  text = trim(text);
  const auto number = take_number(&text);
  if (not number) return std::nullopt;
  std::string unit = lower_case(text);
  if (not unit.empty() and unit.back() == 'b') unit.pop_back();
  const bool decimal = unit.size() == 1 and unit.size() + 1 == text.size();  // "MB", not "M" or "MiB"
  const std::string_view powers = " kmgtp";
  const std::size_t power = unit.empty() ? 0 : powers.find(unit[0]);
  if (power == std::string_view::npos or (power == 0 and not unit.empty())) return std::nullopt;
  if (unit.size() > 1 and unit.substr(1) != "i") return std::nullopt;
  const double bytes = *number * std::pow(decimal ? 1000.0 : 1024.0, static_cast<double>(power));
  if (bytes >= 0x1p63) return std::nullopt;
  return static_cast<std::uint64_t>(std::llround(bytes));
}

std::optional<double> parse_duration(std::string_view text) {
  text = trim(text);
  const auto number = take_number(&text);
  if (not number) return std::nullopt;
  struct Unit {
    std::string_view name;
    double seconds;
  };
  constexpr std::array<Unit, 7> kUnits = {{{"", 1}, {"us", 1e-6}, {"ms", 1e-3}, {"s", 1}, {"m", 60}, {"min", 60}, {"h", 3600}}};
  for (const Unit& unit : kUnits)
    if (unit.name == text) return *number * unit.seconds;
  return std::nullopt;
}

std::string Quote::operator()(std::string_view text, std::size_t longest) const { return '"' + shortened(text, longest) + '"'; }
std::string printable(std::string_view text, std::size_t longest) { return shortened(text, longest); }

std::string shape_text(std::span<const std::int64_t> shape) { return fmt::format("[{}]", fmt::join(shape, ",")); }

std::vector<std::string> split(std::string_view text, char separator) {
  std::vector<std::string> pieces;
  for (std::size_t begin = 0;;) {
    const std::size_t end = text.find(separator, begin);
    pieces.emplace_back(text.substr(begin, end - begin));
    if (end == std::string_view::npos) return pieces;
    begin = end + 1;
  }
}

std::string join(std::span<const std::string> pieces, std::string_view separator) { return fmt::format("{}", fmt::join(pieces, separator)); }

std::string quoted_list(std::span<const std::string> pieces) {
  std::string list;
  for (const std::string& piece : pieces) list += (list.empty() ? "\"" : ", \"") + printable(piece) + "\"";
  return list;
}

std::string_view trim(std::string_view text) {
  while (not text.empty() and is_blank(text.front())) text.remove_prefix(1);
  while (not text.empty() and is_blank(text.back())) text.remove_suffix(1);
  return text;
}

std::string lower_case(std::string_view text) {
  std::string result(text);
  std::transform(result.begin(), result.end(), result.begin(), lower);
  return result;
}

}  // namespace hone
