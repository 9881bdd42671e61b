// Sums across neighbouring points on a GPU: threads side by side take neighbouring points, and others a share of what is summed. And scatters whose positions are shared out.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "backends/cost_model.h"
#include "backends/fuse.h"
#include "backends/recompute.h"
#include "backends/split_reductions.h"
#include "backends/targets.h"
#include "ir/op.h"
#include "ir/ops/ops.h"
#include "ir/parse.h"
#include "tests/backends/kernel_case.h"

namespace hone {
namespace {

const Dim kTerms = Dim::symbol("N"), kTableRows = Dim::symbol("M");

plan::LaunchShape launch_of(const Kernel& kernel) {
  const Kernel* const kernels[] = {&kernel};
  return LoadedKernels(compile_shared_object(kernels, {.form = KernelForm::kBlocks})).launch(kernel.name);
}

/// For each column of x[N, columns] its mean, what lies how far from it on the average, and each element less the mean.
Kernel centred(std::int64_t columns, DType dtype = DType::kF32) {
  KernelWriter w("centred");
  const auto x = w.operand(dtype, {kTerms, columns}), mean = w.result(DType::kF32, {columns}), spread = w.result(DType::kF32, {columns}), y = w.result(dtype, {kTerms, columns});
  const Scalar i = w.outer(columns);
  w.phase();
  const Scalar n = w.inner(kTerms);
  const Scalar sum = w.reduce(ReduceKind::kSum, expr::cast(w.load(x, {n, i}), DType::kF32));
  w.phase();
  const Scalar k = w.inner(kTerms), average = sum / expr::cast(w.size(kTerms), DType::kF32), apart = expr::cast(w.load(x, {k, i}), DType::kF32) - average;
  const Scalar squares = w.reduce(ReduceKind::kSum, apart * apart);
  w.store(y, {k, i}, expr::cast(apart, dtype));
  w.phase();
  w.store(mean, {i}, average);
  w.store(spread, {i}, squares / expr::cast(w.size(kTerms), DType::kF32));
  return std::move(w.kernel);
}

TEST(GpuColumns, ABlockHasNeighbouringPointsAndThreadsForEach) {
  EXPECT_EQ(launch_of(centred(768)).points, 16) << "few columns make half as wide blocks, so that there are more";
  EXPECT_EQ(launch_of(centred(768)).threads, 16 * 16) << "of 64 samples, as it is expected, each of 16 threads has 4";
  EXPECT_EQ(launch_of(centred(1 << 14)).points, 32);
  EXPECT_EQ(launch_of(centred(5)).points, 8) << "a power of two";
  EXPECT_EQ(launch_of(centred(1 << 17)).points, 256) << "enough columns for a thread each";
}

TEST(GpuColumns, AgreeForAnyNumbersOfThem) {
  for (const std::int64_t columns : {3, 7, 64, 100})
    expect_agrees(centred(columns), {.tolerance = 1e-5, .sizes = {{{"N", 1}}, {{"N", 5}}, {{"N", 64}}, {{"N", 1001}}}});
  expect_agrees(centred(40, DType::kBF16), {.tolerance = 1e-2, .sizes = {{{"N", 333}}}});
}

TEST(GpuColumns, OfExtremesAndWhereTheyAre) {
  KernelWriter w("highest");
  const auto x = w.operand(DType::kF32, {kTerms, 20}), value = w.result(DType::kF32, {20}), place = w.result(DType::kI64, {20});
  const Scalar i = w.outer(20);
  w.phase();
  const Scalar n = w.inner(kTerms);
  const Scalar most = w.reduce(ReduceKind::kMax, w.load(x, {n, i})), where = w.reduce(ReduceKind::kArgMax, w.load(x, {n, i}));
  w.phase();
  w.store(value, {i}, most);
  w.store(place, {i}, where);
  expect_agrees(w.kernel, {.sizes = {{{"N", 1}}, {{"N", 700}}}, .fill = [](std::uint32_t, std::int64_t at) { return static_cast<double>(at * 7 % 31); }});  // many are as high
}

/// dw[k, o] = sum over n of x[n, k] * dy[n, o].
TEST(GpuColumns, GradientsOfWeights) {
  KernelWriter w("weight_gradient");
  const auto x = w.operand(DType::kF32, {kTerms, 12}), dy = w.operand(DType::kF32, {kTerms, 9}), dw = w.result(DType::kF32, {12, 9});
  const Scalar k = w.outer(12), o = w.outer(9);
  w.phase();
  const Scalar n = w.inner(kTerms);
  const Scalar sum = w.reduce(ReduceKind::kSum, w.load(x, {n, k}) * w.load(dy, {n, o}));
  w.phase();
  w.store(dw, {k, o}, sum);
  EXPECT_LT(launch_of(w.kernel).points, launch_of(w.kernel).threads);
  expect_agrees(w.kernel, {.tolerance = 2e-5, .sizes = {{{"N", 1}}, {{"N", 640}}}});
}

/// Of whole numbers, whose sums are exact in any order: table[ids[n], ...] += dy[n, ...], on ones. Row 3 is wanted by every other sample; some rows do not exist.
double scattered(std::uint32_t buffer, std::int64_t i) { return buffer == 0 ? static_cast<double>(i % 2 == 0 ? 3 : i * 13 % 47 - 2) : static_cast<double>(i % 5); }

Kernel adds_rows(Shape row, DType dtype) {
  KernelWriter w("adds_rows");
  Shape table_shape = {kTableRows}, dy_shape = {kTerms};
  for (const Dim& extent : row) table_shape.push_back(extent), dy_shape.push_back(extent);
  const auto ids = w.operand(DType::kI64, {kTerms}), dy = w.operand(dtype, dy_shape), table = w.result(dtype, table_shape);
  std::vector<Scalar> at = {w.outer(kTableRows)}, from, to;
  w.phase();
  for (const Dim& extent : row) at.push_back(w.inner(extent));
  w.store(table, at, w.number(dtype, 1));
  w.scatter_phase();
  from.push_back(w.inner(kTerms));
  to.push_back(w.load(ids, {from[0]}));
  for (const Dim& extent : row) from.push_back(w.inner(extent)), to.push_back(from.back());
  w.store(table, to, w.load(dy, from)).combine = Combine::kAdd;
  return std::move(w.kernel);
}

TEST(GpuScatter, PositionsAreSharedOut) {
  for (const DType dtype : {DType::kF32, DType::kI64})
    for (const Shape& row : {Shape{1}, Shape{7}, Shape{64}, Shape{200}, Shape{3, 5}})
      expect_agrees(adds_rows(row, dtype), {.sizes = {{{"N", 0}, {"M", 5}}, {{"N", 1}, {"M", 1}}, {{"N", 65}, {"M", 40}}, {{"N", 1000}, {"M", 45}}}, .fill = scattered});
}

TEST(GpuScatter, MorePositionsThanAreMarkedAtATime) { expect_agrees(adds_rows({2}, DType::kF32), {.sizes = {{{"N", 40'000}, {"M", 40}}}, .fill = scattered}); }

Parallelism of_gpu() { return find_backend("cuda").parallelism(); }

std::size_t kernels_of(const Graph& graph, const Parallelism& parallelism) {
  const Fusion fusion = fuse_and_recompute(graph, {}, Exchange::kNone, parallelism);
  return fusion.groups.size();
}

/// What lies in its channels is normalized, channels last.
Graph normalizing() {
  return parse_graph(
      "graph g(input %x: f32[N,28,28,256], input %c: f32[1,1,1,1]) {\n%1: f32[1,1,1,256] = reduce_sum(%x) {axes=[0,1,2], keep_dims=true}\n%2: f32[1,1,1,256] = div(%1, %c)\n"
      "%3: f32[N,28,28,256] = sub(%x, %2)\noutput \"y\" %3\n}\n");
}

TEST(Parallelism, WhatIsEnoughForAProcessorLeavesAGpuIdle) {
  const Graph graph = normalizing();
  EXPECT_EQ(kernels_of(graph, {}), 1U) << "256 channels are shared out among a few cores";
  EXPECT_EQ(kernels_of(graph, of_gpu()), 2U);
  Graph split = graph.clone();
  EXPECT_EQ(split_reductions(split), Changed::kNo);
  EXPECT_EQ(split_reductions(split, of_gpu()), Changed::kYes) << "sample by sample";
}

TEST(Parallelism, FewTermsAreSummedWhereTheirSumIsRead) {
  const Graph graph = parse_graph(
      "graph g(input %x: f32[N,256], input %c: f32[256]) {\n%1: f32[256] = reduce_sum(%x) {axes=[0]}\n%2: f32[N,256] = sub(%x, %1)\n%3: f32[N,256] = mul(%2, %2)\n"
      "%4: f32[256] = reduce_sum(%3) {axes=[0]}\n%5: f32[256] = add(%4, %c)\noutput \"y\" %5\n}\n");
  EXPECT_EQ(kernels_of(graph, of_gpu()), 1U);
}

TEST(Parallelism, RowsAreMadeALittleLongerOnTheWay) {
  const auto kernels_with = [](std::int64_t longer) {
    return kernels_of(parse_graph(fmt::format("graph g(input %x: f32[N,129]) {{\n%1: f32[N,129] = exp(%x)\n%2: f32[N,{0}] = pad(%1) {{sizes=[N,{0}], starts=[0,0], steps=[1,1]}}\noutput \"y\" %2\n}}\n", longer)), {});
  };
  EXPECT_EQ(kernels_with(136), 1U);
  EXPECT_EQ(kernels_with(258), 2U) << "of half of the points there is nothing to work out";
}

TEST(Recompute, WhatLiesNarrowInMemoryIsWidenedByItsReaders) {
  const Graph graph = parse_graph(
      "graph g(input %x: bf16[N,256], input %w: bf16[256,256]) {\n%1: bf16[N,256] = matmul(%x, %w) {row=\"cublaslt.matmul\"}\n%2: f32[N,256] = cast(%1) {to=f32}\n"
      "%3: f32[256] = reduce_sum(%2) {axes=[0]}\n%4: f32[N,256] = sub(%2, %3)\noutput \"y\" %4\n}\n");
  const Fusion fusion = fuse_and_recompute(graph, {}, Exchange::kNone, {.fewest_rows = 4096});
  ASSERT_EQ(fusion.groups.size(), 3U) << "the product, the sum, the difference";
  for (const Group& group : fusion.groups)
    for (const ValueId value : group.stored) EXPECT_FALSE(fusion.graph.is_op(value, op::cast));
}

}  // namespace
}  // namespace hone
