#include "frontend/onnx/ops/heads.h"

#include <fmt/format.h>

#include "ir/ops/ops.h"

namespace hone::onnx {

std::int64_t heads_of(const ImportNode& node, std::string_view name) {
  const std::int64_t heads = node.integer(name, 0);
  node.require(heads >= 1, Code::kBadAttribute, fmt::format("operands of three axes need {}: how many heads the last axis has", name));
  return heads;
}

Val split_heads(const ImportNode& node, Val x, std::int64_t heads) {
  node.require(x.rank() == 3, Code::kShape, "needs three axes: [batch, positions, heads * features]");
  const Shape shape = x.shape();
  const Dim width = floordiv(shape[2], heads);
  node.require(not shape[2].is_constant() or width * heads == shape[2], Code::kShape, fmt::format("{} features do not fall into {} heads", shape[2].text(), heads));
  return transpose(reshape(x, {shape[0], shape[1], heads, width}), {0, 2, 1, 3});
}

Val join_heads(Val x) {
  const Shape shape = x.shape();
  return reshape(transpose(x, {0, 2, 1, 3}), {shape[0], shape[2], shape[1] * shape[3]});
}

Val features(Val x, Dim first, Dim count, std::int64_t step) { return part_of(x, x.rank() - 1, first, count, step); }

Val sequence_positions(Builder& builder, Dim count, std::size_t axis) {
  Shape shape(4, Dim(1));
  shape[axis] = count;
  return builder.add(op::iota, {}, {kShape = shape, kAxis = static_cast<std::int64_t>(axis)})[0];
}

}  // namespace hone::onnx
