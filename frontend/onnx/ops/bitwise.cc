// Bitwise logic and shifts.
#include "frontend/onnx/ops.h"
#include "ir/ops/ops.h"

namespace hone::onnx {

std::span<const Importer> bitwise_importers() {
  return {};
}

}  // namespace hone::onnx
