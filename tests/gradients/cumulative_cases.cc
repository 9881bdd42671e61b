// Running sums and products.
#include "tests/gradients/gradient_cases.h"

namespace hone::test {

void add_cumulative_cases(GradientCases& cases) {
  (void)cases;
}

}  // namespace hone::test
