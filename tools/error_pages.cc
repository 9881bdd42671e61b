#include "tools/error_pages.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "base/embedded_file.h"
#include "base/text.h"

namespace hone {

std::span<const EmbeddedFile> embedded_error_pages();  // made by hone_embed()

namespace {

constexpr std::size_t kMostHints = 3;

ErrorPage page_of(const EmbeddedFile& file) {
  const std::string_view first_line = file.text.substr(0, file.text.find('\n'));
  const std::size_t colon = first_line.find(": ");
  return {.code = file.name.substr(0, file.name.find('.')), .title = colon == std::string_view::npos ? first_line : first_line.substr(colon + 2), .text = file.text};
}

/// "hn-107" and "107" as "HN-0107"; what is no number stays.
std::string code_of(std::string_view word) {
  std::string_view digits = word;
  if (lower_case(word).starts_with("hn-")) digits.remove_prefix(3);
  if (digits.empty() or digits.size() > 4 or digits.find_first_not_of("0123456789") != std::string_view::npos) return std::string(word);
  return fmt::format("HN-{:0>4}", digits);
}

const ErrorPage& find_page(std::string_view word, std::string_view tool) {
  const std::span<const ErrorPage> pages = error_pages();
  const std::string code = code_of(word);
  if (const auto found = std::ranges::find(pages, code, &ErrorPage::code); found != pages.end()) return *found;
  std::vector<std::string> codes;
  for (const ErrorPage& page : pages) codes.emplace_back(page.code);
  throw Error(Code::kUsage, fmt::format("--explain {}: there is no such error code", quoted(word)), {},
              {did_you_mean(code, codes), fmt::format("{} --explain codes lists them all", tool)});
}

}  // namespace

std::span<const ErrorPage> error_pages() {
  static const std::vector<ErrorPage> pages = [] {
    std::vector<ErrorPage> made;
    for (const EmbeddedFile& file : embedded_error_pages()) made.push_back(page_of(file));
    std::ranges::sort(made, {}, &ErrorPage::code);
    return made;
  }();
  return pages;
}

std::string explain_codes(std::string_view asked, std::string_view tool) {
  std::string text;
  if (asked == "codes") {
    for (const ErrorPage& page : error_pages()) text += fmt::format("{}  {}\n", page.code, page.title);
    return text;
  }
  for (const std::string& word : split(asked, ',')) text += (text.empty() ? "" : "\n") + std::string(find_page(trim(word), tool).text);
  return text;
}

std::string hint_of_pages(const Error& error, std::string_view tool) {
  std::vector<std::string> codes;
  for (const Diag& diag : error.diags())
    if (const std::string code = to_string(diag.code); std::ranges::find(codes, code) == codes.end() and codes.size() < kMostHints) codes.push_back(code);
  return fmt::format("\n  more: {} --explain {}", tool, join(codes, ","));
}

}  // namespace hone
