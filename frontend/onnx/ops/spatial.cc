// Resizing, grids, regions of interest.
#include "frontend/onnx/ops.h"
#include "ir/ops/ops.h"

namespace hone::onnx {

std::span<const Importer> spatial_importers() {
  return {};
}

}  // namespace hone::onnx
