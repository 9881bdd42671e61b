// What is known of matrices above their diagonals, and which points of products count because of it.
#include "backends/above_diagonal.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tests/backends/scheduled_case.h"
#include "tests/passes/pass_case.h"

namespace hone {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr std::string_view kAttentionInputs = "input %q: f32[N,2,40,8], input %k: f32[N,2,40,8], input %v: f32[N,2,40,8], input %g: f32[N,2,40,8], input %b: bool[N,2,40,40], constant %zero: f32[] = 0, constant %never: f32[] = -inf, constant %low: f32[] = -1e9";
constexpr std::string_view kCausalMask = "%i = iota() {axis=0, shape=[40,40]}; %j = iota() {axis=1, shape=[40,40]}; %m = less_equal(%j, %i); ";
constexpr std::string_view kSoftmaxOfScores = "%t = reduce_max(%s) {axes=[3], keep_dims=true}; %u = sub(%s, %t); %e = exp(%u); %z = reduce_sum(%e) {axes=[3], keep_dims=true}; %w = div(%e, %z); ";

/// Which points count, as the kernels' texts say it, of those of which not all do.
std::vector<std::string> counting(std::string_view statements, const PassChoice& passes = {}) {
  const Graph graph = test::small_graph(kAttentionInputs, statements);
  KernelSet kernels;
  (void)scheduled(graph, kernels, passes);
  std::vector<std::string> found;
  for (const Kernel& kernel : kernels.kernels()) {
    const std::string text = print(kernel);
    const std::size_t begin = text.find("# "), end = text.find(" counts");
    if (begin != std::string::npos and end != std::string::npos) found.push_back(text.substr(begin + 2, end - begin - 2));
  }
  return found;
}

std::string attention(std::string_view masked) { return fmt::format("{}%x = matmul(%q, %k) {{tb=true}}; %c = where(%m, %zero, %never); %l = where(%m, %zero, %low); %f = where(%b, %zero, %never); %a = add(%x, %c); %n = logical_not(%m); %s = {}; {}", kCausalMask, masked, kSoftmaxOfScores); }

TEST(AboveDiagonal, ProductsAroundACausalSoftmaxNeedHalfOfTheirTerms) {
  const std::string forward = attention("where(%m, %x, %never)");
  EXPECT_THAT(counting(forward + "%y = matmul(%w, %v)"), ElementsAre("i3 <= i2", "k <= i"));
  EXPECT_THAT(counting(forward + "%y = matmul(%w, %g) {ta=true}"), ElementsAre("i3 <= i2", "i <= k"));
  EXPECT_THAT(counting(forward + "%y = matmul(%w, %v)", PassChoice("fuse")), IsEmpty());
}

TEST(AboveDiagonal, WhatAGradientAddsUp) {
  const std::string backward = attention("where(%m, %x, %never)") + "%d = matmul(%g, %v) {tb=true}; %p = mul(%d, %w); %r = reduce_sum(%p) {axes=[3], keep_dims=true}; %o = sub(%d, %r); %h = mul(%w, %o); ";
  EXPECT_THAT(counting(backward + "%y = matmul(%h, %k)"), ElementsAre("i3 <= i2", "j <= i", "k <= i"));
}

TEST(AboveDiagonal, MasksThatAreAdded) {
  EXPECT_THAT(counting(attention("add(%x, %c)") + "%y = matmul(%w, %v)"), ElementsAre("i3 <= i2", "k <= i"));
  EXPECT_THAT(counting(attention("add(%a, %f)") + "%y = matmul(%w, %v)"), ElementsAre("i3 <= i2", "k <= i"));
}

/// A row of which all else is as low would have weights there.
TEST(AboveDiagonal, ALowNumberIsNoMask) { EXPECT_THAT(counting(attention("add(%x, %l)") + "%y = matmul(%w, %v)"), IsEmpty()); }

TEST(AboveDiagonal, OtherMasksHideNothing) {
  EXPECT_THAT(counting(attention("where(%b, %x, %never)") + "%y = matmul(%w, %v)"), IsEmpty());
  EXPECT_THAT(counting(attention("where(%n, %x, %never)") + "%y = matmul(%w, %v)"), IsEmpty());
}

/// The logarithm of a sum that is left out would be an infinity, and 0 times that no number.
TEST(AboveDiagonal, ASumThatMustBeFiniteIsLeftOutWhereItStaysSo) {
  EXPECT_THAT(counting(attention("add(%x, %c)") + "%d = matmul(%g, %v) {tb=true}; %p = tanh(%d); %h = mul(%p, %w); %y = matmul(%h, %k)"), ElementsAre("i3 <= i2", "i3 <= i2", "k <= i"));
  EXPECT_THAT(counting(attention("add(%x, %c)") + "%d = matmul(%g, %v) {tb=true}; %p = log(%d); %h = mul(%p, %w); %y = matmul(%h, %k)"), ElementsAre("i3 <= i2", "k <= i"));
  EXPECT_THAT(counting(attention("add(%x, %c)") + "%d = matmul(%g, %v) {tb=true}; %p = div(%w, %d); %y = matmul(%p, %k)"), ElementsAre("i3 <= i2", "k <= i"));
}

TEST(AboveDiagonal, AColumnThatIsSpreadIsNoTriangle) {
  const std::string column = std::string(kCausalMask) + "%1 = slice(%m) {sizes=[40,1], starts=[0,0], steps=[1,1]}; %2 = broadcast_to(%1) {shape=[40,40]}; %3 = matmul(%q, %g) {tb=true}; ";
  EXPECT_THAT(counting(column + "%4 = where(%2, %3, %zero); %y = matmul(%4, %k)"), IsEmpty());
  EXPECT_THAT(counting(column + "%4 = where(%1, %3, %zero); %y = matmul(%4, %k)"), IsEmpty());
}

TEST(AboveDiagonal, ScoresThatAreAResultAreWantedWhole) {
  const Graph graph = test::small_graph(kAttentionInputs, std::string(kCausalMask) + "%y = matmul(%q, %k) {tb=true}; %s = where(%m, %y, %never)");
  EXPECT_EQ(AboveDiagonal(graph).need(graph.find_output("y")->value), AboveDiagonal::Need::kNumber);
}

TEST(AboveDiagonal, KnowsNumbersThroughTheOperationsOfASoftmax) {
  const auto above = [](std::string_view y) {
    const Graph graph = test::small_graph(kAttentionInputs, fmt::format("{}%x = matmul(%q, %k) {{tb=true}}; %s = where(%m, %x, %never); %e = exp(%s); %n = neg(%s); %y = {}", kCausalMask, y));
    return AboveDiagonal(graph).of(graph.find_output("y")->value);
  };
  EXPECT_EQ(above("exp(%s)"), 0);
  EXPECT_EQ(above("exp(%n)"), std::numeric_limits<double>::infinity());
  EXPECT_EQ(above("sub(%x, %s)"), std::numeric_limits<double>::infinity());
  EXPECT_EQ(above("mul(%e, %x)"), 0);
  EXPECT_EQ(above("div(%e, %x)"), 0);
  EXPECT_EQ(above("div(%x, %e)"), std::nullopt);
  EXPECT_EQ(above("where(%b, %e, %zero)"), 0);
  EXPECT_EQ(above("where(%b, %e, %low)"), std::nullopt);
  EXPECT_EQ(above("reshape(%e) {shape=[2*N,40,40]}"), 0);
  EXPECT_EQ(above("reshape(%e) {shape=[N,2,1600]}"), std::nullopt);
  EXPECT_EQ(above("transpose(%e) {perm=[0,1,3,2]}"), std::nullopt);
}

}  // namespace
}  // namespace hone
