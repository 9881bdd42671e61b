// Loops of hand-written plans: each result lies where it is wanted, whatever a body passes on, exchanges or gives twice.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/runtime/hand_plan.h"

namespace hone {
namespace {

using testing::ElementsAre;
using Values = std::vector<float>;

Tensor tensor(const Values& values) { return Tensor::of<float>({static_cast<std::int64_t>(values.size())}, values); }
Values values_of(const Tensor& tensor) { return {tensor.data<float>().begin(), tensor.data<float>().end()}; }

/// States a and b of one element, trips times: a' = b, b' = 2 a. Also stacked: b' (as result 2 and, the same buffer, 3).
plan::Entry exchanging_body() {
  EntryBuilder body("body");
  body.feed("i", DType::kI64, {});
  const std::uint32_t a = body.feed("a", DType::kF32, {1}), b = body.feed("b", DType::kF32, {1}), twice = body.arena(DType::kF32, {1});
  body.kernel("twice", {a, twice}, {}, 1);
  for (const auto& [name, buffer] : {std::pair("a", b), std::pair("b", twice), std::pair("stacked", twice), std::pair("again", twice)})
    body.result(name, buffer);
  return body.build();
}

/// What a plan's loop makes of the body, from a = 1 and b = 10. `wanted`: which of the results (a, b, a and b as each iteration found them, both stacked).
struct Looped {
  std::vector<Values> results;
};
Looped run_loop(std::int64_t trips, bool reverse, const std::vector<bool>& wanted) {
  EntryBuilder builder("map");
  const std::uint32_t a = builder.feed("a", DType::kF32, {1}), b = builder.feed("b", DType::kF32, {1});
  plan::RegionStep loop{
      .kind = plan::RegionStep::Kind::kScan, .trips = trips, .reverse = reverse, .states = 2, .operands = {a, b}, .results = {}, .bodies = {exchanging_body()}};
  for (std::size_t k = 0; k < wanted.size(); ++k) {
    const Shape shape = k < 2 ? Shape{1} : Shape{trips, 1};
    loop.results.push_back(wanted[k] ? static_cast<std::int64_t>(builder.arena(DType::kF32, shape)) : -1);
    if (wanted[k]) builder.result("r" + std::to_string(k), static_cast<std::uint32_t>(loop.results.back()));
  }
  builder.step({loop, "a loop"});
  Session session(hand_plan({builder.build()}), {.device = "cpu", .threads = 2});
  Looped looped;
  const Tensor first = tensor({1}), second = tensor({10});
  for (int again = 0; again < 3; ++again) {
    looped.results.assign(wanted.size(), {});
    session.run("map", Feeds{{"a", first}, {"b", second}});
    for (std::size_t k = 0; k < wanted.size(); ++k)
      if (wanted[k]) looped.results[k] = values_of(session.result_tensor("r" + std::to_string(k)));
  }
  return looped;
}

TEST(Loops, StatesMayBeExchangedAndStacked) {
  const Looped all = run_loop(4, false, std::vector(6, true));
  EXPECT_THAT(all.results[0], ElementsAre(4));
  EXPECT_THAT(all.results[1], ElementsAre(40));
  EXPECT_THAT(all.results[2], ElementsAre(1, 10, 2, 20));
  EXPECT_THAT(all.results[3], ElementsAre(10, 2, 20, 4));
  EXPECT_THAT(all.results[4], ElementsAre(2, 20, 4, 40));
  EXPECT_EQ(all.results[5], all.results[4]);
}

TEST(Loops, GiveTheSameWhicheverResultsAreRead) {
  for (const bool reverse : {false, true})
    for (const std::int64_t trips : {0, 1, 2, 5}) {
      const Looped all = run_loop(trips, reverse, std::vector(6, true));
      for (unsigned mask = 0; mask < 64; ++mask) {
        std::vector<bool> wanted;
        for (unsigned k = 0; k < 6; ++k) wanted.push_back((mask >> k & 1) != 0);
        const Looped some = run_loop(trips, reverse, wanted);
        for (std::size_t k = 0; k < 6; ++k)
          if (wanted[k]) EXPECT_EQ(some.results[k], all.results[k]) << "result " << k << " of " << trips << " iterations, wanted " << mask;
      }
    }
}

TEST(Loops, BackwardsStackFromTheEnd) {
  const Looped all = run_loop(4, true, std::vector(6, true));
  EXPECT_THAT(all.results[0], ElementsAre(4));
  EXPECT_THAT(all.results[2], ElementsAre(20, 2, 10, 1));
  EXPECT_THAT(all.results[4], ElementsAre(40, 4, 20, 2));
}

TEST(Loops, WithoutIterationsTheStatesStayAsTheyAre) {
  const Looped all = run_loop(0, false, std::vector(6, true));
  EXPECT_THAT(all.results[0], ElementsAre(1));
  EXPECT_THAT(all.results[1], ElementsAre(10));
}

}  // namespace
}  // namespace hone
