// Gathering, scattering, choosing by position.
#include "tests/gradients/gradient_cases.h"

namespace hone::test {

void add_index_cases(GradientCases& cases) {
  (void)cases;
}

}  // namespace hone::test
