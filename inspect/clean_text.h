// Names from files as one line of text that can be shown anywhere.
#pragma once

#include <string>
#include <string_view>

namespace hone {

/// Valid UTF-8 without characters that do something else than be seen: control characters become their pictures (U+2400 and so on), what is not UTF-8, separators of lines and marks that turn the
/// direction of text U+FFFD.
std::string clean_text(std::string_view text);

/// clean_text() between tags or in an attribute's quotes, of XML and of HTML.
std::string markup_text(std::string_view text);

}  // namespace hone
