// A variable of the environment that is something else for a while.
#pragma once

#include <cstdlib>
#include <optional>
#include <string>

namespace hone::test {

/// As long as it lives the variable has this value; then the one that it had, or none. Other threads must not read the environment meanwhile.
class ScopedVariable {
 public:
  ScopedVariable(const char* name, const char* value) : name_(name) {
    if (const char* before = std::getenv(name)) before_ = before;
    setenv(name, value, 1);
  }
  ~ScopedVariable() {
    if (before_) setenv(name_, before_->c_str(), 1);
    else unsetenv(name_);
  }
  ScopedVariable(const ScopedVariable&) = delete;
  ScopedVariable& operator=(const ScopedVariable&) = delete;

 private:
  const char* name_;
  std::optional<std::string> before_;
};

}  // namespace hone::test
