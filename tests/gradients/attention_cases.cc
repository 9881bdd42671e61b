// Attention and what goes with it.
#include "tests/gradients/gradient_cases.h"

namespace hone::test {

void add_attention_cases(GradientCases&) {}

}  // namespace hone::test
