// The kernels of recorded models as a GPU's assembler sees them.
#pragma once

#include <cstdint>
#include <string>

namespace hone::test {

enum class Spills : std::uint8_t {
  kNone,  ///< every kernel finds room for its values in registers
  kAny,
};

/// Compiles the model for GPUs and expects ptxas to take all kernels for every kind of GPU that Hone is for. Skips without ptxas.
void expect_assembles(const std::string& model, Spills spills);

}  // namespace hone::test
