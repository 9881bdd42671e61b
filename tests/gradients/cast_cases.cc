// Conversions between element types.
#include "tests/gradients/gradient_cases.h"

namespace hone::test {

void add_cast_cases(GradientCases& cases) {
  (void)cases;
}

}  // namespace hone::test
