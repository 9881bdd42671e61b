#include "frontend/onnx/ops/heads.h"

#include <fmt/format.h>

namespace hone::onnx {

std::int64_t heads_of(const ImportNode& node, std::string_view name) {
  const std::int64_t heads = node.integer(name, 0);
  node.require(heads >= 1, Code::kBadAttribute, fmt::format("operands of three axes need {}: how many heads the last axis has", name));
  return heads;
}

Val split_heads(const ImportNode& node, Val x, std::int64_t heads) {
  node.require(x.rank() == 3, Code::kShape, "needs three axes: [batch, positions, heads * features]");
  const Shape shape = x.shape();
  const Dim features = floordiv(shape[2], heads);
  node.require(not shape[2].is_constant() or features * heads == shape[2], Code::kShape, fmt::format("{} features do not fall into {} heads", shape[2].text(), heads));
  return transpose(reshape(x, {shape[0], shape[1], heads, features}), {0, 2, 1, 3});
}

Val join_heads(Val x) {
  const Shape shape = x.shape();
  return reshape(transpose(x, {0, 2, 1, 3}), {shape[0], shape[2], shape[1] * shape[3]});
}

}  // namespace hone::onnx
