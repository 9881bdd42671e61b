#include "backends/suit_products.h"

#include <fmt/format.h>

#include <algorithm>

#include "ir/op.h"
#include "ir/ops/ops.h"

namespace hone {

namespace {

/// Shorter rows, and products of fewer terms, are not worth a copy of a factor.
constexpr std::int64_t kShortest = 64;

/// `x` with zeros behind it on the axis, up to `extent`. Where that is the last one, what lies below reshapes that keep rows as they are is lengthened, so that all who do have one copy.
Val padded(Val x, std::size_t axis, Dim extent) {
  const Graph& graph = x.builder().graph();
  const bool is_last = axis + 1 == x.rank();
  Val source = x;
  while (is_last and graph.is_op(source.id(), op::reshape)) {
    const Val below(x.builder(), graph.producer(source.id()).operands[0]);
    if (below.rank() == 0 or below.shape().back() != x.shape().back()) break;
    source = below;
  }
  const auto longer = [&](Val value, std::size_t at) {
    Shape sizes = value.shape();
    sizes[at] = extent;
    return sizes;
  };
  const Val made = op::pad(source, {kStarts = Shape(source.rank(), Dim(0)), kSizes = longer(source, is_last ? source.rank() - 1 : axis), kSteps = Ints(source.rank(), 1)});
  return source.id() == x.id() ? made : reshape(made, longer(x, axis));
}

/// y^T = op(b)^T op(a)^T.
bool make_transposed(Rewriter& rewriter, NodeId id, const Target& target, PassLog* log) {
  const Graph& graph = rewriter.old();
  const Node& node = graph.node(id);
  if (*node.op != op::transpose or not graph.is_op(node.operands[0], op::matmul) or rewriter.uses(node.operands[0]) != 1) return false;
  Ints perm = node.attrs[kPerm];
  std::swap(perm[perm.size() - 1], perm[perm.size() - 2]);
  const Node& product = graph.producer(node.operands[0]);
  if (not std::ranges::is_sorted(perm) or target.row_multiple(graph, graph.value(node.operands[0]).producer) == 0) return false;
  Attrs attrs = product.attrs;
  attrs.set(kTransA = not product.attrs[kTransB]);
  attrs.set(kTransB = not product.attrs[kTransA]);
  const Builder::Scope scope(rewriter.builder(), product.loc, product.part);
  rewriter.replace(node.results[0], op::matmul(rewriter.operand(product, 1), rewriter.operand(product, 0), attrs));
  if (log != nullptr) log->tell(fmt::format("{:<18} is wanted transposed, and made so; {}", product.op->name, to_string(product.loc)));
  return true;
}

bool lengthen(Rewriter& rewriter, NodeId id, const Target& target, PassLog* log) {
  const Node& node = rewriter.node(id);
  if (*node.op != op::matmul) return false;
  const std::int64_t multiple = target.row_multiple(rewriter.old(), id);
  if (multiple <= 1) return false;
  Val a = rewriter.operand(node, 0), b = rewriter.operand(node, 1);
  const bool ta = node.attrs[kTransA], tb = node.attrs[kTransB];
  const std::size_t last_a = a.rank() - 1, last_b = b.rank() - 1;
  const std::size_t m_of_a = last_a - (ta ? 0 : 1), k_of_a = last_a - (ta ? 1 : 0), k_of_b = last_b - (tb ? 0 : 1), n_of_b = last_b - (tb ? 1 : 0);
  const Dim m = a.shape()[m_of_a], n = b.shape()[n_of_b], k = a.shape()[k_of_a];
  const auto is_long = [](const Dim& extent) { return not extent.is_constant() or extent.value() >= kShortest; };
  if (not is_long(m) or not is_long(n) or not is_long(k)) return false;
  const auto is_odd = [&](const Dim& extent) { return extent.is_constant() and extent.value() % multiple != 0; };
  const auto longer = [&](const Dim& extent) { return Dim((extent.value() + multiple - 1) / multiple * multiple); };
  const bool longer_m = is_odd(m) and ta, longer_n = is_odd(n), longer_k = is_odd(k) and (not ta or tb);  // where they are rows' lengths
  if (not longer_m and not longer_n and not longer_k) return false;
  if (longer_m) a = padded(a, m_of_a, longer(m));
  if (longer_n) b = padded(b, n_of_b, longer(n));
  if (longer_k) a = padded(a, k_of_a, longer(k)), b = padded(b, k_of_b, longer(k));
  Val y = op::matmul(a, b, node.attrs);
  if (longer_m) y = part_of(y, y.rank() - 2, 0, m);
  if (longer_n) y = part_of(y, y.rank() - 1, 0, n);
  rewriter.replace(node.results[0], y);
  if (log != nullptr) log->tell(fmt::format("{:<18} of {} and {}: rows become longer, to multiples of {} elements; {}", node.op->name, to_string(rewriter.old().type(node.operands[0])), to_string(rewriter.old().type(node.operands[1])), multiple, to_string(node.loc)));
  return true;
}

}  // namespace

Changed suit_products(Graph& graph, const Target& target, PassLog* log) {
  const Changed inside = Rewriter::in_bodies(graph, [&](Graph& body) { return suit_products(body, target, log); });
  const auto run = [&](auto rewrite) {
    const Changed changed = Rewriter::rewrite(graph, [&](Rewriter& rewriter, NodeId id) { return rewrite(rewriter, id, target, log); });
    if (changed == Changed::kYes) (void)Rewriter::drop_unused(graph);  // because products and reshapes that nobody reads any more are still there
    return changed;
  };
  const Changed turned = run(make_transposed), lengthened = run(lengthen);
  return inside | turned | lengthened;
}

}  // namespace hone
