// Neighbouring points that a thread of a GPU does at once: which kernels do, in how wide pieces, and that it makes no difference to what they compute.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/check.h"
#include "tests/backends/kernel_case.h"

namespace hone {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

const Dim kSamples = Dim::symbol("N");

std::string ptx(const Kernel& kernel) {
  const Kernel* const kernels[] = {&kernel};
  return compile_ptx(kernels, {.cpu = "sm_80"});
}

/// One axis, from one type to another.
Kernel scaled(DType from, DType to) {
  KernelWriter w("scaled");
  const auto x = w.operand(from, {kSamples}), y = w.result(to, {kSamples});
  const Scalar n = w.outer(kSamples);
  w.store(y, {n}, expr::cast(expr::cast(w.load(x, {n}), DType::kF32) * 1.5, to));
  return std::move(w.kernel);
}

/// Rows with a bias along them and a factor each, so that the two axes stay apart.
Kernel rows(DType dtype, std::int64_t columns) {
  KernelWriter w("rows");
  const auto x = w.operand(dtype, {kSamples, columns}), bias = w.operand(dtype, {columns}), factor = w.operand(DType::kF32, {kSamples}), y = w.result(dtype, {kSamples, columns});
  const Scalar n = w.outer(kSamples), i = w.outer(columns);
  w.store(y, {n, i}, expr::cast(expr::cast(w.load(x, {n, i}), DType::kF32) * w.load(factor, {n}) + expr::cast(w.load(bias, {i}), DType::kF32), dtype));
  return std::move(w.kernel);
}

TEST(GpuVectors, SixteenBytesAtOnce) {
  struct Row {
    DType dtype;
    const char *load, *store;
  };
  for (const auto& [dtype, load, store] : {Row{DType::kF32, "ld.global.v4.f32", "st.global.v4.f32"}, Row{DType::kBF16, "ld.global.v4.b32", "st.global.v4.b32"},
                                           Row{DType::kF16, "ld.global.v4.b32", "st.global.v4.b32"}, Row{DType::kF64, "ld.global.v2.f64", "st.global.v2.f64"},
                                           Row{DType::kI64, "ld.global.v2.u64", "st.global.v2.u64"}, Row{DType::kU8, "ld.global.u32", "st.global.u32"}}) {
    const std::string code = ptx(scaled(dtype, dtype));
    EXPECT_THAT(code, AllOf(HasSubstr(load), HasSubstr(store))) << to_string(dtype);
    expect_agrees(scaled(dtype, dtype), {.sizes = {{{"N", 0}}, {{"N", 3}}, {{"N", 8}}, {{"N", 5000}}, {{"N", 5003}}}});
  }
  EXPECT_THAT(ptx(scaled(DType::kF32, DType::kBF16)), AllOf(HasSubstr("ld.global.v4.f32"), HasSubstr("st.global.v4.u16"))) << "the widest element decides";
  EXPECT_THAT(ptx(scaled(DType::kBF16, DType::kF32)), AllOf(HasSubstr("ld.global.v4.u16"), HasSubstr("st.global.v4.f32")));
}

TEST(GpuVectors, ABlockHasAsManyPointsMore) {
  const Kernel kernel = scaled(DType::kBF16, DType::kBF16), *const kernels[] = {&kernel};
  const LoadedKernels code(compile_shared_object(kernels, {.form = KernelForm::kBlocks}));
  EXPECT_EQ(code.launch("scaled").points, 8 * code.launch("scaled").threads);
}

TEST(GpuVectors, RowsOfWholeVectors) {
  const auto code_of = [](DType dtype, std::int64_t columns) { return ptx(rows(dtype, columns)); };
  EXPECT_THAT(code_of(DType::kF32, 64), HasSubstr("ld.global.v4.f32"));
  EXPECT_THAT(code_of(DType::kF32, 6), AllOf(HasSubstr("ld.global.v2.f32"), Not(HasSubstr("global.v4"))));
  EXPECT_THAT(code_of(DType::kBF16, 12), AllOf(HasSubstr("ld.global.v4.u16"), Not(HasSubstr("ld.global.v4.b32"))));
  EXPECT_THAT(code_of(DType::kF32, 7), Not(HasSubstr("global.v")));
  for (const std::int64_t columns : {64, 6, 12, 7})
    for (const DType dtype : {DType::kF32, DType::kBF16}) expect_agrees(rows(dtype, columns), {.sizes = {{{"N", 1}}, {{"N", 101}}}});
}

/// y[n, i] = x[..] over [kSamples, 64].
template <typename Load>
std::string moved(Shape of, Load load) {
  KernelWriter w("moved");
  const auto x = w.operand(DType::kF32, std::move(of)), y = w.result(DType::kF32, {kSamples, 64});
  const Scalar n = w.outer(kSamples), i = w.outer(64);
  w.store(y, {n, i}, load(w, x, n, i));
  return ptx(w.kernel);
}

TEST(GpuVectors, WhatIsMovedByWholeVectors) {
  const auto of_row = [](KernelWriter& w, std::uint32_t x, Scalar n, Scalar i) { return w.load(x, {w.load(w.operand(DType::kI64, {kSamples}), {n}), i}); };
  EXPECT_THAT(moved({9, 64}, of_row), HasSubstr("ld.global.v4.f32")) << "a gathered row";
  EXPECT_THAT(moved({9, 65}, of_row), Not(HasSubstr("global.v"))) << "that begins anywhere";
  const auto behind = [](std::int64_t by) { return [by](KernelWriter& w, std::uint32_t x, Scalar n, Scalar i) { return w.load(x, {n, i + w.number(by)}); }; };
  EXPECT_THAT(moved({kSamples, 80}, behind(16)), HasSubstr("ld.global.v4.f32"));
  EXPECT_THAT(moved({kSamples, 80}, behind(2)), AllOf(HasSubstr("ld.global.v2.f32"), Not(HasSubstr("global.v4"))));
  EXPECT_THAT(moved({kSamples, 80}, behind(3)), Not(HasSubstr("global.v")));
  EXPECT_THAT(moved({64, kSamples}, [](KernelWriter& w, std::uint32_t x, Scalar n, Scalar i) { return w.load(x, {i, n}); }), Not(HasSubstr("global.v"))) << "transposed";
  EXPECT_THAT(moved({64}, [](KernelWriter& w, std::uint32_t x, Scalar n, Scalar i) { return w.load_if(expr::less(n, w.number(5)), x, {i}); }), HasSubstr("ld.global.v4.f32"));
  EXPECT_THAT(moved({64}, [](KernelWriter& w, std::uint32_t x, Scalar, Scalar i) { return w.load_if(expr::less(i, w.number(5)), x, {i}); }), Not(HasSubstr("global.v"))) << "a condition for each element";
}

TEST(GpuVectors, NotWhereMemoryIsNotWhatIsWaitedFor) {
  const auto code_of = [](const Dim& extent, bool costly) {
    KernelWriter w("some");
    const auto x = w.operand(DType::kF32, {extent}), y = w.result(DType::kF32, {extent});
    const Scalar i = w.outer(extent), value = w.load(x, {i});
    w.store(y, {i}, costly ? expr::sin(expr::sin(value)) : value * 2.0);
    return ptx(w.kernel);
  };
  EXPECT_THAT(code_of(kSamples, false), HasSubstr("global.v4"));
  EXPECT_THAT(code_of(kSamples, true), Not(HasSubstr("global.v"))) << "arithmetic";
  EXPECT_THAT(code_of(100, false), Not(HasSubstr("global.v"))) << "a handful of points";
}

}  // namespace
}  // namespace hone
