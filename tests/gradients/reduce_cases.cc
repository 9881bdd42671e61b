// Reductions over axes.
#include "tests/gradients/gradient_cases.h"

namespace hone::test {

void add_reduce_cases(GradientCases& cases) {
  (void)cases;
}

}  // namespace hone::test
