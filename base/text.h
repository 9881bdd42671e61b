// Text as people read and type it: nearest names, name patterns, sizes, durations, quoting of what came from a file.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace hone {

/// Insertions, deletions, replacements and swaps of neighbours that turn `a` into `b`.
std::size_t edit_distance(std::string_view a, std::string_view b);
/// The candidate most like `word`, or nothing when none is like it (more than about a third of its letters differ). Case
/// differences count little, and a name that begins with the word ("ema" of "ema_decay") is like it; the first of equals wins.
std::optional<std::string> nearest(std::string_view word, std::span<const std::string> candidates);
/// "did you mean "epochs"?", or empty when no candidate is like `word`.
std::string did_you_mean(std::string_view word, std::span<const std::string> candidates);

/// Does all of `text` match `pattern`? "*" stands for any characters, also none and also "." and "/", "?" for one.
bool glob_match(std::string_view pattern, std::string_view text);

/// "999 B", "1.5 KiB", "2 GiB": three digits at most.
std::string human_bytes(std::uint64_t bytes);
/// "850 us", "12.3 ms", "4.56 s", "3m 20s", "2h 05m", "3d 04h".
std::string human_duration(double seconds);
/// "4GiB", "1.5 MB", "2048", "512k": a number and B, kB, MB, GB, TB (powers of 1000) or K, KiB, ... (powers of 1024; a lone letter is
/// binary too), in any case. Nothing when it is something else, negative or beyond 2^63.
std::optional<std::uint64_t> parse_bytes(std::string_view text);
/// "60s", "1.5m", "2h", "100ms", "30": seconds. Nothing when it is something else.
std::optional<double> parse_duration(std::string_view text);

/// `text` in double quotes for a message: control characters, quotes, backslashes and broken UTF-8 as \n, \", \\, \x1b; cut
/// in the middle with "..." beyond `longest` bytes. Names from files are never printed any other way.
/// An object, not a function: with one, `quoted(a_std_string)` would also find std::quoted wherever <iomanip> is included.
struct Quote {
  std::string operator()(std::string_view text, std::size_t longest = 200) const;
};
inline constexpr Quote quoted;
/// As `quoted`, without the quotes.
std::string printable(std::string_view text, std::size_t longest = 200);

/// "[60000,784]"; "[]" for a scalar.
std::string shape_text(std::span<const std::int64_t> shape);

/// The pieces between separators, empty ones too: "a,,b" -> "a", "", "b"; "" -> "".
std::vector<std::string> split(std::string_view text, char separator);
std::string join(std::span<const std::string> pieces, std::string_view separator);
/// Without blanks, tabs and line ends at both ends.
/// The pieces in double quotes with commas between.
std::string quoted_list(std::span<const std::string> pieces);
std::string_view trim(std::string_view text);
/// ASCII only.
std::string lower_case(std::string_view text);

}  // namespace hone
