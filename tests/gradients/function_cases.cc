// Functions of one operand.
#include "tests/gradients/gradient_cases.h"

namespace hone::test {

void add_function_cases(GradientCases& cases) {
  (void)cases;
}

}  // namespace hone::test
