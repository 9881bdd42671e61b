#include "ir/scanner.h"

#include <fmt/format.h>

#include <cctype>

#include "base/text.h"

namespace hone {

namespace {
constexpr std::size_t kMostFound = 24;  // characters of what was found in a message

int hex_digit(char c) {
  if (c >= '0' and c <= '9') return c - '0';
  if (c >= 'a' and c <= 'f') return c - 'a' + 10;
  return c >= 'A' and c <= 'F' ? c - 'A' + 10 : -1;
}
}  // namespace

Loc Scanner::loc() {
  skip();
  Loc loc;
  loc.file = file_;
  loc.line = line_;
  return loc;
}

bool Scanner::at_end() {
  skip();
  return at_ == text_.size();
}

bool Scanner::is_word(std::size_t at) const {
  if (at >= text_.size()) return false;
  const auto c = static_cast<unsigned char>(text_[at]);
  if (c == '/' and at + 1 < text_.size() and text_[at + 1] == '/') return false;  // a comment
  return std::isalnum(c) or c == '_' or c == '.' or c == '/' or c == '$';
}

bool Scanner::at(std::string_view token) {
  skip();
  if (text_.substr(at_, token.size()) != token) return false;
  return not std::isalnum(static_cast<unsigned char>(token.back())) or not is_word(at_ + token.size());
}

bool Scanner::take(std::string_view token) {
  if (not at(token)) return false;
  at_ += token.size();
  line_is_empty_ = false;
  return true;
}

bool Scanner::take_on_line(std::string_view token) {
  skip_blanks();
  return rest_of_line().starts_with(token) and take(token);
}

void Scanner::expect(std::string_view token) {
  if (not take(token)) fail_expected(quoted(token));
}

std::string Scanner::word() {
  skip();
  const std::size_t start = at_;
  while (is_word(at_)) ++at_;
  line_is_empty_ = line_is_empty_ and at_ == start;
  return std::string(text_.substr(start, at_ - start));
}

std::string Scanner::string() {
  const Loc start = loc();  // before the quote: blanks and "//" behind it are the text's
  if (not take("\"")) fail_expected("a text in quotes");
  std::string result;
  for (; at_ < text_.size() and text_[at_] != '"' and text_[at_] != '\n'; ++at_) {
    if (text_[at_] != '\\') {
      result += text_[at_];
      continue;
    }
    const char c = ++at_ < text_.size() ? text_[at_] : '\n';
    if (c == 'x' and at_ + 2 < text_.size() and hex_digit(text_[at_ + 1]) >= 0 and hex_digit(text_[at_ + 2]) >= 0) {
      result += static_cast<char>(hex_digit(text_[at_ + 1]) * 16 + hex_digit(text_[at_ + 2]));
      at_ += 2;
      continue;
    }
    switch (c) {
      case 'n': result += '\n'; break;
      case 't': result += '\t'; break;
      case 'r': result += '\r'; break;
      case '"':
      case '\\': result += c; break;
      default: fail("a backslash in quotes stands before n, t, r, x and two hex digits, a quote or a backslash only", start);
    }
  }
  if (at_ == text_.size() or text_[at_] != '"') fail("a text in quotes does not end on its line", start);
  ++at_;
  return result;
}

std::string Scanner::name(std::string_view what) {
  if (at("\"")) return string();
  std::string result = word();
  if (result.empty()) fail_expected(what);
  return result;
}

std::string_view Scanner::raw(std::string_view ends) {
  skip();
  const std::size_t start = at_;
  for (int depth = 0; at_ < text_.size() and text_[at_] != '\n'; ++at_) {
    if (depth == 0 and (ends.find(text_[at_]) != std::string_view::npos or text_.substr(at_, 2) == "//")) break;
    depth += text_[at_] == '(';
    depth -= text_[at_] == ')' and depth > 0;
  }
  line_is_empty_ = false;
  return trim(text_.substr(start, at_ - start));
}

Dim Scanner::dim(std::string_view ends) {
  const Loc where = loc();
  try {
    return Dim::parse(raw(ends));
  } catch (const Error& error) { fail(error.diags()[0].message, where); }
}

std::string_view Scanner::literal() {
  skip();
  const std::size_t start = at_;
  while (at_ < text_.size() and std::string_view(" \t\r\n,[](){}\"").find(text_[at_]) == std::string_view::npos) ++at_;
  line_is_empty_ = false;
  return text_.substr(start, at_ - start);
}

Loc Scanner::trailing_loc() {
  Loc result;
  skip_blanks();
  if (rest_of_line().substr(0, 2) != "//") return result;
  at_ += 2;
  const auto field = [&](std::string_view word, std::string& value) {
    const std::size_t start = at_;
    skip_blanks();
    if (rest_of_line().starts_with(word)) {
      at_ += word.size();
      skip_blanks();
      if (rest_of_line().starts_with('"')) return void(value = string());
    }
    at_ = start;
  };
  field("at", result.node);
  field("of", result.layer);
  field("from", result.derived);
  at_ += rest_of_line().size();
  return result;
}

void Scanner::fail_expected(std::string_view what, std::vector<std::string> notes) {
  const Loc where = loc();
  const std::string_view rest = trim(rest_of_line().substr(0, kMostFound));
  fail(fmt::format("expected {}, found {}", what, at_ == text_.size() ? "the end of the text" : quoted(rest)), where, std::move(notes));
}

void Scanner::fail(std::string message, Loc where, std::vector<std::string> notes) {
  std::erase(notes, "");
  if (notes.empty()) notes.emplace_back("hone-compile MODEL.onnx --emit imported shows how .hir is written");
  throw Error(Code::kBadHir, std::move(message), std::move(where), std::move(notes));
}

void Scanner::skip_blanks() {
  while (at_ < text_.size() and (text_[at_] == ' ' or text_[at_] == '\t' or text_[at_] == '\r')) ++at_;
}

void Scanner::skip() {
  for (;;) {
    skip_blanks();
    if (at_ < text_.size() and text_[at_] == '\n') {
      ++at_;
      ++line_;
      line_is_empty_ = true;
    } else if (text_.substr(at_, 2) == "//") {
      const std::string_view comment = rest_of_line();
      at_ += comment.size();
      if (line_is_empty_ and on_comment_line) on_comment_line(trim(comment.substr(2)));
    } else {
      return;
    }
  }
}

std::string_view Scanner::rest_of_line() const { return text_.substr(at_, text_.find('\n', at_) - at_); }

}  // namespace hone
