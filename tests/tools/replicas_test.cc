// hone-run on several logical devices: what several replicas learn is what one learns, whatever the batches leave for each; and it is said how batches are split.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "tests/support/tools/run_folders.h"
#include "tests/tools/resume.h"

namespace hone::test {
namespace {

using ::testing::HasSubstr;
using Json = nlohmann::json;

/// Batches of 5 and 2, two of which make an update, with dropout: three replicas get 2, 2 and 1 samples, at the end 1, 1 and none.
TEST(Replicas, LearnWhatOneLearns) {
  const ResumedRun run;
  for (const int replicas : {2, 3, 8}) {
    const std::string name = fmt::format("split{}", replicas);
    const std::string batch = replicas == 8 ? " --virtual 8 --global-batch --batch 10" : fmt::format(" --virtual {} --global-batch", replicas);
    run_well(run.folder.path(), run.command(name) + batch);
    if (replicas == 8) run_well(run.folder.path(), run.command("whole10") + " --batch 10");
    expect_same_epochs(run.folder, name, replicas == 8 ? "whole10" : "whole");
  }
}

TEST(Replicas, GoOnWhereTheyWereStopped) {
  const ResumedRun run;
  run_well(run.folder.path(), run.command("two") + " --virtual 2 --global-batch --keep 100");
  for (const int step : {7, 30}) {
    const std::string name = fmt::format("stopped{}", step);
    stop_run_after(run.folder, step, name, "two");
    run_well(run.folder.path(), run.command(name) + " --virtual 2 --global-batch --resume");
    EXPECT_EQ(run.folder.read(name + ".onnx"), run.folder.read("two.onnx")) << "after step " << step;
  }
  stop_run_after(run.folder, 7, "other", "two");
  run_well(run.folder.path(), run.command("other") + " --virtual 3 --global-batch --resume");
  EXPECT_NEAR(lines_of_kind(run.folder, "other", "epoch").back().at("loss").get<double>(), lines_of_kind(run.folder, "two", "epoch").back().at("loss").get<double>(), 2e-5) << "on another number of replicas";
}

TEST(Replicas, SayHowBatchesAreSplit) {
  const TempFolder folder;
  write_mlp_plan(folder);
  const std::string train = "hone-run train mlp.hone --train x=x.npy,y=y.npy --out trained.onnx";
  EXPECT_THAT(run_well(folder.path(), train + " --virtual 2").err, HasSubstr("2 replicas in 2 logical devices: 8 samples a step, 4 for each"));
  EXPECT_THAT(run_well(folder.path(), train + " --virtual 3 --global-batch").err, HasSubstr("3 replicas in 3 logical devices: 4 samples a step, 1 or 2 for each"));
  EXPECT_THAT(run_well(folder.path(), train + " --virtual 4 --replicas 2").err, HasSubstr("2 replicas"));
}

/// Batch normalization sees each shard; the last batch of 50 leaves shards without samples.
TEST(Replicas, InShardsGiveTheSameBits) {
  const TempFolder folder;
  write_conv_plan(folder);
  for (const int replicas : {1, 2, 3, 4})
    run_well(folder.path(), fmt::format("hone-run train conv.hone --train x=x.npy,y=y.npy --epochs 3 --quiet --batch 12 --global-batch --virtual {0} --shards 4 --out {0}.onnx", replicas));
  for (const char* name : {"2.onnx", "3.onnx", "4.onnx"}) EXPECT_EQ(folder.read("1.onnx"), folder.read(name)) << name;
}

/// Training with either flags gives the same model.
void expect_same_bytes(const TempFolder& folder, const std::string& train, const std::string& flags, const std::string& other_flags) {
  run_well(folder.path(), train + flags + " --out one.onnx");
  run_well(folder.path(), train + other_flags + " --out other.onnx");
  EXPECT_TRUE(folder.read("one.onnx") == folder.read("other.onnx")) << other_flags;
}

/// Averages take the weights' places in all replicas.
TEST(Replicas, KeepTheirAveragesAlike) {
  const TempFolder folder;
  write_mlp(folder);
  run_well(folder.path(), "hone-compile mlp.onnx -r train.toml --set train.ema_decay=0.9 -o ema.hone");
  const std::string train = "hone-run train ema.hone --train x=x.npy,y=y.npy --epochs 2 --quiet --batch 4 --global-batch --shards 2 ";
  run_well(folder.path(), train + "--out one.onnx");
  for (const char* flags : {"--virtual 2 --out two.onnx", "--virtual 2 --shard-optimizer --out two.onnx"}) {
    run_well(folder.path(), train + flags);
    EXPECT_TRUE(folder.read("two.onnx") == folder.read("one.onnx")) << flags;
  }
}

/// Statistics of all replicas cannot be cut into shards: each replica is one.
TEST(Replicas, WithStatisticsOfAllAreTheShards) {
  const TempFolder folder;
  write_conv_net(folder);
  run_well(folder.path(), "hone-compile conv.onnx -r train.toml --set model.sync_batch_norm=true -o conv.hone");
  const auto train = [](const char* flags) { return std::string("hone-run train conv.hone --train x=x.npy,y=y.npy --epochs 2 --quiet --batch 12 --global-batch --threads 1 --virtual 2") + flags; };
  run_well(folder.path(), train(" --out plain.onnx"));
  run_well(folder.path(), train(" --shards 2 --out shards.onnx"));
  EXPECT_EQ(folder.read("plain.onnx"), folder.read("shards.onnx"));
  const ToolRun refused = run_tool(folder.path(), train(" --shards 4"));
  EXPECT_EQ(refused.exit, 10);
  EXPECT_THAT(refused.err, testing::AllOf(HasSubstr("model.sync_batch_norm"), HasSubstr("--shards 2")));
}

/// In each step replicas meet in the same exchanges, those of a batch whose gradients wait included; the last batch leaves the second one without samples.
TEST(Replicas, WithStatisticsOfAllAddUpBatches) {
  const TempFolder folder;
  write_conv_net(folder);
  run_well(folder.path(), "hone-compile conv.onnx -r train.toml --set model.sync_batch_norm=true --set train.gradient_accumulation_steps=2 -o conv.hone");
  const std::string train = "hone-run train conv.hone --train x=x.npy,y=y.npy --epochs 2 --quiet --batch 7 --global-batch --threads 1 --virtual 2";
  expect_same_bytes(folder, train, "", " --shards 2");
}

/// Muon's last product is one kernel with the update, and a kernel of a product is no work that replicas could share by elements.
TEST(Replicas, ShareTheWorkOfAveragesButNoProducts) {
  const TempFolder folder;
  write_mlp(folder);
  run_well(folder.path(), "hone-compile mlp.onnx -r train.toml --set optimizer.kind=muon --set train.ema_decay=0.8 -o muon.hone");
  const std::string train = "hone-run train muon.hone --train x=x.npy,y=y.npy --epochs 2 --quiet --batch 4 --global-batch --virtual 2 ";
  expect_same_bytes(folder, train, "", "--shard-optimizer");
}

/// Gradients of two batches make an update, with dropout; batches of 5 and 2 leave shards without samples.
TEST(Replicas, InShardsThatAddUpBatchesGiveTheSameBits) {
  const ResumedRun run;
  const std::string shards = " --global-batch --shards 8 --keep 100";
  for (const int replicas : {1, 4}) run_well(run.folder.path(), run.command(fmt::format("in{}", replicas)) + shards + fmt::format(" --virtual {}", replicas));
  EXPECT_TRUE(run.folder.read("in4.onnx") == run.folder.read("in1.onnx"));
  expect_same_epochs(run.folder, "in1", "whole");
  run_well(run.folder.path(), run.command("shared") + shards + " --virtual 4 --shard-optimizer");
  EXPECT_TRUE(run.folder.read("shared.onnx") == run.folder.read("in1.onnx"));
  stop_run_after(run.folder, 7, "stopped", "in1");
  run_well(run.folder.path(), run.command("stopped") + shards + " --virtual 2 --resume");
  EXPECT_TRUE(run.folder.read("stopped.onnx") == run.folder.read("in1.onnx"));
}

/// Batch normalization moves its statistics in every batch, and the loss is scaled: an update is left out where one batch of it overflows.
TEST(Replicas, InShardsThatAddUpBatchesGiveTheSameBitsInF16) {
  const TempFolder folder;
  write_conv_net(folder);
  run_well(folder.path(), "hone-compile conv.onnx -r train.toml --set train.gradient_accumulation_steps=3 --set train.precision=f16 -o conv.hone");
  for (const int replicas : {1, 2, 4})
    run_well(folder.path(), fmt::format("hone-run train conv.hone --train x=x.npy,y=y.npy --epochs 3 --quiet --batch 12 --global-batch --virtual {0} --shards 4 --out {0}.onnx", replicas));
  EXPECT_EQ(folder.read("1.onnx"), folder.read("2.onnx"));
  EXPECT_EQ(folder.read("1.onnx"), folder.read("4.onnx"));
}

/// Dropout, shuffling, accumulated gradients, a validation; batches that leave a replica without samples.
TEST(Replicas, ShareTheOptimizersWork) {
  const ResumedRun run;
  for (const int replicas : {2, 3, 4}) {
    const std::string plain = fmt::format("plain{}", replicas), shared = fmt::format("shared{}", replicas), flags = fmt::format(" --virtual {} --global-batch --keep 100", replicas);
    run_well(run.folder.path(), run.command(plain) + flags);
    run_well(run.folder.path(), run.command(shared) + flags + " --shard-optimizer");
    EXPECT_EQ(run.folder.read(shared + ".onnx"), run.folder.read(plain + ".onnx")) << replicas;
    for (const char* file : {"model", "optimizer"}) {
      const std::string path = fmt::format("/checkpoint-000030/{}.safetensors", file);
      EXPECT_EQ(run.folder.read(shared + path), run.folder.read(plain + path)) << replicas << " replicas, " << file;
    }
    const auto losses = lines_of_kind(run.folder, shared, "epoch");
    EXPECT_EQ(losses.back().at("loss"), lines_of_kind(run.folder, plain, "epoch").back().at("loss"));
  }
}

TEST(Replicas, GoOnWithTheOptimizerSharedOrNot) {
  const ResumedRun run;
  const std::string two = " --virtual 2 --global-batch";
  run_well(run.folder.path(), run.command("two") + two + " --keep 100");
  run_well(run.folder.path(), run.command("parts") + two + " --keep 100 --shard-optimizer");
  stop_run_after(run.folder, 7, "then_parts", "two");
  run_well(run.folder.path(), run.command("then_parts") + two + " --resume --shard-optimizer");
  stop_run_after(run.folder, 7, "then_whole", "parts");
  run_well(run.folder.path(), run.command("then_whole") + two + " --resume");
  for (const char* name : {"parts", "then_parts", "then_whole"}) EXPECT_EQ(run.folder.read(std::string(name) + ".onnx"), run.folder.read("two.onnx")) << name;
}

/// A checkpoint of two goes on with four, who share the work or do not.
TEST(Replicas, GoOnSharingWithAnotherNumber) {
  const ResumedRun run;
  run_well(run.folder.path(), run.command("two") + " --virtual 2 --global-batch --keep 100 --shard-optimizer");
  for (const char* name : {"plain", "shared"}) stop_run_after(run.folder, 7, name, "two");
  run_well(run.folder.path(), run.command("plain") + " --virtual 4 --global-batch --resume");
  run_well(run.folder.path(), run.command("shared") + " --virtual 4 --global-batch --resume --shard-optimizer");
  EXPECT_EQ(run.folder.read("shared.onnx"), run.folder.read("plain.onnx"));
  EXPECT_NEAR(lines_of_kind(run.folder, "shared", "epoch").back().at("loss").get<double>(), lines_of_kind(run.folder, "two", "epoch").back().at("loss").get<double>(), 2e-5);
}

/// The rest of the tensor stays, whoever updates it.
TEST(Replicas, ShareTheUpdateOfAPartOfAWeight) {
  const TempFolder folder;
  write_mlp(folder);
  run_well(folder.path(), "hone-compile mlp.onnx -r train.toml --set model.train_only=[\"dense/kernel[:,1:4]\",\"dense_1/*\"] -o mlp.hone");
  const auto train = [&](const std::string& name, const std::string& flags) {
    run_well(folder.path(), fmt::format("hone-run train mlp.hone --train x=x.npy,y=y.npy --epochs 3 --quiet --virtual 3 --global-batch --run-dir {0} --out {0}.onnx {1}", name, flags));
  };
  train("plain", "");
  train("shared", "--shard-optimizer");
  EXPECT_EQ(folder.read("shared.onnx"), folder.read("plain.onnx"));
  EXPECT_EQ(folder.read("shared/checkpoint-000009/optimizer.safetensors"), folder.read("plain/checkpoint-000009/optimizer.safetensors"));
}

TEST(Replicas, SayWhatEachHoldsOfTheOptimizersStates) {
  const TempFolder folder;
  write_mlp_plan(folder);
  const std::string train = "hone-run train mlp.hone --train x=x.npy,y=y.npy --out trained.onnx --shard-optimizer";
  EXPECT_THAT(run_well(folder.path(), train + " --virtual 2").err, HasSubstr("of it on each of 2 replicas"));
  EXPECT_THAT(run_tool(folder.path(), train).err, testing::AllOf(HasSubstr("there is one replica, which has nobody to share the optimizer's work with"), HasSubstr("--virtual 2")));
}

/// The demanding run again, with gradients that are rounded on their way.
class GradientsThatTravelInBf16 : public testing::Test {
 protected:
  void SetUp() override { run_well(run_.folder.path(), "hone-compile mlp.onnx -r train.toml --set train.exchange_precision=bf16 -o bf16.hone"); }
  void train(const std::string& name, const std::string& flags) const { run_well(run_.folder.path(), command(name) + flags); }
  std::string command(const std::string& name) const {
    return fmt::format("hone-run train bf16.hone --train x=x.npy,y=y.npy --valid x=x.npy[0:20],y=y.npy[0:20] --run-dir {0} --out {0}.onnx --quiet --keep 100 --save-steps 5 --global-batch", name);
  }
  std::string model(const std::string& name) const { return run_.folder.read(name + ".onnx"); }
  double last_loss(const std::string& name) const { return lines_of_kind(run_.folder, name, "epoch").back().at("loss").get<double>(); }

  const ResumedRun run_;
};

TEST_F(GradientsThatTravelInBf16, LearnNearlyTheSameAndShareTheOptimizersWorkBitByBit) {
  for (const int replicas : {2, 3, 4}) {
    const std::string plain = fmt::format("plain{}", replicas), shared = fmt::format("shared{}", replicas), flags = fmt::format(" --virtual {}", replicas);
    train(plain, flags);
    train(shared, flags + " --shard-optimizer");
    EXPECT_EQ(model(shared), model(plain)) << replicas;
    EXPECT_NEAR(last_loss(plain), last_loss("whole"), 0.01 * last_loss("whole")) << replicas;
    EXPECT_NE(model(plain), run_.folder.read("whole.onnx"));
  }
  stop_run_after(run_.folder, 25, "resumed", "plain2");
  train("resumed", " --virtual 2 --resume");
  EXPECT_EQ(model("resumed"), model("plain2"));
}

TEST_F(GradientsThatTravelInBf16, AreNotCutIntoShardsThatOneReplicaAddsUpForOthers) {
  EXPECT_THAT(run_tool(run_.folder.path(), command("no") + " --virtual 2 --shards 4").err, testing::AllOf(HasSubstr("would be rounded on its way to the others"), HasSubstr("--shards 2")));
  train("one", " --shards 2");
  train("two", " --shards 2 --virtual 2");
  EXPECT_EQ(model("one"), model("two"));
}

TEST(Replicas, EvaluateAsOneDoes) {
  const TempFolder folder;
  write_conv_plan(folder);
  const auto values = [&](const std::string& flags) { return Json::parse(run_well(folder.path(), "hone-run eval conv.hone --data x=x.npy,y=y.npy --json" + flags).out); };
  const Json alone = values(""), split = values(" --virtual 3");
  EXPECT_NEAR(split.at("loss").get<double>(), alone.at("loss").get<double>(), 1e-6);
  EXPECT_EQ(split.at("accuracy"), alone.at("accuracy"));
}

}  // namespace
}  // namespace hone::test
