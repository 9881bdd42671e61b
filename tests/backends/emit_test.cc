// Loops: kernels of every form against the interpreter, on every CPU level, in one call and in several.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "backends/llvm/object_cache.h"
#include "base/check.h"
#include "tests/backends/kernel_case.h"
#include "tests/support/environment.h"

namespace hone {
namespace {

using testing::HasSubstr;
using testing::Not;

const Dim kN = Dim::symbol("N");
const Dim kM = Dim::symbol("M");

std::vector<DimBindings> sizes_of(const std::string& name, std::initializer_list<std::int64_t> values) {
  std::vector<DimBindings> sizes;
  for (const std::int64_t value : values) sizes.push_back({{name, value}});
  return sizes;
}

TEST(EmitLoops, ElementwiseOverAnyRank) {
  for (const Shape& shape : {Shape{}, Shape{1}, Shape{5}, Shape{3, 4}, Shape{2, 1, 33}, Shape{kN, 7}, Shape{kN, kM, 3}}) {
    KernelWriter w("elementwise");
    const auto x = w.operand(DType::kF32, shape), y = w.result(DType::kF32, shape);
    std::vector<Scalar> index;
    for (const Dim& extent : shape) index.push_back(w.outer(extent));
    w.store(y, index, expr::tanh(w.load(x, index)) * 2.0);
    expect_agrees(w.kernel, {.sizes = {{{"N", 0}, {"M", 5}}, {{"N", 1}, {"M", 5}}, {{"N", 9}, {"M", 6}}}});
  }
}

TEST(EmitLoops, BroadcastAlongEitherAxis) {
  for (const std::int64_t length : {5, 16, 37, 1024, 1025}) {  // whole rows, and one that is shared
    KernelWriter w("broadcast");
    const auto x = w.operand(DType::kF32, {kN, length}), row = w.operand(DType::kF32, {length}), column = w.operand(DType::kF32, {kN, 1}), one = w.operand(DType::kF32, {1});
    const auto y = w.result(DType::kF32, {kN, length});
    const Scalar n = w.outer(kN), m = w.outer(length), zero = w.number(0);
    w.store(y, {n, m}, w.load(x, {n, m}) * w.load(row, {m}) + w.load(column, {n, zero}) - w.load(one, {zero}));
    expect_agrees(w.kernel, {.sizes = sizes_of("N", {0, 1, 2, 50})});
  }
}

TEST(EmitLoops, ThreeOuterAxesThatDoNotMerge) {
  KernelWriter w("channels");
  const auto x = w.operand(DType::kF32, {kN, 3, 5}), scale = w.operand(DType::kF32, {3}), y = w.result(DType::kF32, {kN, 3, 5});
  const Scalar n = w.outer(kN), c = w.outer(3), i = w.outer(5);
  w.store(y, {n, c, i}, w.load(x, {n, c, i}) * w.load(scale, {c}));
  expect_agrees(w.kernel, {.sizes = sizes_of("N", {0, 1, 20})});
}

TEST(EmitLoops, TransposeAndReverse) {
  KernelWriter w("transpose");
  const auto x = w.operand(DType::kI32, {kM, kN}), y = w.result(DType::kI32, {kN, kM});
  const Scalar n = w.outer(kN), m = w.outer(kM);
  w.store(y, {n, m}, w.load(x, {w.size(kM) - m - w.number(1), n}));
  expect_agrees(w.kernel, {.sizes = {{{"N", 13}, {"M", 21}}}});
}

TEST(EmitLoops, IndicesAndSizesAreValues) {
  KernelWriter w("iota");
  const auto y = w.result(DType::kI64, {kN, 6});
  const Scalar n = w.outer(kN), m = w.outer(6);
  w.store(y, {n, m}, expr::floordiv(n * w.number(6) + m - w.number(7), w.number(4)) * w.size(kN) + expr::mod(m - w.number(3), w.number(5)));
  expect_agrees(w.kernel, {.sizes = {{{"N", 11}}}});
}

// Inner loops.

Kernel matmul(Dim rows, Dim depth, Dim columns, bool transposed_b) {
  KernelWriter w("matmul");
  const auto a = w.operand(DType::kF32, {rows, depth}), b = w.operand(DType::kF32, transposed_b ? Shape{columns, depth} : Shape{depth, columns});
  const auto y = w.result(DType::kF32, {rows, columns});
  const Scalar n = w.outer(rows), m = w.outer(columns);
  w.phase();
  const Scalar k = w.inner(depth);
  const Scalar sum = w.reduce(ReduceKind::kSum, w.load(a, {n, k}) * (transposed_b ? w.load(b, {m, k}) : w.load(b, {k, m})));
  w.phase();
  w.store(y, {n, m}, sum);
  return std::move(w.kernel);
}

TEST(EmitLoops, Matmul) {
  AgreeingKernels kernels;
  for (const bool transposed : {false, true}) {
    for (const std::int64_t columns : {1, 3, 10, 64, 65, 200}) kernels.add(matmul(kN, 19, columns, transposed), {.tolerance = 1e-5, .sizes = {{{"N", 6}}}});
    const Dim K = Dim::symbol("K");
    std::vector<DimBindings> sizes;
    for (const std::int64_t n : {0, 1, 7})
      for (const std::int64_t k : {0, 1, 40}) sizes.push_back({{"N", n}, {"K", k}, {"M", 70}});
    kernels.add(matmul(kN, K, kM, transposed), {.tolerance = 1e-5, .sizes = sizes});
  }
  kernels.expect();
}

/// softmax along an axis of `length` that is the last (rows) or the first (columns).
Kernel softmax(const Dim& points, const Dim& length, bool along_rows) {
  KernelWriter w("softmax");
  const Shape shape = along_rows ? Shape{points, length} : Shape{length, points};
  const auto x = w.operand(DType::kF32, shape), y = w.result(DType::kF32, shape);
  const Scalar n = w.outer(points);
  const auto at = [&](Scalar k) { return along_rows ? std::vector<Scalar>{n, k} : std::vector<Scalar>{k, n}; };
  w.phase();
  const Scalar largest = w.reduce(ReduceKind::kMax, w.load(x, at(w.inner(length))));
  w.phase();
  const Scalar sum = w.reduce(ReduceKind::kSum, expr::exp(w.load(x, at(w.inner(length))) - largest));
  w.phase();
  const Scalar k = w.inner(length);
  w.store(y, at(k), expr::exp(w.load(x, at(k)) - largest) / sum);
  return std::move(w.kernel);
}

TEST(EmitLoops, SoftmaxInThreePhases) {
  for (const bool along_rows : {true, false}) {
    expect_agrees(softmax(kN, 10, along_rows), {.sizes = {{{"N", 33}}}});
    std::vector<DimBindings> sizes;
    for (const std::int64_t n : {0, 1, 100})
      for (const std::int64_t m : {1, 70}) sizes.push_back({{"N", n}, {"M", m}});
    expect_agrees(softmax(kN, kM, along_rows), {.sizes = sizes});
  }
}

TEST(EmitLoops, PhasesReadWhatEarlierOnesStored) {
  KernelWriter w("rescale");
  const auto x = w.operand(DType::kF32, {kN, 20}), y = w.result(DType::kF32, {kN, 20});
  const Scalar n = w.outer(kN);
  w.phase();
  const Scalar a = w.inner(20), e = expr::exp(w.load(x, {n, a}));
  const Scalar sum = w.reduce(ReduceKind::kSum, e);
  w.store(y, {n, a}, e);
  w.phase();
  const Scalar b = w.inner(20);
  w.store(y, {n, b}, w.load(y, {n, b}) / sum);
  expect_agrees(w.kernel, {.sizes = {{{"N", 9}}}});
}

TEST(EmitLoops, ConvolutionWithGuards) {
  for (const std::int64_t stride : {1, 2}) {
    for (const std::int64_t width : {5, 40}) {
      const std::int64_t out = (width - 1) / stride + 1;
      KernelWriter w("conv");
      const auto x = w.operand(DType::kF32, {kN, 3, width, width}), f = w.operand(DType::kF32, {4, 3, 3, 3}), y = w.result(DType::kF32, {kN, 4, out, out});
      const Scalar n = w.outer(kN), o = w.outer(4), oh = w.outer(out), ow = w.outer(out);
      w.phase();
      const Scalar c = w.inner(3), kh = w.inner(3), kw = w.inner(3), zero = w.number(0);
      const Scalar h = oh * w.number(stride) + kh - w.number(1), v = ow * w.number(stride) + kw - w.number(1);
      const auto inside = [&](Scalar i) { return expr::logical_and(expr::greater_equal(i, zero), expr::less(i, w.number(width))); };
      const Scalar sum = w.reduce(ReduceKind::kSum, w.load_if(expr::logical_and(inside(h), inside(v)), x, {n, c, h, v}) * w.load(f, {o, c, kh, kw}));
      w.phase();
      w.store(y, {n, o, oh, ow}, sum);
      expect_agrees(w.kernel, {.tolerance = 1e-5, .sizes = sizes_of("N", {0, 2})});
    }
  }
}

TEST(EmitLoops, GuardedLoadOfEmptyBuffer) {
  KernelWriter w("pad");
  const auto x = w.operand(DType::kF32, {kN}), y = w.result(DType::kF32, {10});
  const Scalar i = w.outer(10);
  w.store(y, {i}, w.load_if(expr::less(i, w.size(kN)), x, {i}) + 1.0);
  expect_agrees(w.kernel, {.sizes = sizes_of("N", {0, 4})});
}

TEST(EmitLoops, GuardedStoreLeavesTheRest) {
  KernelWriter w("some");
  const auto x = w.operand(DType::kF32, {kN}), y = w.result(DType::kF32, {kN});
  const Scalar i = w.outer(kN), value = w.load(x, {i});
  w.store(y, {i}, value).guard = expr::greater(value, w.number(DType::kF32, 0)).id();
  expect_agrees(w.kernel, {.sizes = {{{"N", 100}}}});
}

TEST(EmitLoops, GatherByLoadedIndex) {
  KernelWriter w("gather");
  const auto table = w.operand(DType::kF32, {7, 12}), ids = w.operand(DType::kI64, {kN}), y = w.result(DType::kF32, {kN, 12});
  const Scalar n = w.outer(kN), d = w.outer(12);
  w.store(y, {n, d}, w.load(table, {w.load(ids, {n}), d}));
  expect_agrees(w.kernel, {.sizes = {{{"N", 30}}}, .fill = [](std::uint32_t buffer, std::int64_t i) { return buffer == 0 ? static_cast<double>(i) : static_cast<double>(i * 5 % 7); }});
}

// Reductions.

/// Over the first or the last axis of [kN, kM]; both axes of the inner space if `two` (then [kN, 3, kM] or [3, kM, kN]).
Kernel reduction(ReduceKind kind, DType dtype, bool along_rows, bool two) {
  KernelWriter w("reduce");
  const Shape inner = two ? Shape{3, kM} : Shape{kM};
  Shape shape = inner;
  shape.insert(along_rows ? shape.begin() : shape.end(), kN);
  const auto x = w.operand(dtype, shape);
  const bool position = kind == ReduceKind::kArgMax or kind == ReduceKind::kArgMin;
  const auto y = w.result(position ? DType::kI64 : dtype, {kN});
  const Scalar n = w.outer(kN);
  w.phase();
  std::vector<Scalar> index;
  for (const Dim& extent : inner) index.push_back(w.inner(extent));
  index.insert(along_rows ? index.begin() : index.end(), n);
  const Scalar result = w.reduce(kind, w.load(x, index));
  w.phase();
  w.store(y, {n}, result);
  return std::move(w.kernel);
}

TEST(EmitReductions, EveryKindTypeAndDirection) {
  AgreeingKernels kernels;
  for (const ReduceKind kind : {ReduceKind::kSum, ReduceKind::kProd, ReduceKind::kMax, ReduceKind::kMin, ReduceKind::kArgMax, ReduceKind::kArgMin}) {
    for (const DType dtype : {DType::kF32, DType::kF64, DType::kF16, DType::kI8, DType::kU64, DType::kBool}) {
      if (dtype == DType::kBool and (kind == ReduceKind::kSum or kind == ReduceKind::kProd)) continue;
      for (const bool along_rows : {true, false}) {
        const std::vector<DimBindings> sizes = {{{"N", 70}, {"M", 0}}, {{"N", 70}, {"M", 1}}, {{"N", 70}, {"M", 35}}};
        kernels.add(reduction(kind, dtype, along_rows, false), {.tolerance = 1e-5, .sizes = sizes});
      }
    }
  }
  kernels.expect();
}

TEST(EmitReductions, TwoInnerAxes) {
  for (const ReduceKind kind : {ReduceKind::kSum, ReduceKind::kArgMax})
    for (const bool along_rows : {true, false}) expect_agrees(reduction(kind, DType::kF32, along_rows, true), {.tolerance = 1e-5, .sizes = {{{"N", 21}, {"M", 17}}}});
}

TEST(EmitReductions, NanAndInfinityAndTies) {
  const double inf = std::numeric_limits<double>::infinity(), nan = std::numeric_limits<double>::quiet_NaN();
  const std::vector<double> special = {nan, inf, -inf, 0, 3, 3, -1};
  AgreeingKernels kernels;
  for (const ReduceKind kind : {ReduceKind::kMax, ReduceKind::kMin, ReduceKind::kArgMax, ReduceKind::kArgMin, ReduceKind::kSum})
    for (const bool along_rows : {true, false})
      for (const int variant : {0, 1, 2})
        kernels.add(reduction(kind, DType::kF32, along_rows, false), {.sizes = {{{"N", 40}, {"M", 40}}}, .fill = [=](std::uint32_t, std::int64_t i) {
                      const auto pick = static_cast<std::size_t>(i * i * 31 + i * 7 + variant) % 97;  // few elements are special, or (variant 2) all -inf
                      return variant == 2 ? -inf : pick < special.size() ? special[pick] : static_cast<double>(pick % 5);
                    }});
  kernels.expect();
}

TEST(EmitReductions, OfAScalarAndOverNothing) {
  KernelWriter w("scalar");
  const auto x = w.operand(DType::kF32, {}), y = w.result(DType::kF32, {});
  w.phase();
  const Scalar sum = w.reduce(ReduceKind::kSum, w.load(x, {}));
  w.phase();
  w.store(y, {}, sum + 1.0);
  expect_agrees(w.kernel);
}

TEST(EmitReductions, SeveralInOnePhase) {
  for (const bool along_rows : {true, false}) {
    KernelWriter w("moments");
    const auto x = w.operand(DType::kF32, along_rows ? Shape{kM, kN} : Shape{kN, kM}), mean = w.result(DType::kF32, {kM}), variance = w.result(DType::kF32, {kM});
    const Scalar m = w.outer(kM);
    w.phase();
    const Scalar n = w.inner(kN), value = along_rows ? w.load(x, {m, n}) : w.load(x, {n, m});
    const Scalar sum = w.reduce(ReduceKind::kSum, value), squares = w.reduce(ReduceKind::kSum, value * value);
    w.phase();
    const Scalar count = expr::cast(w.size(kN), DType::kF32), average = sum / count;
    w.store(mean, {m}, average);
    w.store(variance, {m}, squares / count - average * average);
    expect_agrees(w.kernel, {.tolerance = 1e-5, .sizes = {{{"N", 50}, {"M", 75}}}});
  }
}

// Scatter.

/// table_gradient[ids[n, t], d] += dy[n, t, d], on rows that start at `start`.
Kernel scatter(DType dtype, bool guarded) {
  KernelWriter w("scatter");
  const auto ids = w.operand(DType::kI64, {kN, 3}), dy = w.operand(dtype, {kN, 3, 10}), table = w.result(dtype, {kM, 10});
  const Scalar row = w.outer(kM);
  w.phase();
  const Scalar column = w.inner(10);
  w.store(table, {row, column}, w.number(dtype, 1));
  w.scatter_phase();
  const Scalar n = w.inner(kN), t = w.inner(3), d = w.inner(10);
  Store& store = w.store(table, {w.load(ids, {n, t}), d}, w.load(dy, {n, t, d}));
  if (guarded) store.guard = expr::less(d, n).id();
  return std::move(w.kernel);
}

TEST(EmitScatter, AddsRowsAndLeavesOthersOut) {
  for (const DType dtype : {DType::kF32, DType::kF16, DType::kI64})
    for (const bool guarded : {false, true})
      expect_agrees(scatter(dtype, guarded), {.sizes = {{{"N", 0}, {"M", 11}}, {{"N", 25}, {"M", 11}}}, .fill = [](std::uint32_t buffer, std::int64_t i) {
                        return buffer == 0 ? static_cast<double>(i * i % 14 - 1) : static_cast<double>(i % 9);  // rows -1, 11 and 12 do not exist
                      }});
}

TEST(EmitScatter, IndexAlongTheInnermostAxis) {
  KernelWriter w("histogram");
  const auto ids = w.operand(DType::kI32, {kN}), counts = w.result(DType::kF32, {kM});
  w.outer(kM);
  w.scatter_phase();
  const Scalar n = w.inner(kN);
  w.store(counts, {expr::cast(w.load(ids, {n}), DType::kI64)}, w.number(DType::kF32, 1));
  expect_agrees(w.kernel, {.sizes = {{{"N", 100}, {"M", 6}}}});
  expect_agrees(w.kernel, {.sizes = {{{"N", 100}, {"M", 1}}}});
}

// Memory that is shared.

TEST(MayShareMemory, WhereEachElementIsReadBeforeItIsWritten) {
  KernelWriter w("update");
  const auto weight = w.operand(DType::kF32, {kN, 4}), gradient = w.operand(DType::kF32, {kN, 4}), other = w.operand(DType::kF32, {4}), updated = w.result(DType::kF32, {kN, 4});
  const Scalar n = w.outer(kN), m = w.outer(4);
  w.store(updated, {n, m}, w.load(weight, {n, m}) - w.load(gradient, {n, m}) * w.load(other, {m}));
  EXPECT_TRUE(may_share_memory(w.kernel, updated, weight));
  EXPECT_TRUE(may_share_memory(w.kernel, updated, gradient));
  EXPECT_FALSE(may_share_memory(w.kernel, updated, other)) << "another shape";
  EXPECT_FALSE(may_share_memory(w.kernel, weight, updated)) << "not written";
}

TEST(MayShareMemory, NotWhereAnotherPointReads) {
  const Kernel product = matmul(8, 8, 8, false);
  EXPECT_FALSE(may_share_memory(product, 2, 0));
  EXPECT_FALSE(may_share_memory(product, 2, 1));
}

TEST(MayShareMemory, SoftmaxMayOverwriteItsOperand) {
  EXPECT_TRUE(may_share_memory(softmax(kN, kM, true), 1, 0));
  EXPECT_TRUE(may_share_memory(softmax(kN, kM, false), 1, 0));
}

TEST(MayShareMemory, NotWhereALaterPhaseReads) {
  KernelWriter w("late");
  const auto x = w.operand(DType::kF32, {kN}), y = w.result(DType::kF32, {kN}), z = w.result(DType::kF32, {kN});
  const Scalar n = w.outer(kN);
  w.store(y, {n}, w.load(x, {n}) * 2.0);
  w.phase();
  w.store(z, {n}, w.load(x, {n}) + 1.0);
  EXPECT_FALSE(may_share_memory(w.kernel, y, x));
  EXPECT_TRUE(may_share_memory(w.kernel, z, x));
}

TEST(MayShareMemory, InPlaceGivesTheSame) {
  const Kernel kernel = softmax(40, 70, true);
  const Kernel columns = softmax(70, 40, false);
  for (const Kernel* each : {&kernel, &columns}) {
    const Kernel* const kernels[] = {each};
    const LoadedKernels loaded(compile_shared_object(kernels, {.cpu = runnable_cpus().back()}));
    const GuardedMemory x(40 * 70 * 4), y(40 * 70 * 4);
    for (int i = 0; i < 40 * 70; ++i) x.as<float>()[i] = static_cast<float>(i % 13) * 0.3F;
    void* apart[] = {x.data(), y.data()};
    const std::int64_t points = each->outer_size().value();
    loaded["softmax"](apart, nullptr, 0, points);
    void* shared[] = {x.data(), x.data()};
    loaded["softmax"](shared, nullptr, 0, points);
    for (int i = 0; i < 40 * 70; ++i) ASSERT_EQ(x.as<float>()[i], y.as<float>()[i]) << i;
  }
}

// What becomes vector code.

TEST(EmitVectors, ElementwiseWithExpInPlace) {
  KernelWriter w("exp");
  const auto x = w.operand(DType::kF32, {kN, 100}), y = w.result(DType::kF32, {kN, 100});
  const Scalar n = w.outer(kN), m = w.outer(100);
  w.store(y, {n, m}, expr::exp(w.load(x, {n, m})));
  EXPECT_THAT(optimized(w.kernel), HasSubstr("store <8 x float>"));
  EXPECT_THAT(optimized(w.kernel), Not(HasSubstr("vector.memcheck"))) << "no run-time check that buffers are apart";
  EXPECT_THAT(optimized(w.kernel, "x86-64-v4"), HasSubstr("store <16 x float>"));
}

TEST(EmitVectors, Reductions) {
  EXPECT_THAT(optimized(reduction(ReduceKind::kSum, DType::kF32, true, false)), HasSubstr("llvm.vector.reduce.fadd.v4f64"));
  EXPECT_THAT(optimized(reduction(ReduceKind::kMax, DType::kF32, true, false)), HasSubstr("llvm.vector.reduce.fmaximum.v8f32"));
  EXPECT_THAT(optimized(reduction(ReduceKind::kSum, DType::kF32, false, false)), HasSubstr("fadd nsz <8 x double>"));
  EXPECT_THAT(optimized(matmul(kN, 32, 64, false)), HasSubstr("@llvm.fma.v8f32")) << "products are summed in f32";
}

TEST(EmitVectors, HalfPrecisionStorage) {
  for (const DType dtype : {DType::kF16, DType::kBF16, DType::kBool, DType::kU8}) {
    KernelWriter w("storage");
    const auto x = w.operand(DType::kF32, {kN}), y = w.result(dtype, {kN});
    const Scalar n = w.outer(kN);
    w.store(y, {n}, expr::cast(w.load(x, {n}), dtype));
    const std::string type = size_of(dtype) == 2 ? (dtype == DType::kF16 ? "half>" : "i16>") : "i8>";
    EXPECT_THAT(optimized(w.kernel), testing::ContainsRegex("store <[0-9]+ x " + type)) << to_string(dtype);
  }
}

// The interface.

TEST(Emit, TextOfKernels) {
  const Kernel kernel = matmul(kN, 4, 5, false);
  const Kernel* const kernels[] = {&kernel};
  EXPECT_THAT(emit_llvm(kernels, {}, IrStage::kEmitted), HasSubstr("define void @matmul("));
  EXPECT_THAT(emit_assembly(kernels, {}), HasSubstr("matmul:"));
}

TEST(Emit, SameInputSameBytes) {
  const Kernel a = matmul(kN, 40, 50, false), b = softmax(kN, kM, true);
  const Kernel* const kernels[] = {&a, &b};
  const test::ScopedVariable made_each_time(kKernelCacheVariable, "");
  EXPECT_EQ(compile_shared_object(kernels, {}), compile_shared_object(kernels, {}));
}

TEST(Emit, ManyKernelsInSeveralModules) {
  std::vector<Kernel> kernels;
  for (int i = 0; i < 20; ++i) {
    KernelWriter w("kernel" + std::to_string(i));
    const auto x = w.operand(DType::kI64, {kN}), y = w.result(DType::kI64, {kN});
    const Scalar n = w.outer(kN);
    w.store(y, {n}, expr::pow(w.load(x, {n}), w.number(3)) + w.number(i));  // each module has its own integer power
    kernels.push_back(std::move(w.kernel));
  }
  std::vector<const Kernel*> pointers;
  for (const Kernel& kernel : kernels) pointers.push_back(&kernel);
  const LoadedKernels loaded(compile_shared_object(pointers, {.cpu = runnable_cpus().back()}));
  std::int64_t x[] = {2, -3}, y[2];
  void* const buffers[] = {x, y};
  const std::int64_t sizes[] = {2};
  for (int i = 0; i < 20; ++i) {
    loaded["kernel" + std::to_string(i)](buffers, sizes, 0, 2);
    EXPECT_EQ(y[0], 8 + i);
    EXPECT_EQ(y[1], -27 + i);
  }
}

TEST(Emit, NoKernels) { EXPECT_FALSE(compile_shared_object({}, {}).empty()); }

TEST(Emit, AnyOptimizationLevel) {
  for (const int level : {0, 1, 2, 3}) expect_agrees(softmax(kN, 33, false), {.sizes = {{{"N", 5}}}}, level);
}

TEST(Emit, RefusesUnknownProcessorAndEqualNames) {
  const Kernel kernel = matmul(2, 2, 2, false);
  const Kernel* const twice[] = {&kernel, &kernel};
  EXPECT_THROW(compile_shared_object(twice, {}), InternalError);
  EXPECT_THROW(emit_assembly(std::span(twice, 1), {.cpu = "z80"}), InternalError);
}

}  // namespace
}  // namespace hone
