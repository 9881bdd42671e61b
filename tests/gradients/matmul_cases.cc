// Matrix products.
#include "tests/gradients/gradient_cases.h"

namespace hone::test {

void add_matmul_cases(GradientCases& cases) {
  (void)cases;
}

}  // namespace hone::test
