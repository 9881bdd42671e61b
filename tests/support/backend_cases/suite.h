// The suite as a whole: which cases are held to less than their outputs, and how many pass.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "tests/support/backend_cases/backend_case.h"

namespace hone::test {

/// A case that need not give the outputs that the suite has, and what it is held to instead.
struct Exception {
  enum class Held {
    kRefused,  ///< an Error
    kRandom,   ///< the outputs' types and shapes; where an element is 0 on neither side, its value
    kFailing,  ///< nothing, but that it does not pass: else the row must go
  };
  std::string_view cases;  ///< a pattern
  Held held;
  std::string_view reason;
};
std::span<const Exception> backend_exceptions();

struct Tally {
  int passed = 0, fixed = 0, excepted = 0, unsupported = 0;
  Tally& operator+=(const Tally& other);
  std::string text() const;  ///< "1700 of 1802 backend cases pass (...); ..."
};

/// Expects, by EXPECT, that each of `names` passes, is excepted rightly, or needs an operator that is not there. HONE_CASES or HONE_LIST set: prints
/// what is not there.
Tally expect_cases_pass(std::span<const std::string> names, const RunModel& run);

}  // namespace hone::test
