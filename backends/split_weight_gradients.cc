#include "backends/split_weight_gradients.h"

#include <fmt/format.h>

#include "ir/op.h"
#include "ir/ops/ops.h"

namespace hone {

namespace {

bool split(Rewriter& rewriter, NodeId id, const Target& target, PassLog* log) {
  const Node& node = rewriter.node(id);
  const std::int64_t count = target.parts_of_weight_gradient(rewriter.old(), id);
  if (count <= 1) return false;
  Attrs attrs = node.attrs;
  attrs.set(kParts = count);
  const Val parts = op::conv_weight_grad_parts(rewriter.mapped(node.operands[0]), rewriter.mapped(node.operands[1]), attrs);
  Val sum;
  for (std::int64_t i = 0; i < count; ++i) {
    const Val part = part_of(parts, 0, i, 1);
    sum = i == 0 ? part : sum + part;
  }
  const Shape& shape = rewriter.old().type(node.results[0]).shape;
  Shape outputs_last(shape.begin() + 1, shape.end());
  outputs_last.push_back(shape[0]);
  Ints perm = {static_cast<std::int64_t>(shape.size()) - 1};
  for (std::int64_t axis = 0; axis + 1 < static_cast<std::int64_t>(shape.size()); ++axis) perm.push_back(axis);
  rewriter.replace(node.results[0], transpose(reshape(sum, outputs_last), perm));
  if (log != nullptr) log->tell(fmt::format("{:<18} of {} samples part by part, of which there are {}, so that a thread sums up what it has made itself; {}", node.op->name, rewriter.old().type(node.operands[1]).shape[0].text(), count, to_string(node.loc)));
  return true;
}

}  // namespace

Changed split_weight_gradients(Graph& graph, const Target& target, PassLog* log) {
  const Changed inside = Rewriter::in_bodies(graph, [&](Graph& body) { return split_weight_gradients(body, target, log); });
  return inside | Rewriter::rewrite(graph, [&](Rewriter& rewriter, NodeId id) { return split(rewriter, id, target, log); });
}

}  // namespace hone
