// The kernels of recorded models as a GPU's assembler sees them.
#pragma once

#include <string>

namespace hone::test {

/// Compiles the model for GPUs and expects ptxas to take all kernels for every kind of GPU that Hone is for, and to find registers for all their values on those that are given them.
/// Skips without ptxas.
void expect_assembles_without_spills(const std::string& model);

}  // namespace hone::test
