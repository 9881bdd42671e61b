// Einsum and determinants.
#include "frontend/onnx/ops.h"
#include "ir/ops/ops.h"

namespace hone::onnx {

std::span<const Importer> einsum_importers() {
  return {};
}

}  // namespace hone::onnx
