// Names of files that a command writes: a slip must not cost what it reads.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <utility>

namespace hone {

/// Throws Error kUsage where `path`, which `flag` names, is one of the files that the command reads: it would be lost. Their names may have "*" and "?".
void check_is_no_input(std::string_view flag, const std::string& path, std::span<const std::string> inputs);

/// Throws Error kUsage where two of the flags' paths are one file: the second would be written over the first. An empty one is none.
void check_differ(std::span<const std::pair<std::string_view, std::string>> outputs);

}  // namespace hone
