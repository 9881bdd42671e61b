// Every scalar operation on every element type, over a grid of values that holds all special ones, against the interpreter;
// and the polynomials against libm in double.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>
#include <random>
#include <utility>

#include "base/check.h"
#include "ir/kernel/scalar_math.h"
#include "tests/backends/kernel_case.h"

namespace hone {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

std::vector<double> values_of(DType dtype) {
  if (is_float(dtype))
    return {0,    -0.0, 1,     -1,     0.5,  -0.5,   1.5,   2.5,  -2.5,  3.75, -3.75, 0.3,   -0.7,        8.0,          -9.0,   1e-40,     -1e-40,
            1e-9, 1e9,  20.25, -20.25, 88.6, -88.6,  127.5, 1e30, -1e30, 255,  256,   65535, 2147483647., -2147483904., 9.3e18, -9.4e18,   1.9e19,
            kInfinity,  -kInfinity,    std::numeric_limits<double>::quiet_NaN(),     3.4e38, 1.2e-38};
  if (dtype == DType::kBool) return {0, 1};
  std::vector<double> values = {0, 1, 2, 3, 5, 7, 8, 15, 16, 31, 32, 63, 64, 100, scalar_math::to_float(dtype, scalar_math::highest(dtype))};
  if (info(dtype).is_signed) values.insert(values.end(), {-1, -2, -3, -8, -100, static_cast<double>(scalar_math::lowest(dtype)), static_cast<double>(scalar_math::lowest(dtype)) + 1});
  return values;
}

constexpr DType kTypes[] = {DType::kF32, DType::kF64, DType::kI8, DType::kI16, DType::kI32, DType::kI64, DType::kU8, DType::kU16, DType::kU32, DType::kU64, DType::kBool};

/// y = build(a, b) over all pairs of values, of which compilers do not know how many they are.
template <typename Build>
void add_op(AgreeingKernels& kernels, const std::string& name, DType dtype, Build build) {
  const std::vector<double> values = values_of(dtype);
  const auto count = static_cast<std::int64_t>(values.size());
  KernelWriter w(name + "_" + std::string(to_string(dtype)));
  const Dim pairs = Dim::symbol("pairs");
  const auto a = w.operand(dtype, {pairs}), b = w.operand(dtype, {pairs});
  const Scalar i = w.outer(pairs);
  Scalar value;
  try {
    value = build(w.load(a, {i}), w.load(b, {i}));
  } catch (const InternalError&) {
    return;  // not an operation of this type
  }
  const auto y = w.result(value.dtype(), {pairs});
  w.store(y, {i}, value);
  kernels.add(std::move(w.kernel),
              {.sizes = {{{"pairs", count * count}}}, .fill = [values, count, a](std::uint32_t buffer, std::int64_t k) { return values[static_cast<std::size_t>(buffer == a ? k / count : k % count)]; }});
}

class EmitOps : public testing::TestWithParam<ScalarOp> {};

TEST_P(EmitOps, AgreeWithTheInterpreter) {
  const ScalarOp op = GetParam();
  std::string name = "op" + std::to_string(static_cast<int>(op));
  AgreeingKernels kernels;
  for (const DType dtype : kTypes) {
    if (info(op).operands == 1) add_op(kernels, name, dtype, [op](Scalar a, Scalar) { return expr::unary(op, a); });
    if (info(op).operands == 2) add_op(kernels, name, dtype, [op](Scalar a, Scalar b) { return expr::binary(op, a, b); });
    if (op == ScalarOp::kSelect) add_op(kernels, name, dtype, [](Scalar a, Scalar b) { return expr::select(expr::less(a, b), a, b); });
  }
  kernels.expect();
}

std::vector<ScalarOp> operations() {
  std::vector<ScalarOp> ops;
  for (auto op = static_cast<int>(ScalarOp::kNeg); op <= static_cast<int>(ScalarOp::kSelect); ++op)
    if (const auto one = static_cast<ScalarOp>(op); one != ScalarOp::kCast and one != ScalarOp::kRoundTo) ops.push_back(static_cast<ScalarOp>(op));
  return ops;
}
INSTANTIATE_TEST_SUITE_P(All, EmitOps, testing::ValuesIn(operations()));

TEST(EmitCasts, FromEveryTypeToEvery) {
  AgreeingKernels kernels;
  for (const DType from : kTypes)
    for (const DType to : kTypes)
      if (from != to) add_op(kernels, "to_" + std::string(to_string(to)), from, [to](Scalar a, Scalar) { return expr::cast(a, to); });
  kernels.expect();
}

// Accuracy of the polynomials.

struct Function {
  std::string_view name;
  ScalarOp op;
  double (*exact)(double);
  double most;  ///< error, in units of the last place
};

double sigmoid(double x) { return x >= 0 ? 1 / (1 + std::exp(-x)) : std::exp(x) / (1 + std::exp(x)); }

constexpr Function kFunctions[] = {
    {"exp", ScalarOp::kExp, std::exp, 1.3}, {"log", ScalarOp::kLog, std::log, 1.3}, {"tanh", ScalarOp::kTanh, std::tanh, 2.9}, {"erf", ScalarOp::kErf, std::erf, 2.6}, {"sigmoid", ScalarOp::kSigmoid, sigmoid, 2.2},
};

const double kLeast = std::exp2(-125.5);  ///< less than that may be 0

/// |found - exact| in units of the last place of a float as large as `exact`.
double ulps(double exact, float found) {
  if (std::isnan(exact)) return std::isnan(found) ? 0 : kInfinity;
  const auto rounded = static_cast<float>(exact);
  if (rounded == found) return 0;
  if (found == 0 and std::fabs(exact) < kLeast) return 0;
  if (std::isinf(rounded) or std::isinf(found) or std::isnan(found)) return kInfinity;
  const int exponent = std::max(std::ilogb(exact), -126);
  return std::fabs(found - exact) / std::ldexp(1.0, exponent - 23);
}

TEST(EmitAccuracy, OfPolynomialsOverAllFloats) {
  constexpr std::uint32_t kStep = 1021;  // a prime: every exponent and many mantissas
  constexpr std::int64_t kCount = (std::int64_t{1} << 32) / kStep + 1;
  const GuardedMemory x(kCount * 4), y(kCount * 4);
  for (std::int64_t i = 0; i < kCount; ++i) x.as<float>()[i] = std::bit_cast<float>(static_cast<std::uint32_t>(i) * kStep);
  for (const Function& function : kFunctions) {
    KernelWriter w(std::string(function.name));
    const auto in = w.operand(DType::kF32, {kCount}), out = w.result(DType::kF32, {kCount});
    const Scalar i = w.outer(kCount);
    w.store(out, {i}, expr::unary(function.op, w.load(in, {i})));
    for (const std::string& cpu : runnable_cpus()) {
      const Kernel* const kernels[] = {&w.kernel};
      const LoadedKernels loaded(compile_shared_object(kernels, {.cpu = cpu}));
      void* const buffers[] = {x.data(), y.data()};
      loaded[w.kernel.name](buffers, nullptr, 0, kCount);
      double worst = 0;
      float at = 0;
      for (std::int64_t k = 0; k < kCount; ++k) {
        const double error = ulps(function.exact(x.as<float>()[k]), y.as<float>()[k]);
        if (error > worst) worst = error, at = x.as<float>()[k];
      }
      EXPECT_LE(worst, function.most) << function.name << "(" << at << ") on " << cpu;
      RecordProperty(std::string(function.name) + "_" + cpu, std::to_string(worst));
    }
  }
}

/// |found - exact| in units of the last place of a double as large as `exact`.
double double_ulps(double exact, double found) {
  if (std::isnan(exact)) return std::isnan(found) ? 0 : kInfinity;
  if (exact == found) return 0;
  if (std::isinf(exact) or not std::isfinite(found)) return kInfinity;
  return std::fabs(found - exact) / std::ldexp(1.0, std::max(std::ilogb(exact), -1022) - 52);
}

TEST(EmitAccuracy, OfPowersOfConstants) {
  std::vector<double> exponents = {0, -0.0, kInfinity, -kInfinity, std::numeric_limits<double>::quiet_NaN(), 1e300, -1e300, 1e-300};
  for (int i = 1; i <= 5000; ++i)
    for (const double unit : {1.0, 0.004, 37.3, -0.37, -11.0}) exponents.push_back(i * unit);
  const auto count = static_cast<std::int64_t>(exponents.size());
  const GuardedMemory x(count * 8), y(count * 8);
  std::ranges::copy(exponents, x.as<double>());
  for (const double base : {0.9, 0.999, 0.96, 0.5, 1.0, 2.0, 10.0, 1e-3, 1e300, 4e-310, 1.0000001}) {
    KernelWriter w("power");
    const auto in = w.operand(DType::kF64, {count}), out = w.result(DType::kF64, {count});
    const Scalar i = w.outer(count), exponent = w.load(in, {i});
    w.store(out, {i}, expr::pow(expr::like(exponent, base), exponent));
    for (const std::string& cpu : runnable_cpus()) {
      const Kernel* const kernels[] = {&w.kernel};
      const LoadedKernels loaded(compile_shared_object(kernels, {.cpu = cpu}));
      void* const buffers[] = {x.data(), y.data()};
      loaded["power"](buffers, nullptr, 0, count);
      for (std::int64_t k = 0; k < count; ++k)
        ASSERT_LE(double_ulps(std::pow(base, exponents[static_cast<std::size_t>(k)]), y.as<double>()[k]), 2) << base << "^" << exponents[static_cast<std::size_t>(k)] << " on " << cpu;
    }
  }
}

/// Bases that are known when running only, over all that f64 has, and C's special cases.
TEST(EmitAccuracy, OfPowers) {
  constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
  const std::vector<double> odd = {0.0, -0.0, 1, -1, 2, -2, 0.5, -0.5, 3, -3, 1e300, -1e300, 1e-310, -1e-310, kInfinity, -kInfinity, kNan, 0x1p53, -0x1p53, 0x1p53 - 1, 1 + 0x1p-52, 1 - 0x1p-53};
  std::vector<std::pair<double, double>> cases;
  for (const double base : odd)
    for (const double exponent : odd) cases.emplace_back(base, exponent);
  for (const double base : {0.9, 0.999, 0.9999999, -0.75})  // an optimizer's decays, over its steps
    for (int step = 1; step <= 3000; ++step) cases.emplace_back(base, step);
  std::mt19937_64 random(7);
  const auto uniform = [&](double low, double high) { return std::uniform_real_distribution<double>(low, high)(random); };
  for (int i = 0; i < 100'000; ++i) {  // so that results are anywhere from 0 to infinity
    const double base = i % 3 == 0 ? std::exp2(uniform(-1074, 1024)) : i % 3 == 1 ? uniform(0.5, 2) : 1 + std::exp2(uniform(-52, -2)) * (i % 2 == 0 ? 1 : -1);
    cases.emplace_back(base, uniform(-760, 720) / std::log(base));
  }
  const auto count = static_cast<std::int64_t>(cases.size());
  const GuardedMemory x(count * 8), e(count * 8), y(count * 8);
  std::ranges::transform(cases, x.as<double>(), [](const auto& both) { return both.first; });
  std::ranges::transform(cases, e.as<double>(), [](const auto& both) { return both.second; });
  KernelWriter w("power");
  const auto base = w.operand(DType::kF64, {count}), exponent = w.operand(DType::kF64, {count}), out = w.result(DType::kF64, {count});
  const Scalar i = w.outer(count);
  w.store(out, {i}, expr::pow(w.load(base, {i}), w.load(exponent, {i})));
  for (const std::string& cpu : runnable_cpus()) {
    const Kernel* const kernels[] = {&w.kernel};
    const LoadedKernels loaded(compile_shared_object(kernels, {.cpu = cpu}));
    void* const buffers[] = {x.data(), e.data(), y.data()};
    loaded["power"](buffers, nullptr, 0, count);
    double worst = 0;
    for (std::int64_t k = 0; k < count; ++k) {
      const auto& [b, to] = cases[static_cast<std::size_t>(k)];
      const double exact = std::pow(b, to), ulps = double_ulps(exact, y.as<double>()[k]);
      ASSERT_LE(ulps, 2) << b << "^" << to << " on " << cpu;
      ASSERT_EQ(std::signbit(exact), std::signbit(std::isnan(exact) ? exact : y.as<double>()[k])) << b << "^" << to << " on " << cpu;
      worst = std::max(worst, ulps);
    }
    RecordProperty("pow_" + cpu, std::to_string(worst));
  }
}

}  // namespace
}  // namespace hone
