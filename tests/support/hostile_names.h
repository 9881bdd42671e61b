// Names that try to be something else: markup, escapes, ends of strings, paths, half characters, a megabyte.
#pragma once

#include <string>
#include <vector>

namespace hone::test {

/// 200 names, all different, none empty.
std::vector<std::string> hostile_names();

}  // namespace hone::test
