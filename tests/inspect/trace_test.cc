// Measured times of steps, from traces in Chrome's format.
#include "inspect/trace.h"

#include <gtest/gtest.h>

#include "tests/support/temp_folder.h"

namespace hone::test {
namespace {

plan::Step kernel(const std::string& symbol, const std::string& origin) { return {plan::KernelStep{.symbol = symbol}, origin}; }

plan::Entry entry_of(std::vector<plan::Step> steps) { return {.name = "train_step", .feeds = {}, .results = {}, .buffers = {}, .steps = std::move(steps), .equations = {}}; }

std::string event(const std::string& name, const std::string& origin, int thread, double begin, double duration) {
  return R"({"ph":"X","name":")" + name + R"(","pid":0,"tid":)" + std::to_string(thread) + R"(,"ts":)" + std::to_string(begin) + R"(,"dur":)" + std::to_string(duration) +
         (origin.empty() ? "" : R"(,"args":{"origin":")" + origin + R"("})") + "}";
}

std::string trace(const std::vector<std::string>& events) {
  std::string text;
  for (const std::string& one : events) text += (text.empty() ? "" : ",") + one;
  return R"({"displayTimeUnit":"ms","traceEvents":[{"ph":"M","name":"thread_name"},)" + text + "]}";
}

std::vector<std::optional<MeasuredStep>> measured_in(const std::string& text, const plan::Entry& entry) { return measured_steps(read_trace(text, "t"), entry); }

TEST(Trace, GivesTheMeanOfTheRunsOfEachStep) {
  const auto measured = measured_in(trace({event("a", "", 0, 0, 10), event("b", "", 0, 20, 4), event("a", "", 0, 100, 20), event("b", "", 0, 140, 6)}), entry_of({kernel("a", "x"), kernel("b", "y"), kernel("c", "z")}));
  EXPECT_EQ(measured[0]->microseconds, 15);
  EXPECT_EQ(measured[0]->runs, 2);
  EXPECT_EQ(measured[1]->microseconds, 5);
  EXPECT_EQ(measured[1]->span->start, 40) << "in the last run";
  EXPECT_EQ(measured[1]->span->length, 6);
  EXPECT_FALSE(measured[2]);
}

TEST(Trace, TellsStepsOfOneKernelApartByTheirOrder) {
  const auto measured = measured_in(trace({event("a", "", 0, 0, 1), event("a", "", 0, 10, 2), event("a", "", 0, 20, 1), event("a", "", 0, 30, 2)}), entry_of({kernel("a", "x"), kernel("a", "y")}));
  EXPECT_EQ(measured[0]->microseconds, 1);
  EXPECT_EQ(measured[1]->microseconds, 2);
}

TEST(Trace, TellsStepsOfOneKernelApartByTheirOrigin) {
  const auto measured = measured_in(trace({event("a", "y", 0, 0, 2), event("a", "x", 1, 0, 1)}), entry_of({kernel("a", "x"), kernel("a", "y")}));
  EXPECT_EQ(measured[0]->microseconds, 1);
  EXPECT_EQ(measured[1]->microseconds, 2);
}

TEST(Trace, KnowsOriginsWithQuotes) {
  const auto measured = measured_in(trace({event("a", R"(at node \"x\")", 0, 0, 2), event("a", R"(at node \\\"y\\\")", 0, 5, 3)}), entry_of({kernel("a", R"(at node "y")"), kernel("a", R"(at node "x")")}));
  EXPECT_EQ(measured[0]->microseconds, 3) << "as messages write it";
  EXPECT_EQ(measured[1]->microseconds, 2) << "as it is";
}

TEST(Trace, OfSeveralThreadsTheSlowestCounts) {
  const auto measured = measured_in(trace({event("a", "", 0, 0, 3), event("a", "", 1, 0, 7), event("b", "", 0, 9, 1)}), entry_of({kernel("a", "x"), kernel("b", "y")}));
  EXPECT_EQ(measured[0]->microseconds, 7);
  EXPECT_EQ(measured[0]->runs, 1);
}

/// What an entry runs with the same kernels as another one is not that one's.
TEST(Trace, KnowsWhichEntryRan) {
  const auto event_in = [](const std::string& entry, double begin, double duration) {
    return R"({"ph":"X","name":"a","ts":)" + std::to_string(begin) + R"(,"dur":)" + std::to_string(duration) + R"(,"args":{"origin":"x","entry":")" + entry + R"("}})";
  };
  const plan::Entry entry = entry_of({kernel("a", "x")});
  const auto measured = measured_in(trace({event_in("train_step", 0, 4), event_in("eval_step", 10, 90), event_in("train_step, in a body", 20, 90)}), entry);
  EXPECT_EQ(measured[0]->microseconds, 4);
  EXPECT_EQ(measured[0]->runs, 1);
  for (const std::string variation : {"train_step_norms", "replica_step", "sharded_replica_step_norms", "shard_step"}) EXPECT_EQ(measured_in(trace({event_in(variation, 0, 4)}), entry)[0]->runs, 1) << variation;
  expect_error(Code::kDataFormat, "none of its events", [&] { (void)measured_in(trace({event_in("accumulate_step", 0, 4)}), entry); });
}

plan::Plan plan_for(const std::vector<std::pair<std::string, plan::Entry>>& programs) {
  plan::Plan plan;
  for (const auto& [target, entry] : programs) plan.programs.push_back({.target = target, .code = {}, .persistents = {}, .entries = {entry}});
  return plan;
}

TEST(Trace, FindsTheProgramThatItIsOf) {
  const plan::Plan plan = plan_for({{"cpu", entry_of({kernel("a", "x"), kernel("b", "y")})}, {"cuda", entry_of({kernel("a", "x"), kernel("c", "y"), kernel("d", "z")})}});
  const auto target = [&](const std::string& text) { return traced_program(read_trace(text, "t"), plan, "train_step").target; };
  const std::string events = trace({event("a", "x", 0, 0, 1), event("c", "y", 0, 1, 1)});
  EXPECT_EQ(target(events), "cuda") << "of which it has two steps";
  EXPECT_EQ(target(trace({event("a", "x", 0, 0, 1)})), "cpu") << "which is the first of equals";
  const auto named = [&](const std::string& name) { return R"({"otherData":{"targets":[")" + name + R"("]},)" + events.substr(1); };
  EXPECT_EQ(target(named("cpu")), "cpu") << "whatever its steps are called";
  expect_error(Code::kUsage, "a trace of a program for sim", [&] { (void)target(named("sim")); });
}

TEST(Trace, RefusesWhatIsNone) {
  const plan::Entry entry = entry_of({kernel("a", "x")});
  for (const std::string text : {"", "{", "3", "{}", "nonsense", "\"text\""}) expect_error(Code::kDataFormat, "no trace", [&] { (void)measured_in(text, entry); });
  for (const std::string text : {"[]", R"({"traceEvents":[1,null,{"ph":"X"},{"ph":"X","name":3,"ts":"x","args":[]}]})", R"({"traceEvents":{"a":1}})", R"({"traceEvents":[],"otherData":3})", R"({"traceEvents":[],"otherData":{"targets":{"a":[]}}})"})
    expect_error(Code::kDataFormat, "none of its events", [&] { (void)measured_in(text, entry); });
}

}  // namespace
}  // namespace hone::test
