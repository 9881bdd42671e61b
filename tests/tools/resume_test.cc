// Runs that are stopped, killed and gone on with end as if nothing had happened.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <random>
#include <sstream>

#include "tests/tools/resume.h"

namespace hone::test {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;
using Json = nlohmann::json;

/// The epochs' lines without what depends on the clock.
std::vector<Json> epochs_of(const std::string& lines) {
  std::vector<Json> epochs;
  std::istringstream text(lines);
  for (std::string line; std::getline(text, line);) {
    Json json = Json::parse(line);
    if (json.at("kind") != "epoch") continue;
    json.erase("seconds");
    epochs.push_back(json);
  }
  return epochs;
}

TEST(Resume, GoesOnAfterAnyStep) {
  const ResumedRun run;
  for (const int step : {1, 9, 10, 11, 25, 49, 50}) {
    SCOPED_TRACE(step);
    remove_run(run.folder, "part");
    stop_run_after(run.folder, step, "part", "whole");
    run_well(run.folder.path(), run.command("part") + " --resume");
    EXPECT_TRUE(run.is_as_whole("part"));
    EXPECT_EQ(epochs_of(run.folder.read("part/metrics.jsonl")), epochs_of(run.folder.read("whole/metrics.jsonl")));
  }
}

/// Checkpoints hold the matrix and its adapter apart, the trained model their sum.
TEST(Resume, GoesOnWithAdapters) {
  const TempFolder folder;
  write_mlp(folder);
  write_demanding_recipe(folder, 4, "", "[lora]\ntargets = [\"dense/kernel\"]\nrank = 2");
  run_well(folder.path(), "hone-compile mlp.onnx -r train.toml -o mlp.hone");
  const auto train = [&](const std::string& name, const std::string& more) {
    run_well(folder.path(), "hone-run train mlp.hone --train x=x.npy,y=y.npy --run-dir " + name + " --out " + name + ".onnx --save-steps 1 --quiet " + more);
  };
  train("whole", "--keep 100");
  for (const int step : {1, 7}) {
    SCOPED_TRACE(step);
    remove_run(folder, "part");
    stop_run_after(folder, step, "part", "whole");
    train("part", "--resume");
    EXPECT_EQ(folder.read("part.onnx"), folder.read("whole.onnx"));
  }
}

TEST(Resume, AKilledRunGoesOn) {
  const ResumedRun run;
  std::mt19937 random(1);
  std::uniform_real_distribution<double> seconds(0, 0.4);
  for (int i = 0; i < 4; ++i) {
    SCOPED_TRACE(i);
    remove_run(run.folder, "killed");
    run_and_signal(run.folder.path(), run.command("killed") + " --resume", seconds(random), SIGKILL);
    run_well(run.folder.path(), run.command("killed") + " --resume");
    EXPECT_TRUE(run.is_as_whole("killed"));
  }
}

TEST(Resume, SignalsLetTheStepBeFinishedAndSaved) {
  const ResumedRun run;
  std::string loud = run.command("stopped") + " --epochs 100000";
  loud.replace(loud.find("--quiet"), 7, "");
  for (const int signal : {SIGINT, SIGTERM, SIGUSR1, SIGHUP}) {
    SCOPED_TRACE(signal);
    remove_run(run.folder, "stopped");
    const ToolRun stopped = run_and_signal_at(run.folder.path(), loud, "Epoch 3/", signal);
    EXPECT_EQ(stopped.exit, 75) << stopped.err;
    EXPECT_THAT(stopped.err, HasSubstr("with --resume goes on"));
    EXPECT_THAT(run.folder.read("stopped.onnx"), Not(testing::IsEmpty()));
    const ToolRun again = run_and_signal_at(run.folder.path(), loud + " --resume", "Epoch ", signal);
    EXPECT_THAT(again.err, HasSubstr("Going on after step "));
  }
}

/// A mapped file tells it by a signal.
TEST(Resume, AFileThatIsShortenedMeanwhileIsNamed) {
  const TempFolder folder;
  write_mlp_plan(folder);
  write_floats(folder, "x.npy", {2000, 4});
  write_classes(folder, "y.npy", 2000, 3);
  const std::string floats = folder.read("x.npy"), train = "hone-run train mlp.hone --train x=x.npy,y=y.npy --run-dir run --epochs 100000";
  const ToolRun run = run_and_act_at(folder.path(), train, "Epoch 3/", [&] { std::filesystem::resize_file(folder / "x.npy", 0); });
  EXPECT_EQ(run.exit, 7) << run.err;
  EXPECT_THAT(run.err, HasSubstr("error[HN-0402]: cannot read " + std::filesystem::canonical(folder / "x.npy").string() + ": what was there when it was opened is gone\n"));
  EXPECT_THAT(run.err, testing::EndsWith("  more: hone-run --explain HN-0402\n"));
  folder.write("x.npy", floats);
  EXPECT_THAT(run_well(folder.path(), train + " --resume --max-time 1").err, HasSubstr("Going on after step "));
}

TEST(Resume, ANewRunDoesNotTouchTheCheckpointsOfAnother) {
  const ResumedRun run;
  const ToolRun refused = run_tool(run.folder.path(), run.command("whole"));
  EXPECT_EQ(refused.exit, 2);
  EXPECT_THAT(refused.err, HasSubstr("holds the checkpoints of an earlier run, the newest of step 50"));
  EXPECT_THAT(refused.err, HasSubstr("--resume"));
}

TEST(Resume, MoreEpochsMayBeAskedFor) {
  const ResumedRun run;
  const ToolRun none = run_well(run.folder.path(), "hone-run train mlp.hone --train x=x.npy,y=y.npy --run-dir whole --resume");
  EXPECT_THAT(none.err, HasSubstr("All 50 steps were done before"));
  const ToolRun more = run_well(run.folder.path(), "hone-run train mlp.hone --train x=x.npy,y=y.npy --run-dir whole --resume --epochs 6");
  EXPECT_THAT(more.err, HasSubstr("Epoch 6/6"));
}

TEST(Resume, EpochsThatAreLeftAreOfTheDataThatThereAreNow) {
  const ResumedRun run;
  for (const auto& [rows, steps] : {std::pair("[0:4]", 1), std::pair("[0:6]", 2)}) {  // of an epoch: two batches make an update
    remove_run(run.folder, "part");
    const std::string all = run_well(run.folder.path(), "hone-run train mlp.hone --train x=x.npy,y=y.npy --batch 2 --run-dir part --epochs 2 --json").out;
    const std::string train = std::string("hone-run train mlp.hone --train x=x.npy") + rows + ",y=y.npy" + rows + " --batch 2 --run-dir part --resume";
    const std::string fewer = run_well(run.folder.path(), train + " --epochs 4 --json").out;
    EXPECT_EQ(Json::parse(fewer).at("steps"), Json::parse(all).at("steps").get<int>() + 2 * steps) << rows;
    EXPECT_EQ(epochs_of(run.folder.read("part/metrics.jsonl")).size(), 4) << rows;
    EXPECT_THAT(run_well(run.folder.path(), train + " --epochs 4").err, HasSubstr("steps were done before")) << rows;
  }
}

TEST(Resume, OtherBatchesInTheMiddleOfAnEpochAreRefused) {
  const ResumedRun run;
  stop_run_after(run.folder, 3, "part", "whole");
  for (const char* change : {"--batch 4", "--seed 7", "--no-shuffle", "--set data.shuffle_buffer=3"}) {
    const ToolRun refused = run_tool(run.folder.path(), run.command("part") + " --resume " + change);
    EXPECT_EQ(refused.exit, 10) << change;
    EXPECT_THAT(refused.err, HasSubstr("in the middle of epoch 1, after batch 6"));
  }
}

TEST(Resume, OtherDataOfTheSameLengthAreNoticed) {
  const ResumedRun run;
  const std::string data = run.folder.read("x.npy"), train = "hone-run train mlp.hone --train x=x.npy,y=y.npy --run-dir ";
  std::string others = data;
  others.back() ^= 1;
  stop_run_after(run.folder, 3, "part", "whole");
  run_well(run.folder.path(), train + "over --epochs 1");
  run.folder.write("x.npy", others);
  const ToolRun refused = run_tool(run.folder.path(), run.command("part") + " --resume");
  EXPECT_EQ(refused.exit, 10);
  EXPECT_THAT(refused.err, HasSubstr("these are not the data that it began with"));
  const std::string on = train + "over --resume --epochs ";
  EXPECT_THAT(run_well(run.folder.path(), on + "2").err, HasSubstr("note: the data are not those that the run was trained on so far"));
  EXPECT_THAT(run_well(run.folder.path(), on + "3").err, testing::Not(HasSubstr("are not those")));
  run.folder.write("x.npy", data);
  run_well(run.folder.path(), run.command("part") + " --resume");
}

/// As the learning rate is, they are the recipe's, not the checkpoint's.
TEST(Resume, NumbersOfTheOptimizerAreThoseOfTheRunThatGoesOn) {
  const ResumedRun run;
  const auto go_on = [&](const std::string& more) {
    remove_run(run.folder, "part");
    stop_run_after(run.folder, 25, "part", "whole");
    run_well(run.folder.path(), run.command("part") + " --resume" + more);
    return run.is_as_whole("part");
  };
  EXPECT_TRUE(go_on(""));
  EXPECT_FALSE(go_on(" --set optimizer.epsilon=1e-2"));
  EXPECT_TRUE(go_on(" --set optimizer.epsilon=1e-8"));
}

TEST(Resume, WithoutACheckpointTheRunBegins) {
  const ResumedRun run;
  EXPECT_THAT(run_well(run.folder.path(), "hone-run train mlp.hone --train x=x.npy,y=y.npy --run-dir new --resume --steps 2").err, HasSubstr("no checkpoint yet: the run begins"));
}

TEST(Resume, CheckpointsAreWeightsToo) {
  const ResumedRun run;
  const auto eval = [&](const std::string& weights) { return run_well(run.folder.path(), "hone-run eval mlp.hone --data x=x.npy,y=y.npy --json --weights " + weights).out; };
  EXPECT_EQ(eval("whole/checkpoint-000050"), eval("whole.onnx"));
  EXPECT_EQ(eval("whole/checkpoint-000050/model.safetensors"), eval("whole.onnx"));
  EXPECT_NE(eval("whole/checkpoint-000001"), eval("whole.onnx"));
  const auto refuse = [&] {
    const ToolRun refused = run_tool(run.folder.path(), "hone-run eval mlp.hone --data x=x.npy,y=y.npy --weights whole/checkpoint-000050");
    EXPECT_NE(refused.exit, 0);
    EXPECT_THAT(refused.err, HasSubstr("not sound"));
  };
  std::string bytes = run.folder.read("whole/checkpoint-000050/model.safetensors");
  bytes[bytes.size() - 2] ^= 1;
  run.folder.write("whole/checkpoint-000050/model.safetensors", bytes);
  refuse();
  std::filesystem::remove(run.folder / "whole/checkpoint-000050/manifest.json");
  refuse();
}

/// The line of an epoch whose last step was done before.
TEST(Resume, AnEpochThatIsOverKeepsItsLearningRate) {
  const ResumedRun run;
  const std::string train = "hone-run train mlp.hone --train x=x.npy,y=y.npy --run-dir part --set schedule.kind=constant ";
  run_well(run.folder.path(), train + "--steps 1 --limit 2 --epochs 1");
  run_well(run.folder.path(), train + "--resume --limit 1 --epochs 1");
  const std::string lines = run.folder.read("part/metrics.jsonl");
  EXPECT_EQ(epochs_of(lines).size(), 1);
  EXPECT_THAT(lines, testing::Not(HasSubstr("\"learning_rate\":0,")));
  EXPECT_THAT(lines, testing::Not(HasSubstr("\"learning_rate\":0.0,")));
}

/// The run is over when that is found out: it keeps what it has.
TEST(Stopping, ABestEpochThatIsGoneCostsNothingElse) {
  const TempFolder folder;
  write_mlp(folder);
  const auto train = [&](const std::string& name, const std::string& restore, const std::string& more) {
    folder.write("train.toml", "[loss]\nkind = \"softmax_cross_entropy\"\n[optimizer]\nkind = \"sgd\"\nlearning_rate = 5.0\n[data]\nbatch_size = 4\n[train]\nepochs = 30\nearly_stopping = { monitor = \"loss\", patience = 2, restore_best = " + restore + " }\n");
    run_well(folder.path(), "hone-compile mlp.onnx -r train.toml -o mlp.hone");
    return run_tool(folder.path(), "hone-run train mlp.hone --train x=x.npy,y=y.npy --run-dir " + name + " --out " + name + ".onnx " + more);
  };
  EXPECT_EQ(train("last", "false", "").exit, 0);
  const ToolRun whole = train("best", "true", "");
  ASSERT_EQ(whole.exit, 0);
  ASSERT_THAT(whole.err, HasSubstr("the best one"));
  const std::size_t epoch = epochs_of(folder.read("best/metrics.jsonl")).size() - 2, kStepsOfAnEpoch = 3;
  std::string step = std::to_string(kStepsOfAnEpoch * epoch);
  remove_tree(folder / "best/checkpoint-" + step.insert(0, 6 - step.size(), '0'));
  const ToolRun run = train("best", "true", "--resume");
  EXPECT_EQ(run.exit, 7);
  EXPECT_THAT(run.err, HasSubstr("note: epoch " + std::to_string(epoch) + " is the best one so far, and its weights cannot be restored"));
  EXPECT_THAT(run.err, HasSubstr("with the weights after the last step, not those of the best epoch; the trained model is best.onnx"));
  EXPECT_THAT(run.err, HasSubstr("error[HN-0404]: the weights of epoch " + std::to_string(epoch) + ", the best one"));
  EXPECT_THAT(run.err, HasSubstr("it is not there"));
  EXPECT_EQ(folder.read("best.onnx"), folder.read("last.onnx"));
}

TEST(Stopping, TimeAndBatchesCanBeLimited) {
  const ResumedRun run;
  const std::string train = "hone-run train mlp.hone --train x=x.npy,y=y.npy ";
  EXPECT_THAT(run_well(run.folder.path(), train + "--epochs 1000000 --max-time 1").err, HasSubstr("Out of time after step "));
  EXPECT_THAT(run_well(run.folder.path(), train + "--epochs 2 --limit 6").err, HasSubstr("Trained 6 steps"));
}

}  // namespace
}  // namespace hone::test
