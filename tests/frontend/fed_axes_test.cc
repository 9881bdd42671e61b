// Operators whose axes, steps or scales are fed give what they give with the same numbers as constants, for each feed anew.
#include <gtest/gtest.h>

#include <functional>

#include "tests/frontend/test_model.h"
#include "tests/support/backend_cases/backend_case.h"

namespace hone::test {
namespace {

/// One node over x, f32[2,3,4], and other operands: in `fed` those are inputs, in `fixed` constants.
struct Pair {
  std::string op_type;
  std::vector<Tensor> others;  ///< rank 0: left out
  std::function<void(TestNode)> attributes = [](TestNode) {};

  TestModel model(bool are_fed) const {
    TestModel made(20);
    std::vector<std::string> names = {"x"};
    made.input("x", {2, 3, 4}).output("y");
    for (std::size_t i = 0; i < others.size(); ++i) {
      const std::string name = "input" + std::to_string(i);
      names.push_back(others[i].element_count() == 0 ? "" : name);
      if (others[i].element_count() == 0) continue;
      if (are_fed) made.input(name, {others[i].shape()[0]}, others[i].dtype());
      else made.initializer(name, others[i]);
    }
    attributes(made.node(op_type, names, {"y"}));
    return made;
  }
  Feeds feeds() const {
    Feeds feeds = {{"x", wavy({2, 3, 4})}};
    for (std::size_t i = 0; i < others.size(); ++i)
      if (others[i].element_count() > 0) feeds.emplace("input" + std::to_string(i), others[i]);
    return feeds;
  }
};

void expect_same(const Pair& pair) {
  const Tensor fed = pair.model(true).run(pair.feeds())["y"], fixed = pair.model(false).run({{"x", wavy({2, 3, 4})}})["y"];
  EXPECT_EQ(difference(fed, fixed, 1e-6, 1e-6), "") << pair.op_type;
}

const Tensor kNoAxes = ints({});

TEST(FedAxes, Reduce) {
  const auto flat = [](TestNode node) { node.set("keepdims", 0); };
  for (const char* op : {"ReduceSum", "ReduceMean", "ReduceMax", "ReduceMin", "ReduceProd", "ReduceL1", "ReduceL2", "ReduceSumSquare", "ReduceLogSumExp"}) {
    for (const Tensor& axes : {ints({0}), ints({-1}), ints({2, 0}), ints({1, -3}), ints({0, 1, 2})}) {
      expect_same({op, {axes}});
      expect_same({op, {axes}, flat});
    }
  }
}

TEST(FedAxes, OneModelTakesAnyAxes) {
  const TestModel model = Pair{"ReduceSum", {ints({0})}, [](TestNode node) { node.set("keepdims", 0); }}.model(true);
  const Tensor x = wavy({2, 3, 4});
  using Extents = std::vector<std::int64_t>;
  EXPECT_EQ(model.run({{"x", x}, {"input0", ints({0})}})["y"].shape(), (Extents{3, 4}));
  EXPECT_EQ(model.run({{"x", x}, {"input0", ints({-2})}})["y"].shape(), (Extents{2, 4}));
  EXPECT_THROW((void)model.run({{"x", x}, {"input0", ints({3})}}), Error);
}

TEST(FedAxes, RunningSums) {
  for (const std::int64_t axis : {0, 1, 2, -1, -3})
    for (const char* op : {"CumSum", "CumProd"})
      for (const int flag : {0, 1}) expect_same({op, {ints({axis})}, [flag](TestNode node) { node.set("exclusive", flag).set("reverse", flag); }});
}

TEST(FedAxes, Unsqueeze) {
  for (const Tensor& axes : {ints({0}), ints({3}), ints({-1}), ints({1, 3}), ints({4, 0}), ints({-1, -5})}) expect_same({"Unsqueeze", {axes}});
}

TEST(FedAxes, Slice) {
  const Tensor starts = ints({1, -1}), ends = ints({INT64_MAX, -5}), axes = ints({1, 2});
  expect_same({"Slice", {starts, ends, axes, ints({1, -1})}});
  expect_same({"Slice", {starts, ends, axes, ints({2, -2})}});
  expect_same({"Slice", {ints({0}), ints({2}), ints({-1})}});
  expect_same({"Slice", {ints({0, 1}), ints({1, 1}), kNoAxes, ints({1, 1})}});
  expect_same({"Slice", {ints({5}), ints({-100}), ints({0}), ints({-1})}});
}

TEST(FedAxes, Pad) {
  for (const char* mode : {"constant", "edge", "reflect", "wrap"})
    expect_same({"Pad", {ints({1, 2, 1, -1}), kNoAxes, ints({1, -1})}, [mode](TestNode node) { node.set("mode", mode); }});
}

TEST(FedAxes, ResizeByScales) {
  for (const char* mode : {"nearest", "linear", "cubic"})
    expect_same({"Resize", {kNoAxes, f32({3}, {1, 1.5, 0.5})}, [mode](TestNode node) { node.set("mode", mode); }});
}

}  // namespace
}  // namespace hone::test
