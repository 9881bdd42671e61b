// Losses.
#include "tests/gradients/gradient_cases.h"

namespace hone::test {

void add_loss_cases(GradientCases&) {}

}  // namespace hone::test
