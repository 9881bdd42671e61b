// Nodes that ask for impossible sizes, counts and positions. Each is refused with a message, in little memory and time (check_error_case).
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "tests/errors/error_case.h"
#include "tests/frontend/test_model.h"
#include "tests/support/tools/run_tool.h"

namespace hone::test {
namespace {

using ::testing::HasSubstr;

constexpr std::int64_t kHuge = std::int64_t{1} << 21, kVast = std::int64_t{1} << 62;
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
const std::string kCompile = "hone-compile model.onnx -o plan.hone";

Tensor scalar(std::int64_t value) { return i64({}, {value}); }

/// One node `op` of x f32[2,3,4] and `others`, at opset 18.
TestModel one_node(const char* op, std::vector<Tensor> others = {}) { return TestModel::of_node(op, {2, 3, 4}, std::move(others), 18); }

ErrorCase refused(const char* name, std::vector<std::string> says, std::function<TestModel()> make) {
  says.insert(says.begin(), "at node \"y\"");
  return {name, kCompile, 3, std::move(says), [make](const TempFolder& folder) { folder.write("model.onnx", make().proto.SerializeAsString()); }};
}

/// The same where attributes decide.
ErrorCase refused(const char* name, std::vector<std::string> says, TestModel model, std::function<void(TestNode)> set) {
  const auto make = [model, set]() mutable {
    set(model.last());
    return model;
  };
  return refused(name, std::move(says), make);
}

/// A node whose first operand is not x: `constants` are all of its operands.
TestModel of_constants(const char* op, const std::vector<Tensor>& constants) {
  TestModel model(18);
  model.input("x", {2}).output("x2").output("y").node("Relu", {"x"}, {"x2"});
  std::vector<std::string> names;
  for (const Tensor& constant : constants) {
    names.push_back("c" + std::to_string(names.size()));
    model.initializer(names.back(), constant);
  }
  model.node(op, names, {"y"});
  return model;
}

TestModel images(const char* op) { return TestModel::of_node(op, {1, 2, 5, 5}, {wavy({2, 2, 3, 3})}, 18); }
TestModel pooling() { return TestModel::of_node("MaxPool", {1, 2, 5, 5}, {}, 18); }

const ErrorCase kCases[] = {
    refused("ConstantOfShapeOfTwoTo41", {"HN-0115"},
            [] {
              return of_constants("ConstantOfShape", {ints({kHuge, kHuge})});
            }),
    refused("ConstantOfShapeBeyondInt64", {"HN-01"},
            [] {
              return of_constants("ConstantOfShape", {ints({kVast, 4})});
            }),
    refused("ConstantOfShapeNegative", {"HN-0107", "-1"},
            [] {
              return of_constants("ConstantOfShape", {ints({2, -1})});
            }),
    refused("RangeOfTrillions", {"HN-0115"},
            [] {
              return of_constants("Range", {scalar(0), scalar(1'000'000'000'000), scalar(1)});
            }),
    refused("RangeByZero", {"HN-0104", "delta"},
            [] {
              return of_constants("Range", {scalar(0), scalar(5), scalar(0)});
            }),
    refused("RangeToNan", {"HN-0104", "finite"},
            [] {
              return of_constants("Range", {f32({}, {0}), f32({}, {static_cast<float>(kNan)}), f32({}, {1})});
            }),
    refused("TileOfTrillions", {"HN-01"},
            [] {
              return one_node("Tile", {ints({kHuge, kHuge, 1})});
            }),
    refused("TileBeyondInt64", {"HN-01"},
            [] {
              return one_node("Tile", {ints({kVast, kVast, kVast})});
            }),
    refused("TileNegative", {"HN-01", "-2"},
            [] {
              return one_node("Tile", {ints({1, -2, 1})});
            }),
    refused("TileOfAnotherRank", {"HN-01"},
            [] {
              return one_node("Tile", {ints({1, 2})});
            }),
    refused("ExpandOfTrillions", {"HN-01"},
            [] {
              return one_node("Expand", {ints({kHuge, kHuge, 2, 3, 4})});
            }),
    refused("ExpandToAnotherExtent", {"HN-01"},
            [] {
              return one_node("Expand", {ints({2, 5, 4})});
            }),
    refused("PadOfTrillions", {"HN-01"},
            [] {
              return one_node("Pad", {ints({kHuge, 0, 0, 0, kHuge, 0})});
            }),
    refused("PadBeyondInt64", {"HN-01"},
            [] {
              return one_node("Pad", {ints({kVast, kVast, 0, kVast, kVast, 0})});
            }),
    refused("PadThatLeavesLessThanNothing", {"HN-0107"},
            [] {
              return one_node("Pad", {ints({-2, 0, 0, -2, 0, 0})});
            }),
    refused("PadsOfAnotherRank", {"HN-01"},
            [] {
              return one_node("Pad", {ints({1, 1})});
            }),
    refused("ReshapeToOtherElements", {"HN-0107"},
            [] {
              return one_node("Reshape", {ints({5, 5})});
            }),
    refused("ReshapeByTwoUnknowns", {"HN-0107", "more than one -1"},
            [] {
              return one_node("Reshape", {ints({-1, -1})});
            }),
    refused("ReshapeNegative", {"HN-01", "-2"},
            [] {
              return one_node("Reshape", {ints({-2, 12})});
            }),
    refused("ReshapeBeyondInt64", {"HN-01"},
            [] {
              return one_node("Reshape", {ints({kVast, kVast, -1})});
            }),
    refused("ReshapeToRank100", {"HN-01"}, [] { return one_node("Reshape", {ints(std::vector<std::int64_t>(100, 1))}); }),
    refused("SplitIntoTooMuch", {"HN-0107"}, [] { return one_node("Split", {ints({3})}); }),
    refused("SplitIntoLessThanNothing", {"HN-0107"}, [] { return one_node("Split", {ints({-2})}); }),
    refused("SliceByStepsOfZero", {"HN-0104"},
            [] {
              return one_node("Slice", {ints({0}), ints({2}), ints({0}), ints({0})});
            }),
    refused("SliceOfTheLowestNumbers", {"HN-0104"},
            [] {
              return one_node("Slice", {ints({INT64_MIN}), ints({INT64_MIN}), ints({0}), ints({INT64_MIN})});
            }),
    refused("SliceOfAnAxisTwice", {"HN-0104"},
            [] {
              return one_node("Slice", {ints({0, 0}), ints({1, 1}), ints({1, -2})});
            }),
    refused("SliceBeyondTheRank", {"HN-0104"},
            [] {
              return one_node("Slice", {ints({0}), ints({1}), ints({INT64_MAX})});
            }),
    refused("UnsqueezeTwice", {"HN-0104"},
            [] {
              return one_node("Unsqueeze", {ints({0, 0})});
            }),
    refused("UnsqueezeFarAway", {"HN-0104"}, [] { return one_node("Unsqueeze", {ints({1000})}); }),
    refused("SqueezeOfMoreThanOne", {"HN-0107"}, [] { return one_node("Squeeze", {ints({1})}); }),
    refused("MatMulOfOtherExtents", {"HN-0107", "MatMul"},
            [] {
              return one_node("MatMul", {wavy({5, 2})});
            }),
    refused("AddOfOtherExtents", {"HN-0107"},
            [] {
              return one_node("Add", {wavy({3, 3})});
            }),
    refused("TransposeOfAnAxisTwice", {"HN-01"}, one_node("Transpose"),
            [](TestNode node) {
              node.set("perm", std::vector<std::int64_t>{0, 0, 1});
            }),
    refused("TransposeOfNegativeAxes", {"HN-01"}, one_node("Transpose"),
            [](TestNode node) {
              node.set("perm", std::vector<std::int64_t>{-1, -2, -3});
            }),
    refused("ConcatFarAway", {"HN-0104"}, one_node("Concat"), [](TestNode node) { node.set("axis", INT32_MAX); }),
    refused("SoftmaxFarAway", {"HN-0104"}, one_node("Softmax"), [](TestNode node) { node.set("axis", -17); }),
    refused("ConvByStridesOfZero", {"HN-0104"}, images("Conv"),
            [](TestNode node) {
              node.set("strides", std::vector<std::int64_t>{0, 1});
            }),
    refused("ConvByVastPads", {"HN-01"}, images("Conv"),
            [](TestNode node) {
              node.set("pads", std::vector<std::int64_t>{kVast, kVast, kVast, kVast});
            }),
    refused("ConvByVastDilations", {"HN-01"}, images("Conv"),
            [](TestNode node) {
              node.set("dilations", std::vector<std::int64_t>{kVast, kVast});
            }),
    refused("ConvOfNoGroups", {"HN-0104"}, images("Conv"), [](TestNode node) { node.set("group", 0); }),
    refused("ConvOfVastGroups", {"HN-01"}, images("Conv"), [](TestNode node) { node.set("group", kVast); }),
    refused("ConvTransposeToVastPadding", {"HN-01"}, images("ConvTranspose"),
            [](TestNode node) {
              node.set("output_padding", std::vector<std::int64_t>{kVast, kVast});
            }),
    refused("ConvTransposeByVastStrides", {"HN-01"}, images("ConvTranspose"),
            [](TestNode node) {
              node.set("strides", std::vector<std::int64_t>{kVast, kVast});
            }),
    refused("PoolOverNothing", {"HN-0104"}, pooling(),
            [](TestNode node) {
              node.set("kernel_shape", std::vector<std::int64_t>{0, 2});
            }),
    refused("PoolOverVastWindows", {"HN-01"}, pooling(),
            [](TestNode node) {
              node.set("kernel_shape", std::vector<std::int64_t>{kVast, kVast});
            }),
    refused("PoolOverNegativePads", {"HN-01"}, pooling(),
            [](TestNode node) {
              node.set("kernel_shape", std::vector<std::int64_t>{2, 2}).set("pads", std::vector<std::int64_t>{-kVast, 0, 0, 0});
            }),
    refused("OneHotOfTrillions", {"HN-01"},
            [] {
              return of_constants("OneHot", {ints(std::vector<std::int64_t>(4, 1)), scalar(kHuge * kHuge), f32({2}, {0, 1})});
            }),
    refused("DepthToSpaceByBlocksOfNothing", {"HN-01"}, images("DepthToSpace"), [](TestNode node) { node.set("blocksize", 0); }),
    refused("DepthToSpaceByVastBlocks", {"HN-01"}, images("DepthToSpace"), [](TestNode node) { node.set("blocksize", kVast); }),
    refused("TopKOfMoreThanThereAre", {"HN-01"}, [] { return one_node("TopK", {ints({kVast})}); }),
};

HONE_ERROR_CASES(HostileSizes, kCases);

/// Ten nodes, each wrong in its own way, in one file.
TEST(TenProblems, AreTenMessagesInOneRun) {
  TestModel model(18);
  model.input("x", {2, 3, 4});
  const auto add = [&](const char* op, std::vector<std::string> operands, const std::string& result) {
    model.output(result);
    return model.node(op, std::move(operands), {result}).named("node/" + result);
  };
  const auto with = [&](const std::string& name, const Tensor& tensor) { return model.initializer(name, tensor), name; };
  add("Sotfmax", {"x"}, "a");
  add("Relu", {"imgae"}, "b");
  add("MatMul", {"x", with("weight", wavy({5, 2}))}, "c");
  add("Reshape", {"x", with("shape", ints({5, 5}))}, "d");
  add("Transpose", {"x"}, "e").set("perm", std::vector<std::int64_t>{0, 0, 1});
  add("Softmax", {"x"}, "f").set("axis", 7);
  add("Slice", {"x", with("starts", ints({0})), with("ends", ints({1})), with("axes", ints({0})), with("steps", ints({0}))}, "g");
  add("Tile", {"x", with("repeats", ints({1, -2, 1}))}, "h");
  add("Add", {"x", with("bias", wavy({7}))}, "i");
  add("Not", {"x"}, "j");
  const TempFolder folder;
  folder.write("model.onnx", model.proto.SerializeAsString());
  const ToolRun run = run_tool(folder.path(), kCompile);
  EXPECT_EQ(run.exit, 3);
  std::size_t messages = 0;
  for (std::size_t at = run.err.find("error["); at != std::string::npos; at = run.err.find("error[", at + 1)) ++messages;
  EXPECT_EQ(messages, 10U) << run.err;
  for (const char name : std::string("abcdefghij")) EXPECT_THAT(run.err, HasSubstr(std::string("node/") + name));
}

}  // namespace
}  // namespace hone::test
