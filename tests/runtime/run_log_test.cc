// The run folder: what is written, and what is kept of it when a run goes on.
#include "runtime/train/run_log.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "formats/tensorboard_events.pb.h"
#include "tests/support/temp_folder.h"
#include "tests/support/text_lines.h"

namespace hone {
namespace {

using test::lines_of;
using test::TempFolder;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::SizeIs;

/// Epochs `first` to `last` of two steps each, the loss of step s being 1 / s, that of epoch e 10 / e.
void train(RunLog& log, std::int64_t first, std::int64_t last, bool validated = false) {
  for (std::int64_t epoch = first; epoch <= last; ++epoch) {
    for (const std::int64_t step : {2 * epoch - 1, 2 * epoch})
      log.step({.epoch = epoch, .step = step, .loss = 1.0 / static_cast<double>(step), .learning_rate = 0.1, .samples_per_s = 5});
    NamedNumbers values = {{"loss", 10.0 / static_cast<double>(epoch)}};
    if (validated) values.emplace_back("val_loss", 20.0 / static_cast<double>(epoch));
    log.epoch({.epoch = epoch, .values = &values, .learning_rate = 0.1, .seconds = 2});
  }
}

/// The same run, once in one go and once stopped somewhere and gone on with at `point` after `written` epochs.
struct TwoRuns {
  TwoRuns(std::int64_t written, ResumePoint point, const std::string& torn = "") {
    {
      RunLog log(whole, recipe);
      train(log, 1, 4);
    }
    {
      RunLog log(parted, recipe);
      train(log, 1, written);
    }
    folder.write("parted/metrics.jsonl", folder.read("parted/metrics.jsonl") + torn);
    folder.write("parted/metrics.csv", folder.read("parted/metrics.csv") + torn);
    RunLog log(parted, recipe, point);
    if (point.step % 2 == 1) {
      log.step({.epoch = point.epoch, .step = point.step + 1, .loss = 1.0 / static_cast<double>(point.step + 1), .learning_rate = 0.1, .samples_per_s = 5});
      const NamedNumbers values = {{"loss", 10.0 / static_cast<double>(point.epoch)}};
      log.epoch({.epoch = point.epoch, .values = &values, .learning_rate = 0.1, .seconds = 2});
      ++point.epoch;
    }
    train(log, point.epoch, 4);
  }
  void expect_same() const {
    for (const char* name : {"metrics.jsonl", "metrics.csv", "recipe.json"}) EXPECT_EQ(folder.read(std::string("parted/") + name), folder.read(std::string("whole/") + name));
  }
  TempFolder folder;
  Recipe recipe;
  std::string whole = folder / "whole", parted = folder / "parted";
};

TEST(RunLog, ARunThatGoesOnWritesTheFilesOfOneThatNeverStopped) {
  TwoRuns(2, {.epoch = 3, .step = 4}).expect_same();
  TwoRuns(3, {.epoch = 2, .step = 2}).expect_same();
  TwoRuns(3, {.epoch = 3, .step = 5}).expect_same();
  TwoRuns(4, {.epoch = 1, .step = 0}).expect_same();
  TwoRuns(1, {.epoch = 1, .step = 1}).expect_same();
}

TEST(RunLog, ALastLineThatWasCutInHalfIsDropped) {
  for (const std::string torn : {"{\"kind\":\"step\",\"epoch\":3,\"st", "{", "3,0.5,", "{\"kind\":\"epoch\",\"epoch\":1}"})
    TwoRuns(2, {.epoch = 3, .step = 4}, torn).expect_same();
}

TEST(RunLog, WhatIsNoLineOfOursIsDroppedWhenARunGoesOn) {
  const TempFolder folder;
  folder.write("metrics.jsonl", "hello\n\n[1]\n{\"kind\":\"step\",\"epoch\":1,\"step\":1,\"loss\":null}\n" + std::string(100'000, '[') + "\n{\"note\":\"mine\"}\n");
  const RunLog log(folder.path(), {}, ResumePoint{.epoch = 1, .step = 1});
  EXPECT_EQ(folder.read("metrics.jsonl"), "{\"kind\":\"step\",\"epoch\":1,\"step\":1,\"loss\":null}\n{\"note\":\"mine\"}\n");
  ASSERT_THAT(log.history().steps(), SizeIs(1));
  EXPECT_TRUE(std::isnan(log.history().steps()[0].loss));
}

TEST(RunLog, GoingOnWithoutFilesBeginsThem) {
  const TempFolder folder;
  RunLog log(folder / "run", {}, ResumePoint{.epoch = 2, .step = 2});
  train(log, 2, 2);
  EXPECT_THAT(lines_of(folder.read("run/metrics.jsonl")), SizeIs(3));
  EXPECT_EQ(folder.read("run/metrics.csv"), "epoch,loss,learning_rate,seconds\n2,5,0.1,2.000\n");
}

TEST(RunLog, ValuesThatComeLaterGetColumns) {
  const TempFolder folder;
  { RunLog log(folder.path(), {}); train(log, 1, 1); }
  RunLog log(folder.path(), {}, ResumePoint{.epoch = 2, .step = 2});
  train(log, 2, 3, true);
  EXPECT_EQ(folder.read("metrics.csv"),
            "epoch,loss,val_loss,learning_rate,seconds\n1,10,,0.1,2.000\n2,5,10,0.1,2.000\n3,3.33333333,6.66666667,0.1,2.000\n");
}

TEST(RunLog, NamesWithCommasAreQuoted) {
  const TempFolder folder;
  RunLog log(folder.path(), {});
  const NamedNumbers values = {{"a,\"b\"", 1}};
  log.epoch({.epoch = 1, .values = &values});
  EXPECT_THAT(folder.read("metrics.csv"), HasSubstr("epoch,\"a,\"\"b\"\"\",learning_rate"));
}

TEST(RunLog, ANewRunReplacesWhatAnEarlierOneLeft) {
  const TempFolder folder;
  { RunLog log(folder.path(), {}); train(log, 1, 3, true); }
  folder.write("notes.txt", "kept");
  for (const char* left : {".metrics.csv.17-0.tmp", ".curves.svg.17-3.tmp"}) folder.write(left, "half of");  // by a run that was killed
  folder.write(".notes.tmp", "kept");
  { RunLog log(folder.path(), {}); train(log, 1, 1); }
  EXPECT_THAT(lines_of(folder.read("metrics.jsonl")), SizeIs(3));
  EXPECT_THAT(lines_of(folder.read("metrics.csv")), SizeIs(2));
  EXPECT_THAT(list_folder(folder / "train"), SizeIs(1));
  EXPECT_THAT(list_folder(folder / "validation"), SizeIs(0));
  EXPECT_EQ(folder.read("notes.txt"), "kept");
  EXPECT_THAT(folder.names(), ElementsAre(".notes.tmp", "curves.svg", "metrics.csv", "metrics.jsonl", "notes.txt", "recipe.json", "train", "validation"));
}

TEST(RunLog, WithoutAFolderNothingIsWritten) {
  RunLog log("", {});
  train(log, 1, 2);
  log.histogram(1, "w", Tensor::scalar(1.0f));
}

/// (step, tag, value) of every scalar in the event files of a folder; the restarts among them as ("restart").
struct Scalar {
  std::int64_t step;
  std::string tag;
  double value;
  friend bool operator==(const Scalar&, const Scalar&) = default;
};
std::vector<Scalar> scalars_in(const std::string& folder) {
  std::vector<Scalar> result;
  for (const std::string& name : list_folder(folder)) {
    const std::string text = read_file(folder + "/" + name);
    for (std::size_t at = 0; at < text.size();) {
      const std::size_t length = static_cast<unsigned char>(text[at]) + 256u * static_cast<unsigned char>(text[at + 1]);  // these are short
      tensorboard::Event event;
      EXPECT_TRUE(event.ParseFromString(text.substr(at + 12, length)));
      if (event.has_session_log()) result.push_back({event.step(), "restart", 0});
      for (const auto& value : event.summary().value()) result.push_back({event.step(), value.tag(), value.simple_value()});
      at += 16 + length;
    }
  }
  return result;
}

TEST(RunLog, TensorboardGetsKerassNamesAndCountsEpochsFromZero) {
  const TempFolder folder;
  RunLog log(folder.path(), {});
  const NamedNumbers norms = {{"dense/kernel", 2}}, so_far = {{"loss", 9}, {"accuracy", 0.5}}, values = {{"loss", 4}, {"val_loss", 8}};
  log.step({.epoch = 1, .step = 3, .loss = 1, .learning_rate = 0.25, .samples_per_s = 64, .grad_norms = &norms, .values = &so_far});
  log.epoch({.epoch = 1, .values = &values, .learning_rate = 0.25, .seconds = 1});
  EXPECT_THAT(scalars_in(folder / "train"),
              ElementsAre(Scalar{3, "batch_loss", 1}, Scalar{3, "batch_learning_rate", 0.25}, Scalar{3, "batch_samples_per_s", 64}, Scalar{3, "batch_accuracy", 0.5},
                          Scalar{3, "grad_norm/dense/kernel", 2}, Scalar{0, "epoch_loss", 4}, Scalar{0, "epoch_learning_rate", 0.25}));
  EXPECT_THAT(scalars_in(folder / "validation"), ElementsAre(Scalar{0, "epoch_loss", 8}));
  EXPECT_THAT(folder.read("metrics.jsonl"), HasSubstr("\"loss\":1,\"accuracy\":0.5,\"learning_rate\":0.25"));
}

TEST(RunLog, GoingOnAddsEventFilesThatSayWhere) {
  const TempFolder folder;
  { RunLog log(folder.path(), {}); train(log, 1, 2, true); }
  RunLog log(folder.path(), {}, ResumePoint{.epoch = 2, .step = 3});
  const NamedNumbers values = {{"loss", 4}, {"val_loss", 8}};
  log.epoch({.epoch = 2, .values = &values});
  EXPECT_THAT(list_folder(folder / "train"), SizeIs(2));
  EXPECT_THAT(scalars_in(folder / "validation"),
              ElementsAre(Scalar{0, "epoch_loss", 20}, Scalar{1, "restart", 0}, Scalar{1, "epoch_loss", 8}));
  EXPECT_THAT(scalars_in(folder / "train"), testing::Contains(Scalar{4, "restart", 0}));
}

TEST(RunLog, EventsOfARunThatGoesOnAreThoseOfOneThatNeverStopped) {
  for (const auto& [written, point] : {std::pair<std::int64_t, ResumePoint>{2, {.epoch = 3, .step = 4}}, {3, {.epoch = 2, .step = 2}}, {3, {.epoch = 3, .step = 5}}, {4, {.epoch = 1, .step = 0}}}) {
    const TwoRuns runs(written, point);
    std::vector<Scalar> parted = scalars_in(runs.parted + "/train");
    std::erase_if(parted, [](const Scalar& scalar) { return scalar.tag == "restart"; });
    EXPECT_EQ(parted, scalars_in(runs.whole + "/train")) << "from step " << point.step;
  }
}

TEST(RunHistory, LongRunsKeepEveryNthStep) {
  RunHistory history;
  for (std::int64_t step = 1; step <= 300'000; ++step) history.add(StepPoint{step, 0, 0});
  EXPECT_LT(history.steps().size(), 65'536u);
  EXPECT_GT(history.steps().size(), 30'000u);
  for (std::size_t i = 0; i < history.steps().size(); ++i) ASSERT_EQ(history.steps()[i].step, static_cast<std::int64_t>(8 * i + 1));
}

TEST(RunHistory, TheBestEpochIsThatOfTheLeastValidationLoss) {
  RunHistory history;
  EXPECT_FALSE(best_epoch(history));
  history.add({.epoch = 1, .values = {{"loss", std::nan("")}}});
  EXPECT_FALSE(best_epoch(history));
  history.add({.epoch = 2, .values = {{"loss", 0.5}}});
  history.add({.epoch = 3, .values = {{"loss", 0.4}}});
  EXPECT_EQ(best_epoch(history)->epoch, 3);
  EXPECT_EQ(best_epoch(history)->name, "loss");
  history.add({.epoch = 4, .values = {{"loss", 0.1}, {"val_loss", 3}}});
  history.add({.epoch = 5, .values = {{"loss", 0.0}, {"val_loss", std::numeric_limits<double>::infinity()}}});
  EXPECT_EQ(best_epoch(history)->epoch, 4);
  EXPECT_EQ(best_epoch(history)->value, 3);
}

}  // namespace
}  // namespace hone
