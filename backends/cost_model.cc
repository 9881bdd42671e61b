#include "backends/cost_model.h"

#include <fmt/format.h>

#include <algorithm>

#include "backends/llvm/blocking.h"
#include "backends/llvm/reduction.h"
#include "ir/kernel/rebuild.h"
#include "ir/kernel/scalar_math.h"
#include "ir/op.h"

namespace hone {

namespace {

constexpr std::size_t kMostMembers = 64;  // longer kernels run out of registers and gain nothing

/// A member is written out once for each place that it is read at, and its operands for each of these: what a chain of concatenations or of overlapping slices doubles at every link.
/// The recorded models' kernels have up to twice their members' expressions.
constexpr std::size_t kMostCopies = 4, kManyExpressions = 128;

/// Rows of at most so many elements need no second thread.
constexpr std::int64_t kShortRow = 4096;

/// A part has at least so many terms: then the parts are as good as nothing beside the tensor. And with so many, no more parts are wanted.
constexpr std::int64_t kShortestPart = 64, kLongEnoughPart = 256, kFewestParts = 16;

struct Space {
  Dim outer = 1, inner = 1;
  std::size_t reducing_phases = 0;
  bool stores_elements = false;  ///< stores in the inner space: the rows are read again, or written, once their reductions are known
};

Space space_of(const Kernel& kernel) {
  Space space;
  space.outer = kernel.outer_size();
  for (const Phase& phase : kernel.phases) {
    space.reducing_phases += not phase.reductions.empty();
    space.stores_elements = space.stores_elements or (not phase.inner.empty() and not phase.stores.empty());
  }
  for (std::size_t axis = kernel.outer_count; axis < kernel.axes.size(); ++axis) space.inner *= kernel.axes[axis].extent;
  return space;
}

bool has_too_few_rows(const Space& space, const Parallelism& parallelism) {
  const bool walks_rows_again = space.reducing_phases > 1 or (space.reducing_phases == 1 and space.stores_elements);
  const bool is_short = expected_size(space.inner) <= (space.inner.is_constant() ? kShortRow : parallelism.short_unknown_row);
  return walks_rows_again and not is_short and space.outer.is_constant() and space.outer.value() < parallelism.fewest_rows;
}

/// Is the result a strided view of the operand: a transpose, a slice, a broadcast?
bool is_view(const NodeKernel& node) {
  const Kernel& kernel = node.kernel;
  if (node.kind != NodeKernel::Kind::kMap or kernel.phases.size() != 1 or kernel.phases[0].stores.size() != 1) return false;
  const Expr& value = kernel.exprs[kernel.phases[0].stores[0].value];
  if (value.op != ScalarOp::kLoad or value.guard.valid()) return false;
  const std::vector<bool> live = reachable(kernel);
  for (std::size_t i = 0; i < live.size(); ++i) {
    const ScalarOp op = kernel.exprs[ExprId(i)].op;
    const bool is_linear = op == ScalarOp::kLoad or op == ScalarOp::kIndex or op == ScalarOp::kConstInt or op == ScalarOp::kSize or op == ScalarOp::kAdd or op == ScalarOp::kSub or op == ScalarOp::kMul;
    if (live[i] and not is_linear) return false;
  }
  return true;
}

/// Is it a view along whose last axis the operand is not contiguous, though it is along another one? Where it is read, a vector of it is gathered element by element.
bool transposes(const NodeKernel& node) {
  if (not is_view(node)) return false;
  const Nest nest = make_nest(node.kernel);
  if (nest.outer.empty()) return false;
  const Offset& read = nest.loads.at(node.kernel.phases[0].stores[0].value);
  const std::vector<std::uint64_t> axes_of = axes_of_expressions(node.kernel);
  const auto along = [&](std::uint32_t axis) { return stride_along(read, axis, axes_of); };
  return along(nest.outer.back()) == Stride::kOther and std::ranges::any_of(nest.outer, [&](std::uint32_t axis) { return along(axis) == Stride::kOne; });
}

/// Are there hardly more elements than `few`, as where a pad makes rows a little longer?
bool is_almost(const Dim& few, const Dim& many) {
  constexpr std::int64_t kParts = 16;
  return expected_size(few) <= expected_size(many) and expected_size(many) - expected_size(few) <= expected_size(few) / kParts;
}

/// Is a result of a point stored elsewhere than in the points' own order?
bool stores_transposed(const Kernel& kernel) {
  return std::ranges::any_of(kernel.phases, [&](const Phase& phase) {
    return phase.inner.empty() and std::ranges::any_of(phase.stores, [&](const Store& store) {
             std::vector<std::uint32_t> axes;
             for (const ExprId id : store.index)
               if (kernel.exprs[id].op == ScalarOp::kIndex) axes.push_back(kernel.exprs[id].slot);
             return not std::ranges::is_sorted(axes);
           });
  });
}

/// Expressions of the members' own kernels.
std::size_t own_expressions(NodeKernels& kernels, std::span<const NodeId> members) {
  std::size_t count = 0;
  for (const NodeId member : members) count += std::max(kernels.of(member).kernel.exprs.size(), kernels.graph().node(member).operands.size() + 1);
  return count;
}

/// Does the emitter compute it in register tiles?
bool is_tiled(const Kernel& kernel) {
  const std::optional<Blocking> blocking = choose_blocking(kernel, make_nest(kernel), kAvx2);
  return blocking and (blocking->rows or blocking->dots);
}

}  // namespace

std::int64_t expected_size(const Dim& size) { return size.guess(64); }

std::string why_not_worth_fusing(NodeKernels& kernels, std::span<const NodeId> members, const FusedKernel& fused, const Parallelism& parallelism) {
  if (members.size() > kMostMembers) return fmt::format("more than {} nodes would be one kernel", kMostMembers);
  const std::size_t expressions = fused.kernel.exprs.size();
  if (expressions > kManyExpressions and expressions / kMostCopies > own_expressions(kernels, members))
    return fmt::format("what is read at several places would be written out again for each: {} expressions in all", expressions);
  const Space space = space_of(fused.kernel);
  if (has_too_few_rows(space, parallelism)) return fmt::format("only {} rows, each read several times, would keep threads idle", space.outer.text());
  const bool reduces = space.reducing_phases > 0;
  bool reads_through_views = false;
  const std::uint64_t inner_axes = ~std::uint64_t{0} << fused.kernel.outer_count;
  for (std::size_t i = 0; i < members.size(); ++i) {
    const NodeId member = members[i];
    const Node& node = kernels.graph().node(member);
    if (kernels.of(member).kind == NodeKernel::Kind::kReduction) continue;
    const Dim count = element_count(kernels.graph().type(node.results[0]).shape);
    const bool in_rows = reduces and (fused.axes[i] & inner_axes) == 0;
    const bool once_a_row = in_rows and count == space.outer, once_an_element = not in_rows and count == space.outer * space.inner;
    const bool only_moves = not reduces and node.op->scalar == nullptr;
    if (only_moves and expected_size(space.outer) >= 2 * expected_size(count) and transposes(kernels.of(member)))
      return fmt::format("{} would be gathered more than once an element: it has {}, the kernel runs over {}", node.op->name, count.text(), space.outer.text());
    if (once_an_element or once_a_row or only_moves or (not reduces and is_almost(count, space.outer))) continue;
    if (not reduces or not is_view(kernels.of(member)))
      return fmt::format("{} would be worked out more than once an element: it has {}, the kernel runs over {}", node.op->name, count.text(),
                         (space.outer * space.inner).text());
    reads_through_views = true;
  }
  if (reads_through_views and not is_tiled(fused.kernel)) return "read through it, this would be no product of contiguous factors";
  if (reduces and stores_transposed(fused.kernel) and not is_tiled(fused.kernel)) return "stored as it is transposed, this would be no product in tiles";
  return "";
}

bool is_product(NodeKernels& kernels, NodeId node) {
  const NodeKernel& made = kernels.of(node);
  return made.kind == NodeKernel::Kind::kReduction and has_contraction(made.kernel);
}

std::size_t axes_worth_leaving(const Shape& shape, const Ints& axes, const Parallelism& parallelism) {
  const auto is_reduced = [&](std::size_t axis) { return std::ranges::binary_search(axes, static_cast<std::int64_t>(axis)); };
  Dim shares = 1, contiguous = 1, terms = 1;
  bool at_the_end = true;
  for (std::size_t axis = shape.size(); axis-- > 0;) {
    at_the_end = at_the_end and not is_reduced(axis);
    (is_reduced(axis) ? terms : at_the_end ? contiguous : shares) *= shape[axis];
  }
  if (not shares.is_constant() or not contiguous.is_constant()) return 0;
  if (shares.value() * ((contiguous.value() + parallelism.neighbours - 1) / parallelism.neighbours) >= parallelism.fewest_shares) return 0;
  if (shares.value() * contiguous.value() == 0 or expected_size(terms * shares * contiguous) < parallelism.fewest_elements) return 0;
  std::size_t left = 0;
  Dim parts = 1;
  for (; left + 1 < axes.size(); ++left) {
    const Dim more = parts * shape[static_cast<std::size_t>(axes[left])];
    const std::int64_t length = expected_size(terms) / expected_size(more);
    if (length < (left == 0 ? kShortestPart : kLongEnoughPart)) break;
    parts = more;
  }
  return expected_size(parts) >= kFewestParts ? left : 0;
}

int cost_of(ScalarOp op) {
  switch (op) {
    case ScalarOp::kConstFloat: case ScalarOp::kConstInt: case ScalarOp::kIndex: case ScalarOp::kSize: case ScalarOp::kLoad: case ScalarOp::kTemp: return 0;
    case ScalarOp::kDiv: case ScalarOp::kSqrt: return 4;
    case ScalarOp::kExp: case ScalarOp::kLog: case ScalarOp::kTanh: case ScalarOp::kSigmoid: case ScalarOp::kErf: return 16;
    case ScalarOp::kSin: case ScalarOp::kCos: case ScalarOp::kTan: case ScalarOp::kAsin: case ScalarOp::kAcos: case ScalarOp::kAtan: case ScalarOp::kSinh: case ScalarOp::kCosh:
    case ScalarOp::kAsinh: case ScalarOp::kAcosh: case ScalarOp::kAtanh: case ScalarOp::kLog1p: case ScalarOp::kExpm1: case ScalarOp::kPow: case ScalarOp::kFmod: case ScalarOp::kMod:
    case ScalarOp::kFloorDiv: return 100;
    default: return 1;
  }
}

int cost_of(const Graph& graph, NodeId id) {
  const Node& node = graph.node(id);
  ExprPool pool;
  std::vector<Scalar> operands;
  for (std::size_t i = 0; i < node.operands.size(); ++i)
    operands.emplace_back(pool, pool.add({.op = ScalarOp::kLoad, .dtype = arithmetic_type(graph.type(node.operands[i]).dtype), .slot = static_cast<std::uint32_t>(i)}));
  (void)node.op->scalar({operands, node.attrs, graph.type(node.results[0]).dtype, pool});
  int cost = 0;
  for (std::size_t i = 0; i < pool.size(); ++i) cost += cost_of(pool[ExprId(i)].op);
  return cost;
}

bool is_much_less(Dim few, Dim many) {
  constexpr std::int64_t kTimes = 8;
  if (few.is_constant() and (not many.is_constant() or few.value() == 0)) return true;
  const Dim times = floordiv(many, few);
  return times.is_constant() and times.value() >= kTimes and times * few == many;
}

}  // namespace hone
