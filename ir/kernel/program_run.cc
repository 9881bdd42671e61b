#include <fmt/format.h>

#include <cmath>
#include <cstring>
#include <limits>

#include "base/by_dtype.h"
#include "base/check.h"
#include "base/diag.h"
#include "ir/kernel/program.h"
#include "ir/kernel/scalar_math.h"

namespace hone {

namespace {

union Register {
  double real;
  std::int64_t integer;
};

template <typename T>
T read_as(const void* memory, std::int64_t at) {
  T value;
  std::memcpy(&value, static_cast<const char*>(memory) + at * static_cast<std::int64_t>(sizeof(T)), sizeof(T));
  return value;
}
template <typename T>
void write_as(void* memory, std::int64_t at, T value) {
  std::memcpy(static_cast<char*>(memory) + at * static_cast<std::int64_t>(sizeof(T)), &value, sizeof(T));
}

Register read_element(const void* memory, DType dtype, std::int64_t at) {
  if (not has_cpp_type(dtype)) return {.real = read_storage(dtype, static_cast<const char*>(memory) + at * static_cast<std::int64_t>(size_of(dtype)))};
  return by_dtype(held_as(dtype), [&]<typename T>() -> Register {
    if constexpr (std::is_floating_point_v<T>) return {.real = static_cast<double>(read_as<T>(memory, at))};
    else if constexpr (std::is_same_v<T, bool>) return {.integer = read_as<std::uint8_t>(memory, at) != 0};
    else return {.integer = static_cast<std::int64_t>(read_as<T>(memory, at))};
  });
}

void write_element(void* memory, DType dtype, std::int64_t at, Register value) {
  switch (dtype) {
    case DType::kF32: return write_as(memory, at, static_cast<float>(value.real));
    case DType::kF64: return write_as(memory, at, value.real);
    default: break;
  }
  if (is_float(dtype)) return write_storage(dtype, static_cast<char*>(memory) + at * static_cast<std::int64_t>(size_of(dtype)), value.real);
  if (is_storage_only(dtype)) value.integer = scalar_math::wrap(dtype, value.integer);
  switch (size_of(dtype)) {
    case 1: return write_as(memory, at, static_cast<std::uint8_t>(value.integer));
    case 2: return write_as(memory, at, static_cast<std::uint16_t>(value.integer));
    case 4: return write_as(memory, at, static_cast<std::uint32_t>(value.integer));
    default: return write_as(memory, at, value.integer);
  }
}

/// One reduction under way.
class Accumulator {
 public:
  Accumulator(ReduceKind kind, DType type) : kind_(kind), type_(type), real_(is_float(type)) {
    constexpr double kInfinity = std::numeric_limits<double>::infinity();
    const bool low = kind == ReduceKind::kMax or kind == ReduceKind::kArgMax, high = kind == ReduceKind::kMin or kind == ReduceKind::kArgMin;
    if (real_) best_.real = low ? -kInfinity : high ? kInfinity : kind == ReduceKind::kProd ? 1 : 0;
    else best_.integer = low ? scalar_math::lowest(type) : high ? scalar_math::highest(type) : kind == ReduceKind::kProd ? 1 : 0;
  }

  void add(Register value, std::int64_t position) {
    switch (kind_) {
      case ReduceKind::kSum: return combine(ScalarOp::kAdd, value);
      case ReduceKind::kProd: return combine(ScalarOp::kMul, value);
      case ReduceKind::kMax: return combine(ScalarOp::kMax, value);
      case ReduceKind::kMin: return combine(ScalarOp::kMin, value);
      default: break;
    }
    if (empty_ or better(value)) {
      best_ = value;
      position_ = position;
    }
    empty_ = false;
  }

  /// The temporary. Sums and products of f32 were kept in double; `round` makes them float.
  Register result(bool round) const {
    if (kind_ == ReduceKind::kArgMax or kind_ == ReduceKind::kArgMin) return {.integer = position_};
    if (real_) return {.real = round ? static_cast<float>(best_.real) : best_.real};
    return best_;
  }

 private:
  void combine(ScalarOp op, Register value) {
    if (real_) best_.real = op == ScalarOp::kAdd ? best_.real + value.real : scalar_math::float_binary(op, best_.real, value.real);
    else best_.integer = scalar_math::integer_binary(op, type_, best_.integer, value.integer);
  }
  bool better(Register value) const {
    const bool upward = kind_ == ReduceKind::kArgMax;
    if (not real_) return upward ? scalar_math::less(type_, best_.integer, value.integer) : scalar_math::less(type_, value.integer, best_.integer);
    if (std::isnan(best_.real)) return false;
    return std::isnan(value.real) or (upward ? value.real > best_.real : value.real < best_.real);
  }

  ReduceKind kind_;
  DType type_;
  bool real_;
  bool empty_ = true;
  Register best_;
  std::int64_t position_ = 0;
};

}  // namespace

/// One call of KernelProgram::run.
class ProgramRun {
 public:
  ProgramRun(const KernelProgram& program, std::span<void* const> buffers, std::span<const std::int64_t> sizes, std::int64_t begin, std::int64_t end)
      : program_(program), kernel_(program.kernel_), buffers_(buffers), sizes_(sizes), begin_(begin), end_(end) {
    registers_.resize(kernel_.exprs.size());
    for (const auto& extent : program.axes_) extents_.push_back(value(extent));
    for (const auto& shape : program.shapes_)
      for (std::vector<std::int64_t>& made = shapes_.emplace_back(); const auto& extent : shape) made.push_back(value(extent));
    position_.resize(extents_.size());
    round_ = program.precision_ == Precision::kFloat;
  }

  void run() {
    const auto& phases = program_.phases_;
    for (std::size_t first = 0; first < phases.size();) {
      if (phases[first].phase->scatter) {
        constants_done_ = false;
        run_phase(phases[first++]);
        continue;
      }
      std::size_t last = first;
      while (last < phases.size() and not phases[last].phase->scatter) ++last;
      run_points(std::span(phases).subspan(first, last - first));
      first = last;
    }
  }

 private:
  using Instruction = KernelProgram::Instruction;
  using Code = KernelProgram::Code;
  using PhaseProgram = KernelProgram::PhaseProgram;

  std::int64_t value(const KernelProgram::Extent& extent) const {
    return extent.argument < 0 ? extent.number : sizes_[static_cast<std::size_t>(extent.argument)];
  }

  void run_points(std::span<const PhaseProgram> phases) {
    constants_done_ = false;
    for (std::int64_t point = begin_; point < end_; ++point) {
      std::int64_t rest = point;
      for (std::size_t axis = kernel_.outer_count; axis-- > 0; rest /= extents_[axis]) position_[axis] = rest % extents_[axis];
      for (const PhaseProgram& phase : phases) run_phase(phase);
      constants_done_ = true;
    }
  }

  /// All inner points of one phase at the present outer point. Nothing is evaluated when there is none: a hoisted load may not exist then.
  void run_phase(const PhaseProgram& program) {
    const Phase& phase = *program.phase;
    accumulators_.clear();
    for (const Reduction& reduction : phase.reductions) accumulators_.emplace_back(reduction.kind, kernel_.exprs[reduction.value].dtype);
    std::int64_t count = 1;
    for (const std::uint32_t axis : phase.inner) {
      position_[axis] = 0;
      count *= extents_[axis];
    }
    if (count > 0) {
      if (not constants_done_) execute(program.levels[0]);
      run_inner(program, count);
    }
    for (std::size_t i = 0; i < accumulators_.size(); ++i) {
      const Reduction& reduction = phase.reductions[i];
      if (temps_.size() <= reduction.temp) temps_.resize(reduction.temp + 1);
      temps_[reduction.temp] = accumulators_[i].result(round_ and reduction.dtype == DType::kF32);
    }
  }

  void run_inner(const PhaseProgram& program, std::int64_t count) {
    const Phase& phase = *program.phase;
    std::size_t moved = 1;  // the lowest level whose values changed
    for (std::int64_t at = 0;; ++at) {
      for (std::size_t level = moved; level < program.levels.size(); ++level) execute(program.levels[level]);
      for (std::size_t i = 0; i < accumulators_.size(); ++i) accumulators_[i].add(registers_[phase.reductions[i].value.index], at);
      for (const Store& store : phase.stores) perform(store, phase.scatter);
      if (at + 1 == count) return;
      std::size_t axis = phase.inner.size() - 1;
      for (; ++position_[phase.inner[axis]] == extents_[phase.inner[axis]]; --axis) position_[phase.inner[axis]] = 0;
      moved = 2 + axis;
    }
  }

  void execute(const std::vector<Instruction>& instructions) {
    for (const Instruction& in : instructions) {
      Register& target = registers_[in.target];
      const auto real = [&](double result) { target.real = in.round ? static_cast<float>(result) : result; };
      const Register &a = registers_[in.a], &b = registers_[in.b];
      switch (in.code) {
        case Code::kReal: target.real = in.number; break;
        case Code::kInteger: target.integer = in.integer; break;
        case Code::kSize: target.integer = sizes_[in.slot]; break;
        case Code::kIndex: target.integer = position_[in.slot]; break;
        case Code::kTemp: target = temps_[in.slot]; break;
        case Code::kLoad: target = load(in); break;
        case Code::kNeg: target.real = -a.real; break;
        case Code::kAdd: in.real ? real(a.real + b.real) : void(target.integer = integer(in, a, b)); break;
        case Code::kSub: in.real ? real(a.real - b.real) : void(target.integer = integer(in, a, b)); break;
        case Code::kMul: in.real ? real(a.real * b.real) : void(target.integer = integer(in, a, b)); break;
        case Code::kSelect: target = a.integer != 0 ? b : registers_[in.c]; break;
        case Code::kCast: target = cast(in, a); break;
        case Code::kRoundTo: target = round_to(StorageRounding::unpacked(in.slot), a); break;
        case Code::kUnary:
          if (in.real) real(scalar_math::float_unary(in.op, a.real));
          else target.integer = scalar_math::integer_unary(in.op, in.type, a.integer);
          break;
        case Code::kBinary: in.real ? real(scalar_math::float_binary(in.op, a.real, b.real)) : void(target.integer = integer(in, a, b)); break;
        case Code::kCompare: target.integer = in.real ? scalar_math::float_compare(in.op, a.real, b.real) : integer(in, a, b); break;
        case Code::kIsNan: target.integer = std::isnan(a.real); break;
        case Code::kIsInf: target.integer = std::isinf(a.real); break;
      }
    }
  }

  static std::int64_t integer(const Instruction& in, Register a, Register b) { return scalar_math::integer_binary(in.op, in.type, a.integer, b.integer); }

  static Register cast(const Instruction& in, Register a) {
    if (is_float(in.result)) {
      const double value = in.real ? a.real : scalar_math::to_float(in.type, a.integer);
      return {.real = in.round ? static_cast<float>(value) : value};
    }
    if (in.real) return {.integer = scalar_math::to_integer(in.result, a.real)};
    return {.integer = scalar_math::wrap(in.result, a.integer)};
  }

  static Register round_to(StorageRounding to, Register a) {
    if (not is_float(to.dtype)) return {.integer = scalar_math::wrap(to.dtype, a.integer)};
    const FloatFormat& format = float_format(to.dtype);
    return {.real = decode(format, encode(format, a.real, to.rounding, to.saturate))};
  }

  Register load(const Instruction& in) const {
    const Expr& expr = kernel_.exprs[ExprId(in.target)];
    if (expr.guard.valid() and registers_[expr.guard.index].integer == 0) return is_float(expr.dtype) ? Register{.real = 0} : Register{.integer = 0};
    return read_element(buffers_[in.slot], in.type, offset_of(in.slot, expr.index));
  }

  std::int64_t offset_of(std::uint32_t buffer, const std::vector<ExprId>& index) const {
    const std::vector<std::int64_t>& shape = shapes_[buffer];
    std::int64_t offset = 0;
    for (std::size_t i = 0; i < index.size(); ++i) {
      const std::int64_t at = registers_[index[i].index].integer;
      if (at < 0 or at >= shape[i]) [[unlikely]]
        outside(buffer, i, at);
      offset = offset * shape[i] + at;
    }
    if (buffers_[buffer] == nullptr) [[unlikely]]
      internal_error(__FILE__, __LINE__, fmt::format("kernel {} accesses a buffer without memory", kernel_.name));
    return offset;
  }

  [[noreturn]] void outside(std::uint32_t buffer, std::size_t axis, std::int64_t at) const {
    throw Error(hone::Code::kDataRange, fmt::format("{}: index {} is outside axis {} of {}, whose extent is {}", kernel_.name, at, axis,
                                                    kernel_.buffers[buffer].name, shapes_[buffer][axis]));
  }

  void perform(const Store& store, bool scatter) {
    if (store.guard.valid() and registers_[store.guard.index].integer == 0) return;
    if (scatter) {
      const std::int64_t row = registers_[store.index[0].index].integer;
      if (row < begin_ or row >= end_) return;
    }
    const DType dtype = kernel_.buffers[store.buffer].dtype, memory_type = storage_type(dtype, program_.precision_);
    void* memory = buffers_[store.buffer];
    const std::int64_t offset = offset_of(store.buffer, store.index);
    Register value = registers_[store.value.index];
    if (store.combine != Combine::kReplace) {
      const ScalarOp op = operation_of(store.combine);
      const Register old = read_element(memory, memory_type, offset);
      if (is_float(dtype)) {
        value.real = scalar_math::float_binary(op, old.real, value.real);
        if (round_ and dtype != DType::kF64) value.real = static_cast<float>(value.real);
      } else {
        value.integer = scalar_math::integer_binary(op, dtype, old.integer, value.integer);
      }
    }
    write_element(memory, memory_type, offset, value);
  }

  const KernelProgram& program_;
  const Kernel& kernel_;
  std::span<void* const> buffers_;
  std::span<const std::int64_t> sizes_;
  std::int64_t begin_, end_;
  bool round_;
  bool constants_done_ = false;                   // level 0 of the phases under way was evaluated
  std::vector<Register> registers_;               // by expression
  std::vector<Register> temps_;                   // by reduction
  std::vector<std::int64_t> extents_, position_;  // by axis
  std::vector<std::vector<std::int64_t>> shapes_;
  std::vector<Accumulator> accumulators_;
};

void KernelProgram::run(std::span<void* const> buffers, std::span<const std::int64_t> sizes, std::int64_t begin, std::int64_t end) const {
  HONE_CHECK(buffers.size() == kernel_.buffers.size(), fmt::format("kernel {} has {} buffers, not {}", kernel_.name, kernel_.buffers.size(), buffers.size()));
  HONE_CHECK(sizes.size() == argument_count_, fmt::format("kernel {} takes {} sizes, not {}", kernel_.name, argument_count_, sizes.size()));
  if (begin < end) ProgramRun(*this, buffers, sizes, begin, end).run();
}

}  // namespace hone
