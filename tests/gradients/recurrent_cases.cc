// Recurrent layers.
#include "tests/gradients/gradient_cases.h"

namespace hone::test {

void add_recurrent_cases(GradientCases&) {}

}  // namespace hone::test
