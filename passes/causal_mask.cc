#include "passes/causal_mask.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <variant>

#include "ir/ops/infer.h"
#include "ir/ops/ops.h"

namespace hone {

namespace {

/// row * i + column * j + constant
struct Line {
  double row = 0, column = 0, constant = 0;
};
using Form = std::variant<Triangles, Line>;
using MaybeForm = std::optional<Form>;

Form constant_form(double number) { return Triangles{number, number}; }
std::optional<double> constant_in(const Form& form) {
  const auto* triangles = std::get_if<Triangles>(&form);
  if (triangles != nullptr and triangles->lower == triangles->upper) return triangles->lower;
  const auto* line = std::get_if<Line>(&form);
  return line != nullptr and line->row == 0 and line->column == 0 ? std::optional(line->constant) : std::nullopt;
}
std::optional<Line> as_line(const Form& form) {
  if (const auto* line = std::get_if<Line>(&form)) return *line;
  const std::optional<double> number = constant_in(form);
  return number ? std::optional(Line{0, 0, *number}) : std::nullopt;
}
std::optional<Triangles> as_triangles(const Form& form) {
  if (const auto* triangles = std::get_if<Triangles>(&form)) return *triangles;
  const std::optional<double> number = constant_in(form);
  return number ? std::optional(Triangles{*number, *number}) : std::nullopt;
}

// Element by element.

double truth(bool holds) { return holds ? 1 : 0; }
struct Pairwise {
  const OpDef* op;
  double (*of)(double, double);
  bool orders = false;  ///< holds on one side of a number
};
constexpr Pairwise kPairwise[] = {
    {&op::less, [](double a, double b) { return truth(a < b); }, true},
    {&op::less_equal, [](double a, double b) { return truth(a <= b); }, true},
    {&op::greater, [](double a, double b) { return truth(a > b); }, true},
    {&op::greater_equal, [](double a, double b) { return truth(a >= b); }, true},
    {&op::equal, [](double a, double b) { return truth(a == b); }},
    {&op::logical_and, [](double a, double b) { return truth(a != 0 and b != 0); }},
    {&op::logical_or, [](double a, double b) { return truth(a != 0 or b != 0); }},
    {&op::add, [](double a, double b) { return a + b; }},
    {&op::sub, [](double a, double b) { return a - b; }},
    {&op::mul, [](double a, double b) { return a * b; }},
};

/// Positions are whole numbers; row and column count the same where only how far a column is from its row decides.
MaybeForm ordered(const Pairwise& pairwise, const Line& a, const Line& b) {
  constexpr double kFar = 1e9;
  const Line between{a.row - b.row, a.column - b.column, a.constant - b.constant};
  if (between.row != -between.column or not pairwise.orders) return std::nullopt;
  const auto holds = [&](double behind) { return pairwise.of(between.column * behind + between.constant, 0); };
  if (holds(0) != holds(-kFar) or holds(1) != holds(kFar)) return std::nullopt;
  return Triangles{holds(0), holds(1)};
}

/// A line times a number.
MaybeForm scaled(const Form& a, const Form& b) {
  const std::optional<double> number = constant_in(b);
  if (not number) return constant_in(a) ? scaled(b, a) : std::nullopt;
  const Line line = *as_line(a);
  return Line{line.row * *number, line.column * *number, line.constant * *number};
}

MaybeForm combined(const Pairwise& pairwise, const Form& a, const Form& b) {
  const auto ta = as_triangles(a), tb = as_triangles(b);
  if (ta and tb) return Triangles{pairwise.of(ta->lower, tb->lower), pairwise.of(ta->upper, tb->upper)};
  const auto la = as_line(a), lb = as_line(b);
  if (not la or not lb) return std::nullopt;
  if (*pairwise.op == op::add or *pairwise.op == op::sub) return Line{pairwise.of(la->row, lb->row), pairwise.of(la->column, lb->column), pairwise.of(la->constant, lb->constant)};
  if (*pairwise.op == op::mul) return scaled(a, b);
  return ordered(pairwise, *la, *lb);
}

// Where elements lie.

std::size_t from_end(const Shape& shape, std::size_t axis) { return shape.size() - 1 - axis; }

/// Along one axis, the last but `behind`.
MaybeForm along(std::size_t behind, double step, double constant) {
  if (behind > 1) return std::nullopt;
  return behind == 0 ? Line{0, step, constant} : Line{step, 0, constant};
}

bool has_ones_in_front(const Shape& shape) {
  return std::all_of(shape.begin(), shape.end() - static_cast<std::ptrdiff_t>(std::min<std::size_t>(2, shape.size())), [](const Dim& extent) { return extent.is_constant(1); });
}

MaybeForm reshaped(const Form& form, const Shape& from, const Shape& to) {
  if (constant_in(form)) return form;
  if (has_ones_in_front(from) and has_ones_in_front(to) and have_equal_matrices(from, to)) return form;
  const auto *line = std::get_if<Line>(&form);
  const auto old_axis = only_axis(from), new_axis = only_axis(to);
  if (line == nullptr or not old_axis or not new_axis) return std::nullopt;
  return along(from_end(to, *new_axis), from_end(from, *old_axis) == 0 ? line->column : line->row, line->constant);
}

MaybeForm form_of_constant(const Tensor& tensor) {
  const std::vector<std::int64_t>& shape = tensor.shape();
  const std::int64_t count = tensor.element_count();
  if (count == 1) return constant_form(tensor.at(0));
  if (count == 0 or shape.empty()) return std::nullopt;
  const std::int64_t columns = shape.back(), rows = count / columns;
  if (rows == 1) {
    const double step = tensor.at(1) - tensor.at(0);
    for (std::int64_t j = 0; j < columns; ++j)
      if (tensor.at(j) != tensor.at(0) + step * static_cast<double>(j)) return std::nullopt;
    return Line{0, step, tensor.at(0)};
  }
  if (columns < 2 or rows != shape[shape.size() - 2]) return std::nullopt;
  const Triangles triangles{tensor.at(0), tensor.at(1)};
  for (std::int64_t i = 0; i < count; ++i)
    if (tensor.at(i) != (i % columns <= i / columns ? triangles.lower : triangles.upper)) return std::nullopt;
  return triangles;
}

class MaskReader {
 public:
  explicit MaskReader(const Graph& graph) : graph_(graph) {}

  MaybeForm form(ValueId value, int depth = 0) {
    constexpr int kDeepest = 50;  // a mask is made in a few steps
    if (const auto known = forms_.find(value); known != forms_.end()) return known->second;
    const MaybeForm found = depth > kDeepest ? std::nullopt : read(value, depth + 1);
    forms_[value] = found;
    return found;
  }

 private:
  MaybeForm read(ValueId value, int depth) {
    if (const Tensor* constant = graph_.constant_of(value)) return form_of_constant(*constant);
    if (not graph_.value(value).producer.valid()) return std::nullopt;
    const Node& node = graph_.producer(value);
    if (*node.op == op::iota) {
      const Shape& shape = node.attrs[kShape];
      const auto axis = static_cast<std::size_t>(node.attrs[kAxis]);
      return shape[axis].is_constant(1) ? MaybeForm(constant_form(0)) : along(from_end(shape, axis), 1, 0);
    }
    std::vector<Form> operands;
    for (const ValueId operand : node.operands) {
      const MaybeForm form = operand.valid() ? this->form(operand, depth) : std::nullopt;
      if (not form or (is_spread(node) and not is_whole(*form, graph_.type(operand).shape, graph_.type(node.results[0]).shape))) return std::nullopt;
      operands.push_back(*form);
    }
    return combine(node, operands);
  }

  MaybeForm combine(const Node& node, const std::vector<Form>& x) const {
    for (const Pairwise& pairwise : kPairwise)
      if (*pairwise.op == *node.op) return combined(pairwise, x[0], x[1]);
    if (*node.op == op::where) return chosen(x);
    if (*node.op == op::logical_not) return combined({&op::equal, [](double a, double b) { return truth(a == b); }}, x[0], constant_form(0));
    if (*node.op == op::broadcast_to) return x[0];
    if (*node.op == op::cast) return node.attrs[kTo] == DType::kBool ? as_truth(x[0]) : holds_positions(node.attrs[kTo]) or std::holds_alternative<Triangles>(x[0]) ? MaybeForm(x[0]) : std::nullopt;
    if (*node.op == op::reshape) return reshaped(x[0], graph_.type(node.operands[0]).shape, graph_.type(node.results[0]).shape);
    if (*node.op == op::slice) return constant_in(x[0]) or (begins_at_zero(node) and has_matrices(graph_.type(node.results[0]).shape)) ? MaybeForm(x[0]) : std::nullopt;
    return std::nullopt;
  }

  /// Are operands broadcast to the result?
  static bool is_spread(const Node& node) { return node.op->scalar != nullptr or *node.op == op::broadcast_to; }
  /// A triangle that is spread along an axis of one row or column is none.
  static bool is_whole(const Form& form, const Shape& from, const Shape& to) {
    return std::holds_alternative<Line>(form) or constant_in(form) or have_equal_matrices(from, to);
  }
  /// What a slice leaves of an axis is one index, the same for all, where it is spread later.
  static bool has_matrices(const Shape& shape) {
    for (std::size_t behind = 0; behind < std::min<std::size_t>(2, shape.size()); ++behind)
      if (shape[shape.size() - 1 - behind].is_constant(1)) return false;
    return true;
  }
  /// Without wrapping round or rounding.
  static bool holds_positions(DType dtype) { return dtype == DType::kI32 or dtype == DType::kI64 or dtype == DType::kF32 or dtype == DType::kF64; }

  static MaybeForm chosen(const std::vector<Form>& x) {
    const auto condition = as_triangles(x[0]), then = as_triangles(x[1]), otherwise = as_triangles(x[2]);
    if (not condition or not then or not otherwise) return std::nullopt;
    return Triangles{condition->lower != 0 ? then->lower : otherwise->lower, condition->upper != 0 ? then->upper : otherwise->upper};
  }

  static MaybeForm as_truth(const Form& form) {
    const auto triangles = as_triangles(form);
    return triangles ? MaybeForm(Triangles{truth(triangles->lower != 0), truth(triangles->upper != 0)}) : std::nullopt;
  }

  /// Along the last two axes; others do not matter.
  static bool begins_at_zero(const Node& node) {
    const Shape& starts = node.attrs[kStarts];
    const Ints& steps = node.attrs[kSteps];
    for (std::size_t behind = 0; behind < std::min<std::size_t>(2, starts.size()); ++behind)
      if (const std::size_t axis = starts.size() - 1 - behind; not starts[axis].is_constant(0) or steps[axis] != 1) return false;
    return true;
  }

  const Graph& graph_;
  std::map<ValueId, MaybeForm> forms_;
};

}  // namespace

bool have_equal_matrices(const Shape& a, const Shape& b) { return a.size() >= 2 and b.size() >= 2 and std::equal(a.end() - 2, a.end(), b.end() - 2); }

std::optional<Triangles> triangles_of(const Graph& graph, ValueId mask) {
  const MaybeForm form = MaskReader(graph).form(mask);
  return form ? as_triangles(*form) : std::nullopt;
}

}  // namespace hone
