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

TEST(Trace, GivesTheMeanOfTheRunsOfEachStep) {
  const auto measured = measured_steps(trace({event("a", "", 0, 0, 10), event("b", "", 0, 20, 4), event("a", "", 0, 100, 20), event("b", "", 0, 140, 6)}), "t", entry_of({kernel("a", "x"), kernel("b", "y"), kernel("c", "z")}));
  EXPECT_EQ(measured[0]->microseconds, 15);
  EXPECT_EQ(measured[0]->runs, 2);
  EXPECT_EQ(measured[1]->microseconds, 5);
  EXPECT_EQ(measured[1]->span->start, 40) << "in the last run";
  EXPECT_EQ(measured[1]->span->length, 6);
  EXPECT_FALSE(measured[2]);
}

TEST(Trace, TellsStepsOfOneKernelApartByTheirOrder) {
  const auto measured = measured_steps(trace({event("a", "", 0, 0, 1), event("a", "", 0, 10, 2), event("a", "", 0, 20, 1), event("a", "", 0, 30, 2)}), "t", entry_of({kernel("a", "x"), kernel("a", "y")}));
  EXPECT_EQ(measured[0]->microseconds, 1);
  EXPECT_EQ(measured[1]->microseconds, 2);
}

TEST(Trace, TellsStepsOfOneKernelApartByTheirOrigin) {
  const auto measured = measured_steps(trace({event("a", "y", 0, 0, 2), event("a", "x", 1, 0, 1)}), "t", entry_of({kernel("a", "x"), kernel("a", "y")}));
  EXPECT_EQ(measured[0]->microseconds, 1);
  EXPECT_EQ(measured[1]->microseconds, 2);
}

TEST(Trace, KnowsOriginsWithQuotes) {
  const auto measured = measured_steps(trace({event("a", R"(at node \"x\")", 0, 0, 2), event("a", R"(at node \\\"y\\\")", 0, 5, 3)}), "t", entry_of({kernel("a", R"(at node "y")"), kernel("a", R"(at node "x")")}));
  EXPECT_EQ(measured[0]->microseconds, 3) << "as messages write it";
  EXPECT_EQ(measured[1]->microseconds, 2) << "as it is";
}

TEST(Trace, OfSeveralThreadsTheSlowestCounts) {
  const auto measured = measured_steps(trace({event("a", "", 0, 0, 3), event("a", "", 1, 0, 7), event("b", "", 0, 9, 1)}), "t", entry_of({kernel("a", "x"), kernel("b", "y")}));
  EXPECT_EQ(measured[0]->microseconds, 7);
  EXPECT_EQ(measured[0]->runs, 1);
}

TEST(Trace, RefusesWhatIsNone) {
  const plan::Entry entry = entry_of({kernel("a", "x")});
  for (const std::string text : {"", "{", "3", "{}", "nonsense", "\"text\""}) expect_error(Code::kDataFormat, "no trace", [&] { (void)measured_steps(text, "t", entry); });
  for (const std::string text : {"[]", R"({"traceEvents":[1,null,{"ph":"X"},{"ph":"X","name":3,"ts":"x","args":[]}]})", R"({"traceEvents":{"a":1}})"})
    expect_error(Code::kDataFormat, "none of its events", [&] { (void)measured_steps(text, "t", entry); });
}

}  // namespace
}  // namespace hone::test
