// Attention and what goes with it.
#include "tests/gradients/gradient_cases.h"

namespace hone::test {

void add_attention_cases(GradientCases& cases) {
  (void)cases;
}

}  // namespace hone::test
