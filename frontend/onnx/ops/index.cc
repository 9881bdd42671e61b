// Gathering, scattering, and what is computed from positions.
#include "frontend/onnx/ops.h"
#include "ir/ops/ops.h"

namespace hone::onnx {

std::span<const Importer> index_importers() {
  return {};
}

}  // namespace hone::onnx
