// hone-run in several processes: what they learn, what they leave, and what they say.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <signal.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>

#include "tests/collective/launch.h"
#include "tests/collective/trained_model.h"
#include "tests/support/tools/run_folders.h"
#include "tests/support/tools/run_tool.h"
#include "tests/support/tools/small_files.h"

namespace hone::test {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

class TrainedByRanks : public testing::Test {
 protected:
  void SetUp() override {
    if (const std::string why = no_mpi(); not why.empty()) GTEST_SKIP() << why;
    model_.emplace();
  }
  const TempFolder& folder() const { return model_->folder; }
  void run(const std::string& name, int size, const std::string& flags, const TwoMachines* between = nullptr) const {
    Ranks(folder(), name, {.size = size, .between = between}, TrainedModel::command(name, flags)).expect_all_well();
  }
  std::string model(const std::string& name) const { return folder().read(name + ".onnx"); }

  std::optional<TrainedModel> model_;
};

constexpr const char* kInShards = "--quiet --epochs 3 --shards 4";

TEST_F(TrainedByRanks, InShardsIsTheSameBitsAsInOneProcess) {
  for (const int replicas : {1, 2}) run_well(folder().path(), TrainedModel::command(fmt::format("alone{}", replicas), fmt::format("{} --virtual {}", kInShards, replicas)));
  for (const int size : {2, 4}) {
    const std::string name = fmt::format("ranks{}", size);
    run(name, size, kInShards);
    EXPECT_TRUE(model(name) == model("alone1")) << size << " ranks";
    EXPECT_TRUE(model(name) == model("alone2")) << size << " ranks";
  }
}

TEST_F(TrainedByRanks, InShardsIsTheSameBitsBetweenMachines) {
  const TwoMachines machines(folder());
  if (const std::string why = machines.why_not(); not why.empty()) GTEST_SKIP() << why;
  run_well(folder().path(), TrainedModel::command("alone", kInShards));
  run("ranks", 4, kInShards, &machines);
  EXPECT_TRUE(model("ranks") == model("alone"));
}

/// Replicas without samples take part in exchanges whose sums nobody there reads.
TEST_F(TrainedByRanks, AverageRunningStatistics) {
  write_conv_plan(folder());
  const auto command = [](const std::string& name) { return fmt::format("hone-run train conv.hone --train x=x.npy,y=y.npy --epochs 2 --quiet --batch 12 --global-batch --out {}.onnx", name); };
  run_well(folder().path(), command("alone") + " --virtual 4");
  Ranks(folder(), "ranks", {.size = 4}, command("ranks")).expect_all_well();
  EXPECT_TRUE(model("ranks") == model("alone"));
}

TEST_F(TrainedByRanks, StopTogetherWhenTheirTimeIsOver) {
  const Ranks ranks(folder(), "ranks", {.size = 3}, TrainedModel::command("ranks", "--epochs 1000000 --max-time 1"));
  for (const int rank : {0, 1, 2}) EXPECT_EQ(ranks.exit_code(rank), 0) << ranks.said(rank);
  EXPECT_THAT(ranks.said(0), HasSubstr("Out of time after step "));
}

TEST_F(TrainedByRanks, LearnsWhatOneProcessLearnsAndSpeaksOnce) {
  run_well(folder().path(), TrainedModel::command("alone", "--quiet --epochs 3"));
  const Ranks ranks(folder(), "ranks", {.size = 2}, TrainedModel::command("ranks", "--epochs 3"));
  ranks.expect_all_well();  // the others say nothing
  expect_same_epochs(folder(), "ranks", "alone");
  EXPECT_THAT(ranks.said(0), AllOf(HasSubstr("2 replicas in 2 processes: 16 samples a step, 8 for each"), HasSubstr("Epoch 3/3"), HasSubstr("the trained model is ranks.onnx")));
  for (const std::string& name : folder().names()) EXPECT_TRUE(not std::filesystem::is_directory(folder() / name) or name == "alone" or name == "ranks") << "a folder too many: " << name;
}

/// Between processes and between threads bf16 is rounded and added up alike.
TEST_F(TrainedByRanks, ExchangesBf16AsThreadsDo) {
  run_well(folder().path(), "hone-compile model.onnx -r train.toml --set train.exchange_precision=bf16 -o bf16.hone");
  const auto command = [](const std::string& name, const std::string& flags) { return TrainedModel::command(name, "--quiet --epochs 2 " + flags, "bf16.hone"); };
  run_well(folder().path(), command("threads", "--virtual 3"));
  for (const auto& [name, flags] : {std::pair("ranks", ""), {"shared", "--shard-optimizer"}}) {
    Ranks(folder(), name, {.size = 3}, command(name, flags)).expect_all_well();
    EXPECT_TRUE(model(name) == model("threads")) << name;
  }
}

TEST_F(TrainedByRanks, GoesOnWithAnotherNumberOfRanks) {
  const std::string flags = "--quiet --epochs 3";
  run("two", 2, flags + " --keep 100");
  stop_run_after(folder(), 10, "three", "two");
  run("three", 3, flags + " --resume");
  EXPECT_NEAR(lines_of_kind(folder(), "three", "epoch").back().at("loss").get<double>(), lines_of_kind(folder(), "two", "epoch").back().at("loss").get<double>(), 2e-5);
}

TEST_F(TrainedByRanks, NamesOneThatIsKilledAndGoesOnAsIfItWereNot) {
  const auto command = [](const std::string& name) { return TrainedModel::command(name, "--quiet --epochs 60 --collective-timeout 2s"); };
  Ranks(folder(), "whole", {.size = 3}, command("whole")).expect_all_well();
  {
    const Ranks ranks(folder(), "run", {.size = 3}, command("run"));
    const pid_t victim = ranks.process(1);
    ASSERT_TRUE(awaited(folder(), "run/checkpoint-000005")) << ranks.all_said();
    kill(victim, SIGKILL);
    for (const int rank : {0, 2}) {
      EXPECT_EQ(ranks.exit_code(rank), 9);
      EXPECT_THAT(ranks.said(rank), AllOf(HasSubstr(fmt::format("error[HN-0801]: rank 1 (process {} on ", victim)), HasSubstr("note: in step "), HasSubstr(fmt::format("this is rank {} of 3", rank))));
    }
  }
  Ranks(folder(), "run", {.size = 3}, command("run") + " --resume").expect_all_well();
  EXPECT_TRUE(model("run") == model("whole"));
}

TEST_F(TrainedByRanks, NamesOneThatHasAnotherPlan) {
  const Ranks ranks(folder(), "run", {.size = 3}, TrainedModel::command("run", "--quiet"), {{2, TrainedModel::command("run", "--quiet", "other.hone")}});
  for (const int rank : {0, 1, 2}) {
    EXPECT_EQ(ranks.exit_code(rank), 9);
    EXPECT_THAT(ranks.said(rank), HasSubstr("error[HN-0801]: rank 2 of 3 has another plan"));
  }
  EXPECT_FALSE(std::filesystem::exists(folder() / "run")) << "nothing was trained";
}

}  // namespace
}  // namespace hone::test
