// Resampling, regions of interest, and space to depth.
#include "tests/gradients/gradient_cases.h"

namespace hone::test {

void add_spatial_cases(GradientCases&) {}

}  // namespace hone::test
