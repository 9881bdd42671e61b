// Fourier transforms.
#include "tests/gradients/gradient_cases.h"

namespace hone::test {

void add_signal_cases(GradientCases& cases) {
  (void)cases;
}

}  // namespace hone::test
