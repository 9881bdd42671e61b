// Products by the matrix unit: which take it, that they agree with the interpreter in every form and size, and how exact they are. What runs needs a processor with AMX; the rest does not.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>

#include "backends/llvm/blocking.h"
#include "backends/llvm/emit.h"
#include "runtime/device/cpu.h"
#include "tests/backends/product_kernel.h"

namespace hone {
namespace {

constexpr const char* kLevel = "x86-64-v4-amx";
const Dim N = Dim::symbol("N");

bool can_run() { return host_cpu_level() >= CpuLevel::kV4Amx; }

/// The batched product of q and k: [N, 64, 32] times [N, 64, 32], transposed.
Kernel scores() {
  KernelWriter w("scores");
  const auto q = w.operand(DType::kF32, {N, 64, 32}), k = w.operand(DType::kF32, {N, 64, 32}), y = w.result(DType::kF32, {N, 64, 64});
  const Scalar n = w.outer(N), i = w.outer(64), j = w.outer(64);
  w.phase();
  const Scalar d = w.inner(32);
  const Scalar sum = w.reduce(ReduceKind::kSum, w.load(q, {n, i, d}) * w.load(k, {n, j, d}));
  w.phase();
  w.store(y, {n, i, j}, sum);
  return std::move(w.kernel);
}

/// y = x * w, transposed, where w lies in panels of 32 of the axis that is summed over.
Kernel joined_sum(const Dim& rows, std::int64_t columns, std::int64_t panels) {
  KernelWriter w("joined");
  const auto x = w.operand(DType::kF32, {rows, 32 * panels}), weight = w.operand(DType::kF32, {panels, columns, 32}), y = w.result(DType::kF32, {rows, columns});
  const Scalar i = w.outer(rows), j = w.outer(columns);
  w.phase();
  const Scalar o = w.inner(panels), k = w.inner(32);
  const Scalar sum = w.reduce(ReduceKind::kSum, w.load(x, {i, o * w.number(32) + k}) * w.load(weight, {o, j, k}));
  w.phase();
  w.store(y, {i, j}, sum);
  return std::move(w.kernel);
}

TEST(MatrixTiles, TakeProductsThatAreLargeEnough) {
  for (const ProductForm form : kForms) {
    EXPECT_TRUE(uses_matrices(matmul(64 * N, 128, 512, form), kAvx512WithAmx)) << form.ta << form.tb;
    EXPECT_TRUE(uses_matrices(matmul(784, N, 512, form), kAvx512WithAmx)) << form.ta << form.tb;
  }
  EXPECT_TRUE(uses_matrices(joined_sum(64 * N, 128, 6), kAvx512WithAmx));
  EXPECT_FALSE(uses_matrices(matmul(64 * N, 128, 512, {}), kAvx512));
  EXPECT_FALSE(uses_matrices(matmul(16, 784, 512, {}), kAvx512WithAmx)) << "taking the weight apart would cost more than the products";
  EXPECT_FALSE(uses_matrices(scores(), kAvx512WithAmx));
  Kernel repeated = matmul(64 * N, 128, 512, {});
  repeated.repeats = true;
  EXPECT_FALSE(uses_matrices(repeated, kAvx512WithAmx)) << "its weight would be taken apart in each iteration";
}

TEST(MatrixTiles, AreThereInTheCodeOfTheirLevelOnly) {
  const Kernel product = matmul(64 * N, 128, 512, {});
  EXPECT_THAT(optimized(product, kLevel), testing::HasSubstr("@llvm.x86.tdpbf16ps"));
  EXPECT_THAT(optimized(product, "x86-64-v4"), testing::Not(testing::HasSubstr("tdpbf16ps")));
}

TEST(MatrixTiles, AgreeInEveryFormAndSize) {
  if (not can_run()) GTEST_SKIP() << "this processor has no AMX";
  const std::vector<DimBindings> sizes = {{{"N", 0}}, {{"N", 1}}, {{"N", 5}}};
  AgreeingKernels kernels;
  const auto add = [&](Kernel kernel) {
    ASSERT_TRUE(uses_matrices(kernel, kAvx512WithAmx)) << kernel.axes[0].extent.text() << " x " << kernel.axes[2].extent.text() << " x " << kernel.axes[1].extent.text();
    kernels.add(std::move(kernel), {.tolerance = 2e-4, .sizes = sizes});
  };
  for (const ProductForm form : kForms) {
    for (const std::int64_t depth : {61, 128, 300}) add(matmul(67 * N, depth, 130, form));
    add(matmul(64 * N, 64, 97, form));
    add(matmul(200, 33 * N, 70, form));
    add(matmul(1000, N, 100, form));
    add(matmul(784, 16 * N, 112, form));  // multiples of a matrix's side, not of a tile's
  }
  add(matmul(300, 64 * N, 400, {.ta = true, .tb = false}));
  for (const std::int64_t panels : {2, 5}) add(joined_sum(70 * N, 66, panels));
  kernels.expect();
}

/// y = x * w where w and y lie in panels of `width` columns; or of a batch of products, one a panel's number.
Kernel beside(const Dim& rows, const Dim& depth, std::int64_t panels, std::int64_t width, bool batched) {
  KernelWriter w("beside");
  const auto x = w.operand(DType::kF32, batched ? Shape{panels, rows, depth} : Shape{rows, depth}), weight = w.operand(DType::kF32, {panels, depth, width}), y = w.result(DType::kF32, {panels, rows, width});
  const Scalar o = w.outer(panels), i = w.outer(rows), j = w.outer(width);
  w.phase();
  const Scalar k = w.inner(depth);
  const Scalar sum = w.reduce(ReduceKind::kSum, w.load(x, batched ? std::vector{o, i, k} : std::vector{i, k}) * w.load(weight, {o, k, j}));
  w.phase();
  w.store(y, {o, i, j}, sum);
  return std::move(w.kernel);
}

TEST(MatrixTiles, AgreeInPanelsAndInBatches) {
  if (not can_run()) GTEST_SKIP() << "this processor has no AMX";
  AgreeingKernels kernels;
  for (const bool batched : {false, true}) {
    const std::int64_t width = batched ? 224 : 64;
    for (Kernel& kernel : std::vector{beside(70 * N, 128, 3, width, batched), beside(70 * N, 200, 2, width + 16, batched), beside(300, 90 * N, 2, width, batched)}) {
      ASSERT_TRUE(uses_matrices(kernel, kAvx512WithAmx)) << batched;
      kernels.add(std::move(kernel), {.tolerance = 2e-4, .sizes = {{{"N", 0}}, {{"N", 1}}, {{"N", 3}}}});
    }
  }
  kernels.expect();
}

TEST(MatrixTiles, FinishWhatIsBehindTheSums) {
  if (not can_run()) GTEST_SKIP() << "this processor has no AMX";
  for (const Dim& depth : {Dim(64), 40 * N}) {
    Product p(65 * N, depth, 136, {});
    KernelWriter& w = p.writer;
    const auto bias = w.operand(DType::kF32, {136}), old = w.operand(DType::kF32, {65 * N, 136}), second = w.result(DType::kF32, {65 * N, 136});
    const Scalar sum = p.sum + w.load(bias, {p.column});
    w.store(p.result, {p.row, p.column}, expr::erf(sum));
    w.store(second, {p.row, p.column}, w.load(old, {p.row, p.column}) - sum);
    ASSERT_TRUE(uses_matrices(w.kernel, kAvx512WithAmx));
    expect_agrees(w.kernel, {.tolerance = 2e-4, .sizes = {{{"N", 0}}, {{"N", 1}}, {{"N", 5}}}});
  }
}

TEST(MatrixTiles, TakeFactorsThatAreWorkedOut) {
  if (not can_run()) GTEST_SKIP() << "this processor has no AMX";
  KernelWriter w("worked_out");
  const auto x = w.operand(DType::kF32, {64 * N, 123}), weight = w.operand(DType::kF32, {123, 256}), y = w.result(DType::kF32, {64 * N, 256});
  const Scalar i = w.outer(64 * N), j = w.outer(256);
  w.phase();
  const Scalar k = w.inner(123);
  const Scalar sum = w.reduce(ReduceKind::kSum, expr::exp(w.load(x, {i, k})) * w.load(weight, {k, j}));  // 1 where a mask leaves 0
  w.phase();
  w.store(y, {i, j}, sum);
  ASSERT_TRUE(uses_matrices(w.kernel, kAvx512WithAmx));
  expect_agrees(w.kernel, {.tolerance = 2e-4, .sizes = {{{"N", 1}}, {{"N", 3}}}});
}

/// A product of random factors on one level.
struct Factors {
  static constexpr std::int64_t kRows = 256, kDepth = 1000, kColumns = 128;
  explicit Factors(const std::function<float(std::mt19937&)>& draw) {
    std::mt19937 random(7);
    for (float& value : a()) value = draw(random);
    for (float& value : b()) value = draw(random);
  }
  std::span<float> a() const { return {a_.as<float>(), static_cast<std::size_t>(kRows * kDepth)}; }
  std::span<float> b() const { return {b_.as<float>(), static_cast<std::size_t>(kDepth * kColumns)}; }

  std::vector<float> product(const std::string& level) const {
    const Kernel kernel = matmul(kRows, kDepth, kColumns, {});
    EXPECT_TRUE(uses_matrices(kernel, kAvx512WithAmx));
    const Kernel* const kernels[] = {&kernel};
    const LoadedKernels code(compile_shared_object(kernels, {.cpu = level}));
    std::vector<float> result(static_cast<std::size_t>(kRows * kColumns));
    void* buffers[] = {a_.data(), b_.data(), result.data()};
    code[kernel.name](buffers, nullptr, 0, kRows * kColumns);
    return result;
  }
  /// Root of the mean square of the errors, each as a part of the sum of its terms' absolute values.
  double error(const std::vector<float>& result) const {
    double squares = 0;
    for (std::int64_t i = 0; i < kRows; ++i) {
      for (std::int64_t j = 0; j < kColumns; ++j) {
        double sum = 0, size = 0;
        for (std::int64_t k = 0; k < kDepth; ++k) {
          const double term = static_cast<double>(a()[static_cast<std::size_t>(i * kDepth + k)]) * b()[static_cast<std::size_t>(k * kColumns + j)];
          sum += term, size += std::fabs(term);
        }
        const double error = (result[static_cast<std::size_t>(i * kColumns + j)] - sum) / size;
        squares += error * error;
      }
    }
    return std::sqrt(squares / (kRows * kColumns));
  }

 private:
  GuardedMemory a_{kRows * kDepth * 4}, b_{kDepth * kColumns * 4};
};

TEST(MatrixTiles, ErrNoMoreThanMultiplyAdds) {
  if (not can_run()) GTEST_SKIP() << "this processor has no AMX";
  const std::function<float(std::mt19937&)> draws[] = {
      [](std::mt19937& random) { return std::normal_distribution<float>()(random); },
      [](std::mt19937& random) { return std::uniform_real_distribution<float>(0, 1)(random); },                                                  // no term takes another one back
      [](std::mt19937& random) { return std::normal_distribution<float>()(random) * std::exp2(std::uniform_real_distribution<float>(-40, 40)(random)); },  // sizes far apart
  };
  for (const auto& draw : draws) {
    const Factors factors(draw);
    const double tiles = factors.error(factors.product(kLevel)), chain = factors.error(factors.product("x86-64-v4"));
    EXPECT_GT(chain, 1e-9);
    EXPECT_LT(tiles, 1.5 * chain);
    EXPECT_LT(tiles, 0x1p-22);  // a bf16 product errs by 2^-9
  }
}

TEST(MatrixTiles, WhatIsNoNumberStaysNone) {
  if (not can_run()) GTEST_SKIP() << "this processor has no AMX";
  const Factors factors([](std::mt19937& random) { return std::normal_distribution<float>()(random); });
  const auto row = [&](std::int64_t i) { return factors.a()[static_cast<std::size_t>(i * Factors::kDepth + 500)] = 0, &factors.a()[static_cast<std::size_t>(i * Factors::kDepth + 500)]; };
  *row(3) = std::numeric_limits<float>::quiet_NaN();
  *row(70) = std::numeric_limits<float>::infinity();
  const std::vector<float> result = factors.product(kLevel);
  for (std::int64_t i = 0; i < Factors::kRows; ++i)
    for (std::int64_t j = 0; j < Factors::kColumns; ++j) ASSERT_EQ(std::isfinite(result[static_cast<std::size_t>(i * Factors::kColumns + j)]), i != 3 and i != 70) << i << ", " << j;
}

Kernel map_kernel() {
  KernelWriter w("map");
  const auto x = w.operand(DType::kF32, {N}), y = w.result(DType::kF32, {N});
  const Scalar i = w.outer(N);
  w.phase();
  w.store(y, {i}, w.load(x, {i}) * 2.0);
  return std::move(w.kernel);
}

TEST(MatrixTiles, CodeBesideV4HasOnlyWhatGains) {
  const Kernel product = matmul(64 * N, 128, 512, {}), map = map_kernel();
  const std::vector<std::string> levels = {"x86-64-v4", kLevel}, alone = {kLevel};
  const Kernel *const both[] = {&product, &map}, *const neither[] = {&map};
  const std::vector<std::vector<std::byte>> objects = compile_shared_objects(both, options_for(levels));
  ASSERT_EQ(objects.size(), 2U);
  const LoadedCode usual(objects[0]), added(objects[1]), whole(compile_shared_objects(both, options_for(alone)).front());
  EXPECT_NE(usual.find("product"), nullptr);
  EXPECT_NE(usual.find("map"), nullptr);
  EXPECT_NE(added.find("product"), nullptr);
  EXPECT_EQ(added.find("map"), nullptr);
  EXPECT_NE(whole.find("map"), nullptr);
  EXPECT_TRUE(compile_shared_objects(neither, options_for(levels))[1].empty());
}

TEST(MatrixTiles, APlanTakesTheOtherKernelsFromV4) {
  const Kernel product = matmul(64 * N, 128, 512, {}), map = map_kernel();
  const std::vector<std::string> levels = {"x86-64-v4", kLevel};
  const Kernel* const both[] = {&product, &map};
  std::vector<std::vector<std::byte>> objects = compile_shared_objects(both, options_for(levels));
  plan::Program program{.target = "cpu", .code = {{levels[0], objects[0]}, {levels[1], objects[1]}}};
  if (host_cpu_level() < CpuLevel::kV4) GTEST_SKIP() << "this processor has no AVX-512";
  const LoadedCode code = load_code(program), usual(objects[0]);
  ASSERT_NE(code.find("map"), nullptr);
  ASSERT_NE(code.find("product"), nullptr);
  EXPECT_EQ(code.find("nothing"), nullptr);
}

}  // namespace
}  // namespace hone
