// Attention and what belongs to it.
#include "frontend/onnx/ops.h"
#include "ir/ops/ops.h"

namespace hone::onnx {

std::span<const Importer> attention_importers() {
  return {};
}

}  // namespace hone::onnx
