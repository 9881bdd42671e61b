// Sums of products by equation.
#include "tests/gradients/gradient_cases.h"

namespace hone::test {

void add_einsum_cases(GradientCases&) {}

}  // namespace hone::test
