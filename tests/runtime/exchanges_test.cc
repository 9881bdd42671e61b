// Exchanges that go on while the step computes: what waits for them, and what becomes of failures.
#include "runtime/exchanges.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <functional>
#include <future>
#include <thread>

#include "base/diag.h"
#include "tests/runtime/hand_plan.h"

namespace hone {
namespace {

using namespace std::chrono_literals;
using testing::ElementsAre;

/// As if another replica had the same, which arrives late.
class LateTwin : public Communicator {
 public:
  int rank() const override { return 0; }
  int size() const override { return 2; }
  bool mostly_waits() const override { return true; }
  void all_reduce(std::span<const ExchangedTensor> tensors) override {
    before();
    for (const ExchangedTensor& tensor : tensors)
      for (float& value : std::span(static_cast<float*>(tensor.data), static_cast<std::size_t>(tensor.count))) value *= 2;
    ++exchanged;
  }
  void reduce_scatter(std::span<const ExchangedTensor>) override {}
  void all_gather(std::span<const ExchangedTensor>) override {}
  void broadcast(std::span<const ExchangedTensor>, int) override {}
  void barrier() override {}
  void fail(const char*) noexcept override {}

  std::function<void()> before = [] { std::this_thread::sleep_for(20ms); };
  int exchanged = 0;
};

TEST(Exchanges, BeginWithoutWaitingAndEndInOrder) {
  LateTwin twin;
  std::promise<void> arrival;
  twin.before = [arrived = arrival.get_future().share()] { arrived.wait(); };
  float first = 1, second = 10;
  const BoundExchange a{.name = "a", .tensors = {{DType::kF32, 1, &first}}}, b{.name = "b", .tensors = {{DType::kF32, 1, &second}}};
  Exchanges exchanges(&twin);
  exchanges.begin(a);
  exchanges.begin(b);
  EXPECT_EQ(first, 1) << "nobody has waited";
  arrival.set_value();
  exchanges.end(1);
  EXPECT_EQ(first, 2);
  exchanges.end_all();
  EXPECT_EQ(second, 20);
  exchanges.begin(a);
  exchanges.end(1);
  EXPECT_EQ(first, 4) << "counted anew";
}

/// a and b are made of x, a is exchanged, and c made of the sum.
plan::Plan exchanging_plan() {
  const Dim n = Dim::symbol("N");
  EntryBuilder builder("step");
  const std::uint32_t x = builder.feed("x", DType::kF32, {n}), a = builder.arena(DType::kF32, {n}), b = builder.arena(DType::kF32, {n}), c = builder.arena(DType::kF32, {n}), sum = builder.view(a, {n});
  builder.entry().buffers[sum].name = "w/gradient";
  builder.kernel("twice", {x, a}, {n}, n);
  builder.step({plan::AllReduceStep{.buffers = {sum}, .bucket = 2}, "an exchange"});
  builder.kernel("twice", {x, b}, {n}, n);
  builder.kernel("twice", {sum, c}, {n}, n);
  builder.result("b", b);
  builder.result("c", c);
  return hand_plan({builder.build()});
}

const Tensor kX = Tensor::of<float>({2}, std::vector<float>{1, 2});

TEST(Exchanges, WhatUsesTheSumWaitsForIt) {
  LateTwin twin;
  Session session(exchanging_plan(), {.communicator = &twin});
  for (int run = 1; run <= 3; ++run) {
    session.run("step", Feeds{{"x", kX}});
    EXPECT_THAT(session.result_tensor("b").data<float>(), ElementsAre(2, 4));
    EXPECT_THAT(session.result_tensor("c").data<float>(), ElementsAre(8, 16));
    EXPECT_EQ(twin.exchanged, run);
  }
  Session alone(exchanging_plan(), {});
  alone.run("step", Feeds{{"x", kX}});
  EXPECT_THAT(alone.result_tensor("c").data<float>(), ElementsAre(4, 8));
}

TEST(Exchanges, OneThatFailsNamesItsBucketAndTheNextStepIsANewOne) {
  LateTwin twin;
  Session session(exchanging_plan(), {.communicator = &twin});
  twin.before = [] { throw Error(Code::kPeer, "rank 1 did not come", {}, {}); };
  try {
    session.run("step", Feeds{{"x", kX}});
    FAIL() << "no error";
  } catch (const Error& error) {
    EXPECT_EQ(error.diags().front().code, Code::kPeer);
    EXPECT_THAT(error.diags().front().notes, ElementsAre("while step exchanged bucket 2: w/gradient"));
  }
  twin.before = [] {};
  session.run("step", Feeds{{"x", kX}});
  EXPECT_THAT(session.result_tensor("c").data<float>(), ElementsAre(8, 16));
}

TEST(Exchanges, AreMeasuredWithTheWaitForThem) {
  LateTwin twin;
  Session session(exchanging_plan(), {.communicator = &twin});
  session.measure_steps("step", true);
  for (int run = 0; run < 2; ++run) session.run("step", Feeds{{"x", kX}});
  const std::vector<StepTime> times = session.step_times("step");
  ASSERT_EQ(times.size(), 4u);
  EXPECT_EQ(times[1].what, "all_reduce");
  EXPECT_EQ(times[1].runs, 2);
  EXPECT_GT(times[1].seconds, 0.03);
}

}  // namespace
}  // namespace hone
