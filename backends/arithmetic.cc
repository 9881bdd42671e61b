#include "backends/arithmetic.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "backends/cost_model.h"
#include "base/diag.h"
#include "base/text.h"

namespace hone {

namespace {

bool is_arithmetic(ScalarOp op) { return info(op).operands > 0 and op != ScalarOp::kCast and op != ScalarOp::kRoundTo; }

/// The expressions whose values a phase sums up or stores; not those that say where.
std::vector<bool> values_of(const Kernel& kernel, const Phase& phase) {
  std::vector<bool> used(kernel.exprs.size());
  for (const Reduction& reduction : phase.reductions) used[reduction.value.index] = true;
  for (const Store& store : phase.stores) used[store.value.index] = true;
  for (std::size_t i = kernel.exprs.size(); i-- > 0;) {
    const Expr& expr = kernel.exprs[ExprId(i)];
    for (int k = 0; used[i] and k < info(expr.op).operands; ++k) used[expr.operands[k].index] = true;
  }
  return used;
}

/// Which expressions change along the phase's inner axes.
std::vector<bool> inner_ones(const Kernel& kernel, const Phase& phase) {
  std::vector<bool> inner(kernel.exprs.size());
  for (std::size_t i = 0; i < kernel.exprs.size(); ++i) {
    const Expr& expr = kernel.exprs[ExprId(i)];
    bool changes = expr.op == ScalarOp::kIndex and std::ranges::find(phase.inner, expr.slot) != phase.inner.end();
    for (int k = 0; k < info(expr.op).operands; ++k) changes = changes or inner[expr.operands[k].index];
    for (const ExprId id : expr.index) changes = changes or inner[id.index];
    inner[i] = changes or (expr.guard.valid() and inner[expr.guard.index]);
  }
  return inner;
}

constexpr std::int64_t kSparsest = 1 << 30;  // so that the product of two is a number

/// Of how many neighbouring points a condition holds at one: of `floordiv(i, s) * s == i`, which strides ask, at one of s; 1 where that is not known.
std::int64_t holds_at_one_of(const Kernel& kernel, const Expr& condition) {
  const auto operand = [&](const Expr& expr, int i) -> const Expr& { return kernel.exprs[expr.operands[i]]; };
  if (condition.op != ScalarOp::kEq) return 1;
  for (int side = 0; side < 2; ++side) {
    const Expr& multiple = operand(condition, side);
    if (multiple.op != ScalarOp::kMul) continue;
    const Expr &quotient = operand(multiple, 0), &stride = operand(multiple, 1);
    if (quotient.op != ScalarOp::kFloorDiv or stride.op != ScalarOp::kConstInt or quotient.operands[0] != condition.operands[1 - side]) continue;
    if (quotient.operands[1] == multiple.operands[1] and stride.int_value > 1) return std::min(stride.int_value, kSparsest);
  }
  return 1;
}

/// By expression: at one of how many points it has to be computed. What is read where a guard holds is 0 elsewhere, and so is its product with anything.
std::vector<std::int64_t> computed_at_one_of(const Kernel& kernel) {
  std::vector<std::int64_t> one_of(kernel.exprs.size(), 1);
  for (std::size_t i = 0; i < one_of.size(); ++i) {
    const Expr& expr = kernel.exprs[ExprId(i)];
    const auto of = [&](ExprId id) { return one_of[id.index]; };
    if (expr.op == ScalarOp::kAnd) one_of[i] = std::min(of(expr.operands[0]) * of(expr.operands[1]), kSparsest);
    else if (expr.op == ScalarOp::kLoad) one_of[i] = expr.guard.valid() ? of(expr.guard) : 1;
    else if (expr.op == ScalarOp::kMul) one_of[i] = std::max(of(expr.operands[0]), of(expr.operands[1]));
    else if (expr.op == ScalarOp::kCast or expr.op == ScalarOp::kRoundTo) one_of[i] = of(expr.operands[0]);
    else one_of[i] = holds_at_one_of(kernel, expr);
  }
  return one_of;
}

void add_phase(const Kernel& kernel, const Phase& phase, Arithmetic& sum) {
  Dim inner_points = 1;
  for (const std::uint32_t axis : phase.inner) inner_points *= kernel.axes[axis].extent;
  const Dim outer_points = phase.scatter ? Dim(1) : kernel.outer_size();
  const std::vector<bool> values = values_of(kernel, phase), inner = inner_ones(kernel, phase);
  const std::vector<std::int64_t> one_of = computed_at_one_of(kernel);
  const auto add = [&](bool is_inner, int cost, std::int64_t at_one_of = 1) {
    const Dim points = floordiv(is_inner ? outer_points * inner_points : outer_points, at_one_of);
    sum.flops += points;
    sum.operations += points * cost;
  };
  for (std::size_t i = 0; i < values.size(); ++i)
    if (const ScalarOp op = kernel.exprs[ExprId(i)].op; values[i] and is_arithmetic(op)) add(inner[i], cost_of(op), one_of[i]);
  for (const Reduction& reduction : phase.reductions) add(true, 1, one_of[reduction.value.index]);
  for (const Store& store : phase.stores)
    if (store.combine != Combine::kReplace) add(true, 1);
}

}  // namespace

Arithmetic arithmetic_of(const Kernel& kernel) {
  Arithmetic sum;
  for (const Phase& phase : kernel.phases) add_phase(kernel, phase, sum);
  return sum;
}

std::string arithmetic_text(const KernelSet& kernels) {
  std::string text;
  for (const Kernel& kernel : kernels.kernels()) {
    const Arithmetic arithmetic = arithmetic_of(kernel);
    text += fmt::format("{}\t{}\t{}", kernel.name, arithmetic.flops.text(), arithmetic.operations.text());
    for (const Dim& size : size_arguments(kernel)) text += "\t" + (size.is_symbol() ? size.text() : "");
    text += "\n";
  }
  return text;
}

ArithmeticTable::ArithmeticTable(std::string_view text) {
  for (const std::string& line : split(text, '\n')) {
    const std::vector<std::string> fields = split(line, '\t');
    if (fields.size() >= 3) rows_[fields[0]] = {{Dim::parse(fields[1]), Dim::parse(fields[2])}, {fields.begin() + 3, fields.end()}};
  }
}

std::optional<CallArithmetic> ArithmeticTable::of(const plan::KernelStep& step, const DimBindings& sizes) const {
  const auto row = rows_.find(step.symbol);
  if (row == rows_.end()) return std::nullopt;
  try {
    DimBindings all = sizes;
    for (std::size_t i = 0; i < std::min(step.sizes.size(), row->second.arguments.size()); ++i)
      if (const std::string& symbol = row->second.arguments[i]; not symbol.empty()) all.insert_or_assign(symbol, step.sizes[i].evaluate(sizes));
    return CallArithmetic{static_cast<double>(row->second.arithmetic.flops.evaluate(all)), static_cast<double>(row->second.arithmetic.operations.evaluate(all))};
  } catch (const Error&) {  // a size that is not known
    return std::nullopt;
  }
}

}  // namespace hone
