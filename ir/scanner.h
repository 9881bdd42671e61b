// Scanner: characters of .hir text into words, names, strings and numbers, with the line for messages.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "base/diag.h"
#include "base/dims.h"

namespace hone {

class Scanner {
 public:
  Scanner(std::string_view text, std::string file) : text_(text), file_(std::move(file)) {}

  /// Told the text, without "//" and blanks, of every comment that stands alone on its line.
  std::function<void(std::string_view)> on_comment_line;

  /// The place of what comes next.
  Loc loc();
  bool at_end();
  /// Does `token` come next? Blanks, line ends and comments are skipped first, here and below.
  bool at(std::string_view token);
  /// Takes `token` if it comes next. One that ends in a letter must not be followed by another one.
  bool take(std::string_view token);
  /// Takes `token` if it comes next on the same line: a comment before it stays.
  bool take_on_line(std::string_view token);
  void expect(std::string_view token);
  /// Letters, digits and "_./$"; empty if none comes next.
  std::string word();
  /// A string with escapes; fails if none comes next.
  std::string string();
  /// A word or a string. `what` says what is expected.
  std::string name(std::string_view what);
  /// Characters up to one of `ends` outside parentheses, or the line's end; without blanks around them.
  std::string_view raw(std::string_view ends);
  /// A size up to one of `ends`.
  Dim dim(std::string_view ends);
  /// What stands before the next blank, bracket, brace, comma or line end: a number or another literal.
  std::string_view literal();
  /// A comment behind what was just read, on the same line: `// at "..." of "..." from "..."`, parts of it. Any other is skipped.
  Loc trailing_loc();

  /// Throws kBadHir: expected `what`, found what comes next.
  [[noreturn]] void fail_expected(std::string_view what, std::vector<std::string> notes = {});
  /// Throws kBadHir at the place `where`.
  [[noreturn]] static void fail(std::string message, Loc where, std::vector<std::string> notes = {});

 private:
  void skip();
  void skip_blanks();
  std::string_view rest_of_line() const;
  bool is_word(std::size_t at) const;

  std::string_view text_;
  std::string file_;
  std::size_t at_ = 0;
  int line_ = 1;
  bool line_is_empty_ = true;  // nothing but blanks was read in this line
};

}  // namespace hone
