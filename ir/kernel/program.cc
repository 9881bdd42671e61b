#include "ir/kernel/program.h"

#include <algorithm>

#include "base/check.h"
#include "ir/kernel/scalar_math.h"

namespace hone {

namespace {

/// For each expression, whether `phase` uses it.
std::vector<bool> used_in(const Phase& phase, const ExprPool& exprs) {
  std::vector<bool> used(exprs.size());
  const auto use = [&used](ExprId id) {
    if (id.valid()) used[id.index] = true;
  };
  for (const Reduction& reduction : phase.reductions) use(reduction.value);
  for (const Store& store : phase.stores) {
    use(store.value);
    use(store.guard);
    std::ranges::for_each(store.index, use);
  }
  for (std::size_t i = exprs.size(); i-- > 0;) {
    if (not used[i]) continue;
    const Expr& expr = exprs[ExprId(i)];
    std::ranges::for_each(expr.operands, use);
    std::ranges::for_each(expr.index, use);
    use(expr.guard);
  }
  return used;
}

}  // namespace

KernelProgram::KernelProgram(Kernel kernel, Precision precision) : kernel_(std::move(kernel)), precision_(precision) {
  verify(kernel_);
  const std::vector<Dim> arguments = size_arguments(kernel_);
  argument_count_ = arguments.size();
  for (const KernelAxis& axis : kernel_.axes) axes_.push_back(extent_of(axis.extent, arguments));
  for (const KernelBuffer& buffer : kernel_.buffers) {
    std::vector<Extent>& shape = shapes_.emplace_back();
    for (const Dim& dim : buffer.shape) shape.push_back(extent_of(dim, arguments));
  }
  for (const Phase& phase : kernel_.phases) phases_.push_back(compile(phase, arguments));
}

KernelProgram::Extent KernelProgram::extent_of(const Dim& dim, const std::vector<Dim>& arguments) const {
  if (dim.is_constant()) return {dim.value(), -1};
  return {0, static_cast<std::int32_t>(std::ranges::find(arguments, dim) - arguments.begin())};
}

KernelProgram::PhaseProgram KernelProgram::compile(const Phase& phase, const std::vector<Dim>& arguments) const {
  PhaseProgram program{&phase, {}};
  program.levels.resize(2 + phase.inner.size());
  const std::size_t innermost = program.levels.size() - 1;
  const std::vector<bool> used = used_in(phase, kernel_.exprs);
  std::vector<std::size_t> level_of(kernel_.exprs.size());
  for (std::size_t i = 0; i < kernel_.exprs.size(); ++i) {
    if (not used[i]) continue;
    const Expr& expr = kernel_.exprs[ExprId(i)];
    std::size_t& level = level_of[i];
    const auto depends_on = [&](ExprId id) {
      if (id.valid()) level = std::max(level, level_of[id.index]);
    };
    std::ranges::for_each(expr.operands, depends_on);
    std::ranges::for_each(expr.index, depends_on);
    depends_on(expr.guard);
    if (expr.op == ScalarOp::kTemp) level = 1;
    if (expr.op == ScalarOp::kIndex) {
      const auto inner = std::ranges::find(phase.inner, expr.slot);
      level = inner == phase.inner.end() ? 1 : 2 + static_cast<std::size_t>(inner - phase.inner.begin());
    }
    if (expr.op == ScalarOp::kLoad and kernel_.buffers[expr.slot].access == Access::kWrite) level = innermost;  // may change at every point
    program.levels[level].push_back(instruction_of(ExprId(i), arguments));
  }
  return program;
}

KernelProgram::Instruction KernelProgram::instruction_of(ExprId id, const std::vector<Dim>& arguments) const {
  const Expr& expr = kernel_.exprs[id];
  const bool unary_or_more = info(expr.op).operands > 0;
  const DType type = unary_or_more ? kernel_.exprs[expr.operands[info(expr.op).operands - 1]].dtype : expr.dtype;
  Instruction made{.code = Code::kBinary, .op = expr.op, .type = type, .result = expr.dtype, .target = id.index};
  made.real = is_float(type);
  made.round = expr.dtype == DType::kF32 and precision_ == Precision::kFloat;
  const auto of = [&expr](int i) { return expr.operands[i].valid() ? expr.operands[i].index : 0; };
  made.a = of(0), made.b = of(1), made.c = of(2);
  made.slot = expr.slot;
  switch (expr.op) {
    case ScalarOp::kConstFloat:
      made.code = Code::kReal;
      made.number = made.round ? static_cast<float>(expr.float_value) : expr.float_value;
      break;
    case ScalarOp::kConstInt: made.code = Code::kInteger, made.integer = expr.int_value; break;
    case ScalarOp::kSize: made.code = Code::kSize, made.slot = static_cast<std::uint32_t>(extent_of(expr.size, arguments).argument); break;
    case ScalarOp::kIndex: made.code = Code::kIndex; break;
    case ScalarOp::kTemp: made.code = Code::kTemp; break;
    case ScalarOp::kLoad: made.code = Code::kLoad, made.type = storage_type(kernel_.buffers[expr.slot].dtype, precision_); break;
    case ScalarOp::kNeg: made.code = made.real ? Code::kNeg : Code::kUnary; break;
    case ScalarOp::kAdd: made.code = Code::kAdd; break;
    case ScalarOp::kSub: made.code = Code::kSub; break;
    case ScalarOp::kMul: made.code = Code::kMul; break;
    case ScalarOp::kSelect: made.code = Code::kSelect; break;
    case ScalarOp::kCast: made.code = Code::kCast; break;
    case ScalarOp::kRoundTo: made.code = Code::kRoundTo; break;
    case ScalarOp::kIsNan: made.code = Code::kIsNan; break;
    case ScalarOp::kIsInf: made.code = Code::kIsInf; break;
    default:
      if (info(expr.op).operands == 1) made.code = Code::kUnary;
      else if (is_comparison(expr.op)) made.code = Code::kCompare;
  }
  return made;
}

std::int64_t KernelProgram::outer_size(std::span<const std::int64_t> sizes) const {
  std::int64_t count = 1;
  for (std::uint32_t axis = 0; axis < kernel_.outer_count; ++axis)
    count *= axes_[axis].argument < 0 ? axes_[axis].number : sizes[static_cast<std::size_t>(axes_[axis].argument)];
  return count;
}

}  // namespace hone
