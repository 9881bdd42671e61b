// Value symbols: numbers read from tensors, which may be negative.
#include <gtest/gtest.h>

#include "base/dims.h"

namespace hone {
namespace {

const Dim kStart = Dim::value_symbol("start"), kN = Dim::symbol("N");

TEST(ValueSymbols, AreWrittenWithADollarAndReadBack) {
  EXPECT_EQ(kStart.text(), "$start");
  EXPECT_EQ(Dim::parse("$start"), kStart);
  EXPECT_EQ(Dim::parse("N + max($start, -1)"), kN + max(kStart, -1));
  EXPECT_EQ(Dim::value_symbol("a b[0]").text(), "$a_b_0_");
}

TEST(Dims, AGuessTakesEverySymbolForTheSameNumber) {
  EXPECT_EQ(Dim(7).guess(64), 7);
  EXPECT_EQ((2 * kN + floordiv(Dim::symbol("M"), 3) * kStart).guess(6), 24);
}

TEST(ValueSymbols, AreOtherSymbolsThanSizesOfTheSameName) { EXPECT_NE(Dim::value_symbol("N"), kN); }

TEST(ValueSymbols, MayBeNegativeAndSizesMayNot) {
  EXPECT_TRUE(kStart.may_be_negative());
  EXPECT_TRUE((kStart + kN).may_be_negative());
  EXPECT_TRUE((kN - 1).may_be_negative());
  EXPECT_TRUE(min(kStart, kN).may_be_negative());
  EXPECT_TRUE(floordiv(kStart, 2).may_be_negative());
  EXPECT_TRUE(Dim(-1).may_be_negative());
  EXPECT_FALSE(kN.may_be_negative());
  EXPECT_FALSE((4 * kN + 1).may_be_negative());
  EXPECT_FALSE(max(kStart, 0).may_be_negative());
  EXPECT_FALSE(mod(kStart, 4).may_be_negative());
  EXPECT_FALSE(floordiv(kN, 2).may_be_negative());
}

TEST(ValueSymbols, EvaluateLikeAnyOther) { EXPECT_EQ((kN + kStart).evaluate({{"$start", -2}, {"N", 5}}), 3); }

}  // namespace
}  // namespace hone
