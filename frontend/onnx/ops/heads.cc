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

Val turn_pairs(const ImportNode& node, Val x, Val cosine, Val sine) {
  node.require(x.rank() == 4, Code::kShape, "needs three or four axes");
  const Dim features_of_head = x.shape()[3], angles = cosine.shape()[3];
  if (not features_of_head.is_constant())
    node.fail(Code::kDynamic, fmt::format("the features of a head must be known when compiling, and are {}", features_of_head.text()));
  const bool interleaved = node.flag("interleaved", false);
  const std::int64_t all = features_of_head.value(), stated = node.integer("rotary_embedding_dim", 0), turned = stated == 0 ? all : stated, half = turned / 2;
  node.require(turned >= 0 and turned <= all and turned % 2 == 0, Code::kBadAttribute, fmt::format("{} of {} features cannot be turned in pairs", turned, all));
  node.require(not angles.is_constant() or angles.value() == half, Code::kShape, fmt::format("the caches hold {} angles a position, and {} are turned", angles.text(), half));
  const Val first = features(x, 0, half, interleaved ? 2 : 1), second = features(x, interleaved ? 1 : half, half, interleaved ? 2 : 1);
  std::vector<Val> parts = {cosine * first - sine * second, sine * first + cosine * second};
  if (interleaved) {
    Shape single = parts[0].shape(), pairs = x.shape();
    single.push_back(1);
    pairs[3] = turned;
    parts = {reshape(op::concat(reshape(parts[0], single), reshape(parts[1], single), {kAxis = 4}), pairs)};
  }
  if (turned < all) parts.push_back(features(x, turned, all - turned, 1));
  return op::concat.build(parts, {kAxis = 3});
}

}  // namespace hone::onnx
