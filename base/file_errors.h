// How a failed system call becomes an Error. For those in base that make system calls.
#pragma once

#include <string>

#include "base/diag.h"

namespace hone {

/// "cannot ACTION PATH: REASON" with a way out that fits errno `error`. When something is missing, the notes name what is like it.
Error file_error(Code code, const std::string& action, const std::string& path, int error);

}  // namespace hone
