// Sorting, and elements chosen by their values: as many as the data say.
#include <fmt/format.h>

#include "frontend/onnx/constant_value.h"
#include "frontend/onnx/ops.h"
#include "ir/ops/ops.h"

namespace hone::onnx {

namespace {

/// Host functions take the types that C++ computes with; f16 and bf16 order as f32 does.
Val comparable(Val x) { return x.dtype() == DType::kF16 or x.dtype() == DType::kBF16 ? cast(x, DType::kF32) : x; }

/// The count[1] that an op returns, as a size: a number where it follows from constants, else what it is when running.
Dim size_of(const ImportNode& node, Val count) {
  if (const auto constant = constant_value(node.builder().graph(), count.id())) return constant->int_at(0);
  return node.builder().materialize(count, fmt::format("{}.count.{}", node.loc().node, count.id().index), Builder::Sign::kNotNegative)[0];
}

/// The first `count` rows of a result that is as large as it can become.
Val first_of(Val x, const Dim& count) { return part_of(x, 0, 0, count); }

Val flattened(Val x) { return reshape(x, {element_count(x.shape())}); }

std::vector<Val> import_top_k(const ImportNode& node) {
  const Val x = node.x(0);
  const auto axis = static_cast<std::int64_t>(node.axis(node.integer("axis", -1), x.rank()));
  const Dim k = node.content(1, "K");
  const Val positions = op::arg_top_k(comparable(x), {kAxis = axis, kSizes = Shape{k}, kSmallest = not node.flag("largest", true)});
  return {op::gather_elements(x, positions, {kAxis = axis}), positions};
}

/// The slices along the axis (elements without one) that the condition marks; it may be shorter than the axis.
std::vector<Val> import_compress(const ImportNode& node) {
  const Val x = node.has_attribute("axis") ? node.x(0) : flattened(node.x(0)), condition = node.x(1);
  node.require(condition.rank() == 1, Code::kShape, "the condition must be a vector");
  const auto axis = static_cast<std::int64_t>(node.axis(node.integer("axis", 0), x.rank()));
  const std::vector<Val> marked = op::nonzero_positions.build_all({condition});
  return {op::gather(x, first_of(marked[0], size_of(node, marked[1])), {kAxis = axis})};
}

/// One row of coordinates for each axis.
std::vector<Val> import_nonzero(const ImportNode& node) {
  const Val x = node.x(0);
  Builder& builder = node.builder();
  const std::vector<Val> found = op::nonzero_positions.build_all({flattened(comparable(x))});
  Val rest = first_of(found[0], size_of(node, found[1]));
  const Dim count = rest.shape()[0];
  std::vector<Val> rows(x.rank());
  for (std::size_t i = x.rank(); i-- > 0;) {
    const Val extent = size_value(builder, x.shape()[i], DType::kI64), before = rest / extent;
    rows[i] = reshape(i == 0 ? rest : rest - before * extent, {1, count});
    rest = before;
  }
  if (rows.empty()) return {full(builder, 0, DType::kI64, {0, count})};
  return {op::concat.build(rows, {kAxis = 0})};
}

std::vector<Val> import_unique(const ImportNode& node) {
  const Val x = node.has_attribute("axis") ? node.x(0) : flattened(node.x(0));
  const auto axis = static_cast<std::int64_t>(node.axis(node.integer("axis", 0), x.rank()));
  const std::vector<Val> found = op::unique_positions.build_all({comparable(x)}, {kAxis = axis, kSorted = node.flag("sorted", true)});
  const Dim count = size_of(node, found[3]);
  const Val first = first_of(found[0], count);
  return {op::gather(x, first, {kAxis = axis}), first, found[1], first_of(found[2], count)};
}

std::vector<Val> import_non_max_suppression(const ImportNode& node) {
  std::vector<Val> operands = {node.x(0), node.x(1)};
  for (std::size_t i = 2; i < 5; ++i) operands.push_back(node.has(i) ? node.x(i) : Val());
  const std::vector<Val> found = op::non_max_suppression.build_all(operands, {kCenterBox = node.flag("center_point_box", false)});
  return {first_of(found[0], size_of(node, found[1]))};
}

constinit const Importer kSortOps[] = {
    {"TopK", import_top_k},
    {"Compress", import_compress},
    {"NonZero", import_nonzero},
    {"Unique", import_unique},
    {"NonMaxSuppression", import_non_max_suppression},
};

}  // namespace

std::span<const Importer> sort_importers() { return kSortOps; }

}  // namespace hone::onnx
