#include "backends/suit_products.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "ir/op.h"
#include "ir/ops/ops.h"

namespace hone {

namespace {

/// Shorter rows, and products of fewer terms, are not worth a copy of a factor.
constexpr std::int64_t kShortest = 64;

/// What `x` shows in another shape, if that has the same rows: so that all who lengthen them have one copy.
Val below_reshape(Val x) {
  const Graph& graph = x.builder().graph();
  if (not graph.is_op(x.id(), op::reshape)) return {};
  const Val below(x.builder(), graph.producer(x.id()).operands[0]);
  return not below.shape().empty() and below.shape().back() == x.shape().back() ? below : Val();
}

/// `x` with zeros behind it on the axis, up to `extent`.
Val padded(Val x, std::size_t axis, Dim extent) {
  Shape sizes = x.shape();
  if (sizes[axis] == extent) return x;
  sizes[axis] = extent;
  if (const Val rows = below_reshape(x); rows.valid() and axis + 1 == sizes.size()) return reshape(padded(rows, rows.shape().size() - 1, extent), sizes);
  return op::pad(x, {kStarts = Shape(sizes.size(), Dim(0)), kSizes = sizes, kSteps = Ints(sizes.size(), 1)});
}

class Suitor {
 public:
  Suitor(const Target& target, PassLog* log) : target_(target), log_(log) {}

  bool visit(Rewriter& rewriter, NodeId id) { return make_transposed(rewriter, id) or lengthen(rewriter, id); }

 private:
  struct Factors {
    Val a, b;
    Attrs attrs;
  };

  /// y^T = op(b)^T op(a)^T.
  bool make_transposed(Rewriter& rewriter, NodeId id) {
    const Graph& graph = rewriter.old();
    const Node& node = graph.node(id);
    if (*node.op != op::transpose or not graph.is_op(node.operands[0], op::matmul) or rewriter.uses(node.operands[0]) != 1) return false;
    Ints perm = node.attrs[kPerm];
    std::swap(perm[perm.size() - 1], perm[perm.size() - 2]);
    const NodeId id_of_product = graph.value(node.operands[0]).producer;
    const Node& product = graph.node(id_of_product);
    if (not std::ranges::is_sorted(perm) or target_.row_multiple(graph, id_of_product) == 0) return false;
    Factors factors = {rewriter.operand(product, 1), rewriter.operand(product, 0), product.attrs};
    factors.attrs.set(kTransA = not product.attrs[kTransB]);
    factors.attrs.set(kTransB = not product.attrs[kTransA]);
    const Builder::Scope scope(rewriter.builder(), product.loc, product.part);
    rewriter.replace(node.results[0], multiply(std::move(factors), target_.row_multiple(graph, id_of_product)));
    if (log_ != nullptr) log_->tell(fmt::format("{:<18} is wanted transposed, and made so; {}", product.op->name, to_string(product.loc)));
    return true;
  }

  bool lengthen(Rewriter& rewriter, NodeId id) {
    const Node& node = rewriter.node(id);
    if (*node.op != op::matmul) return false;
    const std::int64_t multiple = target_.row_multiple(rewriter.old(), id);
    Factors factors = {rewriter.operand(node, 0), rewriter.operand(node, 1), node.attrs};
    if (multiple <= 1 or longer_axes(factors, multiple) == std::array{false, false, false}) return false;
    rewriter.replace(node.results[0], multiply(std::move(factors), multiple));
    if (log_ != nullptr) log_->tell(fmt::format("{:<18} of {} and {}: rows become longer, to multiples of {} elements; {}", node.op->name, to_string(rewriter.old().type(node.operands[0])), to_string(rewriter.old().type(node.operands[1])), multiple, to_string(node.loc)));
    return true;
  }

  static const Dim& extent_of(Val factor, bool transposed, bool inner_is_last) {
    const Shape& shape = factor.shape();
    return shape[shape.size() - (transposed == inner_is_last ? 2 : 1)];
  }

  /// Which of m, n and k are rows' lengths that are no multiples.
  static std::array<bool, 3> longer_axes(const Factors& factors, std::int64_t multiple) {
    const bool ta = factors.attrs[kTransA], tb = factors.attrs[kTransB];
    const Dim &m = extent_of(factors.a, ta, false), &n = extent_of(factors.b, tb, true), &k = extent_of(factors.a, ta, true);
    const auto is_long = [](const Dim& extent) { return not extent.is_constant() or extent.value() >= kShortest; };
    if (not is_long(m) or not is_long(n) or not is_long(k)) return {};
    const auto is_odd = [&](const Dim& extent) { return extent.is_constant() and extent.value() % multiple != 0; };
    return {is_odd(m) and ta, is_odd(n), is_odd(k) and (not ta or tb)};
  }

  static Val multiply(Factors factors, std::int64_t multiple) {
    const auto [longer_m, longer_n, longer_k] = multiple > 1 ? longer_axes(factors, multiple) : std::array{false, false, false};
    const bool ta = factors.attrs[kTransA], tb = factors.attrs[kTransB];
    const Dim m = extent_of(factors.a, ta, false), n = extent_of(factors.b, tb, true);
    const auto longer = [&](Val factor, bool is_wanted, bool is_last) {
      const std::size_t axis = factor.shape().size() - (is_last ? 1 : 2);
      return is_wanted ? padded(factor, axis, (factor.shape()[axis].value() + multiple - 1) / multiple * multiple) : factor;
    };
    factors.a = longer(longer(factors.a, longer_m, ta), longer_k, not ta);
    factors.b = longer(longer(factors.b, longer_n, not tb), longer_k, tb);
    const Val y = op::matmul(factors.a, factors.b, factors.attrs);
    const std::size_t rank = y.shape().size();
    const Val rows = longer_m ? part_of(y, rank - 2, 0, m) : y;
    return longer_n ? part_of(rows, rank - 1, 0, n) : rows;
  }

  const Target& target_;
  PassLog* log_;
};

}  // namespace

Changed suit_products(Graph& graph, const Target& target, PassLog* log) {
  const Changed inside = Rewriter::in_bodies(graph, [&](Graph& body) { return suit_products(body, target, log); });
  Suitor suitor(target, log);
  const Changed changed = Rewriter::rewrite(graph, [&](Rewriter& rewriter, NodeId id) { return suitor.visit(rewriter, id); });
  if (changed == Changed::kYes) (void)Rewriter::drop_unused(graph);
  return inside | changed;
}

}  // namespace hone
