// Normalizations and softmax.
#include "tests/gradients/gradient_cases.h"

namespace hone::test {

void add_normalization_cases(GradientCases& cases) {
  (void)cases;
}

}  // namespace hone::test
