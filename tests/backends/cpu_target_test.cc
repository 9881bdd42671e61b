// Which nodes become calls of oneDNN, and why others do not.
#include "backends/cpu/cpu_target.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "ir/op.h"
#include "ir/parse.h"

namespace hone {
namespace {

using testing::HasSubstr;

RowChoice choice(const std::string& text, std::size_t node = 0) { return CpuTarget().choose_row(parse_graph("graph g(" + text + "}\n", "test"), NodeId(node)); }

constexpr std::string_view kPool = "{kernel=[2,2], strides=[2,2], dilations=[1,1], pads_begin=[0,0], pads_end=[0,0], spatial=";

std::string product(const std::string& a, const std::string& b, const std::string& y, const std::string& attributes = "") {
  return "input %a: f32[" + a + "], input %b: f32[" + b + "]) {\n%1: f32[" + y + "] = matmul(%a, %b)" + attributes + "\noutput \"y\" %1\n";
}

TEST(CpuTarget, MatmulWithLongSumsIsACall) {
  EXPECT_EQ(choice(product("N,9000", "9000,30", "N,30")).row, "onednn.matmul");
  EXPECT_EQ(choice(product("64,9000", "30,9000", "64,30", " {ta=false, tb=true}")).row, "onednn.matmul");
}

TEST(CpuTarget, OtherMatmulsOfFloatsAreKernels) {
  EXPECT_THAT(choice(product("N,784", "784,256", "N,256")).reason, HasSubstr("784 products"));
  EXPECT_EQ(choice(product("N,50", "N,30", "50,30", " {ta=true, tb=false}")).row, "");
  EXPECT_EQ(choice(product("N,50", "30,50", "N,30", " {ta=false, tb=true}")).row, "");
  EXPECT_EQ(choice(product("256*N,50", "256*N,30", "50,30", " {ta=true, tb=false}")).row, "") << "a sum over all tokens";
  EXPECT_EQ(choice(product("N,6,256,64", "N,6,64,256", "N,6,256,256")).row, "");
}

RowChoice conv(const std::string& x, const std::string& w, const std::string& y, const std::string& stride) {
  return choice("input %x: f32[" + x + "], input %w: f32[" + w + "]) {\n%1: f32[" + y +
                "] = conv(%x, %w) {dilations=[1,1], groups=1, pads_begin=[0,0], pads_end=[0,0], strides=[" + stride + "]}\noutput \"y\" %1\n");
}

TEST(CpuTarget, ConvolutionsChannelsLastAreKernelsWhereWindowsSlide) {
  const auto channels_last = [](const std::string& x, const std::string& w, const std::string& y) {
    return choice("input %x: f32[" + x + "], input %w: f32[" + w + "]) {\n%1: f32[" + y +
                  "] = conv(%x, %w) {dilations=[1,1], groups=1, pads_begin=[0,0], pads_end=[0,0], strides=[1,1], channels_last=true}\noutput \"y\" %1\n");
  };
  EXPECT_THAT(channels_last("N,32,32,3", "40,3,3,3", "N,30,30,40").reason, HasSubstr("serves all windows over it"));
  EXPECT_EQ(channels_last("N,32,32,16", "32,16,1,1", "N,32,32,32").row, "onednn.conv") << "a window of one element";
  EXPECT_EQ(channels_last("N,10,10,512", "512,512,3,3", "N,8,8,512").row, "onednn.conv") << "a large weight, read for each line";
}

TEST(CpuTarget, ConvolutionsWithLongRowsAreKernels) {
  EXPECT_THAT(conv("N,3,32,32", "8,3,3,3", "N,8,30,30", "1,1").reason, HasSubstr("rows of 30"));
  EXPECT_EQ(conv("N,3,16,16", "8,3,3,3", "N,8,14,14", "1,1").row, "onednn.conv") << "short rows";
  EXPECT_EQ(conv("N,3,65,65", "8,3,3,3", "N,8,32,32", "2,2").row, "onednn.conv") << "strides";
  EXPECT_EQ(conv("N,64,32,32", "8,64,3,3", "N,8,30,30", "1,1").row, "onednn.conv") << "many channels";
}

TEST(CpuTarget, ProductsOfBf16AreCallsUnlessTheyAreTiny) {
  const auto narrow = [](const std::string& a, const std::string& b, const std::string& y, const std::string& to) {
    return choice("input %a: bf16[" + a + "], input %b: bf16[" + b + "]) {\n%1: " + to + "[" + y + "] = matmul(%a, %b) {to=" + to + "}\noutput \"y\" %1\n");
  };
  EXPECT_EQ(narrow("N,784", "784,256", "N,256", "f32").row, "onednn.matmul");
  EXPECT_EQ(narrow("N,784", "784,256", "N,256", "bf16").row, "onednn.matmul");
  EXPECT_THAT(narrow("N,8", "8,32", "N,32", "f32").reason, HasSubstr("less time than a call"));
}

TEST(CpuTarget, MatmulOfOtherTypesIsAKernel) {
  for (const std::string dtype : {"i64", "i32", "f64"}) {
    const RowChoice made = choice("input %a: " + dtype + "[N,4], input %b: " + dtype + "[4,3]) {\n%1: " + dtype + "[N,3] = matmul(%a, %b)\noutput \"y\" %1\n");
    EXPECT_EQ(made.row, "");
    EXPECT_THAT(made.reason, HasSubstr(dtype));
  }
}

TEST(CpuTarget, MaxPoolWhoseWindowNumbersAreAnOutputIsAKernel) {
  const std::string pool = "input %x: f32[N,3,8,8]) {\n%1: f32[N,3,4,4], %2: i32[N,3,4,4] = max_pool(%x) " + std::string(kPool) + "[4,4]}\n";
  EXPECT_EQ(choice(pool + "output \"y\" %1\n").row, "onednn.max_pool");
  EXPECT_THAT(choice(pool + "output \"y\" %1\noutput \"w\" %2\n").reason, HasSubstr("window numbers are an output"));
}

TEST(CpuTarget, MaxPoolThatLiesChannelsLastIsAKernelWhereWindowsOverlapLittle) {
  const auto pooling = [](const std::string& channels, const std::string& kernel, const std::string& stride, const std::string& outputs) {
    const std::string shape = "[N," + outputs + "," + outputs + "," + channels + "]", square = "," + stride + "], dilations=[1,1], pads_begin=[0,0], pads_end=[0,0], spatial=[";
    return choice("input %x: f32[N,8,8," + channels + "]) {\n%1: f32" + shape + ", %2: i32" + shape + " = max_pool(%x) {kernel=[" + kernel + "," + kernel + "], strides=[" + stride + square +
                  outputs + "," + outputs + "], channels_last=true}\noutput \"y\" %1\n");
  };
  EXPECT_THAT(pooling("16", "2", "2", "4").reason, HasSubstr("its 16 channels lie together")) << "side by side";
  EXPECT_THAT(pooling("16", "3", "2", "3").reason, HasSubstr("its 16 channels lie together")) << "an element is in four windows at most";
  EXPECT_EQ(pooling("16", "3", "1", "6").row, "onednn.max_pool") << "an element is in nine windows";
  EXPECT_THAT(pooling("3", "2", "2", "4").reason, HasSubstr("its 3 channels lie together"));
}

TEST(CpuTarget, PoolingThatHangsOverItsInputIsAKernel) {
  const RowChoice made =
      choice("input %x: f32[N,3,7,7]) {\n%1: f32[N,3,4,4], %2: i32[N,3,4,4] = max_pool(%x) " + std::string(kPool) + "[4,4]}\noutput \"y\" %1\n");
  EXPECT_EQ(made.row, "");
  EXPECT_THAT(made.reason, HasSubstr("ceil_mode"));
}

TEST(CpuTarget, WhatHasNoRowSaysSo) {
  EXPECT_EQ(choice("input %a: f32[N,4]) {\n%1: f32[N,4] = exp(%a)\noutput \"y\" %1\n").reason, "no library row for this op");
}

}  // namespace
}  // namespace hone
