// HONE_CHECK: for what only a mistake in Hone itself can make false. What a user can cause is a Diag.
#pragma once

#include <stdexcept>
#include <string>

namespace hone {

/// A mistake in Hone. Tools print it, ask for a report and exit with 70.
class InternalError : public std::logic_error {
 public:
  using std::logic_error::logic_error;
};

[[noreturn]] void internal_error(const char* file, int line, const std::string& message);

}  // namespace hone

/// `message` says in words what does not hold; it is evaluated only on failure.
#define HONE_CHECK(condition, message)                                      \
  do {                                                                      \
    if (not(condition)) ::hone::internal_error(__FILE__, __LINE__, (message)); \
  } while (false)
