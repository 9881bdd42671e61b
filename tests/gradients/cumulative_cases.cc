// Running sums and products.
#include "tests/gradients/gradient_cases.h"

namespace hone::test {

void add_cumulative_cases(GradientCases&) {}

}  // namespace hone::test
