// Fourier transforms.
#include "tests/gradients/gradient_cases.h"

namespace hone::test {

void add_signal_cases(GradientCases&) {}

}  // namespace hone::test
