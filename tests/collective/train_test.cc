// hone-run in several processes: what they learn, what they leave, and what they say.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <signal.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>

#include "tests/collective/faults.h"
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

/// A launcher of another MPI: each process would be alone, and all would write the same files.
TEST_F(TrainedByRanks, ThatMpiDoesNotConnectDoNotTrain) {
  const ToolRun run = run_tool(folder().path(), "PMI_RANK=1 PMI_SIZE=4 " + TrainedModel::command("alone", "--quiet --epochs 1"));
  EXPECT_EQ(run.exit, 2);
  EXPECT_THAT(run.err, AllOf(HasSubstr("the launcher started 4 processes, and MPI connects 1 of them"), HasSubstr("mpirun")));
}

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

/// Else both would have the first one, and their gradients would go through the host.
TEST_F(TrainedByRanks, EachTakesADeviceOfItsOwn) {
  run_well(folder().path(), "hone-compile model.onnx -r train.toml --target sim --levels x86-64-v3 -o sim.hone");
  const auto command = [](const std::string& name, const std::string& device) { return TrainedModel::command(name, "--epochs 2 --device " + device, "sim.hone"); };
  run_well(folder().path(), command("threads", "sim:0,1"));
  const Ranks ranks(folder(), "turns", {.size = 2}, command("turns", "sim"));
  ranks.expect_all_well();
  EXPECT_THAT(ranks.said(0), testing::Not(HasSubstr("host's memory")));
  EXPECT_TRUE(model("turns") == model("threads"));
  const Ranks together(folder(), "together", {.size = 2}, command("together", "sim:0"));
  (void)together.exit_code(1);
  ASSERT_EQ(together.exit_code(0), 0) << together.all_said();
  EXPECT_THAT(together.said(0), HasSubstr("several replicas share a device"));
}

/// Two replicas in each of two processes: what four of one process learn, and four processes.
TEST_F(TrainedByRanks, OfSeveralReplicasIsTheSameBitsAsInOneProcess) {
  for (const auto& [name, flags] : {std::pair("plain", ""), {"shared", " --shard-optimizer"}, {"shards", " --shards 8"}}) {
    const auto called = [name = std::string(name)](const char* where) { return name + where; };
    const std::string training = std::string("--quiet --epochs 2") + flags;
    run_well(folder().path(), TrainedModel::command(called("threads"), training + " --virtual 4"));
    run(called("nested"), 2, training + " --virtual 2");
    EXPECT_TRUE(model(called("nested")) == model(called("threads"))) << name;
    for (const char* file : {"model", "optimizer"}) {
      const std::string path = fmt::format("/checkpoint-000010/{}.safetensors", file);
      EXPECT_TRUE(folder().read(called("nested") + path) == folder().read(called("threads") + path)) << name << ", " << file;
    }
  }
  const Ranks talks(folder(), "talks", {.size = 2}, TrainedModel::command("talks", "--epochs 1 --virtual 2"));
  talks.expect_all_well();
  EXPECT_THAT(talks.said(0), HasSubstr("4 replicas in 2 processes of 2 logical devices: 16 samples a step, 4 for each"));
}

TEST_F(TrainedByRanks, OfReplicasThatAreNotEquallyManyIsRefused) {
  const auto command = [](int replicas) { return TrainedModel::command("run", fmt::format("--quiet --virtual {}", replicas)); };
  const Ranks three(folder(), "three", {.size = 2}, command(3));
  for (const int rank : {0, 1}) {
    EXPECT_EQ(three.exit_code(rank), 2) << "each refuses by itself";
    EXPECT_THAT(three.said(rank), HasSubstr("several processes of 3 replicas each"));
  }
  const Ranks other(folder(), "other", {.size = 3}, command(2), {{1, command(4)}});
  for (const int rank : {0, 1, 2}) {
    EXPECT_EQ(other.exit_code(rank), 9);
    EXPECT_THAT(other.said(rank), HasSubstr("rank 1 of 3 has another command line"));
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
    ASSERT_TRUE(awaited_checkpoint(folder(), "run")) << ranks.all_said();
    kill(victim, SIGKILL);
    for (const int rank : {0, 2}) {
      EXPECT_EQ(ranks.exit_code(rank), 9);
      EXPECT_THAT(ranks.said(rank), AllOf(HasSubstr(fmt::format("error[HN-0801]: rank 1 (process {} on ", victim)), HasSubstr("note: in step "), HasSubstr(fmt::format("this is rank {} of 3", rank))));
    }
  }
  Ranks(folder(), "run", {.size = 3}, command("run") + " --resume").expect_all_well();
  EXPECT_TRUE(model("run") == model("whole"));
}

/// Open MPI would end one or the other, or connect anew (runtime/collective/tcp_connections.h). With the default timeout: nobody waits for it.
TEST_F(TrainedByRanks, NameOneWhoseConnectionsAreClosed) {
  if (not can_reach_into_processes()) GTEST_SKIP() << "one process may not look into another one here";
  const Ranks ranks(folder(), "run", {.size = 4, .transport = "tcp"}, TrainedModel::command("run", "--quiet --epochs 1000000"));
  const pid_t victim = ranks.process(2);
  ASSERT_TRUE(awaited_checkpoint(folder(), "run")) << ranks.all_said();  // so that it is in its steps
  EXPECT_GT(close_connections(victim), 0);
  for (const int rank : {0, 1, 2, 3}) {
    EXPECT_EQ(ranks.exit_code(rank), 9);
    EXPECT_THAT(ranks.said(rank), AllOf(HasSubstr(" cannot be reached from rank "), HasSubstr("note: in step "), HasSubstr(fmt::format("this is rank {} of 4", rank))));
    if (rank != 2) EXPECT_THAT(ranks.said(rank), HasSubstr(fmt::format("error[HN-0801]: rank 2 (process {} on ", victim)));
  }
}

/// Where there is no interface, or no port, Open MPI ends the processes itself.
TEST_F(TrainedByRanks, SayThatTheyFindNoWayToEachOther) {
  for (const auto& [option, value] : {std::pair("btl_tcp_if_include", "no_interface0"), {"btl_tcp_port_min_v4", "1"}}) {
    const Ranks ranks(folder(), option, {.size = 2, .transport = "tcp", .options = {"--mca", option, value, "--mca", "btl_tcp_port_range_v4", "1"}}, TrainedModel::command("run", "--quiet"));
    for (const int rank : {0, 1}) {
      EXPECT_EQ(ranks.exit_code(rank), 9) << option;
      EXPECT_THAT(ranks.said(rank), AllOf(HasSubstr(fmt::format("error[HN-0801]: MPI cannot start on rank {} of 2: it finds no way to another replica", rank)), HasSubstr("btl_tcp_if_include")));
    }
  }
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
