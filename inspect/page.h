// The HTML page: one file with everything in it, which loads nothing and sends nothing.
#pragma once

#include <string>
#include <string_view>

#include "inspect/describe.h"

namespace hone {

// Made of inspect/page by embed.cmake.
extern const std::string_view kPage_html, kPage_style, kPage_script;
extern const std::string_view kPage_style_sha256, kPage_script_sha256;  ///< hexadecimal

/// The page of what describe() gives.
std::string to_html(const Json& description);

/// JSON that may stand in a page's <script>: ASCII without < > &.
std::string json_for_page(const Json& json);

}  // namespace hone
