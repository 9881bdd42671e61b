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

TEST(Dims, NegativeOperandsAreReadBackAsTheyAre) {
  for (const Dim& dim : {mod(-1, kN), floordiv(-3, kN), mod(kN, kStart) - floordiv(-3, kN), mod(0 - kN, 3)}) {
    EXPECT_EQ(Dim::parse(dim.text()), dim) << dim.text();
    EXPECT_EQ(Dim::parse(dim.text()).evaluate({{"N", 5}, {"$start", 2}}), dim.evaluate({{"N", 5}, {"$start", 2}})) << dim.text();
  }
}

TEST(Dims, WhatIsAtMostAnotherIsAnEquation) {
  const Dim m = Dim::symbol("M");
  EXPECT_EQ(at_most(kN, kN + m), std::nullopt);
  EXPECT_EQ(at_most(2, 3), std::nullopt);
  EXPECT_EQ(at_most(kN, m), std::pair(min(kN, m), kN));
  EXPECT_EQ(at_most(0, kN - m), std::pair(max(kN - m, 0), kN - m));
}

TEST(Dims, DivisionIsExactOrLeftAsItIs) {
  const Dim m = Dim::symbol("M"), divisor = kN + 2 * kN * kN;
  EXPECT_EQ(floordiv(divisor * (kN + 3 * m), divisor), kN + 3 * m);
  EXPECT_EQ(floordiv((kN - m) * (kN + m), kN + m), kN - m);
  EXPECT_EQ(floordiv(kN * kN, divisor).evaluate({{"N", 4}}), 0) << "no step of a division may make the rest larger";
}

/// They would take exponentially long to walk through.
TEST(Dims, ExpressionsHaveAnEnd) {
  Dim nested = kN, product = kN + Dim::symbol("M") + Dim::symbol("K") + Dim::symbol("L");
  EXPECT_THROW(for (int i = 0; i < 40; ++i) nested = max(nested, nested * Dim::symbol("M") - 1), Error);
  EXPECT_THROW(for (int i = 0; i < 8; ++i) product = product * product, Error);
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
