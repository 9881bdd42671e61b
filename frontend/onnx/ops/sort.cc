// Sorting, and positions that depend on values.
#include <fmt/format.h>

#include "frontend/onnx/ops.h"
#include "ir/ops/ops.h"

namespace hone::onnx {

namespace {

/// Host functions take the types that C++ computes with; f16 and bf16 order as f32 does.
Val comparable(Val x) { return x.dtype() == DType::kF16 or x.dtype() == DType::kBF16 ? cast(x, DType::kF32) : x; }

std::vector<Val> import_top_k(const ImportNode& node) {
  const Val x = node.x(0);
  const auto axis = static_cast<std::int64_t>(node.axis(node.integer("axis", -1), x.rank()));
  const Dim k = node.content(1, "K");
  const Val positions = op::arg_top_k(comparable(x), {kAxis = axis, kSizes = Shape{k}, kSmallest = not node.flag("largest", true)});
  return {op::gather_elements(x, positions, {kAxis = axis}), positions};
}

constinit const Importer kRows[] = {
    {"TopK", import_top_k},
};

}  // namespace

std::span<const Importer> sort_importers() { return kRows; }

}  // namespace hone::onnx
