// Sessions over plans written by hand: sizes, memory, threads, results, and what run() refuses.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <xmmintrin.h>

#include <atomic>
#include <cmath>
#include <random>
#include <thread>

#include "base/diag.h"
#include "base/files.h"
#include "runtime/device/devices.h"
#include "runtime/device/team.h"
#include "tests/runtime/hand_plan.h"
#include "tests/support/temp_folder.h"

namespace hone {
namespace {

using test::expect_error;
using testing::ElementsAre;
using testing::HasSubstr;

const Dim kN = Dim::symbol("N");

Tensor tensor(std::vector<std::int64_t> shape, const std::vector<float>& values) { return Tensor::of<float>(std::move(shape), values); }

Tensor iota(std::int64_t count) {
  std::vector<float> values(static_cast<std::size_t>(count));
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i % 1000);
  return tensor({count}, values);
}

std::vector<float> floats(const Tensor& tensor) { return {tensor.data<float>().begin(), tensor.data<float>().end()}; }

/// One kernel from feed x to result y, both f32[N].
plan::Plan map_plan(const std::string& kernel, Dim work = 1) {
  EntryBuilder builder("map");
  const std::uint32_t x = builder.feed("x", DType::kF32, {kN}), y = builder.arena(DType::kF32, {kN});
  builder.kernel(kernel, {x, y}, {kN}, kN, work);
  builder.result("y", y);
  return hand_plan({builder.build()});
}

Tensor map(Session& session, const Tensor& x) {
  session.run("map", Feeds{{"x", x}});
  return session.result_tensor("y");
}

/// The one Diag that `call` throws.
template <typename Call>
Diag error_of(Call call) {
  try {
    call();
  } catch (const Error& error) { return error.diags().front(); }
  ADD_FAILURE() << "no error";
  return {Code::kUsage, "no error", {}, {}};
}

TEST(Executor, RunsAKernel) {
  Session session(map_plan("twice"), {});
  EXPECT_THAT(floats(map(session, tensor({3}, {1, 2, 3}))), ElementsAre(2, 4, 6));
  EXPECT_EQ(session.result("y").shape, std::vector<std::int64_t>{3});
}

TEST(Executor, MeasuresItsStepsAndThoseOfBodies) {
  EntryBuilder body("body"), builder("map");
  body.feed("i", DType::kI64, {});
  const std::uint32_t s = body.feed("s", DType::kF32, {kN}), doubled = body.arena(DType::kF32, {kN});
  body.kernel("twice", {s, doubled}, {kN}, kN);
  body.result("s", doubled);
  const std::uint32_t x = builder.feed("x", DType::kF32, {kN}), y = builder.arena(DType::kF32, {kN});
  builder.step({plan::RegionStep{.kind = plan::RegionStep::Kind::kScan, .trips = 5, .states = 1, .operands = {x}, .results = {y, -1}, .bodies = {body.build()}}, "a loop"});
  builder.result("y", y);
  Session session(hand_plan({builder.build()}), {});
  map(session, tensor({1}, {1}));
  EXPECT_TRUE(session.step_times("map").empty()) << "nobody asked";
  session.measure_steps("map", true);
  for (int run = 0; run < 2; ++run) EXPECT_THAT(floats(map(session, tensor({1}, {1}))), ElementsAre(32));
  const std::vector<StepTime> times = session.step_times("map");
  ASSERT_EQ(times.size(), 2u);
  EXPECT_EQ(times[0].what, "scan");
  EXPECT_EQ(times[0].origin, "a loop");
  EXPECT_EQ(times[0].runs, 2);
  EXPECT_EQ(times[1].what, "twice");
  EXPECT_EQ(times[1].runs, 10);
  EXPECT_GT(times[1].seconds, 0);
  EXPECT_NEAR(times[0].inner_seconds, times[1].seconds, 1e-12);
  EXPECT_GT(times[0].seconds, times[0].inner_seconds);
  session.measure_steps("map", false);
  EXPECT_TRUE(session.step_times("map").empty());
}

TEST(Executor, GivesKernelsTheirSizesOfEachBinding) {
  Session session(map_plan("add_size"), {});
  for (int round = 0; round < 2; ++round) {
    EXPECT_THAT(floats(map(session, tensor({2}, {10, 20}))), ElementsAre(12, 22));
    EXPECT_THAT(floats(map(session, tensor({3}, {10, 20, 30}))), ElementsAre(13, 23, 33));
    EXPECT_THAT(floats(map(session, tensor({0}, {}))), ElementsAre());
  }
}

TEST(Executor, KernelsFindTheMathLibrary) {
  Session session(map_plan("exponential"), {});
  EXPECT_FLOAT_EQ(floats(map(session, tensor({1}, {1})))[0], std::exp(1.0F));
}

TEST(Executor, EveryPointRunsOnceWithAnyNumberOfThreads) {
  for (const int threads : {1, 2, 3, 8})
    for (const std::int64_t count : {1, 5, 63, 64, 65, 1000, 4099}) {
      EntryBuilder builder("map");
      const std::uint32_t x = builder.feed("x", DType::kF32, {kN}), y = builder.arena(DType::kF32, {kN});
      builder.kernel("twice", {x, y}, {}, kN, 1'000'000);
      builder.kernel("count", {y}, {}, kN, 1'000'000);
      builder.result("y", y);
      Session session(hand_plan({builder.build()}), {.device = "cpu", .threads = threads});
      const Tensor input = iota(count);
      const std::vector<float> found = floats(map(session, input));
      for (std::size_t i = 0; i < found.size(); ++i) ASSERT_EQ(found[i], 2 * floats(input)[i] + 1) << threads << " threads, " << count << " points";
    }
}

constexpr std::int64_t kManyOperations = std::int64_t{1} << 28;  // so that nobody tries whether one thread is faster

/// Copies of a feed that differ, so that it shows who has read which.
class CopiesOfAFeed : public FeedMaker {
 public:
  static constexpr std::int64_t kCount = 1000;

  explicit CopiesOfAFeed(int copies) : copies_(copies), values_(static_cast<std::size_t>(copies * kCount)) {}
  void make(int member, int members) noexcept override {
    ++calls;
    for (int copy = member; copy < copies_; copy += members) std::fill_n(values_.begin() + copy * kCount, kCount, static_cast<float>(copy + 1) * scale);
  }
  TensorView view(FeedMaker* maker) const {
    TensorView view(DType::kF32, {kCount}, values_.data());
    view.copies = copies_;
    view.copy_bytes = kCount * sizeof(float);
    view.maker = maker;
    return view;
  }

  std::atomic<int> calls = 0;
  float scale = 1;

 private:
  int copies_;
  std::vector<float> values_;
};

std::vector<float> ends_of(Session& session) {
  const std::vector<float> found = floats(session.result_tensor("y"));
  return {found.front(), found.back()};
}

/// Twice a view of feed x.
plan::Plan plan_with_view(bool counts = false) {
  EntryBuilder builder("map");
  const std::uint32_t x = builder.feed("x", DType::kF32, {kN}), seen = builder.view(x, {1, kN}), y = builder.arena(DType::kF32, {kN});
  builder.kernel("twice", {seen, y}, {}, kN, kManyOperations);
  if (counts) builder.kernel("count", {y}, {}, kN, kManyOperations);
  builder.result("y", y);
  return hand_plan({builder.build()});
}

TEST(Executor, EachThreadReadsItsOwnCopyOfAFeed) {
  Session session(plan_with_view(), {.device = "cpu", .threads = 2});
  CopiesOfAFeed two(2), three(3);
  two.make(0, 2), two.make(1, 2), three.make(0, 3);
  session.run("map", Feeds{{"x", two.view(nullptr)}});
  EXPECT_THAT(ends_of(session), ElementsAre(2, 4));
  session.run("map", Feeds{{"x", three.view(nullptr)}});
  EXPECT_THAT(ends_of(session), ElementsAre(2, 2)) << "copies for other threads than there are: the first is for all";
  session.run("map", Feeds{{"x", two.view(nullptr)}});
  EXPECT_THAT(ends_of(session), ElementsAre(2, 4));
  session.run("map", Feeds{{"x", tensor({3}, {5, 5, 5})}});
  EXPECT_THAT(ends_of(session), ElementsAre(10, 10)) << "one for all, after copies";
}

TEST(Executor, FeedsAreMadeOnceAsEachRunBegins) {
  Session two(plan_with_view(true), {.device = "cpu", .threads = 2}), one(plan_with_view(true), {.device = "cpu", .threads = 1}), three(plan_with_view(true), {.device = "cpu", .threads = 3});
  CopiesOfAFeed copies(2);
  const Feeds feeds = {{"x", copies.view(&copies)}};
  for (const float scale : {1.0F, 3.0F}) {
    copies.scale = scale;
    copies.calls = 0;
    two.run("map", feeds);
    EXPECT_EQ(copies.calls, 2) << "each thread its own";
    EXPECT_THAT(ends_of(two), ElementsAre(2 * scale + 1, 4 * scale + 1));
    one.run("map", feeds);
    EXPECT_EQ(copies.calls, 3);
    EXPECT_THAT(ends_of(one), ElementsAre(2 * scale + 1, 2 * scale + 1));
    three.run("map", feeds);
    EXPECT_THAT(ends_of(three), ElementsAre(2 * scale + 1, 2 * scale + 1)) << "the first is for all, and there before any of them reads it";
  }
  two.measure_steps("map", true);
  copies.scale = 4;
  two.run("map", feeds);
  EXPECT_THAT(ends_of(two), ElementsAre(9, 17)) << "steps that are measured, too";
}

TEST(Executor, WhatIsMadeIsHeldAgainstItsBounds) {
  EntryBuilder builder("map");
  const std::uint32_t index = builder.feed("index", DType::kI64, {kN}), y = builder.arena(DType::kF32, {40});
  builder.entry().feeds[0].bounds = {0, 40};
  builder.kernel("zero", {y}, {}, 40);
  builder.kernel("scatter", {index, y}, {kN}, 40, 1'000'000);
  builder.result("y", y);
  Session session(hand_plan({builder.build()}), {.device = "cpu", .threads = 2});
  struct Maker : FeedMaker {
    std::vector<std::int64_t> rows = std::vector<std::int64_t>(3);
    std::int64_t row = 0;
    void make(int member, int) noexcept override {
      if (member == 0) std::ranges::fill(rows, row);
    }
  } maker;
  TensorView view(DType::kI64, {3}, maker.rows.data());
  view.maker = &maker;
  maker.row = 39;
  session.run("map", Feeds{{"index", view}});
  EXPECT_EQ(floats(session.result_tensor("y")).back(), 3);
  maker.row = 40;
  expect_error(Code::kDataRange, "40", [&] { session.run("map", Feeds{{"index", view}}); });
}

TEST(Executor, ScatterRowsHaveOneOwner) {
  EntryBuilder builder("map");
  const std::uint32_t index = builder.feed("index", DType::kI64, {kN}), y = builder.arena(DType::kF32, {40});
  builder.kernel("zero", {y}, {}, 40);
  builder.kernel("scatter", {index, y}, {kN}, 40, 1'000'000);
  builder.result("y", y);
  Session session(hand_plan({builder.build()}), {.device = "cpu", .threads = 3});
  std::vector<std::int64_t> rows;
  std::vector<float> expected(40);
  for (std::int64_t i = 0; i < 500; ++i) rows.push_back(i * i % 37), expected[static_cast<std::size_t>(rows.back())] += 1;
  session.run("map", Feeds{{"index", Tensor::of<std::int64_t>({500}, rows)}});
  EXPECT_EQ(floats(session.result_tensor("y")), expected);
}

TEST(Executor, PiecesOfARangeCoverItInOrder) {
  for (const std::int64_t range : {std::int64_t{0}, std::int64_t{1}, std::int64_t{7}, std::int64_t{64}, std::int64_t{1000}, std::int64_t{1} << 50})
    for (int pieces = 1; pieces <= 9; ++pieces) {
      std::int64_t end = 0;
      for (int i = 0; i < pieces; ++i) {
        const RangePiece piece = piece_of(range, pieces, i);
        EXPECT_EQ(piece.begin, end);
        EXPECT_GE(piece.end, piece.begin);
        end = piece.end;
      }
      EXPECT_EQ(end, range);
    }
}

TEST(Executor, DenormalsAreZeroInAllThreadsAndTheCallerKeepsItsMode) {
  Session session(map_plan("half", 1'000'000), {.device = "cpu", .threads = 4});
  const std::vector<float> tiny(1000, 2e-38F);  // half of it is denormal
  const unsigned before = _mm_getcsr();
  EXPECT_THAT(floats(map(session, tensor({1000}, tiny))), testing::Each(0.0F));
  EXPECT_EQ(_mm_getcsr() & 0x8040U, before & 0x8040U);
}

TEST(Executor, TrainsLinearRegression) {
  Session session(regression_plan(), {.device = "cpu", .threads = 2});
  std::mt19937 random(1);
  std::uniform_real_distribution<float> uniform(-1, 1);
  const auto batch = [&](std::int64_t n) {
    std::vector<float> x(static_cast<std::size_t>(3 * n)), target;
    for (float& value : x) value = uniform(random);
    for (std::size_t i = 0; i < x.size(); i += 3) target.push_back(x[i] - 2 * x[i + 1] + 3 * x[i + 2]);
    return std::pair(tensor({n, 3}, x), tensor({n}, target));
  };
  double first = 0, last = 0;
  for (int step = 0; step < 300; ++step) {
    const auto [x, target] = batch(step % 5 == 4 ? 7 : 32);
    const Tensor rate = Tensor::scalar(0.2F);
    session.run(plan::kTrainStep, Feeds{{"learning_rate", rate}, {"target", target}, {"x", x}});
    last = Tensor(session.result_tensor(plan::kLossSum)).at(0);
    if (step == 0) first = last;
  }
  EXPECT_GT(first, 1);
  EXPECT_LT(last, 1e-6);
  const std::vector<float> w = floats(session.read("w"));
  EXPECT_NEAR(w[0], 1, 1e-4);
  EXPECT_NEAR(w[1], -2, 1e-4);
  EXPECT_NEAR(w[2], 3, 1e-4);
}

TEST(Executor, ResultsMayBeFeedsPersistentsAndViews) {
  Session session(regression_plan(), {});
  session.write("w", tensor({3, 1}, {1, 10, 100}));
  const Tensor x = tensor({2, 3}, {1, 2, 3, 4, 5, 6}), target = tensor({2}, {0, 0}), rate = Tensor::scalar(0.0F);
  session.run(plan::kTrainStep, Feeds{{"x", x}, {"target", target}, {"learning_rate", rate}});
  EXPECT_THAT(floats(session.result_tensor("y")), ElementsAre(321, 654));
  EXPECT_EQ(session.result("y").shape, std::vector<std::int64_t>{2});
  EXPECT_THAT(floats(session.result_tensor("w")), ElementsAre(1, 10, 100));
  EXPECT_EQ(session.result("x").data, x.bytes().data());
}

TEST(Executor, EntriesShareWeights) {
  Session session(regression_plan(), {});
  session.write("w", tensor({3, 1}, {1, 1, 1}));
  const Tensor x = tensor({1, 3}, {1, 2, 3});
  session.run(plan::kPredict, Feeds{{"x", x}});
  EXPECT_THAT(floats(session.result_tensor("y")), ElementsAre(6));
  const Tensor target = tensor({1}, {0}), rate = Tensor::scalar(0.5F);
  session.run(plan::kTrainStep, Feeds{{"x", x}, {"target", target}, {"learning_rate", rate}});
  session.run(plan::kPredict, Feeds{{"x", x}});
  EXPECT_THAT(floats(session.result_tensor("y")), ElementsAre(6 - 6 * 14));
}

TEST(Executor, EmptyBatchesRun) {
  Session session(regression_plan(), {});
  const Tensor x = tensor({0, 3}, {}), target = tensor({0}, {}), rate = Tensor::scalar(0.0F);
  session.run(plan::kTrainStep, Feeds{{"x", x}, {"target", target}, {"learning_rate", rate}});
  EXPECT_EQ(session.result_tensor(plan::kLossSum).at(0), 0);
}

TEST(Executor, FeedsNeedNoAlignment) {
  Session session(map_plan("twice"), {});
  std::vector<float> memory(101);
  for (std::size_t i = 0; i < memory.size(); ++i) memory[i] = static_cast<float>(i);
  session.run("map", Feeds{{"x", TensorView(DType::kF32, {100}, memory.data() + 1)}});
  EXPECT_EQ(session.result_tensor("y").at(99), 200);
}

TEST(Executor, OpaqueBuffersHaveTheSizeThatTheLibraryWants) {
  EntryBuilder builder("map");
  const std::uint32_t x = builder.feed("x", DType::kF32, {kN, 1, 4, 4}), dy = builder.feed("dy", DType::kF32, {kN, 1, 2, 2});
  const std::uint32_t y = builder.arena(DType::kF32, {kN, 1, 2, 2}), workspace = builder.arena(DType::kU8, {}, true),
                      dx = builder.arena(DType::kF32, {kN, 1, 4, 4});
  const std::map<std::string, std::vector<Dim>> attributes = {{"kernel", {2, 2}}, {"strides", {2, 2}}};
  builder.library({"onednn.max_pool", attributes, {x}, {y, workspace}});
  builder.library({"onednn.max_pool_grad", attributes, {dy, workspace}, {dx}});
  builder.result("dx", dx);
  builder.result("y", y);
  Session session(hand_plan({builder.build()}), {});
  std::vector<float> values(16);
  for (std::size_t i = 0; i < 16; ++i) values[i] = static_cast<float>(i);
  const Tensor input = tensor({1, 1, 4, 4}, values), gradient = tensor({1, 1, 2, 2}, {1, 2, 3, 4});
  session.run("map", Feeds{{"x", input}, {"dy", gradient}});
  EXPECT_THAT(floats(session.result_tensor("y")), ElementsAre(5, 7, 13, 15));
  EXPECT_THAT(floats(session.result_tensor("dx")), ElementsAre(0, 0, 0, 0, 0, 1, 0, 2, 0, 0, 0, 0, 0, 3, 0, 4));
}

TEST(Executor, CopiesLargeAndSmall) {
  EntryBuilder builder("map");
  const std::uint32_t x = builder.feed("x", DType::kF32, {kN}), y = builder.arena(DType::kF32, {kN}), z = builder.arena(DType::kF32, {1, kN});
  builder.step({plan::CopyStep{x, y}, "copy"});
  builder.step({plan::CopyStep{y, z}, "copy"});
  builder.result("y", z);
  Session session(hand_plan({builder.build()}), {.device = "cpu", .threads = 3});
  for (const std::int64_t count : {0, 1, 100, 1'000'003}) {
    const Tensor x_value = iota(count);
    EXPECT_EQ(floats(map(session, x_value)), floats(x_value));
  }
}

TEST(Executor, MemoryIsReportedPerBinding) {
  Session session(regression_plan(), {});
  EXPECT_EQ(session.memory(plan::kPredict).arena, 0);
  const Tensor x = Tensor::zeros(DType::kF32, {1000, 3});
  session.run(plan::kPredict, Feeds{{"x", x}});
  const MemoryReport report = session.memory(plan::kPredict);
  EXPECT_EQ(report.lower_bound, 4000);
  EXPECT_EQ(report.arena, 4032);
  EXPECT_EQ(report.persistent, 64);
}

TEST(Executor, SavedPlansRunTheSame) {
  const std::string path = testing::TempDir() + "executor_test.hone";
  plan::save(map_plan("twice"), path);
  Session session(plan::load(path), {});
  remove_file(path);
  EXPECT_THAT(floats(map(session, tensor({2}, {1, 2}))), ElementsAre(2, 4));
}

TEST(Executor, SessionsRunSideBySide) {
  std::vector<Session> sessions;
  for (int t = 0; t < 3; ++t) sessions.emplace_back(map_plan("twice", 1'000'000), SessionOptions{.device = "cpu", .threads = 2});
  std::vector<std::thread> threads;
  for (std::size_t t = 0; t < sessions.size(); ++t)
    threads.emplace_back([&session = sessions[t], t] {
      for (int round = 0; round < 20; ++round) {
        const Tensor x = iota(1000 + static_cast<std::int64_t>(t));
        EXPECT_EQ(map(session, x).at(999), 1998);
      }
    });
  for (std::thread& thread : threads) thread.join();
}

TEST(Executor, SessionsKeepTheirOwnCode) {
  plan::Plan other = map_plan("twice");
  other.programs[0].code[0].second = compile_kernels("KERNEL(twice) { EACH F(1)[i] = 20 * F(0)[i]; }");
  Session first(map_plan("twice"), {}), second(other, {});
  const Tensor x = tensor({1}, {1});
  EXPECT_EQ(map(first, x).at(0), 2);
  EXPECT_EQ(map(second, x).at(0), 20);
}

TEST(Executor, TooMuchMemoryIsAnErrorAndTheSessionLivesOn) {
  EntryBuilder builder("map");
  const std::uint32_t x = builder.feed("x", DType::kF32, {kN}), y = builder.arena(DType::kF32, {kN * Dim(1 << 30)});
  builder.kernel("twice", {x, y}, {}, kN);
  builder.result("y", y);
  Session session(hand_plan({builder.build()}), {});
  const Tensor small = tensor({0}, {}), large = iota(1000), larger = iota(2000);
  for (int round = 0; round < 2; ++round) {
    session.run("map", Feeds{{"x", small}});
    EXPECT_EQ(error_of([&] { session.run("map", Feeds{{"x", large}}); }).code, Code::kMemory);
    EXPECT_EQ(error_of([&] { session.result("y"); }).code, Code::kDataName);
    EXPECT_EQ(error_of([&] { session.run("map", Feeds{{"x", larger}}); }).code, Code::kTooLarge);
  }
}

TEST(Executor, SizesBelowZeroAreAnError) {
  EntryBuilder builder("map");
  const std::uint32_t x = builder.feed("x", DType::kF32, {kN}), y = builder.arena(DType::kF32, {kN - Dim(5)});
  builder.kernel("twice", {x, y}, {}, 1);
  Session session(hand_plan({builder.build()}), {});
  const Tensor input = iota(3);
  const Diag error = error_of([&] { session.run("map", Feeds{{"x", input}}); });
  EXPECT_EQ(error.code, Code::kDataShape);
  EXPECT_THAT(error.message, HasSubstr("[-2]"));
}

TEST(ExecutorErrors, FeedsMustFitTheEntry) {
  Session session(regression_plan(), {});
  const Tensor x = Tensor::zeros(DType::kF32, {2, 3}), target = Tensor::zeros(DType::kF32, {2}), rate = Tensor::scalar(0.1F);
  const auto run_error = [&](const Feeds& feeds) { return error_of([&] { session.run(plan::kTrainStep, feeds); }); };
  const Diag missing = run_error({{"x", x}, {"target", target}});
  EXPECT_EQ(missing.code, Code::kDataName);
  EXPECT_THAT(missing.message, HasSubstr("\"learning_rate\""));
  const Diag unknown = run_error({{"x", x}, {"traget", target}, {"learning_rate", rate}});
  EXPECT_EQ(unknown.code, Code::kDataName);
  EXPECT_THAT(unknown.notes, testing::Contains(HasSubstr("did you mean \"target\"?")));
  EXPECT_EQ(run_error({{"x", x}, {"x", x}, {"target", target}, {"learning_rate", rate}}).code, Code::kDataName);
  EXPECT_EQ(run_error({{"x", TensorView(DType::kF32, {2, 3}, nullptr)}, {"target", target}, {"learning_rate", rate}}).code, Code::kDataName);
  EXPECT_EQ(run_error({{"x", x.cast(DType::kF64)}, {"target", target}, {"learning_rate", rate}}).code, Code::kDataType);
  const Tensor wide = Tensor::zeros(DType::kF32, {2, 4}), three = Tensor::zeros(DType::kF32, {3});
  const Diag shape = run_error({{"x", wide}, {"target", target}, {"learning_rate", rate}});
  EXPECT_EQ(shape.code, Code::kDataShape);
  EXPECT_THAT(shape.message, HasSubstr("\"x\" has shape [2,4], but [N,3] is needed"));
  EXPECT_EQ(run_error({{"x", x}, {"target", three}, {"learning_rate", rate}}).code, Code::kDataShape);
  EXPECT_EQ(run_error({{"x", x.reshaped({6})}, {"target", target}, {"learning_rate", rate}}).code, Code::kDataShape);
  session.run(plan::kTrainStep, Feeds{{"x", x}, {"target", target}, {"learning_rate", rate}});  // errors leave the session whole
}

TEST(ExecutorErrors, ElementsMustBeWithinBounds) {
  EntryBuilder builder("map");
  const std::uint32_t index = builder.feed("index", DType::kI32, {kN, 2});
  builder.result("index", index);
  builder.entry().feeds[0].bounds = {0, 10};
  builder.entry().feeds[0].ignored = -100;
  Session session(hand_plan({builder.build()}), {});
  const auto run = [&](const std::vector<std::int32_t>& values) {
    const Tensor tensor = Tensor::of<std::int32_t>({2, 2}, values);
    session.run("map", Feeds{{"index", tensor}});
  };
  run({0, 9, -100, 5});
  for (const std::int32_t bad : {10, -1, -101, INT32_MAX, INT32_MIN}) {
    const Diag error = error_of([&] { run({0, 9, 1, bad}); });
    EXPECT_EQ(error.code, Code::kDataRange);
    EXPECT_THAT(error.message, HasSubstr("\"index\" at [1,1] is " + std::to_string(bad) + "; it must be from 0 to 9, or -100 to be ignored"));
  }
}

TEST(ExecutorErrors, NamesMustExist) {
  Session session(regression_plan(), {});
  EXPECT_TRUE(session.has_entry(plan::kTrainStep));
  EXPECT_FALSE(session.has_entry(plan::kEvalStep));
  EXPECT_EQ(error_of([&] { session.run(plan::kEvalStep, {}); }).code, Code::kPlanEntry);
  EXPECT_EQ(error_of([&] { session.result("y"); }).code, Code::kDataName);
  EXPECT_EQ(error_of([&] { session.read("v"); }).code, Code::kPlanMismatch);
  EXPECT_EQ(error_of([&] { session.write("w", Tensor::zeros(DType::kF32, {3})); }).code, Code::kPlanMismatch);
  EXPECT_EQ(error_of([&] { session.write("w", Tensor::zeros(DType::kF64, {3, 1})); }).code, Code::kPlanMismatch);
  const Tensor x = Tensor::zeros(DType::kF32, {2, 3});
  session.run(plan::kPredict, Feeds{{"x", x}});
  EXPECT_EQ(error_of([&] { session.result("z"); }).code, Code::kDataName);
}

TEST(ExecutorErrors, PlansMustFitTheMachine) {
  const auto session_error = [](const plan::Plan& plan, SessionOptions options = {}) { return error_of([&] { Session(plan, options); }); };
  const plan::Plan good = map_plan("twice");
  EXPECT_EQ(session_error(good, {.device = "cuda"}).code, Code::kDevice);
  EXPECT_EQ(session_error(good, {.device = "cpu:1"}).code, Code::kDevice);
  EXPECT_EQ(session_error(good, {.device = "abacus"}).code, Code::kDevice);
  EXPECT_EQ(session_error(good, {.device = "cpu", .threads = -1}).code, Code::kUsage);
  plan::Plan plan = good;
  plan.programs[0].target = "cuda";
  EXPECT_EQ(session_error(plan).code, Code::kPlanMismatch);
  plan = good;
  plan.programs[0].code[0].first = "x86-64-v9";
  EXPECT_EQ(session_error(plan).code, Code::kPlanMismatch);
  plan.programs[0].code.clear();
  EXPECT_EQ(session_error(plan).code, Code::kPlanMismatch);
  plan = good;
  plan.programs[0].code[0].second.resize(100);
  EXPECT_EQ(session_error(plan).code, Code::kPlanMismatch);
  EXPECT_THAT(session_error(map_plan("thrice")).message, HasSubstr("the kernel \"thrice\""));
  EntryBuilder builder("map");
  const std::uint32_t x = builder.feed("x", DType::kF32, {kN}), y = builder.arena(DType::kF32, {kN});
  EntryBuilder host = builder, library = builder;
  host.step({plan::HostStep{"sort", {}, {x}, {y}}, "top_k"});
  EXPECT_THAT(session_error(hand_plan({host.build()})).message, HasSubstr("the host function \"sort\""));
  library.library({"onednn.sort", {}, {x}, {y}});
  EXPECT_THAT(session_error(hand_plan({library.build()})).message, HasSubstr("the library row \"onednn.sort\""));
}

TEST(ExecutorErrors, RefusedLibraryCallsNameTheStep) {
  EntryBuilder builder("map");
  const std::uint32_t x = builder.feed("x", DType::kF32, {kN, 3}), y = builder.arena(DType::kF32, {kN, 3});
  builder.library({"onednn.matmul", {}, {x, x}, {y}});
  Session session(hand_plan({builder.build()}), {});
  const Tensor input = Tensor::zeros(DType::kF32, {2, 3});
  for (const char* part : {"onednn.matmul(f32[2,3], f32[2,3])", "a has 3 columns, and b 2 rows", "\"a library call\""})
    expect_error(Code::kPlanFormat, part, [&] { session.run("map", Feeds{{"x", input}}); });
}

// bind_sizes

DimBindings bound(const std::vector<Shape>& declared, const std::vector<std::vector<std::int64_t>>& found, std::vector<std::pair<Dim, Dim>> equations = {}) {
  plan::Entry entry;
  Feeds feeds;
  for (std::size_t i = 0; i < declared.size(); ++i) {
    const std::string name = "f" + std::to_string(i);
    entry.feeds.push_back({.name = name, .kind = plan::Feed::Kind::kModelInput, .dtype = DType::kF32, .shape = declared[i], .bounds = {}, .ignored = {}});
    feeds.emplace_back(name, TensorView(DType::kF32, found[i], &entry));
  }
  entry.equations = std::move(equations);
  return bind_sizes(entry, feeds);
}

TEST(BindSizes, SolvesForOneUnknownAtATime) {
  const Dim t = Dim::symbol("T");
  EXPECT_EQ(bound({{kN, 3}}, {{5, 3}}), (DimBindings{{"N", 5}}));
  EXPECT_EQ(bound({{kN * Dim(2) + Dim(1)}}, {{7}}), (DimBindings{{"N", 3}}));
  EXPECT_EQ(bound({{Dim(10) - kN}}, {{7}}), (DimBindings{{"N", 3}}));
  EXPECT_EQ(bound({{kN * t}, {kN}}, {{12}, {3}}), (DimBindings{{"N", 3}, {"T", 4}}));
  EXPECT_EQ(bound({{floordiv(t, 2)}, {t}}, {{3}, {7}}), (DimBindings{{"T", 7}}));
  EXPECT_EQ(bound({{}}, {{}}), DimBindings{});
  EXPECT_EQ(bound({{kN}}, {{0}}), (DimBindings{{"N", 0}}));
}

TEST(BindSizes, RefusesWhatDoesNotFit) {
  const Dim t = Dim::symbol("T");
  const auto code = [](auto... arguments) { return error_of([&] { bound(arguments...); }).code; };
  using Shapes = std::vector<Shape>;
  using Found = std::vector<std::vector<std::int64_t>>;
  EXPECT_EQ(code(Shapes{{kN}, {kN}}, Found{{3}, {4}}), Code::kDataShape);
  EXPECT_EQ(code(Shapes{{kN * Dim(2)}}, Found{{7}}), Code::kDataShape);
  EXPECT_EQ(code(Shapes{{kN + Dim(5)}}, Found{{3}}), Code::kDataShape);
  EXPECT_EQ(code(Shapes{{floordiv(t, 2)}}, Found{{3}}), Code::kDataShape);
  EXPECT_EQ(code(Shapes{{kN * kN}}, Found{{9}}), Code::kDataShape);
  EXPECT_EQ(code(Shapes{{kN}}, Found{{3, 1}}), Code::kDataShape);
  EXPECT_EQ(code(Shapes{{kN}}, Found{{-3}}), Code::kDataShape);
  const Diag equation = error_of([&] { bound({{kN, t}}, {{3, 4}}, {{kN, t}}); });
  EXPECT_EQ(equation.code, Code::kDataShape);
  EXPECT_THAT(equation.message, HasSubstr("N must be equal to T, but they are 3 and 4"));
}

TEST(Devices, CpuIsUsableAndOthersSayWhyNot) {
  const std::vector<DeviceInfo> devices = list_devices();
  ASSERT_FALSE(devices.empty());
  const auto cpu = std::ranges::find(devices, "cpu", &DeviceInfo::name);
  ASSERT_NE(cpu, devices.end());
  EXPECT_TRUE(cpu->usable);
  EXPECT_TRUE(devices[0].usable) << "the preferred one";
  for (const DeviceInfo& device : devices) EXPECT_EQ(device.usable, device.reason.empty()) << device.name;
}

}  // namespace
}  // namespace hone
