// The calls of devices' libraries in the programs of recorded models, as far as the libraries can be asked without a device.
#pragma once

#include <string>

namespace hone::test {

/// Compiles the model for GPUs and describes every product and convolution that is a library's, in each of its entries, to cuBLASLt and cuDNN: both take them, and cuDNN has a way to compute each on a GPU
/// that is described to it. Skips where neither library is installed.
void expect_libraries_take(const std::string& model, const std::string& precision = "f32");

}  // namespace hone::test
