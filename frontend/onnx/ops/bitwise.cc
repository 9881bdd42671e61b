// Integers as bits.
#include <fmt/format.h>

#include "frontend/onnx/ops.h"
#include "ir/ops/ops.h"

namespace hone::onnx {

namespace {

std::vector<Val> import_bit_shift(const ImportNode& node) {
  const std::string direction = node.text("direction", "");
  node.require(direction == "LEFT" or direction == "RIGHT", Code::kBadAttribute, fmt::format("direction = \"{}\"", direction));
  return {(direction == "LEFT" ? op::shift_left : op::shift_right)(node.x(0), node.x(1))};
}

std::vector<Val> import_bit_cast(const ImportNode& node) {
  const Val x = node.x(0);
  const DType to = node.dtype("to");
  return {x.dtype() == to ? x : op::bit_cast(x, {kTo = to})};
}

constinit const Importer kBitwiseOps[] = {
    {"BitShift", import_bit_shift},
    {"BitCast", import_bit_cast},
};

}  // namespace

std::span<const Importer> bitwise_importers() { return kBitwiseOps; }

}  // namespace hone::onnx
