// Fourier transforms and windows.
#include "frontend/onnx/ops.h"
#include "ir/ops/ops.h"

namespace hone::onnx {

std::span<const Importer> signal_importers() {
  return {};
}

}  // namespace hone::onnx
