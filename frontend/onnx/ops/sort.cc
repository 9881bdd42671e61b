// Sorting, and positions that depend on values.
#include "frontend/onnx/ops.h"
#include "ir/ops/ops.h"

namespace hone::onnx {

std::span<const Importer> sort_importers() {
  return {};
}

}  // namespace hone::onnx
