// Files that the build puts into a program: hone_embed() of cmake/hone.cmake.
#pragma once

#include <span>
#include <string_view>

namespace hone {

struct EmbeddedFile {
  std::string_view name;  ///< without its folders
  std::string_view text;
};

}  // namespace hone
