#include "backends/above_diagonal.h"

#include <algorithm>
#include <cmath>

#include "ir/ops/ops.h"
#include "passes/causal_mask.h"

namespace hone {

namespace {

/// What an operation gives where one operand decides it, whatever the other one is.
struct Absorbing {
  const OpDef* op;
  std::optional<double> (*first)(double a);   ///< where the first operand is a; nothing if that does not decide it
  std::optional<double> (*second)(double b);  ///< the same of the second
  double (*both)(double a, double b);
};
std::optional<double> only_zero(double x) { return x == 0 ? std::optional(0.0) : std::nullopt; }
std::optional<double> only_infinite(double x) { return std::isinf(x) ? std::optional(x) : std::nullopt; }
std::optional<double> only_infinite_negated(double x) { return only_infinite(-x); }
std::optional<double> never(double) { return std::nullopt; }
constexpr Absorbing kAbsorbing[] = {
    {&op::mul, only_zero, only_zero, [](double a, double b) { return a * b; }},
    {&op::div, only_zero, never, [](double a, double b) { return a / b; }},
    {&op::add, only_infinite, only_infinite, [](double a, double b) { return a + b; }},
    {&op::sub, only_infinite, only_infinite_negated, [](double a, double b) { return a - b; }},
};

/// Of a finite number they make a finite one, whatever finite number the other operand is: the sum of no terms, 0, may stand for one that nobody looks at.
constexpr const OpDef* kFiniteOfFinite[] = {&op::add, &op::sub, &op::mul, &op::neg, &op::abs, &op::maximum, &op::minimum, &op::tanh, &op::sigmoid, &op::erf, &op::cast, &op::reshape, &op::broadcast_to};
constexpr ScalarOp kFiniteOfFiniteScalars[] = {ScalarOp::kAdd, ScalarOp::kSub, ScalarOp::kMul, ScalarOp::kNeg, ScalarOp::kAbs, ScalarOp::kMax, ScalarOp::kMin, ScalarOp::kTanh, ScalarOp::kSigmoid, ScalarOp::kErf, ScalarOp::kCast, ScalarOp::kRoundTo};

const Absorbing* absorbing(const Node& node) {
  const auto* found = std::ranges::find_if(kAbsorbing, [&](const Absorbing& row) { return *row.op == *node.op; });
  return found == std::end(kAbsorbing) ? nullptr : found;
}

}  // namespace

AboveDiagonal::AboveDiagonal(const Graph& graph) : graph_(graph), contents_(graph.value_count()), needs_(graph.value_count(), Need::kNothing) {
  for (const Input& input : graph.inputs()) {
    if (input.role != Role::kConstant or not input.data or not is_float(graph.type(input.value).dtype)) continue;
    if (const std::optional<Triangles> triangles = triangles_of(graph, input.value)) contents_[input.value.index] = Content{triangles->upper, triangles->lower == triangles->upper};
  }
  for (const Node& node : graph.nodes()) find_content(node);
  for (const Output& output : graph.outputs()) needs_[output.value.index] = Need::kNumber;
  for (const Alias& alias : graph.aliases()) needs_[alias.value.index] = Need::kNumber;
  for (auto node = graph.nodes().rbegin(); node != graph.nodes().rend(); ++node) find_needs(*node);
}

std::optional<double> AboveDiagonal::of(ValueId value) const { return content(value) ? std::optional(content(value)->number) : std::nullopt; }

/// Are elements of `from` those of `to` at the same places in its matrices?
bool AboveDiagonal::keeps_matrices(ValueId from, ValueId to) const {
  return have_equal_matrices(graph_.type(from).shape, graph_.type(to).shape);
}

/// What an elementwise operation, or one that moves matrices as a whole, reads of an operand there.
std::optional<AboveDiagonal::Content> AboveDiagonal::element_of(const Node& node, std::size_t operand) const {
  const ValueId value = node.operands[operand];
  const bool is_there = value.valid() and content(value) and (content(value)->is_everywhere or keeps_matrices(value, node.results[0]));
  return is_there ? content(value) : std::nullopt;
}

/// The condition there, where it is a mask's.
std::optional<bool> AboveDiagonal::condition_of(const Node& where) const {
  if (not keeps_matrices(where.operands[0], where.results[0])) return std::nullopt;
  const std::optional<Triangles> mask = triangles_of(graph_, where.operands[0]);
  return mask ? std::optional(mask->upper != 0) : std::nullopt;
}

std::optional<AboveDiagonal::Content> AboveDiagonal::chosen(const Node& node) const {
  const std::optional<Content> then = element_of(node, 1), otherwise = element_of(node, 2);
  if (then and otherwise and then->number == otherwise->number) return Content{then->number, then->is_everywhere and otherwise->is_everywhere};
  const std::optional<bool> condition = condition_of(node);
  if (not condition) return std::nullopt;
  const std::optional<Content>& there = *condition ? then : otherwise;
  return there ? std::optional(Content{there->number, false}) : std::nullopt;
}

void AboveDiagonal::find_content(const Node& node) {
  if (node.results.size() != 1 or not is_float(graph_.type(node.results[0]).dtype)) return;
  std::optional<Content>& found = contents_[node.results[0].index];
  if (const Absorbing* row = absorbing(node)) {
    const std::optional<Content> a = element_of(node, 0), b = element_of(node, 1);
    std::optional<double> number = a ? row->first(a->number) : std::nullopt;
    if (not number and b) number = row->second(b->number);
    if (a and b) number = row->both(a->number, b->number);
    if (number) found = Content{*number, a and b and a->is_everywhere and b->is_everywhere};
  } else if (*node.op == op::where) {
    found = chosen(node);
  } else if (*node.op == op::exp) {
    if (const std::optional<Content> x = element_of(node, 0)) found = Content{std::exp(x->number), x->is_everywhere};
  } else if (*node.op == op::neg) {
    if (const std::optional<Content> x = element_of(node, 0)) found = Content{-x->number, x->is_everywhere};
  } else if (*node.op == op::cast or *node.op == op::reshape or *node.op == op::broadcast_to) {
    if (const std::optional<Content> x = element_of(node, 0); x and (x->number == 0 or std::isinf(x->number))) found = x;  // other numbers may be rounded
  }
}

/// What is asked of an operand for the sake of what is asked of the result.
AboveDiagonal::Need AboveDiagonal::need_of(const Node& node, std::size_t operand) const {
  const bool is_in_place = node.results.size() == 1 and (node.op->scalar != nullptr or *node.op == op::reshape or *node.op == op::broadcast_to) and keeps_matrices(node.operands[operand], node.results[0]);
  if (not is_in_place) return Need::kNumber;
  const Need of_result = needs_[node.results[0].index];
  if (of_result == Need::kNothing) return Need::kNothing;
  if (*node.op == op::where and operand > 0)
    if (const std::optional<bool> condition = condition_of(node); condition and *condition == (operand == 2)) return Need::kNothing;
  const Absorbing* row = absorbing(node);
  if (row != nullptr and *node.op != op::div)
    if (const std::optional<Content> other = element_of(node, 1 - operand); other and (operand == 0 ? row->second : row->first)(other->number)) return Need::kFinite;
  const bool stays_finite = (*node.op == op::where and operand > 0) or std::ranges::any_of(kFiniteOfFinite, [&](const OpDef* op) { return *op == *node.op; });
  return of_result == Need::kFinite and stays_finite ? Need::kFinite : Need::kNumber;
}

void AboveDiagonal::find_needs(const Node& node) {
  for (std::size_t i = 0; i < node.operands.size(); ++i)
    if (const ValueId operand = node.operands[i]; operand.valid()) needs_[operand.index] = std::max(needs_[operand.index], need_of(node, i));
}

namespace {

/// Which points of a kernel count, found in what it computes.
class TriangleFinder {
 public:
  TriangleFinder(const Kernel& kernel, const std::vector<ValueId>& values, const Graph& graph, const AboveDiagonal& above) : kernel_(kernel), values_(values), graph_(graph), above_(above) {}

  std::optional<Triangle> run() {
    if (not is_contraction()) return std::nullopt;
    if (const std::optional<Triangle> triangle = of_terms()) return triangle;
    return of_sums();
  }

 private:
  using Need = AboveDiagonal::Need;
  enum class Dependence : std::uint8_t { kNone, kFinite, kAny };  ///< kFinite: it is finite, if the sum is

  bool is_contraction() const {
    if (kernel_.phases.size() < 2 or kernel_.outer_count == 0) return false;
    const Phase& sums = kernel_.phases[0];
    const auto is_sum = [](const Reduction& reduction) { return reduction.kind == ReduceKind::kSum; };
    const auto has_none = [](const Phase& phase) { return phase.reductions.empty() and phase.inner.empty() and not phase.scatter; };
    return sums.reductions.size() == 1 and is_sum(sums.reductions[0]) and sums.stores.empty() and sums.inner.size() == 1 and std::all_of(kernel_.phases.begin() + 1, kernel_.phases.end(), has_none);
  }

  /// The axes that an access walks in a buffer's matrices, row by row.
  std::optional<Triangle> diagonal_of(std::uint32_t buffer, const std::vector<ExprId>& index) const {
    if (index.size() < 2 or not values_[buffer].valid()) return std::nullopt;
    const std::optional<std::uint32_t> row = axis_of(index[index.size() - 2]), column = axis_of(index.back());
    return row and column and row != column ? std::optional(Triangle{.low = *column, .high = *row}) : std::nullopt;
  }
  std::optional<Triangle> diagonal_of(const Expr& load) const { return diagonal_of(load.slot, load.index); }

  /// A factor that is 0 elsewhere.
  std::optional<Triangle> of_terms() const {
    std::vector<ExprId> factors = {kernel_.phases[0].reductions[0].value};
    for (std::size_t i = 0; i < factors.size(); ++i) {
      const Expr factor = kernel_.exprs[factors[i]];
      if (factor.op == ScalarOp::kMul) factors.insert(factors.end(), {factor.operands[0], factor.operands[1]});
      if (factor.op == ScalarOp::kCast) factors.push_back(factor.operands[0]);
      if (factor.op != ScalarOp::kLoad) continue;
      if (const std::optional<Triangle> triangle = diagonal_of(factor); triangle and above_.of(values_[factor.slot]) == 0) return triangle;
    }
    return std::nullopt;
  }

  /// Sums that are wanted nowhere else: of those that are stored into matrices, or as what a mask chooses.
  std::optional<Triangle> of_sums() {
    for (std::size_t p = 1; p < kernel_.phases.size(); ++p)
      for (const Store& store : kernel_.phases[p].stores) {
        const std::optional<Triangle> stored = diagonal_of(store.buffer, store.index);
        if (stored and stored->low < kernel_.outer_count and stored->high < kernel_.outer_count and not wants_sums_outside(*stored)) return stored;
      }
    return std::nullopt;
  }

  bool wants_sums_outside(const Triangle& triangle) {
    find_dependents(triangle);
    for (std::size_t p = 1; p < kernel_.phases.size(); ++p)
      for (const Store& store : kernel_.phases[p].stores) {
        if (store.guard.valid() and depends_[store.guard.index] != Dependence::kNone) return true;
        const Need need = diagonal_of(store.buffer, store.index) == triangle ? above_.need(values_[store.buffer]) : Need::kNumber;
        const Dependence dependence = depends_[store.value.index];
        const bool is_fine = dependence == Dependence::kNone or need == Need::kNothing or (need == Need::kFinite and dependence == Dependence::kFinite);
        if (not is_fine) return true;
      }
    return false;
  }

  /// By expression: how it depends on a sum, outside of the triangle.
  void find_dependents(const Triangle& triangle) {
    depends_.assign(kernel_.exprs.size(), Dependence::kNone);
    const auto number = [&](ExprId id) {
      const Expr& e = kernel_.exprs[id];
      return e.op == ScalarOp::kLoad and diagonal_of(e) == triangle ? above_.of(values_[e.slot]) : std::nullopt;
    };
    const auto is_zero = [&](ExprId id) { return number(id) == 0; };
    const auto is_infinite = [&](ExprId id) { return std::isinf(number(id).value_or(0)); };
    for (std::size_t i = 0; i < kernel_.exprs.size(); ++i) {
      const Expr& e = kernel_.exprs[ExprId(i)];
      const auto of = [&](ExprId id) { return id.valid() ? depends_[id.index] : Dependence::kNone; };
      Dependence most = of(e.guard);
      for (int operand = 0; operand < info(e.op).operands; ++operand) most = std::max(most, of(e.operands[operand]));
      for (const ExprId index : e.index) most = std::max(most, of(index));
      if (most == Dependence::kFinite and std::ranges::find(kFiniteOfFiniteScalars, e.op) == std::end(kFiniteOfFiniteScalars)) most = Dependence::kAny;
      if (e.op == ScalarOp::kTemp) most = Dependence::kFinite;
      if (e.op == ScalarOp::kSelect and of(e.operands[0]) == Dependence::kNone) {
        const std::optional<bool> condition = mask_at(e.operands[0], triangle);
        most = condition ? of(e.operands[*condition ? 1 : 2]) : std::max(of(e.operands[1]), of(e.operands[2]));
      }
      const bool is_absorbed = (e.op == ScalarOp::kMul and (is_zero(e.operands[0]) or is_zero(e.operands[1]))) or
                               (e.op == ScalarOp::kAdd and (is_infinite(e.operands[0]) or is_infinite(e.operands[1])));
      depends_[i] = is_absorbed and most == Dependence::kFinite ? Dependence::kNone : most;
    }
  }

  /// A condition outside of the triangle, where it is a mask that lies in memory or compares the two indices.
  std::optional<bool> mask_at(ExprId condition, const Triangle& triangle) const {
    const Expr& e = kernel_.exprs[condition];
    if (e.op == ScalarOp::kLoad and diagonal_of(e) == triangle) {
      const std::optional<Triangles> mask = triangles_of(graph_, values_[e.slot]);
      return mask ? std::optional(mask->upper != 0) : std::nullopt;
    }
    const bool is_less = e.op == ScalarOp::kLe or e.op == ScalarOp::kLt, is_greater = e.op == ScalarOp::kGe or e.op == ScalarOp::kGt;
    if (not is_less and not is_greater) return std::nullopt;
    const std::optional<std::uint32_t> a = axis_of(e.operands[0]), b = axis_of(e.operands[1]);
    if (a == triangle.low and b == triangle.high) return is_greater;
    if (a == triangle.high and b == triangle.low) return is_less;
    return std::nullopt;
  }

  /// The axis whose index an expression is.
  std::optional<std::uint32_t> axis_of(ExprId id) const {
    while (kernel_.exprs[id].op == ScalarOp::kCast and (kernel_.exprs[id].dtype == DType::kI32 or kernel_.exprs[id].dtype == DType::kI64)) id = kernel_.exprs[id].operands[0];
    return kernel_.exprs[id].op == ScalarOp::kIndex ? std::optional(kernel_.exprs[id].slot) : std::nullopt;
  }

  const Kernel& kernel_;
  const std::vector<ValueId>& values_;
  const Graph& graph_;
  const AboveDiagonal& above_;
  std::vector<Dependence> depends_;
};

}  // namespace

std::optional<Triangle> triangle_of(const Kernel& kernel, const std::vector<ValueId>& values, const Graph& graph, const AboveDiagonal& above) {
  return TriangleFinder(kernel, values, graph, above).run();
}

}  // namespace hone
