// Libraries that are loaded when they are used, so that one binary runs with and without them.
#pragma once

#include <span>
#include <string>

namespace hone {

/// The first of the files that can be opened, which is never closed again; null, and in *why what the loader says of the last.
void* open_shared_library(std::span<const char* const> files, std::string* why);

/// Null, and *why, if the library, which messages call `file`, has no function of that name.
void* find_function(void* library, const std::string& file, const char* name, std::string* why);

}  // namespace hone
