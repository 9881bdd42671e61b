// Names of files that a command writes: a slip must not cost what it reads.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace hone {

/// Throws Error kUsage where `path`, which `flag` names, is one of the files that the command reads: it would be lost. Their names may have "*" and "?".
void check_is_no_input(std::string_view flag, const std::string& path, std::span<const std::string> inputs);

}  // namespace hone
