// What every driver must do, in cases that run unchanged on each: a case is what one replica does, and all run it at the same time.
#pragma once

#include <functional>
#include <span>
#include <string>

#include "runtime/collective/communicator.h"

namespace hone::test {

struct ConformanceCase {
  std::string name;
  /// Returns what is wrong, or nothing.
  std::function<std::string(Communicator&)> run;
};

/// For any number of replicas.
std::span<const ConformanceCase> conformance_cases();

}  // namespace hone::test
