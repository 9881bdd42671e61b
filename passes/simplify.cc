// Algebraic rules. Each is one function from a node to the value that may stand for it; the table names what it says.
#include <algorithm>
#include <optional>

#include "ir/ops/infer.h"
#include "ir/ops/ops.h"
#include "passes/axis_order.h"
#include "passes/pass_log.h"
#include "passes/passes.h"

namespace hone {

namespace {

/// A node being matched: operands are read in the old graph, replacements built in the new one.
struct Match {
  Rewriter& rewriter;
  const Node& node;

  const Graph& old() const { return rewriter.old(); }
  ValueId operand(std::size_t i) const { return node.operands[i]; }
  Val built(std::size_t i) const { return rewriter.operand(node, i); }
  const Type& type(std::size_t i) const { return old().type(operand(i)); }
  const Type& result_type() const { return old().type(node.results[0]); }
  bool is(std::size_t i, const OpDef& op) const { return old().is_op(operand(i), op); }
  const Node& producer(std::size_t i) const { return old().producer(operand(i)); }
  /// Is it a constant whose elements are all this number?
  bool is_number(std::size_t i, double value) const {
    const Tensor* tensor = old().constant_of(operand(i));
    if (tensor == nullptr) return is(i, op::broadcast_to) and old().scalar_constant(producer(i).operands[0]) == value;
    for (std::int64_t k = 0; k < tensor->element_count(); ++k)
      if (tensor->at(k) != value) return false;
    return true;
  }
  Val below(std::size_t i, std::size_t j) const { return rewriter.mapped(producer(i).operands[j]); }
};

using Rule = Val (*)(const Match&);  // an invalid Val: does not apply

Val same_type(const Match& m, std::size_t i) { return m.type(i) == m.result_type() ? m.built(i) : Val{}; }

Val drop_reshape(const Match& m) { return same_type(m, 0); }
Val merge_reshapes(const Match& m) { return m.is(0, op::reshape) ? reshape(m.below(0, 0), m.node.attrs[kShape]) : Val{}; }

Val merge_transposes(const Match& m) { return m.is(0, op::transpose) ? transpose(m.below(0, 0), then(m.producer(0).attrs[kPerm], m.node.attrs[kPerm])) : Val{}; }
Val transpose_of_unit_axes(const Match& m) { return moves_elements(m.type(0).shape, m.node.attrs[kPerm]) ? Val{} : reshape(m.built(0), m.result_type().shape); }

Val drop_cast(const Match& m) { return same_type(m, 0); }
/// Of an input, which lies in memory in its own type: between the two it was widened, which loses nothing. What a node makes may not be rounded yet where it is read.
Val cast_back(const Match& m) {
  if (not m.is(0, op::cast) or not is_float(m.result_type().dtype)) return {};
  const ValueId below = m.producer(0).operands[0];
  const DType narrow = m.old().type(below).dtype, wide = m.type(0).dtype;
  return m.old().input_of(below) != nullptr and narrow == m.result_type().dtype and wide == info(narrow).arithmetic ? m.below(0, 0) : Val{};
}
Val drop_broadcast(const Match& m) { return same_type(m, 0); }
Val merge_broadcasts(const Match& m) { return m.is(0, op::broadcast_to) ? broadcast_to(m.below(0, 0), m.node.attrs[kShape]) : Val{}; }

Val times_one(const Match& m) { return m.is_number(1, 1) ? same_type(m, 0) : m.is_number(0, 1) ? same_type(m, 1) : Val{}; }
Val plus_zero(const Match& m) { return m.is_number(1, 0) ? same_type(m, 0) : m.is_number(0, 0) ? same_type(m, 1) : Val{}; }
Val minus_zero(const Match& m) { return m.is_number(1, 0) ? same_type(m, 0) : Val{}; }
Val over_one(const Match& m) { return m.is_number(1, 1) ? same_type(m, 0) : Val{}; }
Val power_one(const Match& m) { return m.is_number(1, 1) ? same_type(m, 0) : Val{}; }
Val power_two(const Match& m) { return m.is_number(1, 2) and m.type(0) == m.result_type() ? square(m.built(0)) : Val{}; }
Val negate_twice(const Match& m) { return m.is(0, op::neg) ? m.below(0, 0) : Val{}; }
Val stop(const Match& m) { return m.built(0); }

/// Elementwise ops broadcast by themselves: f(broadcast_to(x), y) = f(x, y) where the others still give the result's shape.
Val absorb_broadcast(const Match& m) {
  if (m.node.op->scalar == nullptr or m.node.operands.size() < 2) return {};
  for (std::size_t i = 0; i < m.node.operands.size(); ++i) {
    if (not m.is(i, op::broadcast_to)) continue;
    std::vector<Val> operands;
    bool others_have_shape = false;
    for (std::size_t j = 0; j < m.node.operands.size(); ++j) {
      operands.push_back(i == j ? m.below(i, 0) : m.built(j));
      others_have_shape = others_have_shape or (i != j and m.type(j).shape == m.result_type().shape);
    }
    if (others_have_shape) return m.node.op->build(std::move(operands), m.node.attrs);
  }
  return {};
}

/// Swapping the last two axes of an operand is free in a matmul.
Val absorb_transpose(const Match& m) {
  for (std::size_t i = 0; i < 2; ++i) {
    if (not m.is(i, op::transpose)) continue;
    Ints perm = m.producer(i).attrs[kPerm];
    std::swap(perm[perm.size() - 1], perm[perm.size() - 2]);
    if (not is_identity(perm)) continue;
    Attrs attrs = m.node.attrs;
    const AttrKey<bool>& key = i == 0 ? kTransA : kTransB;
    attrs.set(key = not attrs[key]);
    return i == 0 ? op::matmul(m.below(0, 0), m.built(1), attrs) : op::matmul(m.built(0), m.below(1, 0), attrs);
  }
  return {};
}

/// sum over batches of a^T b, the gradient of a weight that all batches share, is one product whose inner axis runs over all batches.
Val merge_batches_into_inner_axis(const Match& m) {
  if (not m.is(0, op::matmul) or m.rewriter.uses(m.operand(0)) != 1) return {};
  const Node& product = m.producer(0);
  const Shape &a = m.old().type(product.operands[0]).shape, &b = m.old().type(product.operands[1]).shape;
  const std::size_t batches = a.size() - 2;
  const bool same_batches = a.size() == b.size() and std::equal(a.begin(), a.end() - 1, b.begin());
  if (not product.attrs[kTransA] or product.attrs[kTransB] or not same_batches) return {};
  if (batches == 0 or m.node.attrs[kAxes].size() != batches or m.node.attrs[kAxes].back() != static_cast<std::int64_t>(batches) - 1) return {};
  const Dim inner = element_count(Shape(a.begin(), a.end() - 1));
  const Val left = reshape(m.below(0, 0), {inner, a.back()}), right = reshape(m.below(0, 1), {inner, b.back()});
  return reshape(op::matmul(left, right, product.attrs), m.result_type().shape);
}

Val drop_full_slice(const Match& m) {
  const Ints& steps = m.node.attrs[kSteps];
  return std::all_of(steps.begin(), steps.end(), [](std::int64_t step) { return step == 1; }) ? same_type(m, 0) : Val{};
}

/// The one axis along which a pad places its operand, at a distance of 1; nothing if there are several.
std::optional<std::size_t> padded_axis(const Graph& graph, const Node& pad) {
  const Shape &from = graph.type(pad.operands[0]).shape, &to = pad.attrs[kSizes];
  std::optional<std::size_t> axis;
  for (std::size_t i = 0; i < to.size(); ++i) {
    if (pad.attrs[kSteps][i] != 1) return {};
    if (pad.attrs[kStarts][i].is_constant(0) and from[i] == to[i]) continue;
    if (axis) return {};
    axis = i;
  }
  return axis;
}

/// The pads that an add sums up, through adds that nothing else reads; none if there is anything else among them.
std::vector<const Node*> summed_pads(const Match& m) {
  constexpr std::size_t kMost = 64;
  std::vector<const Node*> pads;
  std::vector<ValueId> open = {m.node.results[0]};
  while (not open.empty()) {
    const ValueId value = open.back();
    open.pop_back();
    if (m.old().is_op(value, op::pad)) {
      pads.push_back(&m.old().producer(value));
      continue;
    }
    if (not m.old().is_op(value, op::add) or (value != m.node.results[0] and m.rewriter.uses(value) != 1) or pads.size() + open.size() > kMost) return {};
    const std::vector<ValueId>& operands = m.old().producer(value).operands;
    if (m.old().type(operands[0]) != m.result_type() or m.old().type(operands[1]) != m.result_type()) return {};
    open.insert(open.end(), operands.begin(), operands.end());
  }
  return pads;
}

/// Parts that are put side by side by adding zeros to each: what the gradients of the parts of a split come to.
Val join_pads(const Match& m) {
  std::vector<const Node*> pads = summed_pads(m);
  if (pads.empty()) return {};
  const auto axis = padded_axis(m.old(), *pads[0]);
  if (not axis or std::any_of(pads.begin(), pads.end(), [&](const Node* pad) { return padded_axis(m.old(), *pad) != axis; })) return {};
  std::vector<Val> parts;
  for (Dim end = 0; end != m.result_type().shape[*axis];) {
    const auto next = std::find_if(pads.begin(), pads.end(), [&](const Node* pad) { return pad->attrs[kStarts][*axis] == end; });
    if (next == pads.end()) return {};
    parts.push_back(m.rewriter.mapped((*next)->operands[0]));
    end += parts.back().shape()[*axis];
    pads.erase(next);
  }
  return pads.empty() ? op::concat.build(std::move(parts), {kAxis = static_cast<std::int64_t>(*axis)}) : Val{};
}

/// Does a permutation leave all axes from `first` on where they are?
bool keeps_axes_from(const Ints& perm, std::size_t first) {
  for (std::size_t i = first; i < perm.size(); ++i)
    if (perm[i] != static_cast<std::int64_t>(i)) return false;
  return true;
}

/// Rows gathered in another order are the rows of an index in that order.
Val transpose_index(const Match& m) {
  if (not m.is(0, op::gather) or m.rewriter.uses(m.operand(0)) != 1) return {};
  const Node& gather = m.producer(0);
  const std::size_t index_rank = m.old().type(gather.operands[1]).shape.size();
  const Ints& perm = m.node.attrs[kPerm];
  if (gather.attrs[kAxis] != 0 or not keeps_axes_from(perm, index_rank)) return {};
  return op::gather(m.below(0, 0), transpose(m.below(0, 1), Ints(perm.begin(), perm.begin() + static_cast<std::ptrdiff_t>(index_rank))), gather.attrs);
}

/// The same for rows that are added up.
Val transpose_scattered(const Match& m) {
  if (not m.is(0, op::transpose) or m.node.attrs[kAxis] != 0) return {};
  const std::size_t index_rank = m.type(1).shape.size();
  const Ints& perm = m.producer(0).attrs[kPerm];
  if (not keeps_axes_from(perm, index_rank)) return {};
  Ints inverse(index_rank);
  for (std::size_t i = 0; i < index_rank; ++i) inverse[static_cast<std::size_t>(perm[i])] = static_cast<std::int64_t>(i);
  return op::scatter_add(m.below(0, 0), transpose(m.built(1), inverse), m.node.attrs);
}

/// Places first, first + step, ... of an axis.
struct Places {
  std::int64_t first = 0, count = 0, step = 1;
};

/// What a constant index of an axis names, where that is places at one distance, upwards, within the axis.
std::optional<Places> even_places(const Match& m, const Dim& extent) {
  constexpr std::int64_t kMost = 1 << 16;  // that are worth looking at
  const Tensor* const index = m.old().constant_of(m.operand(1));
  if (index == nullptr or not extent.is_constant() or index->element_count() == 0 or index->element_count() > kMost) return {};
  const auto place = [&](std::int64_t i) {
    const std::int64_t number = index->int_at(i);
    return number < 0 ? number + extent.value() : number;
  };
  Places places = {.first = place(0), .count = index->element_count()};
  if (places.count > 1) places.step = place(1) - places.first;
  for (std::int64_t i = 0; i < places.count; ++i)
    if (place(i) != places.first + i * places.step or place(i) < 0 or place(i) >= extent.value()) return {};
  return places.step > 0 ? std::optional(places) : std::nullopt;
}

/// Places that are known are no data: what reads them can read through a slice. A weight's gather stays one, which is how those know a table who replace it.
Val slice_of_places(const Match& m) {
  const Input* const input = m.old().input_of(m.operand(0));
  const auto axis = static_cast<std::size_t>(m.node.attrs[kAxis]);
  const auto places = input != nullptr and input->role == Role::kWeight ? std::nullopt : even_places(m, m.type(0).shape[axis]);
  return places ? reshape(part_of(m.built(0), axis, places->first, places->count, places->step), m.result_type().shape) : Val{};
}

/// The same for what is put there.
Val pad_of_places(const Match& m) {
  const auto axis = static_cast<std::size_t>(m.node.attrs[kAxis]);
  const Shape& sizes = m.result_type().shape;
  const auto places = even_places(m, sizes[axis]);
  if (not places) return {};
  Shape starts(sizes.size(), Dim(0)), shape = sizes;
  Ints steps(sizes.size(), 1);
  starts[axis] = places->first, shape[axis] = places->count, steps[axis] = places->step;
  const Val x = reshape(m.built(0), shape);
  return shape == sizes ? x : op::pad(x, {kStarts = std::move(starts), kSizes = sizes, kSteps = std::move(steps)});
}

/// The axes that both sum over, in terms of what the inner one reads.
Val merge_sums(const Match& m) {
  if (not m.is(0, op::reduce_sum) or m.rewriter.uses(m.operand(0)) != 1) return {};
  const Node& inner = m.producer(0);
  if (inner.attrs[kKeepDims] != m.node.attrs[kKeepDims]) return {};
  Ints axes = inner.attrs[kAxes], outer = m.node.attrs[kAxes];
  if (not inner.attrs[kKeepDims])
    for (std::int64_t& axis : outer)
      for (const std::int64_t gone : inner.attrs[kAxes]) axis += gone <= axis;
  for (const std::int64_t axis : outer)
    if (std::find(axes.begin(), axes.end(), axis) == axes.end()) axes.push_back(axis);
  std::sort(axes.begin(), axes.end());
  return sum(m.below(0, 0), std::move(axes), m.node.attrs[kKeepDims]);
}

Val drop_single_concat(const Match& m) { return m.node.operands.size() == 1 ? m.built(0) : Val{}; }
Val drop_empty_reduction(const Match& m) { return m.node.attrs[kAxes].empty() ? m.built(0) : Val{}; }

/// A sum over axes of extent 1 only moves elements.
Val drop_unit_reduction(const Match& m) {
  const Ints& axes = m.node.attrs[kAxes];
  const bool all_one = std::all_of(axes.begin(), axes.end(), [&](std::int64_t axis) { return m.type(0).shape[static_cast<std::size_t>(axis)].is_constant(1); });
  return all_one ? reshape(m.built(0), m.result_type().shape) : Val{};
}

struct RuleRow {
  const OpDef* root;  ///< nullptr: any op
  Rule rule;
  std::string_view says;
};

constexpr RuleRow kRules[] = {
    {&op::reshape, drop_reshape, "reshape(x) to x's shape -> x"},
    {&op::reshape, merge_reshapes, "reshape(reshape(x)) -> reshape(x)"},
    {&op::transpose, transpose_of_unit_axes, "transpose(x) that moves nothing but axes of extent 1 -> reshape(x)"},
    {&op::transpose, merge_transposes, "transpose(transpose(x)) -> transpose(x)"},
    {&op::transpose, transpose_index, "transpose(gather(x, index)) by the index's axes -> gather(x, transpose(index))"},
    {&op::scatter_add, transpose_scattered, "scatter_add(transpose(x), index) by the index's axes -> scatter_add(x, transpose(index))"},
    {&op::gather, slice_of_places, "gather(x, constant) of places at one distance -> slice(x)"},
    {&op::scatter_add, pad_of_places, "scatter_add(x, constant) to places at one distance -> pad(x)"},
    {&op::cast, drop_cast, "cast(x) to x's type -> x"},
    {&op::cast, cast_back, "cast(x) of an input to what it is computed with, and back to x's type -> x"},
    {&op::broadcast_to, drop_broadcast, "broadcast_to(x) to x's shape -> x"},
    {&op::broadcast_to, merge_broadcasts, "broadcast_to(broadcast_to(x)) -> broadcast_to(x)"},
    {&op::mul, times_one, "x * 1 -> x"},
    {&op::add, plus_zero, "x + 0 -> x"},
    {&op::add, join_pads, "pad(a) + pad(b) + .., side by side -> concat(a, b, ..)"},
    {&op::sub, minus_zero, "x - 0 -> x"},
    {&op::div, over_one, "x / 1 -> x"},
    {&op::pow, power_one, "x^1 -> x"},
    {&op::pow, power_two, "x^2 -> x * x"},
    {&op::neg, negate_twice, "-(-x) -> x"},
    {&op::stop_gradient, stop, "stop_gradient(x) -> x, after autodiff"},
    {nullptr, absorb_broadcast, "f(broadcast_to(x), y) -> f(x, y)"},
    {&op::matmul, absorb_transpose, "matmul(transpose(a), b) -> matmul{ta}(a, b)"},
    {&op::reduce_sum, merge_batches_into_inner_axis, "sum over batches of matmul{ta}(a, b) -> matmul{ta} of a and b with the batches in their inner axis"},
    {&op::slice, drop_full_slice, "slice of all of x -> x"},
    {&op::concat, drop_single_concat, "concat(x) -> x"},
    {&op::reduce_sum, drop_empty_reduction, "reduce_sum over no axis -> x"},
    {&op::reduce_sum, merge_sums, "reduce_sum(reduce_sum(x)) -> reduce_sum(x)"},
    {&op::reduce_sum, drop_unit_reduction, "reduce_sum over axes of extent 1 -> reshape(x)"},
    {&op::reduce_max, drop_unit_reduction, "reduce_max over axes of extent 1 -> reshape(x)"},
};

bool simplify_node(Rewriter& rewriter, NodeId id, PassLog* log) {
  const Node& node = rewriter.node(id);
  for (const RuleRow& row : kRules) {
    if (row.root != nullptr and row.root != node.op) continue;
    if (const Val value = row.rule({rewriter, node}); value.valid()) {
      if (log != nullptr) log->fired(node, row.says);
      rewriter.replace(node.results[0], value);
      return true;
    }
  }
  return false;
}

}  // namespace

Changed simplify(Graph& graph, PassLog* log) {
  const auto visit = [log](Rewriter& rewriter, NodeId id) { return simplify_node(rewriter, id, log); };
  Changed any = Changed::kNo;
  while (Rewriter::rewrite(graph, visit) == Changed::kYes) any = Changed::kYes;
  return any;
}

Changed simplify(Graph& graph) { return simplify(graph, nullptr); }

}  // namespace hone
