// Random tensors.
#include "frontend/onnx/ops.h"
#include "ir/ops/ops.h"

namespace hone::onnx {

std::span<const Importer> random_importers() {
  return {};
}

}  // namespace hone::onnx
