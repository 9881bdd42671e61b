// Softmax and batch normalization.
#include <fmt/format.h>

#include "frontend/onnx/ops.h"
#include "frontend/onnx/versions.h"
#include "ir/ops/ops.h"

namespace hone::onnx {

namespace {

/// Old versions took the softmax over all axes from `axis` on, as one.
std::vector<Val> import_softmax(const ImportNode& node, const OpDef& op) {
  const Val x = node.x(0);
  if (x.rank() == 0) return {reshape(op(reshape(x, {1}), {kAxis = 0}), {})};
  const std::size_t axis = node.axis(node.integer("axis", -1), x.rank());
  if (not node.flag(kOverAllAxesFrom, false) or axis + 1 == x.rank()) return {op(x, {kAxis = static_cast<std::int64_t>(axis)})};
  const auto middle = x.shape().begin() + static_cast<std::ptrdiff_t>(axis);
  const Val matrix = reshape(x, {element_count(Shape(x.shape().begin(), middle)), element_count(Shape(middle, x.shape().end()))});
  return {reshape(op(matrix, {kAxis = 1}), x.shape())};
}

/// Always `batch_norm`: whether it trains with the batch's own statistics is the recipe's choice, not the export mode's. Running statistics that are
/// results of the node are those that came in.
std::vector<Val> import_batch_norm(const ImportNode& node) {
  const std::vector<Val> operands = node.rest(0);
  node.require(operands.size() == 5, Code::kBadGraph, fmt::format("has {} inputs, and needs 5", operands.size()));
  const Val y = op::batch_norm.build(operands, {kEpsilon = node.real("epsilon", 1e-5), kMomentum = node.real("momentum", 0.9)});
  for (std::size_t i = 3; i < node.result_count(); ++i)
    if (node.wants(i)) node.fail(Code::kUnknownOp, fmt::format("its result {} (a batch statistic) cannot be used", i));
  return {y, operands[3], operands[4]};
}

constinit const Importer kRows[] = {
    {"Softmax", [](const ImportNode& node) { return import_softmax(node, op::softmax); }},
    {"LogSoftmax", [](const ImportNode& node) { return import_softmax(node, op::log_softmax); }},
    {"BatchNormalization", import_batch_norm, {1, 2, 3, 4}},
};

}  // namespace

std::span<const Importer> normalization_importers() { return kRows; }

}  // namespace hone::onnx
