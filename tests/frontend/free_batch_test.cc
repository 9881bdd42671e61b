// Models that were exported for one size of the batch, and are wanted for another: what is free behind it, and what is refused.
#include "frontend/onnx/free_batch.h"

#include <gmock/gmock.h>

#include "tests/frontend/test_model.h"

namespace hone::test {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;

/// The shape of output "y" where batches of `batch` are wanted, and all warnings behind it.
std::string y_for(const TestModel& model, std::optional<std::int64_t> batch) {
  const onnx::Imported imported = model.import({.batch = batch});
  std::string text = to_string(imported.graph.type(imported.graph.find_output("y")->value));
  for (const Diag& warning : imported.warnings) text += " | " + to_string(warning);
  return text;
}

/// x [batch,6,4] through a Reshape to `target`, a node that keeps the shape, and a Reshape to `back`.
TestModel reshaped(std::int64_t batch, Ints target, Ints back) {
  TestModel model;
  model.input("x", {batch, 6, 4}).initializer("target", ints(std::move(target))).initializer("back", ints(std::move(back))).output("y");
  model.node("Reshape", {"x", "target"}, {"h"});
  model.node("Relu", {"h"}, {"g"});
  model.node("Reshape", {"g", "back"}, {"y"});
  return model;
}

TEST(FreeBatch, IsTakenWhereAnotherIsWanted) {
  TestModel model;
  model.input("x", {1, 3}).initializer("w", wavy({3, 2})).output("y");
  model.node("MatMul", {"x", "w"}, {"y"});
  EXPECT_THAT(y_for(model, 8), HasSubstr("f32[batch,2] | warning[HN-0190]: the model was exported for batches of 1, and is taken for those of any size"));
  EXPECT_THAT(y_for(model, 0), HasSubstr("f32[batch,2]"));
  EXPECT_EQ(y_for(model, 1), "f32[1,2]");
  EXPECT_EQ(y_for(model, std::nullopt), "f32[1,2]") << "as it is";
  EXPECT_EQ(model.import({.batch = 8}).model.graph().input(0).type().tensor_type().shape().dim(0).dim_value(), 1) << "the file stays what it is";
}

/// The last token of each sample, x[arange(1), last], as PyTorch writes it: the number of the sample is a constant.
TEST(FreeBatch, IsRefusedWhereSamplesAreTakenByNumber) {
  TestModel pairs;
  pairs.input("x", {1, 5, 4}).input("last", {1, 1}, DType::kI64).initializer("sample", i64({1, 1}, {0})).output("y");
  pairs.node("Concat", {"sample", "last"}, {"at"}).set("axis", -1);
  pairs.node("GatherND", {"x", "at"}, {"y"});
  EXPECT_THAT(y_for(pairs, 8), HasSubstr("f32[1,4] | warning[HN-0190]: the model was exported for batches of 1, and takes no others"));
  EXPECT_THAT(y_for(pairs, 8), HasSubstr("node \"y\" takes samples by their numbers, which are written down for one"));
  TestModel rows;
  rows.input("x", {1, 5, 4}).input("last", {1}, DType::kI64).output("y");
  rows.node("Flatten", {"x"}, {"flat"}).set("axis", 2);
  rows.node("Gather", {"flat", "last"}, {"y"}).set("axis", 0);
  EXPECT_THAT(y_for(rows, 8), HasSubstr("takes samples by their numbers"));
  TestModel within;
  within.input("x", {1, 5, 4}).input("last", {1, 1, 4}, DType::kI64).output("y");
  within.node("GatherElements", {"x", "last"}, {"y"}).set("axis", 1);
  EXPECT_THAT(y_for(within, 8), HasSubstr("f32[batch,1,4]"));
}

TEST(FreeBatch, CountsSamplesWhereTheFileDoes) {
  TestModel model;
  model.input("x", {1, 5, 4}).input("last", {1, 1}, DType::kI64).output("y");
  model.initializer("zero", Tensor::scalar(std::int64_t{0})).initializer("one", Tensor::scalar(std::int64_t{1})).initializer("column", ints({1}));
  model.node("Shape", {"x"}, {"shape"});
  model.node("Gather", {"shape", "zero"}, {"count"});
  model.node("Range", {"zero", "count", "one"}, {"number"});
  model.node("Unsqueeze", {"number", "column"}, {"sample"});
  model.node("Concat", {"sample", "last"}, {"at"}).set("axis", -1);
  model.node("GatherND", {"x", "at"}, {"y"});
  EXPECT_THAT(y_for(model, 8), HasSubstr("f32[batch,4]"));
}

TEST(FreeBatch, OfSeveralSamplesIsTakenWhenTheRecipeAsksForAnother) {
  TestModel model;
  model.input("x", {4, 3}).initializer("w", wavy({3, 2})).output("y");
  model.node("MatMul", {"x", "w"}, {"y"});
  EXPECT_EQ(y_for(model, 0), "f32[4,2]");
  EXPECT_EQ(y_for(model, 4), "f32[4,2]");
  EXPECT_THAT(y_for(model, 8), HasSubstr("f32[batch,2]"));
}

TEST(FreeBatch, GoesThroughShapesThatWereWrittenDown) {
  for (const std::int64_t batch : {1, 2}) {
    EXPECT_THAT(y_for(reshaped(batch, {batch, -1}, {batch, 4, 6}), 8), HasSubstr("f32[batch,4,6]")) << "flattened";
    EXPECT_THAT(y_for(reshaped(batch, {batch * 2, 3, 4}, {batch, 6, 4}), 8), HasSubstr("f32[batch,6,4]")) << "heads in front";
    EXPECT_THAT(y_for(reshaped(batch, {batch, 6, 2, 2}, {batch * 6, 4}), 8), HasSubstr("f32[6*batch,4]")) << "rows of all samples";
    EXPECT_THAT(y_for(reshaped(batch, {0, 0, 2, 2}, {0, 24}), 8), HasSubstr("f32[batch,24]"));
    EXPECT_THAT(y_for(reshaped(batch, {-1, 24}, {-1, 6, 4}), 8), HasSubstr("f32[batch,6,4]"));
  }
}

TEST(FreeBatch, StandsBehindTheStepsOfASequence) {
  TestModel model;
  model.input("x", {1, 6, 4}).initializer("heads", ints({6, 2, 2})).initializer("back", ints({6, 1, 4})).output("y");
  model.node("Transpose", {"x"}, {"t"}).set("perm", std::vector<std::int64_t>{1, 0, 2});
  model.node("Reshape", {"t", "heads"}, {"h"});
  model.node("Reshape", {"h", "back"}, {"s"});
  model.node("Transpose", {"s"}, {"y"}).set("perm", std::vector<std::int64_t>{1, 0, 2});
  EXPECT_THAT(y_for(model, 8), HasSubstr("f32[batch,6,4]"));
  TestModel rows;
  rows.input("x", {1, 6, 4}).initializer("rows", ints({6, 4})).initializer("back", ints({6, 1, 4})).output("y");
  rows.node("Transpose", {"x"}, {"t"}).set("perm", std::vector<std::int64_t>{1, 0, 2});
  rows.node("Reshape", {"t", "rows"}, {"h"});
  rows.node("Reshape", {"h", "back"}, {"s"});
  rows.node("Transpose", {"s"}, {"y"}).set("perm", std::vector<std::int64_t>{1, 0, 2});
  EXPECT_THAT(y_for(rows, 8), HasSubstr("f32[batch,6,4]"));
}

TEST(FreeBatch, IsInTheRowsOfAMatrix) {
  TestModel model;
  model.input("x", {1, 6, 4})
      .initializer("heads", ints({6, 1, 2, 2}))
      .initializer("rows", ints({6, 4}))
      .initializer("w", wavy({4, 5}))
      .initializer("back", ints({6, 1, 5}))
      .output("y");
  model.node("Transpose", {"x"}, {"t"}).set("perm", std::vector<std::int64_t>{1, 0, 2});
  model.node("Reshape", {"t", "heads"}, {"h"});
  model.node("Reshape", {"h", "rows"}, {"m"});
  model.node("Gemm", {"m", "w"}, {"g"});
  model.node("Reshape", {"g", "back"}, {"s"});
  model.node("Transpose", {"s"}, {"y"}).set("perm", std::vector<std::int64_t>{1, 0, 2});
  EXPECT_THAT(y_for(model, 8), HasSubstr("f32[batch,6,5]"));
}

TEST(FreeBatch, RepeatsTheTokenInFrontOfEachSample) {
  TestModel model;
  model.input("x", {1, 6, 4}).initializer("token", wavy({1, 1, 4})).output("y");
  model.node("Concat", {"token", "x"}, {"y"}).set("axis", 1);
  EXPECT_THAT(y_for(model, 8), HasSubstr("f32[batch,7,4]"));
}

TEST(FreeBatch, RepeatsTheFirstStateOfARecurrentLayer) {
  TestModel model;
  model.input("x", {6, 1, 2}).initializer("W", wavy({1, 3, 2})).initializer("R", wavy({1, 3, 3})).initializer("h0", wavy({1, 1, 3})).output("y");
  model.proto.mutable_graph()->mutable_input(0)->mutable_type()->mutable_tensor_type()->mutable_shape()->mutable_dim(0)->set_dim_value(1);
  model.proto.mutable_graph()->mutable_input(0)->mutable_type()->mutable_tensor_type()->mutable_shape()->mutable_dim(1)->set_dim_value(6);
  model.node("Transpose", {"x"}, {"t"}).set("perm", std::vector<std::int64_t>{1, 0, 2});
  model.node("RNN", {"t", "W", "R", "", "", "h0"}, {"", "s"}).set("hidden_size", 3);
  model.node("Transpose", {"s"}, {"y"}).set("perm", std::vector<std::int64_t>{1, 0, 2});
  EXPECT_THAT(y_for(model, 8), HasSubstr("f32[batch,1,3]"));
}

TEST(FreeBatch, IsRefusedWithAWarningWhereNodesTakeNothingElse) {
  TestModel model;
  model.input("x", {1, 3}).output("y");
  model.node("Squeeze", {"x"}, {"y"});  // without axes: of one sample
  EXPECT_THAT(y_for(model, 8), testing::AllOf(HasSubstr("f32[3] | "),
                                              HasSubstr("the model was exported for batches of 1, and takes no others: it does not learn from batches of 8"),
                                              HasSubstr("[data] batch_size = 1")));
  TestModel first;
  first.input("x", {1, 3}).initializer("zero", ints({0})).initializer("one", ints({1})).output("y");
  first.node("Slice", {"x", "zero", "one", "zero"}, {"s"});
  first.node("Add", {"x", "s"}, {"y"});
  EXPECT_THAT(y_for(first, 8), HasSubstr("f32[1,3] | ")) << "the first sample is no other's";
  TestModel added;
  added.input("x", {4, 3}).initializer("b", wavy({4, 3})).output("y");
  added.node("Add", {"x", "b"}, {"y"});
  EXPECT_THAT(y_for(added, 8), HasSubstr("f32[4,3] | ")) << "each sample has a row of its own";
}

TEST(FreeBatch, IsThatOfAllInputs) {
  TestModel model;
  model.input("a", {1, 3}).input("b", {2, 3}).output("y");
  model.node("Add", {"a", "b"}, {"y"});
  EXPECT_EQ(y_for(model, 8), "f32[2,3]") << "which one is the batch?";
  TestModel named;
  named.input("a", {"N", 3}).input("b", {1, 3}).output("y");
  named.node("Add", {"a", "b"}, {"y"});
  EXPECT_EQ(y_for(named, 8), "f32[N,3]");
}

}  // namespace
}  // namespace hone::test
