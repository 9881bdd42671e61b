// Disks that are full, places that cannot be written to: an exit code, a reason, and the old file as it was.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cerrno>

#include "base/file_system.h"
#include "formats/npz.h"
#include "runtime/data/batches.h"
#include "runtime/session.h"
#include "runtime/train/export_onnx.h"
#include "runtime/train/training_loop.h"
#include "tests/errors/error_case.h"
#include "tests/support/tools/run_tool.h"
#include "tests/support/tools/small_files.h"

namespace hone::test {
namespace {

using ::testing::EndsWith;
using ::testing::HasSubstr;

const std::string kTrain = "hone-run train mlp.hone --train x=x.npy,y=y.npy";

const ErrorCase kCases[] = {
    {"PlanOntoAFullDisk",
     "hone-compile mlp.onnx -r train.toml -o /dev/full",
     7,
     {"HN-0403", "cannot write /dev/full", "No space left on device", "free some space"},
     write_mlp},
    {"StageOntoAFullDisk", "hone-compile mlp.onnx --emit imported:/dev/full", 7, {"HN-0403", "/dev/full"}, write_mlp},
    {"StageOntoAFullStandardOutput",
     "hone-compile mlp.onnx --emit imported > /dev/full",
     7,
     {"HN-0403", "standard output", "No space left on device"},
     write_mlp},
    {"SummaryOntoAFullStandardOutput", "hone-dump mlp.onnx --summary > /dev/full", 7, {"HN-0403", "standard output"}, write_mlp},
    {"PredictionsOntoAFullStandardOutput", "hone-run predict mlp.hone --data x=x.npy --out - > /dev/full", 7, {"HN-0403", "standard output"}, write_mlp_plan},
    {"PlanBelowAFile", "hone-compile mlp.onnx -o mlp.onnx/plan.hone", 7, {"HN-040", "mlp.onnx/plan.hone", "a part of the path is a file"}, write_mlp},
    {"PlanInAFolderThatIsMissing", "hone-compile mlp.onnx -o no/plan.hone", 7, {"HN-040", "no/plan.hone", "there is no folder \"no\""}, write_mlp},
    {"PlanThatIsAFolder", "hone-compile mlp.onnx -o .", 7, {"HN-040", "folder"}, write_mlp},
    {"TrainedModelBelowAFile", kTrain + " --out x.npy/trained.onnx", 7, {"x.npy/trained.onnx", "a part of the path is a file"}, write_mlp_plan},
    {"RunFolderBelowAFile", kTrain + " --run-dir x.npy/run", 7, {"HN-0403", "x.npy", "a part of the path is a file"}, write_mlp_plan},
    {"PredictionsBelowAFile", "hone-run predict mlp.hone --data x=x.npy --out x.npy/out.npz", 7, {"x.npy/out.npz"}, write_mlp_plan},
    {"DryRunWhereNothingCanBeSaved", kTrain + " --dry-run --out no/such/trained.onnx", 7, {"no"}, write_mlp_plan},
};

HONE_ERROR_CASES(DiskErrors, kCases);

/// The plan of write_mlp_plan(), with its files.
struct Workshop {
  Workshop() {
    write_mlp_plan(folder);
    plan = plan::load(folder / "mlp.hone");
  }
  TempFolder folder;
  plan::Plan plan;
};

/// Runs `write`, which writes the file `name`, with each of its calls into the file system failing in turn, and with the disk full after every so many bytes:
/// either it works, or it throws an error of files and there is the old content or all of the new, and nothing else.
void expect_all_or_nothing(const TempFolder& folder, const std::string& name, const std::function<void()>& write) {
  write();
  const std::string complete = folder.read(name), old = "what was there before";
  const auto names = folder.names();
  const auto attempt = [&](FaultyFileSystem& files, const std::string& fault) {
    folder.write(name, old);
    bool failed = false;
    try {
      const ScopedFileSystem in_force(files);
      write();
    } catch (const Error& error) {
      failed = true;
      EXPECT_EQ(error.exit_code(), 7) << fault << "\n" << error.what();
    }
    const std::string content = folder.read(name);
    EXPECT_TRUE(content == complete or (failed and content == old)) << fault << ": " << content.size() << " bytes of " << complete.size();
    EXPECT_EQ(folder.names(), names) << fault;
    return failed;
  };
  FaultyFileSystem healthy;
  EXPECT_FALSE(attempt(healthy, "no fault"));
  int failures = 0;
  for (int nth = 1; nth <= healthy.calls(); ++nth) {
    FaultyFileSystem files;
    files.fail_any(nth, ENOSPC);
    failures += attempt(files, "call " + std::to_string(nth)) ? 1 : 0;
  }
  EXPECT_GT(failures, 3);  // opening, writing, syncing, renaming at least
  for (std::uint64_t space = 0; space < complete.size(); space += 1 + complete.size() / 20) {
    FaultyFileSystem files;
    files.set_disk_space(space);
    EXPECT_TRUE(attempt(files, std::to_string(space) + " bytes free")) << "a disk of " << space << " bytes took " << complete.size();
  }
}

TEST(FullDisk, APlanIsWholeOrNotThere) {
  const Workshop shop;
  expect_all_or_nothing(shop.folder, "new.hone", [&] { plan::save(shop.plan, shop.folder / "new.hone"); });
}

TEST(FullDisk, ATrainedModelIsWholeOrNotThere) {
  const Workshop shop;
  Session session(shop.plan, {.device = "cpu", .threads = 1});
  expect_all_or_nothing(shop.folder, "trained.onnx", [&] { export_onnx(shop.plan.onnx_model, session, shop.folder / "trained.onnx"); });
}

/// Whoever trained for a day without a run folder has nothing else of it.
TEST(FullDisk, ATrainedModelGoesWhereThereIsRoom) {
  const TempFolder folder;
  write_mlp_plan(folder);
  run_well(folder.path(), kTrain + " --out trained.onnx");
  for (const char* rescued : {"rescued-full", "rescued-1-full"}) {
    const ToolRun run = run_tool(folder.path(), kTrain + " --out /dev/full");
    EXPECT_EQ(run.exit, 7);
    EXPECT_THAT(run.err, HasSubstr("error[HN-0403]: cannot write /dev/full: No space left on device"));
    EXPECT_THAT(run.err, HasSubstr(std::string("the trained model was written to ./") + rescued + " instead"));
    EXPECT_EQ(folder.read(rescued), folder.read("trained.onnx"));
  }
  const ToolRun run = run_tool(folder.path(), kTrain + " --out /dev/full --run-dir run");
  EXPECT_EQ(run.exit, 7);
  EXPECT_THAT(run.err, HasSubstr("the same command with --resume writes the model"));
  run_well(folder.path(), kTrain + " --out again.onnx --run-dir run --resume");
  EXPECT_EQ(folder.read("again.onnx"), folder.read("trained.onnx"));
}

TEST(FullDisk, PredictionsAreWholeOrNotThere) {
  const TempFolder folder;
  const std::vector<float> values(3000, 0.5f);
  const Tensor tensor = Tensor::of<float>({1000, 3}, std::span<const float>(values));
  expect_all_or_nothing(folder, "out.npz", [&] { write_npz(folder / "out.npz", {{"logits", tensor}}); });
}

/// A log may end early; what is in it are whole lines.
TEST(FullDisk, ARunsLogsHoldWholeLines) {
  const Workshop shop;
  Session session(shop.plan, {.device = "cpu", .threads = 1});
  SessionRunner runner(session);
  const TrainEntries entries = {.step = &session.entry(plan::kTrainStep), .evaluate = &session.entry(plan::kEvalStep)};
  const std::vector<std::string> arguments = {"x=" + shop.folder / "x.npy", "y=" + shop.folder / "y.npy"};
  const BoundArrays data(*entries.step, parse_data("--train", arguments),
                     {.flag = "--train", .batch_symbol = shop.plan.batch_symbol, .pre_batched = false, .scale = {}});
  const Recipe recipe = recipe_from_json(shop.plan.recipe_json);
  for (std::uint64_t space = 0; space < 3000; space += 61) {
    Progress quiet(ProgressMode::kQuiet, [](std::string_view) {});
    FaultyFileSystem files;
    files.set_disk_space(space);
    try {
      const ScopedFileSystem in_force(files);
      BatchReader batches(data, recipe.data.batch_size, {});
      TrainingLoop(runner, entries, recipe, batches, nullptr, {.log_every = 1, .run_dir = shop.folder / "run"}, quiet).run();
    } catch (const Error& error) { EXPECT_EQ(error.exit_code(), 7) << error.what(); }
    for (const char* name : {"run/metrics.jsonl", "run/metrics.csv"})
      if (const std::string text = shop.folder.read(name); not text.empty()) EXPECT_THAT(text, EndsWith("\n")) << name << " with " << space << " bytes free";
  }
}

}  // namespace
}  // namespace hone::test
