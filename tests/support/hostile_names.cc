#include "tests/support/hostile_names.h"

#include <string_view>

namespace hone::test {

namespace {

using namespace std::string_view_literals;

/// What has been trouble for some format, language or terminal.
constexpr std::string_view kTrouble[] = {
    "\""sv, "'"sv, "\\"sv, "\\\""sv, "\n"sv, "\r\n"sv, "\t"sv, "\0"sv, "a\0b"sv, "\x1b[31mred"sv, "\x7f"sv, "\b\b\b"sv, " "sv, "  two  "sv,
    "\xe2\x80\xa8"sv, "\xe2\x80\xa9"sv, "\xe2\x80\xaegnp.exe"sv, "\xe2\x81\xa6x"sv, "\xef\xbb\xbf"sv, "\xef\xbf\xbe"sv, "\xc2\x85"sv, "\xe2\x80\x8b"sv, "e\xcc\x81"sv, "\xf0\x9f\x90\x88"sv, "\xc3\xa9t\xc3\xa9"sv,
    "\xff"sv, "\xfe\xff"sv, "\x80"sv, "\xe2\x82"sv, "\xc0\xaf"sv, "\xed\xa0\x80"sv, "\xf4\x90\x80\x80"sv, "\xf8\x88\x80\x80\x80"sv, "ab\xc3"sv,
    "</script>"sv, "<script>alert(1)</script>"sv, "<!--"sv, "-->"sv, "<!--<script>"sv, "]]>"sv, "<![CDATA["sv, "<?xml?>"sv, "<img src=x onerror=alert(1)>"sv, "'\"><svg/onload=alert(1)>"sv, "</title>"sv, "</style>"sv,
    "&"sv, "&amp;"sv, "&lt;b&gt;"sv, "&#0;"sv, "&nbsp"sv, "&bomb;"sv, "javascript:alert(1)"sv, "${alert(1)}"sv, "{{7*7}}"sv, "`x`"sv, "*/ alert(1) /*"sv, "// comment"sv, "#!"sv,
    "\",\"a\":1,\"b\":\""sv, "\\u0000"sv, "\\u003c"sv, "__proto__"sv, "constructor"sv, "toString"sv, "hasOwnProperty"sv, "null"sv, "true"sv, "NaN"sv, "-1"sv, "1e999"sv,
    "\\N"sv, "\\G"sv, "\\L"sv, "\\n"sv, "{a|b}"sv, "<port> x"sv, "a -> b;"sv, "];"sv, "}"sv, "digraph {"sv, "subgraph cluster"sv, "<b>html</b>"sv, "label=\"x\""sv,
    "%"sv, "%0"sv, "%s%n"sv, "{}"sv, "{0}"sv, "{:d}"sv, "graph main("sv, ") {"sv, "output \"x\" %0"sv, "alias %0 <- %1"sv, "// backward"sv, "\" at \"x"sv, "// at \"x\" of \"y\""sv, "= elided"sv, "%?"sv,
    "kernel k_0("sv, "define void @f()"sv, "@llvm.trap"sv, ".globl main"sv, ";"sv, "\"\n}\n"sv, "!dbg"sv, "#include"sv, "R\"hone_page("sv, ")hone_page\""sv,
    "/"sv, "//"sv, "."sv, ".."sv, "../../etc/passwd"sv, "a/../b"sv, "/a"sv, "a/"sv, "a.b.c/d.e/f"sv, "C:\\x"sv, "~"sv, "*"sv, "?"sv, "$(touch x)"sv, "; rm -rf x"sv, "|"sv, ">"sv, "-o"sv, "--help"sv,
    "weight"sv, "update"sv, "step"sv, "constant 1"sv, "learning_rate"sv, "loss_sum"sv, " of "sv, "/gradient"sv, "x/m"sv, "N"sv, "n_elements"sv,
};

}  // namespace

std::vector<std::string> hostile_names() {
  constexpr std::size_t kNames = 200, kMegabyte = std::size_t{1} << 20;
  std::vector<std::string> names;
  for (const std::string_view trouble : kTrouble) names.emplace_back(trouble);
  std::string nested;
  for (int i = 0; i < 2000; ++i) nested += "a" + std::to_string(i) + "/";
  names.push_back(std::string(kMegabyte, 'x'));
  names.push_back(std::string(kMegabyte, '"'));
  names.push_back(std::string(100'000, '<'));
  names.push_back(std::string(10'000, '\xff'));
  names.push_back(std::string(5'000, '\0'));
  names.push_back(nested);
  names.push_back(std::string(3'000, '/'));
  names.push_back(std::string(3'000, '.'));
  for (std::size_t i = 0; names.size() < kNames; ++i)  // and two of them together, the one inside of the other
    names.push_back("a" + std::string(kTrouble[i]) + "b" + std::string(kTrouble[(7 * i + 3) % std::size(kTrouble)]) + "c" + std::to_string(i));
  names.resize(kNames);
  return names;
}

}  // namespace hone::test
