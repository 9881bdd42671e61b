// Plans with loops and sizes that are read when running: the file, and what plan::check refuses.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/diag.h"
#include "runtime/plan/plan.h"
#include "tests/support/temp_folder.h"

namespace hone::plan {
namespace {

const Dim kExtent = Dim::symbol("N"), kTrips = Dim::value_symbol("trips");

/// s' = s + x[i], $trips times, with $trips read from a feed; stacked: s'.
Plan plan_with_regions() {
  Entry body;
  body.name = "body";
  body.feeds = {{.name = "i", .dtype = DType::kI64}, {.name = "s", .shape = {kExtent}}, {.name = "x", .shape = {kExtent}}};
  body.buffers = {{.name = "s", .shape = {kExtent}, .storage = Buffer::Storage::kFeed, .index = 1},
                  {.name = "x", .shape = {kExtent}, .storage = Buffer::Storage::kFeed, .index = 2},
                  {.name = "sum", .shape = {kExtent}}};
  body.steps = {{KernelStep{"add", {0, 1, 2}, {kExtent}, kExtent, kExtent}, "add"}};
  body.results = {{"state", 2}, {"stacked", 2}};

  Entry entry;
  entry.name = kPredict;
  entry.feeds = {{.name = "start", .shape = {kExtent}}, {.name = "x", .shape = {Dim::symbol("T"), kExtent}}, {.name = "count", .dtype = DType::kI64}};
  entry.buffers = {{.name = "start", .shape = {kExtent}, .storage = Buffer::Storage::kFeed, .index = 0},
                   {.name = "x", .shape = {Dim::symbol("T"), kExtent}, .storage = Buffer::Storage::kFeed, .index = 1},
                   {.name = "count", .dtype = DType::kI64, .storage = Buffer::Storage::kFeed, .index = 2},
                   {.name = "final", .shape = {kExtent}, .first_step = 1, .last_step = 1},
                   {.name = "sums", .shape = {kTrips, kExtent}, .first_step = 1, .last_step = 1}};
  RegionStep loop{.kind = RegionStep::Kind::kScan, .trips = kTrips, .reverse = true, .states = 1, .scanned = 1, .operands = {0, 1}, .results = {3, -1, 4}, .bodies = {body}};
  entry.steps = {{ReadSizesStep{2, {"$trips"}}, "how often"}, {loop, "a loop"}};
  entry.results = {{"final", 3}, {"sums", 4}};

  Plan plan;
  plan.programs.push_back({.target = "cpu", .code = {{"x86-64", {std::byte{1}}}}, .persistents = {}, .entries = {entry}});
  return plan;
}

class RegionPlan : public testing::Test {
 protected:
  std::string path() const { return folder_.path() + "/plan.hone"; }

 private:
  test::TempFolder folder_;
};

TEST_F(RegionPlan, RoundTrips) {
  save(plan_with_regions(), path());
  const Plan loaded = load(path());
  const Entry& entry = loaded.programs[0].entries[0];
  EXPECT_THAT(std::get<ReadSizesStep>(entry.steps[0].what).symbols, testing::ElementsAre("$trips"));
  const auto& loop = std::get<RegionStep>(entry.steps[1].what);
  EXPECT_EQ(loop.kind, RegionStep::Kind::kScan);
  EXPECT_EQ(loop.trips, kTrips);
  EXPECT_TRUE(loop.reverse);
  EXPECT_EQ(loop.states, 1);
  EXPECT_EQ(loop.scanned, 1);
  EXPECT_THAT(loop.operands, testing::ElementsAre(0, 1));
  EXPECT_THAT(loop.results, testing::ElementsAre(3, -1, 4));
  ASSERT_EQ(loop.bodies.size(), 1);
  EXPECT_EQ(loop.bodies[0].feeds.size(), 3);
  EXPECT_EQ(loop.bodies[0].steps.size(), 1);
}

/// The loop's place taken by a call, which does what its body does.
Plan plan_with_call() {
  Plan plan = plan_with_regions();
  Entry& entry = plan.programs[0].entries[0];
  RegionStep call = std::get<RegionStep>(entry.steps[1].what);
  call.kind = RegionStep::Kind::kCall;
  call.trips = 1;
  call.reverse = false;
  call.states = call.scanned = 0;
  call.row = "cublaslt.matmul";
  call.attributes = {{"ta", {1}}};
  call.bodies[0].feeds = {entry.feeds[0], {.name = "x", .shape = {Dim::symbol("T"), kExtent}}};
  call.bodies[0].buffers = {{.name = "start", .shape = {kExtent}, .storage = Buffer::Storage::kFeed, .index = 0}, {.name = "x", .shape = {Dim::symbol("T"), kExtent}, .storage = Buffer::Storage::kFeed, .index = 1}, {.name = "sum", .shape = {kExtent}}};
  call.bodies[0].results = {{"final", 2}};
  call.results = {3};
  entry.buffers.pop_back();
  entry.results.pop_back();
  entry.steps[1].what = call;
  return plan;
}

TEST_F(RegionPlan, CallsRoundTrip) {
  save(plan_with_call(), path());
  const Plan loaded = load(path());
  const auto& call = std::get<RegionStep>(loaded.programs[0].entries[0].steps[1].what);
  EXPECT_EQ(call.kind, RegionStep::Kind::kCall);
  EXPECT_EQ(call.row, "cublaslt.matmul");
  EXPECT_THAT(call.attributes.at("ta"), testing::ElementsAre(1));
  EXPECT_EQ(call.bodies.size(), 1U);
  const LibraryStep same = library_call(call);
  EXPECT_EQ(same.row, call.row);
  EXPECT_THAT(same.operands, testing::ElementsAre(0, 1));
  EXPECT_THAT(same.results, testing::ElementsAre(3));
}

RegionStep& loop_of(Entry& entry) { return std::get<RegionStep>(entry.steps[1].what); }

TEST_F(RegionPlan, DamageIsRefused) {
  using Damage = void (*)(Entry&);
  const std::pair<const char*, Damage> cases[] = {
      {"reads 2 sizes", [](Entry& e) { std::get<ReadSizesStep>(e.steps[0].what).symbols.emplace_back("more"); }},
      {"reads 1 sizes from f32", [](Entry& e) { e.feeds[2].dtype = e.buffers[2].dtype = DType::kF32; }},
      {"uses buffer 9", [](Entry& e) { std::get<ReadSizesStep>(e.steps[0].what).buffer = 9; }},
      {"depends on the size \"$trips\"", [](Entry& e) { std::get<ReadSizesStep>(e.steps[0].what).symbols[0] = "$other"; }},
      {"wrong number of bodies", [](Entry& e) { loop_of(e).bodies.clear(); }},
      {"too few operands", [](Entry& e) { loop_of(e).states = 2; }},
      {"lacks an operand", [](Entry& e) { loop_of(e).operands[1] = -1; }},
      {"uses buffer 7", [](Entry& e) { loop_of(e).operands[1] = 7; }},
      {"scans a number", [](Entry& e) { loop_of(e).operands[1] = 2; }},
      {"gives its body another number of inputs", [](Entry& e) { loop_of(e).bodies[0].feeds.push_back({.name = "more"}); }},
      {"gives its body another type", [](Entry& e) { loop_of(e).bodies[0].feeds[0].dtype = DType::kI32; }},
      {"loses a state", [](Entry& e) { loop_of(e).bodies[0].results.clear(); }},
      {"another number of results", [](Entry& e) { loop_of(e).results.pop_back(); }},
      {"is wanted", [](Entry& e) { e.buffers[3].shape = {kExtent, 2}; }},
      {"is wanted", [](Entry& e) { e.buffers[4].dtype = DType::kF64; }},
      {"a condition that is not bool[]", [](Entry& e) { loop_of(e).kind = RegionStep::Kind::kWhile, loop_of(e).scanned = 0; }},
      {"wrong number of bodies", [](Entry& e) { loop_of(e).kind = RegionStep::Kind::kBranch; }},
      {"uses buffer 5 of 3", [](Entry& e) { std::get<KernelStep>(loop_of(e).bodies[0].steps[0].what).buffers[0] = 5; }},
  };
  for (const auto& [message, damage] : cases) {
    Plan plan = plan_with_regions();
    damage(plan.programs[0].entries[0]);
    try {
      check(plan);
      ADD_FAILURE() << "accepted, but expected: " << message;
    } catch (const Error& error) {
      EXPECT_EQ(error.diags().front().code, Code::kPlanFormat);
      EXPECT_THAT(error.what(), testing::HasSubstr(message));
    }
  }
}

TEST_F(RegionPlan, DamagedCallsAreRefused) {
  using Damage = void (*)(Entry&);
  const std::pair<const char*, Damage> cases[] = {
      {"has a library row without being a call, or none", [](Entry& e) { loop_of(e).row.clear(); }},
      {"has a library row without being a call, or none", [](Entry& e) { loop_of(e).kind = RegionStep::Kind::kScan; }},
      {"wrong number of bodies", [](Entry& e) { loop_of(e).bodies.clear(); }},
      {"lacks a result", [](Entry& e) { loop_of(e).results[0] = -1; }},
      {"too few operands", [](Entry& e) { loop_of(e).states = 1; }},
      {"writes a result where it reads", [](Entry& e) { loop_of(e).operands[0] = 3; }},
      {"gives its body another number of inputs", [](Entry& e) { loop_of(e).operands.pop_back(); }},
      {"reads sizes", [](Entry& e) { loop_of(e).bodies[0].steps.push_back({ReadSizesStep{1, {"more"}}, "how many"}); }},
      {"attribute \"ta\" depends on the size", [](Entry& e) { loop_of(e).attributes["ta"] = {Dim::symbol("nobody")}; }},
  };
  for (const auto& [message, damage] : cases) {
    Plan plan = plan_with_call();
    damage(plan.programs[0].entries[0]);
    try {
      check(plan);
      ADD_FAILURE() << "accepted, but expected: " << message;
    } catch (const Error& error) {
      EXPECT_EQ(error.diags().front().code, Code::kPlanFormat);
      EXPECT_THAT(error.what(), testing::HasSubstr(message));
    }
  }
}

TEST_F(RegionPlan, BodiesInBodiesHaveALimit) {
  Entry nest;
  nest.name = kPredict;
  nest.feeds = {{.name = "on", .dtype = DType::kBool}};
  nest.buffers = {{.name = "on", .dtype = DType::kBool, .storage = Buffer::Storage::kFeed, .index = 0}};
  const Entry innermost = nest;
  for (int i = 0; i < 20; ++i) {
    Entry around = innermost;
    around.steps = {{RegionStep{.kind = RegionStep::Kind::kBranch, .operands = {0, 0}, .results = {}, .bodies = {nest, innermost}}, "a branch"}};
    nest = around;
  }
  Plan plan = plan_with_regions();
  plan.programs[0].entries[0] = nest;
  try {
    check(plan);
    ADD_FAILURE() << "accepted";
  } catch (const Error& error) { EXPECT_THAT(error.what(), testing::HasSubstr("nested more than 16 deep")); }
}

}  // namespace
}  // namespace hone::plan
