// Kernels that are computed in tiles: every form of product, sizes that fill no vector and no tile, what fusion puts in front of the sums and behind them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <utility>

#include "backends/llvm/emit.h"
#include "tests/backends/convolution_kernels.h"
#include "tests/backends/kernel_case.h"
#include "tests/backends/product_kernel.h"

namespace hone {
namespace {

const Dim N = Dim::symbol("N");
const Dim M = Dim::symbol("M");
const Dim K = Dim::symbol("K");

constexpr double kSumTolerance = 3e-5;  // sums of f32 products, in another order than the interpreter's

std::vector<DimBindings> all_sizes() {
  std::vector<DimBindings> sizes;
  for (const std::int64_t n : {0, 1, 5, 33})
    for (const std::int64_t k : {0, 1, 7, 40})
      for (const std::int64_t m : {1, 3, 17, 70, 130}) sizes.push_back({{"N", n}, {"K", k}, {"M", m}});
  return sizes;
}

TEST(Blocks, MatmulOfSymbolicSizes) {
  AgreeingKernels kernels;
  for (const ProductForm form : kForms) kernels.add(matmul(N, K, M, form), {.tolerance = kSumTolerance, .sizes = all_sizes()});
  kernels.expect();
}

TEST(Blocks, MatmulOfASymbolicBatch) {
  const std::vector<DimBindings> batches = {{{"N", 0}}, {{"N", 1}}, {{"N", 11}}, {{"N", 64}}};
  AgreeingKernels kernels;
  for (const ProductForm form : kForms) {
    kernels.add(matmul(N, 1, 46, form), {.tolerance = kSumTolerance, .sizes = batches});
    for (const std::int64_t columns : {2, 46, 100}) kernels.add(matmul(N, 37, columns, form), {.tolerance = kSumTolerance, .sizes = batches});
    kernels.add(matmul(40, N, 50, form), {.tolerance = kSumTolerance, .sizes = batches});
  }
  kernels.expect();
}

TEST(Blocks, MatmulOfKnownSizes) {
  constexpr std::int64_t kRows[] = {2, 13, 65}, kColumns[] = {5, 33, 129};
  AgreeingKernels kernels;
  for (std::size_t form = 0; form < std::size(kForms); ++form)  // every form with each number of rows and of columns, every pair of them in some form
    for (std::size_t i = 0; i < 3; ++i) kernels.add(matmul(kRows[i], 23, kColumns[(i + form) % 3], kForms[form]), {.tolerance = kSumTolerance});
  kernels.expect();
}

/// Threads share out rows rather than columns.
TEST(Blocks, MatmulThatIsRunAgainAndAgain) {
  const std::vector<DimBindings> batches = {{{"N", 0}}, {{"N", 1}}, {{"N", 11}}, {{"N", 32}}, {{"N", 70}}};
  AgreeingKernels kernels;
  const auto add = [&](Kernel kernel) {
    kernel.repeats = true;
    kernels.add(std::move(kernel), {.tolerance = 2e-4, .sizes = batches});
  };
  for (const ProductForm form : kForms)
    for (const std::int64_t columns : {3, 46, 130}) add(matmul(N, 37, columns, form));
  add(matmul(N, 300, 70, {.ta = false, .tb = true}));
  add(matmul(N, 2100, 40, {.ta = false, .tb = true}));
  add(matmul(40, 8 * N, 70, {.ta = true, .tb = false}));
  kernels.expect();
}

TEST(Blocks, ALongPanelOfTiles) {
  for (const bool tb : {false, true}) expect_agrees(matmul(N, 2100, 20, {.ta = false, .tb = tb}), {.tolerance = 2e-4, .sizes = {{{"N", 300}}}});
}

TEST(Blocks, SumsInParts) {
  const std::vector<DimBindings> depths = {{{"N", 0}}, {{"N", 1}}, {{"N", 64}}, {{"N", 150}}};
  for (const bool ta : {false, true}) {
    Product p(270, 4 * N, 90, {.ta = ta, .tb = false});
    const auto old = p.writer.operand(DType::kF32, {270, 90});
    p.writer.store(p.result, {p.row, p.column}, p.writer.load(old, {p.row, p.column}) - p.sum);
    expect_agrees(p.writer.kernel, {.tolerance = 2e-4, .sizes = depths});
  }
}

TEST(Blocks, SumsInPartsOfMoreColumnsThanWaitTogether) {
  expect_agrees(matmul(7, 8 * N, 900, {.ta = true, .tb = false}), {.tolerance = 2e-4, .sizes = {{{"N", 2}}, {{"N", 40}}}});
  expect_agrees(matmul(M, 8 * N, 70, {.ta = true, .tb = false}), {.tolerance = 2e-4, .sizes = {{{"N", 70}, {"M", 1}}, {{"N", 70}, {"M", 40}}}});
}

TEST(Blocks, BatchedSumsInParts) {
  KernelWriter w("batched");
  const auto a = w.operand(DType::kF32, {3, 16 * N, 20}), b = w.operand(DType::kF32, {3, 16 * N, 70}), y = w.result(DType::kF32, {3, 20, 70});
  const Scalar n = w.outer(3), i = w.outer(20), j = w.outer(70);
  w.phase();
  const Scalar k = w.inner(16 * N);
  const Scalar sum = w.reduce(ReduceKind::kSum, w.load(a, {n, k, i}) * w.load(b, {n, k, j}));
  w.phase();
  w.store(y, {n, i, j}, sum);
  expect_agrees(w.kernel, {.tolerance = 2e-4, .sizes = {{{"N", 0}}, {{"N", 1}}, {{"N", 40}}}});
}

TEST(Blocks, BatchedMatmulWithABroadcastOperand) {
  KernelWriter w("batched");
  const auto a = w.operand(DType::kF32, {N, 3, 9, 12}), b = w.operand(DType::kF32, {3, 20, 12}), y = w.result(DType::kF32, {N, 3, 9, 20});
  const Scalar n = w.outer(N), h = w.outer(3), i = w.outer(9), j = w.outer(20);
  w.phase();
  const Scalar k = w.inner(12);
  const Scalar sum = w.reduce(ReduceKind::kSum, w.load(a, {n, h, i, k}) * w.load(b, {h, j, k}));
  w.phase();
  w.store(y, {n, h, i, j}, sum);
  expect_agrees(w.kernel, {.tolerance = kSumTolerance, .sizes = {{{"N", 0}}, {{"N", 1}}, {{"N", 4}}}});
}

TEST(Blocks, BiasAndActivationBehindTheSum) {
  for (const ProductForm form : kForms) {
    Product p(N, 21, 34, form);
    KernelWriter& w = p.writer;
    const auto bias = w.operand(DType::kF32, {34}), scale = w.operand(DType::kF32, {N, 1}), mask = w.result(DType::kBool, {N, 34}),
               half = w.result(DType::kBF16, {N, 34});
    const Scalar shifted = p.sum + w.load(bias, {p.column}), positive = expr::greater(shifted, w.number(DType::kF32, 0));
    w.store(p.result, {p.row, p.column}, expr::select(positive, expr::erf(shifted), w.number(DType::kF32, 0)) * w.load(scale, {p.row, w.number(0)}));
    w.store(mask, {p.row, p.column}, positive);
    w.store(half, {p.row, p.column}, w.number(DType::kF32, 1.5));
    expect_agrees(w.kernel, {.tolerance = kSumTolerance, .sizes = {{{"N", 1}}, {{"N", 19}}}});
  }
}

TEST(Blocks, ResultsOnlyWhereAGuardHolds) {
  Product p(N, 6, 40, {});
  KernelWriter& w = p.writer;
  w.store(p.result, {p.row, p.column}, p.sum).guard = expr::less(p.column + p.row, w.number(30)).id();
  expect_agrees(w.kernel, {.tolerance = kSumTolerance, .sizes = {{{"N", 35}}}});
}

TEST(Blocks, TwoProductsOfOneOperand) {
  KernelWriter w("gates");
  const auto a = w.operand(DType::kF32, {N, 15}), b = w.operand(DType::kF32, {15, 50}), c = w.operand(DType::kF32, {15, 50}),
             y = w.result(DType::kF32, {N, 50});
  const Scalar n = w.outer(N), m = w.outer(50);
  w.phase();
  const Scalar k = w.inner(15);
  const Scalar left = w.reduce(ReduceKind::kSum, w.load(a, {n, k}) * w.load(b, {k, m})),
               right = w.reduce(ReduceKind::kSum, w.load(a, {n, k}) * w.load(c, {k, m}));
  w.phase();
  w.store(y, {n, m}, left * expr::sigmoid(right));
  expect_agrees(w.kernel, {.tolerance = kSumTolerance, .sizes = {{{"N", 20}}}});
}

TEST(Blocks, ExpressionsAsFactors) {
  for (const bool transposed : {false, true}) {
    KernelWriter w("prologue");
    const auto dy = w.operand(DType::kF32, {N, 30}), x = w.operand(DType::kF32, {N, 30}),
               b = w.operand(DType::kF32, transposed ? Shape{45, 30} : Shape{30, 45}), y = w.result(DType::kF32, {N, 45});
    const Scalar n = w.outer(N), m = w.outer(45);
    w.phase();
    const Scalar k = w.inner(30), zero = w.number(DType::kF32, 0);
    const Scalar factor = expr::select(expr::greater(w.load(x, {n, k}), zero), w.load(dy, {n, k}), zero);
    const Scalar sum = w.reduce(ReduceKind::kSum, factor * expr::exp(transposed ? w.load(b, {m, k}) : w.load(b, {k, m})));
    w.phase();
    w.store(y, {n, m}, sum);
    expect_agrees(w.kernel, {.tolerance = 1e-4, .sizes = {{{"N", 1}}, {{"N", 26}}}});
  }
}

/// Axes of a Product.
constexpr std::uint32_t kRow = 0, kColumn = 1, kSummed = 2;

/// A factor's elements, 0 where they do not count.
std::function<double(std::uint32_t, std::int64_t)> zeros_outside(const Triangle& triangle, std::uint32_t factor, std::uint32_t first_axis, std::int64_t second_extent) {
  return [=](std::uint32_t buffer, std::int64_t i) {
    const auto index = [&](std::uint32_t axis) { return axis == first_axis ? i / second_extent : i % second_extent; };
    const bool is_outside = buffer == factor and index(triangle.low) > index(triangle.high);
    return is_outside ? 0 : 0.25 * static_cast<double>((i * 7 + buffer * 3) % 13 - 6);
  };
}

TEST(Blocks, TermsThatAreZeroAreLeftOut) {
  struct Sizes {
    std::int64_t rows, depth, columns;
  };
  AgreeingKernels kernels;
  for (const auto [rows, depth, columns] : {Sizes{70, 40, 33}, Sizes{13, 40, 129}, Sizes{20, 300, 200}})
    for (const ProductForm form : kForms) {
      const auto add = [&](const Triangle& triangle, std::uint32_t factor) {
        Kernel kernel = matmul(rows, depth, columns, form);
        kernel.triangle = triangle;
        const bool is_first = factor == 0, is_swapped = is_first ? form.ta : form.tb;
        const std::uint32_t a = is_first ? kRow : kSummed, b = is_first ? kSummed : kColumn;
        const std::int64_t last = is_first ? (is_swapped ? rows : depth) : (is_swapped ? depth : columns);
        kernels.add(std::move(kernel), {.tolerance = 2e-4, .fill = zeros_outside(triangle, factor, is_swapped ? b : a, last)});
      };
      add({.low = kSummed, .high = kRow}, 0);
      add({.low = kRow, .high = kSummed}, 0);
      add({.low = kSummed, .high = kColumn}, 1);
      add({.low = kColumn, .high = kSummed}, 1);
    }
  kernels.expect();
}

TEST(Blocks, SumsThatNobodyWantsAreLeftOut) {
  AgreeingKernels kernels;
  for (const Triangle& triangle : {Triangle{kRow, kColumn}, Triangle{kColumn, kRow}})
    for (const std::int64_t depth : {9, 300})
      for (const ProductForm form : kForms) {
        Product p(130, depth, 150, form);
        const Scalar a = triangle.low == kRow ? p.row : p.column, b = triangle.low == kRow ? p.column : p.row;
        p.writer.store(p.result, {p.row, p.column}, expr::select(expr::less_equal(a, b), p.sum, p.writer.number(DType::kF32, -1)));
        p.writer.kernel.triangle = triangle;
        kernels.add(std::move(p.writer.kernel), {.tolerance = 2e-4});
      }
  kernels.expect();
}

/// 0 times infinity would be NaN.
TEST(Blocks, WhatIsLeftOutIsNotComputed) {
  constexpr std::int64_t kSide = 64, kDeep = 700;  // deeper sums are taken in parts
  struct Case {
    Triangle triangle;
    ProductForm form;
    std::int64_t depth;
  };
  for (const Case& c : {Case{{kSummed, kRow}, {}, kSide}, Case{{kRow, kSummed}, {}, kSide}, Case{{kRow, kSummed}, {.ta = true, .tb = false}, kDeep}, Case{{kColumn, kRow}, {.ta = false, .tb = true}, kSide}, Case{{kColumn, kRow}, {.ta = false, .tb = true}, kDeep}}) {
    Kernel kernel = matmul(kSide, c.depth, 2 * kSide, c.form);
    kernel.triangle = c.triangle;
    const Kernel* const kernels[] = {&kernel};
    const LoadedKernels loaded(compile_shared_object(kernels, {.cpu = runnable_cpus().front()}));
    const GuardedMemory a(static_cast<std::size_t>(kSide * c.depth * 4)), b(static_cast<std::size_t>(c.depth * 2 * kSide * 4)), y(kSide * 2 * kSide * 4);
    const bool over_rows = c.triangle.low == kSummed, under_rows = c.triangle.high == kSummed;
    for (std::int64_t row = 0; row < kSide; ++row)
      for (std::int64_t k = 0; k < c.depth; ++k) a.as<float>()[c.form.ta ? k * kSide + row : row * c.depth + k] = (over_rows and k > row) or (under_rows and row > k) ? 0.0F : 1.0F;
    for (std::int64_t column = 0; column < 2 * kSide; ++column)
      for (std::int64_t k = 0; k < c.depth; ++k) {
        const bool is_outside = over_rows ? k >= kSide - 16 : under_rows ? k < 16 : column >= kSide;
        b.as<float>()[c.form.tb ? column * c.depth + k : k * 2 * kSide + column] = is_outside ? std::numeric_limits<float>::infinity() : 2.0F;
      }
    void* buffers[] = {a.data(), b.data(), y.data()};
    loaded["product"](buffers, nullptr, 0, kSide * 2 * kSide);
    for (std::int64_t row = over_rows ? 0 : kSide / 2; row < (over_rows ? kSide / 2 : kSide); ++row)
      for (std::int64_t column = 0; column < 2 * kSide; ++column) {
        const bool are_both_outer = not over_rows and not under_rows, shares_a_tile = column > row and column < 2 * kSide - 16;
        if (are_both_outer and shares_a_tile) continue;  // maybe, with one that is wanted
        const std::int64_t terms = over_rows ? row + 1 : under_rows ? c.depth - row : column <= row ? c.depth : 0;
        ASSERT_EQ(y.as<float>()[row * 2 * kSide + column], 2.0F * static_cast<float>(terms)) << row << " " << column << " " << c.depth << " " << c.form.ta;
      }
  }
}

TEST(Blocks, TheResultMayOverwriteWhatTheEpilogueReads) {
  Product p(40, 9, 70, {});
  KernelWriter& w = p.writer;
  const auto old = w.operand(DType::kF32, {40, 70});
  w.store(p.result, {p.row, p.column}, w.load(old, {p.row, p.column}) - p.sum * 0.1);
  ASSERT_TRUE(may_share_memory(w.kernel, p.result, old));
  const Kernel* const kernels[] = {&w.kernel};
  const LoadedKernels loaded(compile_shared_object(kernels, {.cpu = runnable_cpus().back()}));
  const GuardedMemory a(40 * 9 * 4), b(9 * 70 * 4), x(40 * 70 * 4), y(40 * 70 * 4);
  for (int i = 0; i < 360; ++i) a.as<float>()[i] = static_cast<float>(i % 7);
  for (int i = 0; i < 630; ++i) b.as<float>()[i] = static_cast<float>(i % 5);
  for (int i = 0; i < 2800; ++i) x.as<float>()[i] = static_cast<float>(i % 11);
  void* apart[] = {a.data(), b.data(), y.data(), x.data()};
  loaded["product"](apart, nullptr, 0, 2800);
  void* shared[] = {a.data(), b.data(), x.data(), x.data()};
  loaded["product"](shared, nullptr, 0, 2800);
  for (int i = 0; i < 2800; ++i) ASSERT_EQ(x.as<float>()[i], y.as<float>()[i]) << i;
}

// Convolutions, of the op's own formulas.

void expect_convolution(const std::string& x, const std::string& w, const std::string& y, const std::string& window, const std::string& attributes,
                        const std::string& spatial) {
  SCOPED_TRACE(x + " " + w + " " + attributes);
  for (const Kernel& kernel : convolution_kernels({x, w, y, window, attributes, spatial})) expect_agrees(kernel, {.tolerance = 2e-4, .sizes = {{{"N", 0}}, {{"N", 3}}}});
}

TEST(Blocks, ConvolutionsAlongOneAxis) {
  expect_convolution("[N,7,40]", "[20,7,5]", "[N,20,36]", "[5]", "dilations=[1], groups=1, pads_begin=[0], pads_end=[0], strides=[1]", "[40]");
  expect_convolution("[N,4,9]", "[3,4,3]", "[N,3,9]", "[3]", "dilations=[1], groups=1, pads_begin=[1], pads_end=[1], strides=[1]", "[9]");
  expect_convolution("[N,4,50]", "[6,4,3]", "[N,6,25]", "[3]", "dilations=[1], groups=1, pads_begin=[1], pads_end=[1], strides=[2]", "[50]");
}

TEST(Blocks, ConvolutionsOverImages) {
  expect_convolution("[N,3,12,19]", "[9,3,3,3]", "[N,9,10,17]", "[3,3]", "dilations=[1,1], groups=1, pads_begin=[0,0], pads_end=[0,0], strides=[1,1]",
                     "[12,19]");
  expect_convolution("[N,5,6,6]", "[17,5,3,3]", "[N,17,6,6]", "[3,3]", "dilations=[1,1], groups=1, pads_begin=[1,1], pads_end=[1,1], strides=[1,1]", "[6,6]");
  expect_convolution("[N,8,6,7]", "[5,8,1,1]", "[N,5,6,7]", "[1,1]", "dilations=[1,1], groups=1, pads_begin=[0,0], pads_end=[0,0], strides=[1,1]", "[6,7]");
  expect_convolution("[N,4,8,20]", "[6,2,3,3]", "[N,6,8,20]", "[3,3]", "dilations=[1,1], groups=2, pads_begin=[1,1], pads_end=[1,1], strides=[1,1]", "[8,20]");
}

// Blocks of points side by side that are no contractions: every operation on vectors.

TEST(Blocks, ColumnsOfEveryReduction) {
  AgreeingKernels kernels;
  for (const ReduceKind kind : {ReduceKind::kSum, ReduceKind::kProd, ReduceKind::kMax, ReduceKind::kMin, ReduceKind::kArgMax, ReduceKind::kArgMin}) {
    for (const DType dtype : {DType::kF32, DType::kI32, DType::kBF16}) {
      KernelWriter w("columns");
      const auto x = w.operand(dtype, {K, M});
      const Scalar m = w.outer(M);
      w.phase();
      const Scalar k = w.inner(K);
      const Scalar result = w.reduce(kind, w.load(x, {k, m}));
      w.phase();
      w.store(w.result(result.dtype(), {M}), {m}, result);
      kernels.add(std::move(w.kernel), {.tolerance = kSumTolerance, .sizes = {{{"K", 0}, {"M", 5}}, {{"K", 9}, {"M", 0}}, {{"K", 9}, {"M", 100}}}});
    }
  }
  kernels.expect();
}

TEST(Blocks, FunctionsWithoutVectorFormAndGatheredOperands) {
  KernelWriter w("gathered");
  const auto x = w.operand(DType::kF32, {K, 50}), at = w.operand(DType::kI64, {50}), table = w.operand(DType::kF32, {16, 7}), y = w.result(DType::kF32, {50}),
             z = w.result(DType::kI64, {50});
  const Scalar m = w.outer(50);
  w.phase();
  const Scalar k = w.inner(K), row = expr::bit_and(w.load(at, {m}), w.number(15));
  const Scalar sum = w.reduce(ReduceKind::kSum, w.load(x, {k, m}) + expr::sin(w.load(table, {row, expr::mod(k, w.number(7))})));
  w.phase();
  w.store(y, {m}, expr::pow(expr::abs(sum), w.number(DType::kF32, 1.7)));
  w.store(z, {m}, expr::pow(m, w.number(2)) + expr::floordiv(m, w.number(7)));
  expect_agrees(w.kernel, {.tolerance = kSumTolerance, .sizes = {{{"K", 0}}, {{"K", 13}}}});
}

TEST(Blocks, VectorsOfTheWholeRegister) {
  EXPECT_THAT(optimized(matmul(N, 32, 64, {}), "x86-64-v3"), testing::HasSubstr("@llvm.fma.v8f32"));
  EXPECT_THAT(optimized(matmul(N, 32, 64, {}), "x86-64-v4"), testing::HasSubstr("@llvm.fma.v16f32"));
  EXPECT_THAT(optimized(matmul(N, 32, 64, {false, true}), "x86-64-v4"), testing::HasSubstr("@llvm.fma.v16f32"));
}

}  // namespace
}  // namespace hone
