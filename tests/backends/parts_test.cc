// Parts of a replica's step: what stays, and where it then lies.
#include "backends/parts.h"

#include <gtest/gtest.h>

namespace hone {
namespace {

using plan::Buffer;

/// gradient and loss of x and w; the gradient is exchanged in place; its norm; w moves along it.
plan::Entry step() {
  plan::Entry entry{.name = "replica_step_norms", .feeds = {{.name = "x"}, {.name = "learning_rate", .kind = plan::Feed::Kind::kLearningRate}}};
  entry.buffers = {{.name = "unused"},
                   {.name = "x", .storage = Buffer::Storage::kFeed, .index = 0},
                   {.name = "w", .storage = Buffer::Storage::kPersistent, .index = 0},
                   {.name = "gradient"},
                   {.name = "loss"},
                   {.name = "w/gradient", .storage = Buffer::Storage::kView, .index = 3},
                   {.name = "norm"},
                   {.name = "rate", .storage = Buffer::Storage::kFeed, .index = 1}};
  const auto kernel = [](const char* symbol, std::vector<std::uint32_t> buffers, std::uint32_t read_only) {
    plan::KernelStep call;
    call.symbol = symbol;
    call.buffers = std::move(buffers);
    call.read_only = read_only;
    return plan::Step{std::move(call), symbol};
  };
  entry.steps = {kernel("backward", {1, 2, 3, 4}, 2), {plan::AllReduceStep{.buffers = {5}, .bucket = 2}, "exchange"}, kernel("norm", {5, 6}, 1), kernel("update", {5, 7, 2, 2}, 3)};
  entry.results = {{plan::kLossSum, 4}, {"grad_norm:w", 6}};
  find_live_ranges(entry);
  return entry;
}

std::vector<std::string> names(const plan::Entry& entry) {
  std::vector<std::string> list;
  for (const Buffer& buffer : entry.buffers) list.push_back(buffer.name);
  return list;
}

std::vector<std::string> origins(const plan::Entry& entry) {
  std::vector<std::string> list;
  for (const plan::Step& each : entry.steps) list.push_back(each.origin);
  return list;
}

using Names = std::vector<std::string>;

TEST(Parts, WithoutNormsTheRestStays) {
  const plan::Entry part = without_norms(step(), "replica_step");
  EXPECT_EQ(origins(part), (Names{"backward", "exchange", "update"}));
  EXPECT_EQ(names(part), (Names{"x", "w", "gradient", "loss", "w/gradient", "rate"}));
  ASSERT_EQ(part.results.size(), 1u);
  EXPECT_EQ(part.buffers[part.results[0].buffer].name, "loss");
  EXPECT_EQ(part.buffers[part.buffers[4].index].name, "gradient") << "the view shows what it showed";
  EXPECT_EQ(part.buffers[2].last_step, 2u) << "the gradient lives until the update";
  EXPECT_EQ(std::get<plan::KernelStep>(part.steps[2].what).buffers, (std::vector<std::uint32_t>{4, 5, 1, 1}));
}

TEST(Parts, AShardCollectsAndChangesNoState) {
  plan::Entry whole = step();
  whole.feeds.push_back({.name = "unread", .dtype = DType::kF32, .shape = {Dim::symbol("N")}});
  const plan::Entry part = shard_of(whole, "shard_step");
  EXPECT_EQ(origins(part), (Names{"backward", "exchange"}));
  EXPECT_TRUE(std::get<plan::AllReduceStep>(part.steps[1].what).collects);
  EXPECT_EQ(names(part), (Names{"x", "w", "gradient", "loss", "w/gradient"}));
  ASSERT_EQ(part.results.size(), 1u);
  EXPECT_EQ(part.results[0].name, plan::kLossSum);
  ASSERT_EQ(part.feeds.size(), 2u);
  EXPECT_EQ(part.feeds[0].name, "x");
  EXPECT_EQ(part.feeds[1].name, "unread") << "sizes follow from it; of the learning rate nothing does";
}

TEST(Parts, DataThatNobodyReadsAreNotFed) {
  plan::Entry idle = step();
  idle.steps.erase(idle.steps.begin());
  idle.equations.emplace_back(Dim::symbol("N"), Dim(4));
  idle = without_data(idle);
  ASSERT_EQ(idle.feeds.size(), 1u);
  EXPECT_EQ(idle.feeds[0].name, "learning_rate");
  EXPECT_EQ(names(idle), (Names{"w", "gradient", "loss", "w/gradient", "norm", "rate"}));
  EXPECT_EQ(idle.buffers[5].index, 0u);
  EXPECT_EQ(idle.buffers[idle.buffers[3].index].name, "gradient");
  EXPECT_EQ(std::get<plan::KernelStep>(idle.steps[2].what).buffers, (std::vector<std::uint32_t>{3, 5, 0, 0}));
  EXPECT_TRUE(idle.equations.empty());
}

TEST(Parts, ARangeIsThatOfAllUses) {
  const plan::Entry whole = step();
  EXPECT_EQ(whole.buffers[3].first_step, 0u);
  EXPECT_EQ(whole.buffers[3].last_step, 3u) << "through its view";
  EXPECT_EQ(whole.buffers[4].last_step, 3u) << "a result lives to the end";
}

TEST(Parts, WhatIsExchangedLivesUntilTheExchangeHasEnded) {
  plan::Entry idle = step();
  std::get<plan::KernelStep>(idle.steps[2].what).buffers = {4, 6};  // the exchange goes on during this one
  EXPECT_EQ(plan::end_of_exchange(idle, 1), 3u);
  std::get<plan::KernelStep>(idle.steps[3].what).buffers = {7, 2};  // nobody reads the sum
  EXPECT_EQ(plan::end_of_exchange(idle, 1), 4u);
  find_live_ranges(idle);
  EXPECT_EQ(idle.buffers[3].last_step, 3u);
}

}  // namespace
}  // namespace hone
