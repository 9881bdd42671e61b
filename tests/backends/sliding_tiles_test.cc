// Convolutions whose image slides in registers: which kernels do, and that they agree with the interpreter.
#include <gtest/gtest.h>

#include "backends/llvm/blocking.h"
#include "backends/panel_kernels.h"
#include "tests/backends/convolution_kernels.h"
#include "tests/backends/kernel_case.h"

namespace hone {
namespace {

const Dim kImages = Dim::symbol("N");

/// Square windows over channels last.
struct Images {
  std::int64_t channels, outputs, height, width, window, pad = 0, stride = 1, dilation = 1;
};

Convolution over_images(const Images& i) {
  const std::int64_t reach = i.dilation * (i.window - 1) + 1, rows = (i.height + 2 * i.pad - reach) / i.stride + 1, columns = (i.width + 2 * i.pad - reach) / i.stride + 1;
  const auto text = [](std::initializer_list<std::int64_t> numbers, const std::string& first = "") {
    std::string made = first;
    for (const std::int64_t number : numbers) made += (made.empty() ? "" : ",") + std::to_string(number);
    return "[" + made + "]";
  };
  const std::string attributes = "channels_last=true, groups=1, dilations=" + text({i.dilation, i.dilation}) + ", pads_begin=" + text({i.pad, i.pad}) + ", pads_end=" + text({i.pad, i.pad}) + ", strides=" + text({i.stride, i.stride});
  return {text({i.height, i.width, i.channels}, "N"), text({i.outputs, i.channels, i.window, i.window}), text({rows, columns, i.outputs}, "N"), text({i.window, i.window}), attributes, text({i.height, i.width})};
}

std::array<bool, 3> sliding_on(const Convolution& convolution, const VectorUnit& unit) {
  const std::array<Kernel, 3> kernels = convolution_kernels(convolution);
  return {slides(kernels[0], unit), slides(kernels[1], unit), slides(kernels[2], unit)};
}

void expect_agrees(const Convolution& convolution) {
  SCOPED_TRACE(convolution.x + " " + convolution.w + " " + convolution.attributes);
  AgreeingKernels kernels;
  for (const Kernel& kernel : convolution_kernels(convolution)) kernels.add(kernel, {.tolerance = 2e-4, .sizes = {{{"N", 0}}, {{"N", 3}}}});
  kernels.expect();
}

constexpr std::array<bool, 3> kAll = {true, true, true}, kButTheInput = {true, false, true};

TEST(SlidingTiles, WindowsOverPaddedImages) {
  for (const Images& images : {Images{16, 16, 9, 16, 3, 1}, Images{32, 16, 7, 8, 3, 1}, Images{64, 48, 4, 8, 3, 1}, Images{16, 16, 6, 40, 5, 2}, Images{8, 4, 10, 10, 3, 1}}) {
    EXPECT_EQ(sliding_on(over_images(images), kAvx512), kAll);
    EXPECT_EQ(sliding_on(over_images(images), kAvx2), kAll);
    expect_agrees(over_images(images));
  }
}

TEST(SlidingTiles, WindowsThatStayInside) {
  const Convolution inside = over_images({16, 16, 9, 13, 3});
  EXPECT_EQ(sliding_on(inside, kAvx512), kAll);
  expect_agrees(inside);
}

TEST(SlidingTiles, ChannelsThatFillNoVector) {
  const Convolution stem = over_images({3, 16, 8, 20, 3, 1}), odd = over_images({21, 44, 5, 11, 3, 1});
  EXPECT_TRUE(slides(convolution_kernels(stem)[0], kAvx512));
  EXPECT_TRUE(slides(convolution_kernels(stem)[2], kAvx512));
  EXPECT_EQ(sliding_on(odd, kAvx512), kAll);
  expect_agrees(stem);
  expect_agrees(odd);
}

/// Every second position of a strided window's input gradient meets no output: those are no sums that slide.
TEST(SlidingTiles, StridesAndDilations) {
  const Convolution strided = over_images({16, 32, 11, 17, 3, 1, 2}), wide = over_images({3, 16, 20, 32, 7, 3, 2}), dilated = over_images({16, 16, 12, 14, 3, 2, 1, 2});
  EXPECT_EQ(sliding_on(strided, kAvx512), kButTheInput);
  EXPECT_EQ(sliding_on(wide, kAvx512), kButTheInput);
  EXPECT_EQ(sliding_on(dilated, kAvx512), kAll);
  for (const Convolution& convolution : {strided, wide, dilated}) expect_agrees(convolution);
}

TEST(SlidingTiles, WindowsAlongOneAxis) {
  const Convolution along{"[N,40,16]", "[32,16,5]", "[N,40,32]", "[5]", "channels_last=true, dilations=[1], groups=1, pads_begin=[2], pads_end=[2], strides=[1]", "[40]"};
  const Convolution far_apart{"[N,80,16]", "[32,16,3]", "[N,80,32]", "[3]", "channels_last=true, dilations=[32], groups=1, pads_begin=[32], pads_end=[32], strides=[1]", "[80]"};
  for (const Convolution& convolution : {along, far_apart}) {
    EXPECT_EQ(sliding_on(convolution, kAvx512), kAll);
    expect_agrees(convolution);
  }
}

TEST(SlidingTiles, MorePaddingThanAWindow) {
  const Convolution far{"[N,6,16,16]", "[16,16,3,3]", "[N,11,22,16]", "[3,3]", "channels_last=true, dilations=[1,1], groups=1, pads_begin=[4,5], pads_end=[3,3], strides=[1,1]", "[6,16]"};
  EXPECT_TRUE(slides(convolution_kernels(far)[0], kAvx512));
  expect_agrees(far);
}

TEST(SlidingTiles, NotWhereNothingSlidesOrTheWeightIsLarge) {
  EXPECT_FALSE(slides(convolution_kernels(over_images({16, 16, 8, 8, 1}))[0], kAvx512));          // a product
  EXPECT_FALSE(slides(convolution_kernels(over_images({512, 512, 8, 8, 3, 1}))[0], kAvx512));     // read for each line from far away
  EXPECT_FALSE(slides(convolution_kernels(over_images({512, 512, 8, 8, 3, 1}))[2], kAvx512));
  EXPECT_FALSE(slides(convolution_kernels(over_images({16, 2, 8, 8, 3, 1}))[0], kAvx512));        // half of the shortest vector
  for (const bool slides_there : sliding_on(over_images({16, 16, 14, 15, 3, 6, 1, 6}), kAvx512)) EXPECT_FALSE(slides_there) << "mostly padding";
  EXPECT_FALSE(slides(convolution_kernels(over_images({1, 32, 28, 28, 5}))[2], kAvx512)) << "five sums, each of which waits for its last term";
  for (const bool slides_there : sliding_on(over_images({64, 64, 8, 1024, 3, 1}), kAvx512)) EXPECT_FALSE(slides_there) << "lines of 262 KB, of which three would lie on the stack";
}

/// Adds a bias and leaves negative sums out, as what is fused behind a convolution does; stores some of them only.
TEST(SlidingTiles, WhatFollowsTheSums) {
  KernelWriter w("conv");
  const auto x = w.operand(DType::kF32, {kImages, 6, 18, 16}), weight = w.operand(DType::kF32, {16, 3, 3, 32}), bias = w.operand(DType::kF32, {32}), y = w.result(DType::kF32, {kImages, 4, 16, 32});
  const Scalar n = w.outer(kImages), row = w.outer(4), column = w.outer(16), output = w.outer(32);
  w.phase();
  const Scalar channel = w.inner(16), i = w.inner(3), j = w.inner(3);
  const Scalar sum = w.reduce(ReduceKind::kSum, w.load(x, {n, row + i, column + j, channel}) * w.load(weight, {channel, i, j, output}));
  w.phase();
  const Scalar biased = sum + w.load(bias, {output});
  w.store(y, {n, row, column, output}, expr::max(biased, w.number(DType::kF32, 0))).guard = expr::not_equal(column, w.number(5)).id();
  EXPECT_TRUE(slides(w.kernel, kAvx512));
  expect_agrees(w.kernel, {.tolerance = 2e-4, .sizes = {{{"N", 2}}}});
}

/// The weight as the compiler lays it out for them: a vector of outputs is read where it lies, and a gradient's sums are stored as vectors.
TEST(SlidingTiles, WeightsWithOutputsLast) {
  const std::array<Kernel, 3> plain = convolution_kernels(over_images({16, 32, 6, 16, 3, 1}));
  const std::optional<plan::Panels> panels = panels_for(plain[0], 1);
  ASSERT_TRUE(panels);
  EXPECT_EQ(*panels, (plan::Panels{.axis = 0, .width = 32}));
  AgreeingKernels kernels;
  for (std::size_t i = 0; i < plain.size(); ++i) {
    const std::uint32_t weight = i < 2 ? 1 : 2;
    const std::optional<Kernel> laid_out = over_panels(plain[i], {weight}, {32, 16, 3, 3}, *panels);
    ASSERT_TRUE(laid_out);
    EXPECT_TRUE(slides(*laid_out, kAvx512));
    kernels.add(*laid_out, {.tolerance = 2e-4, .sizes = {{{"N", 3}}}});
  }
  kernels.expect();
}

}  // namespace
}  // namespace hone
