// Operators as they were before opset 7, which ONNX's own cases hardly have.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/frontend/test_model.h"

namespace hone::test {
namespace {

using ::testing::ElementsAre;

TEST(OldVersions, ArithmeticAlignedTheSecondOperand) {
  TestModel middle = TestModel::of_node("Add", {1, 2, 3}, {f32({2}, {10, 20})}, 6), last = TestModel::of_node("Mul", {1, 2, 3}, {f32({3}, {1, 2, 3})}, 6);
  middle.last().set("broadcast", 1).set("axis", 1).set("consumed_inputs", std::vector<std::int64_t>{0, 0});
  last.last().set("broadcast", 1);
  const Tensor x = f32({1, 2, 3}, {1, 2, 3, 4, 5, 6});
  EXPECT_THAT(values_of(middle.y(x)), ElementsAre(11, 12, 13, 24, 25, 26));
  EXPECT_THAT(values_of(last.y(x)), ElementsAre(1, 4, 9, 4, 10, 18));
}

TEST(OldVersions, SlopesWereThoseOfChannels) {
  const TestModel model = TestModel::of_node("PRelu", {1, 2, 2}, {f32({2}, {0.5, 2})}, 6);
  EXPECT_THAT(values_of(model.y(f32({1, 2, 2}, {-1, 1, -1, 1}))), ElementsAre(-0.5, 1, -2, 1));
}

TEST(OldVersions, TypesWereNames) {
  TestModel model = TestModel::of_node("Cast", {"N"}, {}, 1);
  model.last().set("to", "INT32");
  EXPECT_EQ(model.type(), "i32[N]");
}

TEST(OldVersions, ShapesAndPadsWereAttributes) {
  TestModel reshape = TestModel::of_node("Reshape", {2, 3}, {}, 4), pad = TestModel::of_node("Pad", {2}, {}, 1);
  reshape.last().set("shape", std::vector<std::int64_t>{3, -1});
  pad.last().set("paddings", std::vector<std::int64_t>{1, 2}).set("value", 7.0);
  EXPECT_EQ(reshape.type(), "f32[3,2]");
  EXPECT_THAT(values_of(pad.y(f32({2}, {1, 2}))), ElementsAre(7, 1, 2, 7, 7));
}

TEST(OldVersions, TilesWereForOneAxis) {
  const TestModel model = TestModel::of_node("Tile", {2, 1}, {ints({2}), ints({1})}, 1);
  EXPECT_THAT(values_of(model.y(f32({2, 1}, {3, 4}))), ElementsAre(3, 3, 4, 4));
}

TEST(OldVersions, UpsampleHadTwoScales) {
  TestModel model = TestModel::of_node("Upsample", {1, 1, 1, 2}, {}, 6);
  model.last().set("height_scale", 2.0).set("width_scale", 1.0).set("mode", "nearest");
  EXPECT_THAT(values_of(model.y(f32({1, 1, 1, 2}, {1, 2}))), ElementsAre(1, 2, 1, 2));
}

TEST(OldVersions, ConcatJoinedChannels) {
  EXPECT_EQ(TestModel::of_node("Concat", {"N", 2}, {}, 1).type(), "f32[N,2]");
  TestModel model(1);
  model.input("a", {"N", 2}).input("b", {"N", 3}).output("y");
  model.node("Concat", {"a", "b"}, {"y"});
  EXPECT_EQ(model.type(), "f32[N,5]");
}

TEST(OldVersions, NormsHadARealExponent) {
  TestModel model = TestModel::of_node("GlobalLpPool", {1, 1, 2}, {}, 1);
  model.last().set("p", 2.0);
  EXPECT_THAT(values_of(model.y(f32({1, 1, 2}, {3, 4}))), ElementsAre(5));
}

}  // namespace
}  // namespace hone::test
