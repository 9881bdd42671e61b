// Checkpoints on disks that fail, in folders that are damaged, and for other plans: an earlier one always loads, and nothing half-written is ever taken.
#include "runtime/train/checkpoint.h"
#include "runtime/train/weights.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cerrno>
#include <cmath>
#include <cstring>
#include <limits>

#include "base/file_system.h"
#include "base/files.h"
#include "runtime/train/early_stopping.h"
#include "runtime/train/schedule.h"
#include "tests/support/tools/run_tool.h"
#include "tests/support/tools/small_files.h"

namespace hone::test {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr const char* kWeight = "dense/bias";

/// A session whose one weight tells which checkpoint it came from.
struct Shop {
  explicit Shop() {
    write_mlp_plan(folder);
    plan = plan::load(folder / "mlp.hone");
    session.emplace(plan, SessionOptions{.device = "cpu", .threads = 1});
  }
  void mark(float value) {
    const std::vector<float> values(static_cast<std::size_t>(session->read(kWeight).element_count()), value);
    session->write(kWeight, Tensor::of<float>(session->read(kWeight).shape(), std::span<const float>(values)));
  }
  double weight() const { return session->read(kWeight).at(0); }
  TrainState state(std::int64_t step) const { return {.step = step, .epoch = step, .recipe = recipe_from_json(plan.recipe_json)}; }
  Checkpoints open(CheckpointOptions options = {}) { return {folder / "run", *session, options}; }
  void save(std::int64_t step) {
    mark(static_cast<float>(step));
    open().save(state(step));
  }
  std::string file(std::int64_t step, const std::string& name) { return "run/" + file_name_of(open().path(step)) + "/" + name; }

  TempFolder folder;
  plan::Plan plan;
  std::optional<Session> session;
};

TEST(Checkpoint, GivesBackEveryWeightAndState) {
  Shop shop;
  TrainState state = shop.state(7);
  state.batch = 3;
  state.order = "10 samples in batches of 4";
  state.data_hash = "0123456789abcdef";
  state.means = {0.1, std::numeric_limits<double>::quiet_NaN(), -std::numeric_limits<double>::infinity(), 1e300};
  state.values = {{"loss", 1.0 / 3}, {"val_loss", 0.25}};
  state.best = BestEpoch{.epoch = 2, .name = "val_loss", .value = 0.1};
  state.best_step = 5;
  state.plateau = {1, 2};
  for (const plan::Persistent& persistent : shop.session->program().persistents) {
    if (persistent.role == plan::Persistent::Role::kConstant or key_of(persistent) != nullptr) continue;  // the recipe's numbers are the run's that reads it
    const Tensor like = shop.session->read(persistent.name);
    shop.session->write(persistent.name, Tensor::make(like.dtype(), like.shape(), [](std::span<std::byte> bytes) {
      for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = std::byte(i * 7 % 64);
    }));
  }
  write_checkpoint(shop.folder / "c", *shop.session, state);
  Session other(shop.plan, {.device = "cpu", .threads = 1});
  const TrainState read = load_checkpoint(shop.folder / "c", other);
  EXPECT_EQ(to_json(read), to_json(state));
  EXPECT_EQ(read.order, state.order);
  EXPECT_EQ(read.data_hash, state.data_hash);
  EXPECT_TRUE(std::isnan(read.means[1]));
  EXPECT_EQ(read.values[0].second, 1.0 / 3);
  for (const plan::Persistent& persistent : shop.session->program().persistents) {
    const Tensor a = shop.session->read(persistent.name), b = other.read(persistent.name);
    EXPECT_TRUE(std::equal(a.bytes().begin(), a.bytes().end(), b.bytes().begin())) << persistent.name;
  }
}

/// Whoever confirms has seen all that was read; one that is refused leaves what was there.
TEST(Checkpoint, WhatIsNotConfirmedDoesNotCount) {
  Shop shop;
  Checkpoints checkpoints = shop.open({});
  checkpoints.save(shop.state(1));
  std::size_t read = 0;
  const auto count = [&](const std::string& name) { return ++read, shop.session->read(name); };
  const auto refuse = [&] {
    EXPECT_GT(read, 0U);
    throw Error(Code::kPeer, "other weights");
  };
  EXPECT_THROW(checkpoints.save(shop.state(2), Checkpoints::Older::kPruned, {count, refuse}), Error);
  EXPECT_THAT(checkpoints.steps(), ElementsAre(1));
  for (const std::string& name : list_folder(shop.folder / "run")) EXPECT_FALSE(name.ends_with(".half")) << name;
  checkpoints.save(shop.state(2), Checkpoints::Older::kPruned, {count, [] {}});
  EXPECT_THAT(checkpoints.steps(), ElementsAre(2, 1));
}

TEST(Checkpoint, TheNewestAndTheBestStay) {
  Shop shop;
  Checkpoints checkpoints = shop.open({.keep = 2, .keep_best = true});
  for (std::int64_t step = 1; step <= 5; ++step) {
    TrainState state = shop.state(step);
    state.best = BestEpoch{.epoch = 2, .name = "loss", .value = 0};
    state.best_step = std::min<std::int64_t>(step, 2);
    checkpoints.save(state);
  }
  EXPECT_THAT(checkpoints.steps(), ElementsAre(5, 4, 2));
}

TEST(Checkpoint, DamagedOnesThatARunWentPastCostNoSoundOne) {
  Shop shop;
  for (const std::int64_t step : {10, 20, 30}) shop.save(step);
  shop.folder.write(shop.file(30, "model.safetensors"), "damaged");
  std::vector<std::string> notes;
  {
    Checkpoints checkpoints = shop.open({.keep = 1});
    ASSERT_EQ(checkpoints.restore(&notes)->step, 20);
    checkpoints.save(shop.state(22));
    EXPECT_THAT(checkpoints.steps(), ElementsAre(30, 22));
  }
  EXPECT_EQ(shop.open().restore(&notes)->step, 22);
}

class NoBatches : public BatchSource {
 public:
  std::optional<std::int64_t> known_batch_count() const override { return 0; }
  std::string order() const override { return ""; }
  void start_epoch(std::int64_t, std::int64_t) override {}
  bool next() override { return false; }
  std::int64_t size() const override { return 0; }
};

TEST(Checkpoint, OneRunAtATimeHasTheFolder) {
  Shop shop;
  Progress progress(ProgressMode::kQuiet, [](std::string_view) {});
  const Recipe recipe = shop.state(1).recipe;
  Checkpoints first = shop.open();
  EXPECT_FALSE(first.begin_or_resume(false, recipe, NoBatches(), progress));
  make_folders(shop.folder / "run/.checkpoint-000001.half");  // the first is saving just now
  {
    Checkpoints second = shop.open();
    expect_error(Code::kUsage, "another run is training into", [&] { second.begin_or_resume(true, recipe, NoBatches(), progress); });
  }
  EXPECT_TRUE(file_exists(shop.folder / "run/.checkpoint-000001.half"));
}

/// A disk that takes one byte of the Nth write, and leaves the rest to be written again.
struct OneShortWrite : FileSystem {
  explicit OneShortWrite(int which) : nth(which) {}
  std::size_t shortened(std::size_t count) { return ++writes == nth ? std::min<std::size_t>(count, 1) : count; }
  ssize_t write(int file, const void* bytes, std::size_t count) override { return FileSystem::write(file, bytes, shortened(count)); }
  ssize_t write_at(int file, const void* bytes, std::size_t count, std::uint64_t offset) override { return FileSystem::write_at(file, bytes, shortened(count), offset); }
  int nth, writes = 0;
};

/// A call into the file system fails with `problem`, or with none (0), while step 2 is saved: what can be loaded afterwards is step 1 or step 2, whole.
void expect_sound_after(Shop& shop, FileSystem& files, const std::string& fault, int problem) {
  SCOPED_TRACE(fault);
  bool failed = false;
  shop.mark(2);
  try {
    const ScopedFileSystem in_force(files);
    Checkpoints checkpoints(shop.folder / "run", *shop.session, {});
    checkpoints.save(shop.state(2));
  } catch (const Error& error) {
    failed = true;
    EXPECT_EQ(error.exit_code(), 7) << error.what();
    EXPECT_THAT(error.what(), AllOf(HasSubstr(shop.folder / "run"), HasSubstr(std::strerror(problem)), HasSubstr("note: ")));
  }
  EXPECT_TRUE(problem != 0 or not failed);
  shop.mark(99);
  std::vector<std::string> notes;
  const auto state = shop.open().restore(&notes);
  ASSERT_TRUE(state.has_value());
  EXPECT_EQ(shop.weight(), static_cast<double>(state->step));
  EXPECT_THAT(notes, IsEmpty());
  EXPECT_TRUE(failed or state->step == 2);
  remove_tree(shop.open().path(2));
  EXPECT_THAT(list_folder(shop.folder / "run"), ElementsAre("checkpoint-000001"));
}

TEST(Checkpoint, FailingDisksLoseNothing) {
  Shop shop;
  shop.save(1);
  FaultyFileSystem healthy;
  expect_sound_after(shop, healthy, "no fault", 0);
  ASSERT_GT(healthy.calls(), 30);
  for (int nth = 1; nth <= healthy.calls(); ++nth)
    for (const int error : {ENOSPC, EIO}) {
      FaultyFileSystem files;
      files.fail_any(nth, error);
      expect_sound_after(shop, files, fmt::format("call {} fails with {}", nth, error), error);
    }
  for (std::uint64_t space = 0; space < 20000; space += 97) {
    FaultyFileSystem files;
    files.set_disk_space(space);
    expect_sound_after(shop, files, fmt::format("{} bytes free", space), ENOSPC);
  }
  FaultyFileSystem slow;
  slow.set_longest_transfer(13);
  expect_sound_after(shop, slow, "short writes", 0);
  OneShortWrite counting(0);
  expect_sound_after(shop, counting, "none is short", 0);
  ASSERT_GE(counting.writes, 4) << "one for each file";
  for (int nth = 1; nth <= counting.writes; ++nth) {
    OneShortWrite files(nth);
    expect_sound_after(shop, files, fmt::format("write {} is short", nth), 0);
  }
}

/// The same step is saved again, as after a validation: there is always one of the two, wherever renaming stops to work for good, and what is left is put in order later.
TEST(Checkpoint, ReplacingOneLosesNothing) {
  Shop shop;
  shop.save(1);
  int renames = 1;
  for (int nth = 0; nth <= renames; ++nth) {
    FaultyFileSystem files;
    if (nth > 0) files.fail(FileCall::kRename, nth, EIO, true);
    TrainState state = shop.state(1);
    state.batch = nth + 1;
    bool failed = false;
    try {
      const ScopedFileSystem in_force(files);
      Checkpoints(shop.folder / "run", *shop.session, {}).save(state);
    } catch (const Error& error) {
      failed = true;
      EXPECT_EQ(error.exit_code(), 7);
    }
    if (nth == 0) renames = files.calls(FileCall::kRename);
    EXPECT_EQ(failed, nth > 0);
    std::vector<std::string> notes;
    const auto restored = shop.open().restore(&notes);
    ASSERT_TRUE(restored.has_value()) << "rename " << nth;
    EXPECT_EQ(restored->batch, 1);
  }
  EXPECT_EQ(renames, 6);  // four files, the old folder, the new one
}

TEST(Checkpoint, DamagedOnesArePassedOver) {
  for (const char* name : {"model.safetensors", "optimizer.safetensors", "state.json", "manifest.json"})
    for (const char* how : {"missing", "cut", "changed", "empty", "a pipe"}) {
      SCOPED_TRACE(std::string(name) + " " + how);
      Shop shop;
      shop.save(1);
      shop.save(2);
      const std::string file = shop.file(2, name);
      std::string text = shop.folder.read(file);
      if (std::string(how) == "missing") {
        remove_file(shop.folder / file);
      } else if (std::string(how) == "a pipe") {  // whoever opened it would wait for ever
        remove_file(shop.folder / file);
        ASSERT_EQ(mkfifo((shop.folder / file).c_str(), 0600), 0);
      } else {
        if (std::string(how) == "cut") text.resize(text.size() / 2);
        else if (std::string(how) == "changed") text[text.size() / 2] = static_cast<char>(text[text.size() / 2] ^ 1);
        else text.clear();
        shop.folder.write(file, text);
      }
      std::vector<std::string> notes;
      const auto state = shop.open().restore(&notes);
      ASSERT_TRUE(state.has_value());
      EXPECT_EQ(state->step, 1);
      EXPECT_EQ(shop.weight(), 1);
      ASSERT_THAT(notes, SizeIs(1));
      EXPECT_THAT(notes[0], HasSubstr("checkpoint-000002"));
    }
}

TEST(Checkpoint, WhereNoneIsSoundThatIsSaid) {
  Shop shop;
  shop.save(1);
  shop.folder.write(shop.file(1, "state.json"), "{}");
  std::vector<std::string> notes;
  expect_error(Code::kCheckpoint, "none of the checkpoints", [&] { shop.open().restore(&notes); });
  remove_tree(shop.open().path(1));
  EXPECT_FALSE(shop.open().restore(&notes).has_value());
}

TEST(Checkpoint, OfAnotherPlanIsRefusedAndChangesNothing) {
  Shop shop;
  shop.mark(5);
  write_checkpoint(shop.folder / "c", *shop.session, shop.state(1));
  shop.folder.write("sgd.toml", "[loss]\nkind = \"softmax_cross_entropy\"\n[optimizer]\nkind = \"sgd\"\n");
  run_well(shop.folder.path(), "hone-compile mlp.onnx -r sgd.toml -o sgd.hone");
  const plan::Plan plan = plan::load(shop.folder / "sgd.hone");
  Session other(plan, {.device = "cpu", .threads = 1});
  const double before = other.read(kWeight).at(0);
  expect_error(Code::kPlanMismatch, "the plan has no \"dense/bias/m\"", [&] { load_checkpoint(shop.folder / "c", other); });
  EXPECT_EQ(other.read(kWeight).at(0), before);
}

TEST(Checkpoint, HalfOfOneIsTakenAwayBeforeTheNextRun) {
  Shop shop;
  shop.save(1);
  make_folders(shop.folder / "run/.checkpoint-000002.half");
  rename_durably(shop.folder / "run/checkpoint-000001", shop.folder / "run/.checkpoint-000001.old");  // killed between two renames
  std::vector<std::string> notes;
  ASSERT_TRUE(shop.open().restore(&notes).has_value());
  EXPECT_THAT(list_folder(shop.folder / "run"), ElementsAre("checkpoint-000001"));
}

TEST(TrainState, WhatIsNoStateIsRefused) {
  for (const char* text : {"", "[]", "{}", R"({"version":1})", R"({"version":2,"step":1})", "nonsense"})
    expect_error(Code::kDataFormat, "no state of a training run", [&] { state_from_json(text, "state.json"); });
  const std::string good = to_json(TrainState{.step = 7});
  ASSERT_THAT(good, HasSubstr("\"step\": 7"));
  for (const char* count : {"-1", "0.5", "7.0", "1e300", "9007199254740993", "18446744073709551615", "true", "null", "\"7\""}) {
    const std::string text = std::string(good).replace(good.find("\"step\": 7"), 9, std::string("\"step\": ") + count);
    expect_error(Code::kDataFormat, "step is ", [&] { state_from_json(text, "state.json"); });
  }
}

/// What is wrong in it is named by the file, not by the library that read it.
TEST(TrainState, RecipeThatIsDamagedIsNamedByItsFile) {
  std::string text = to_json(TrainState{});
  text.replace(text.find("\"epochs\""), 8, "\"epocks\"");
  try {
    state_from_json(text, "run/state.json");
    FAIL();
  } catch (const Error& error) { EXPECT_THAT(error.what(), AllOf(HasSubstr("train.epocks"), HasSubstr("in run/state.json"))); }
  try {
    state_from_json(R"({"version":1})", "run/state.json");
    FAIL();
  } catch (const Error& error) { EXPECT_THAT(error.what(), testing::Not(HasSubstr("json.exception"))); }
}

/// States of a plateau and of early stopping that nothing could be compared with, or that would raise the learning rate.
TEST(TrainState, NumbersThatNothingCountsOnAreRefused) {
  Recipe recipe;
  recipe.schedule.monitor = recipe.train.early_stopping_monitor = "loss";
  constexpr double kNan = std::numeric_limits<double>::quiet_NaN(), kInfinity = std::numeric_limits<double>::infinity();
  Plateau plateau(recipe);
  plateau.restore(plateau.state());
  for (const std::array<double, 4>& state : {std::array<double, 4>{kNan, 1, 0, 0}, {2, 1, 0, 0}, {-0.5, 1, 0, 0}, {1, kNan, 0, 0}, {1, 1, 0.5, 0}, {1, 1, 0, kInfinity}})
    expect_error(Code::kPlanMismatch, "plateau", [&] { plateau.restore(state); });
  EarlyStopping stopping(recipe);
  stopping.restore(stopping.state());
  for (const std::array<double, 3>& state : {std::array<double, 3>{0, 0, kNan}, {kNan, 0, 1}, {0, -1, 1}, {0, 1e300, 1}})
    expect_error(Code::kPlanMismatch, "early stopping", [&] { stopping.restore(state); });
}

TEST(Checkpoint, FolderOfTheRunInItsPlaceIsNamed) {
  Shop shop;
  shop.save(9);
  shop.save(10);
  for (const char* command : {"hone-dump run", "hone-run predict mlp.hone --weights run --data x=x.npy --out out.npz"}) {
    const ToolRun run = run_tool(shop.folder.path(), command);
    EXPECT_EQ(run.exit, 7) << command;
    EXPECT_THAT(run.err, AllOf(HasSubstr("\"run\" is the folder of a run"), HasSubstr("run/checkpoint-000010")));
  }
}

/// Lines of the log that are none are left out, whatever they are.
TEST(Checkpoint, LogOfBracketsDoesNotEndTheRun) {
  Shop shop;
  const std::string train = "hone-run train mlp.hone --train x=x.npy,y=y.npy --run-dir run --log-every 1 --epochs ";
  ASSERT_EQ(run_tool(shop.folder.path(), train + "1").exit, 0);
  shop.folder.write("run/metrics.jsonl", shop.folder.read("run/metrics.jsonl") + std::string(500'000, '[') + std::string(500'000, ']') + "\n");
  const ToolRun run = run_tool(shop.folder.path(), train + "2 --resume");
  EXPECT_EQ(run.exit, 0) << run.err;
}

TEST(Checkpoint, OfAnotherStepThanItsNameIsRefused) {
  Shop shop;
  shop.save(1);
  rename_durably(shop.open().path(1), shop.open().path(5));
  std::vector<std::string> notes;
  expect_error(Code::kCheckpoint, "is the checkpoint of step 1", [&] { shop.open().restore(&notes); });
}

/// A batch that no epoch of the data has.
TEST(Checkpoint, BeyondTheEndOfItsEpochIsRefused) {
  Shop shop;
  const std::string train = "hone-run train mlp.hone --train x=x.npy,y=y.npy --run-dir run";
  Checkpoints checkpoints = shop.open();
  TrainState state = shop.state(1);
  state.epoch = 0;
  state.batch = 1'000'000;
  state.order = "10 samples in batches of 4, shuffled with seed 0";
  state.means = {1, 1, 1, 1};
  write_checkpoint(shop.folder / "run/checkpoint-000001", *shop.session, state);
  const ToolRun run = run_tool(shop.folder.path(), train + " --resume");
  EXPECT_EQ(run.exit, 10) << run.err;
  EXPECT_THAT(run.err, AllOf(HasSubstr("after batch 1000000"), HasSubstr("an epoch of these data has 3"), HasSubstr("remove it")));
}

}  // namespace
}  // namespace hone::test
