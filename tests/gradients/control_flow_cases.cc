// If, Loop and Scan.
#include "tests/gradients/gradient_cases.h"

namespace hone::test {

void add_control_flow_cases(GradientCases&) {}

}  // namespace hone::test
