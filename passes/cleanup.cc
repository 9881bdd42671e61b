#include <fmt/format.h>

#include <map>

#include "ir/kernel/interpret.h"
#include "ir/ops/ops.h"
#include "ir/ops/random.h"
#include "passes/passes.h"

namespace hone {

Changed eliminate_dead_code(Graph& graph) { return Rewriter::drop_unused(graph); }

Changed eliminate_common_subexpressions(Graph& graph) {
  std::map<std::string, std::vector<ValueId>> seen;
  return Rewriter::rewrite(graph, [&](Rewriter& rewriter, NodeId id) {
    const Node& node = rewriter.node(id);
    if (not node.bodies.empty() or node.op->collective) return false;
    std::string key = fmt::format("{} {}", node.op->name, node.attrs.text());
    for (const ValueId operand : node.operands) key += fmt::format(" {}", rewriter.mapped(operand).id().index);
    const auto [found, is_new] = seen.try_emplace(std::move(key), node.results);
    if (is_new) return false;
    for (std::size_t i = 0; i < node.results.size(); ++i) rewriter.replace(node.results[i], rewriter.mapped(found->second[i]));
    return true;
  });
}

namespace {

constexpr std::int64_t kMostFolded = 1 << 20;  // elements: a constant larger than this costs more in the plan than it saves

bool fold_known_integers(Rewriter& rewriter, const Node& node) {
  const Value& value = rewriter.old().value(node.results[0]);
  if (node.results.size() != 1 or not value.known or is_float(value.type.dtype) or not is_constant(value.type.shape)) return false;
  Ints contents;
  for (const Dim& dim : *value.known) {
    if (not dim.is_constant()) return false;
    contents.push_back(dim.value());
  }
  const Tensor tensor = Tensor::of<std::int64_t>(constant_shape(value.type.shape), std::span<const std::int64_t>(contents));
  rewriter.replace(node.results[0], rewriter.builder().constant(tensor.cast(value.type.dtype)));
  return true;
}

bool fold_node(Rewriter& rewriter, NodeId id) {
  const Node& node = rewriter.node(id);
  if (fold_known_integers(rewriter, node)) return true;
  if (draws(*node.op) or (node.op->scalar == nullptr and node.op->compute == nullptr)) return false;  // what is drawn is no constant, although nothing is read for it
  for (const ValueId result : node.results) {
    const Shape& shape = rewriter.old().type(result).shape;
    if (not is_constant(shape) or element_count(shape).value() > kMostFolded) return false;
  }
  std::vector<Tensor> operands;
  for (const ValueId operand : node.operands) {
    const Tensor* tensor = operand.valid() ? rewriter.builder().graph().constant_of(rewriter.mapped(operand).id()) : nullptr;
    if (tensor == nullptr) return false;
    operands.push_back(*tensor);
  }
  if (not size_arguments(kernel_of(rewriter.old(), id)).empty()) return false;  // depends on a size that is known only when running
  const std::vector<Tensor> results = interpret_node(rewriter.old(), id, operands, {}, Precision::kFloat);
  for (std::size_t i = 0; i < results.size(); ++i) rewriter.replace(node.results[i], rewriter.builder().constant(results[i]));
  return true;
}

}  // namespace

Changed fold_constants(Graph& graph) { return Rewriter::rewrite(graph, fold_node); }

}  // namespace hone
