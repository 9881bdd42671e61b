// Quantization.
#include "frontend/onnx/ops.h"
#include "ir/ops/ops.h"

namespace hone::onnx {

std::span<const Importer> quantize_importers() {
  return {};
}

}  // namespace hone::onnx
