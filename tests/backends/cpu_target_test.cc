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

TEST(CpuTarget, MatmulOfFloatsIsACall) {
  EXPECT_EQ(choice("input %a: f32[N,4], input %b: f32[4,3]) {\n%1: f32[N,3] = matmul(%a, %b)\noutput \"y\" %1\n").row, "onednn.matmul");
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

TEST(CpuTarget, PoolingThatHangsOverItsInputIsAKernel) {
  const RowChoice made = choice("input %x: f32[N,3,7,7]) {\n%1: f32[N,3,4,4], %2: i32[N,3,4,4] = max_pool(%x) " + std::string(kPool) + "[4,4]}\noutput \"y\" %1\n");
  EXPECT_EQ(made.row, "");
  EXPECT_THAT(made.reason, HasSubstr("ceil_mode"));
}

TEST(CpuTarget, WhatHasNoRowSaysSo) {
  EXPECT_EQ(choice("input %a: f32[N,4]) {\n%1: f32[N,4] = exp(%a)\noutput \"y\" %1\n").reason, "no library row for this op");
}

}  // namespace
}  // namespace hone
