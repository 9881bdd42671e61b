// The pages of the error codes, docs/errors/HN-xxxx.md, which are in every tool.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "base/diag.h"

namespace hone {

struct ErrorPage {
  std::string_view code;   ///< "HN-0107"
  std::string_view title;  ///< of its first line
  std::string_view text;   ///< Markdown
};

/// In the order of the codes.
std::span<const ErrorPage> error_pages();

/// What --explain prints: the pages of the codes that are asked for ("HN-0107,hn-108", "107"), or, for "codes", the list of all. Throws Error kUsage for one that there is not, with the nearest.
std::string explain_codes(std::string_view asked, std::string_view tool);

/// A line behind the message of an error: how to get the pages of its codes.
std::string hint_of_pages(const Error& error, std::string_view tool);

}  // namespace hone
