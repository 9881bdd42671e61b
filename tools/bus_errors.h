// Mapped files that somebody shortens while they are read.
#pragma once

#include <string_view>

namespace hone {

/// Looking at what a mapped file no longer has, or the disk cannot read, is a signal, SIGBUS, and no error of a call: from now on it is said like any other file that cannot be read (HN-0402 with the file's name), and the process ends
/// at once, with that exit code. Anything else that the signal tells ends the process as before. For tools alone: signals come to a whole process, which is the user's where Hone is a library. `tool`: "hone-run", for the message.
void say_bus_errors(std::string_view tool);

}  // namespace hone
