// What a person sees while training: the lines themselves, without a terminal. tests/tools has one.
#include "runtime/train/progress.h"
#include "tests/support/text_lines.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <sstream>
#include <thread>

namespace hone {
namespace {

using test::lines_of;
using testing::ContainsRegex;
using testing::HasSubstr;
using testing::MatchesRegex;
using testing::Not;

const NamedNumbers kValues = {{"loss", 0.41131}, {"accuracy", 0.88714}, {"val_loss", 2.5e-5}};
const std::string kFinished = "125/125 [==============================] - 1s 4ms/step - loss: 0.4113 - accuracy: 0.8871 - val_loss: 2.5000e-05";

TEST(MetricText, ShowsFiguresThatCount) {
  EXPECT_EQ(metric_text("loss", 0.41129), "loss: 0.4113");
  EXPECT_EQ(metric_text("loss", 4.113e-5), "loss: 4.1130e-05");
  EXPECT_EQ(metric_text("mse", 123456.78), "mse: 123456.7800");
  EXPECT_EQ(metric_text("loss", -2.3045181681863908e28), "loss: -2.3045e+28");
  EXPECT_EQ(metric_text("loss", -std::numeric_limits<double>::quiet_NaN()), "loss: nan");
}

TEST(Progress, SpeaksKerassWords) {
  EXPECT_EQ(finished_line({.done = 125, .total = 125, .seconds = 0.6, .step_seconds = 0.0042}, kValues), kFinished);
  EXPECT_EQ(unfinished_line({.done = 37, .total = 125, .seconds = 1, .step_seconds = 1.0 / 37}, {{"loss", 0.5}}, 80),
            " 37/125 [=======>......................] - ETA: 2s - loss: 0.5000");
  EXPECT_EQ(unfinished_line({.done = 1, .total = 1000, .seconds = 10, .step_seconds = 10}, {}, 80),
            "   1/1000 [..............................] - ETA: 2:46:30");
  EXPECT_EQ(step_time_text(0.00085), "850us/step");
  EXPECT_EQ(step_time_text(2.2), "2s/step");
}

TEST(Progress, WhatNobodyKnowsTheLengthOfHasNoBarUntilItIsOver) {
  EXPECT_EQ(unfinished_line({.done = 37, .seconds = 3, .step_seconds = 0.08, .samples_per_s = 400}, {{"loss", 0.5}}, 80),
            "37/Unknown - 3s 80ms/step - loss: 0.5000 - 400 samples/s");
  EXPECT_EQ(unfinished_line({.done = 37, .seconds = 3, .step_seconds = 0.08}, {{"loss", 0.5}}, 30), "37/Unknown - 3s 80ms/step");
  std::string said;
  Progress progress(ProgressMode::kLines, [&](std::string_view text) { said += text; });
  progress.start_epoch(1, 1, 0);
  progress.end_epoch(37, 0.037, {{"loss", 0.5}});
  EXPECT_EQ(said, "Epoch 1/1\n37/37 [==============================] - 0s 1ms/step - loss: 0.5000\n");
}

TEST(Progress, UnfinishedLinesFitAnyWidth) {
  for (int width = 1; width <= 200; ++width)
    for (const std::int64_t total : {0, 125})
      for (const double samples : {0.0, 1234.0}) {
        const StepsDone at = {.done = 37, .total = total, .seconds = 1, .step_seconds = 0.01, .samples_per_s = samples};
        EXPECT_LE(unfinished_line(at, kValues, width).size(), static_cast<std::size_t>(std::max(1, width - 1)));
      }
}

TEST(Progress, SamplesGiveWayFirstAndThenTheBar) {
  const StepsDone at = {.done = 37, .total = 125, .seconds = 1, .step_seconds = 0.01, .samples_per_s = 1234};
  EXPECT_THAT(unfinished_line(at, kValues, 140), ContainsRegex("\\[[=>.]{30}\\] - ETA: 0s - loss: .* - 1234 samples/s$"));
  EXPECT_THAT(unfinished_line(at, kValues, 112), MatchesRegex(" 37/125 \\[[=>.]{30}\\] - .* - val_loss: 2.5000e-05"));
  EXPECT_THAT(unfinished_line(at, kValues, 95), MatchesRegex(" 37/125 \\[[=>.]{17}\\] - .* - val_loss: 2.5000e-05"));
  EXPECT_EQ(unfinished_line(at, kValues, 60), " 37/125 [>....] - ETA: 0s - loss: 0.4113 - accuracy: 0.8871");
  EXPECT_EQ(unfinished_line(at, kValues, 40), " 37/125 - ETA: 0s - loss: 0.4113");
  EXPECT_EQ(unfinished_line(at, kValues, 30), " 37/125 - ETA: 0s");
  EXPECT_EQ(unfinished_line(at, kValues, 6), " 37/1");
}

/// Half a number would read as another one.
TEST(Progress, ValuesAreShownAsAWholeOrNot) {
  const StepsDone at = {.done = 37, .total = 125, .seconds = 1, .step_seconds = 0.01, .samples_per_s = 1234};
  const std::string all = unfinished_line(at, kValues, 300);
  for (int width = 9; width <= 200; ++width) {
    const std::string line = unfinished_line(at, kValues, width);
    for (std::size_t field = line.find(" - "); field != std::string::npos; field = line.find(" - ", field + 1))
      EXPECT_NE((all + " - ").find(line.substr(field, line.find(" - ", field + 1) - field) + " - "), std::string::npos) << line;
  }
}

/// The words stay as they are; only bar and line ends differ.
TEST(Progress, FinishedLinesLoseNothingInNarrowTerminals) {
  const StepsDone at = {.done = 125, .total = 125, .seconds = 0.6, .step_seconds = 0.0042};
  EXPECT_EQ(finished_line(at, kValues, 200), kFinished);
  EXPECT_THAT(finished_line(at, kValues, 95), MatchesRegex("125/125 \\[={13}\\] - .* - val_loss: 2.5000e-05"));
  EXPECT_EQ(finished_line(at, kValues, 40),
            "125/125 [=====] - 1s 4ms/step\n - loss: 0.4113 - accuracy: 0.8871\n - val_loss: 2.5000e-05");
  for (int width = 31; width <= 130; ++width)
    for (const std::string& line : lines_of(finished_line(at, kValues, width))) EXPECT_LT(line.size(), static_cast<std::size_t>(width)) << line;
}

TEST(Progress, TextIsFoldedWhereItMayBe) {
  EXPECT_EQ(folded("one two three four", " ", 10), "one two\n three\n four");
  EXPECT_EQ(folded("one two", " ", 8), "one two");
  EXPECT_EQ(folded("one two", " ", 7), "one\n two");
  EXPECT_EQ(folded("a/very/long/path and more", " ", 8), "a/very/long/path\n and\n more");
  EXPECT_EQ(folded("a/very/long/path", " ", 8), "a/very/long/path");
  EXPECT_EQ(folded("", " ", 8), "");
  EXPECT_EQ(folded("   ", " ", 1), " \n \n ");
}

TEST(Progress, BarIsRedrawnOnOneLineAndLeftClean) {
  std::string said;
  Progress progress(ProgressMode::kBar, [&](std::string_view text) { said += text; }, [] { return 200; });
  progress.set_batch_size(4);
  progress.start_epoch(1, 1, 2);
  progress.step(1, {{"loss", 1}});
  EXPECT_THAT(said, MatchesRegex("Epoch 1/1\n\r1/2 \\[==============>\\.{15}\\] - ETA: 0s - loss: 1.0000 - [0-9]+ samples/s"));
  const std::size_t drawn = said.size() - said.rfind('\r') - 1;
  said.clear();
  progress.end_epoch(2, 0.002, {{"l", 1}});
  const std::string line = "2/2 [==============================] - 0s 1ms/step - l: 1.0000";
  EXPECT_EQ(said, "\r" + line + std::string(drawn - line.size(), ' ') + "\n");
}

TEST(Progress, QuietSaysNothing) {
  std::string said;
  Progress quiet(ProgressMode::kQuiet, [&](std::string_view text) { said += text; });
  quiet.start_epoch(1, 1, 2);
  quiet.step(1, {});
  quiet.say("note");
  quiet.end_epoch(2, 1, {});
  EXPECT_EQ(said, "");
}

TEST(Progress, WidthIsAskedAtEveryLine) {
  std::string said;
  int width = 200;
  Progress progress(ProgressMode::kBar, [&](std::string_view text) { said += text; }, [&] { return width; });
  progress.start_epoch(1, 2, 100);
  progress.step(1, kValues);
  EXPECT_GT(said.size() - said.rfind('\r'), 90u);
  said.clear();
  width = 30;
  progress.end_epoch(2, 0.002, kValues);
  for (const std::string& line : lines_of(said)) EXPECT_LE(line.size(), 30u) << "what covers the longer line of before must fit, too";
  said.clear();
  progress.say("a note of more than thirty characters, which must be folded");
  EXPECT_EQ(lines_of(said).size(), 3u);
  EXPECT_EQ(progress.columns(), 29);
}

/// A run that goes on with an epoch at step 91 knows its speed from its own steps.
TEST(Progress, StepsOfAnEarlierRunTakeNoTime) {
  std::string said;
  Progress progress(ProgressMode::kBar, [&](std::string_view text) { said += text; });
  progress.start_epoch(1, 1, 100);
  progress.step(91, {});
  progress.end_epoch(100, 0.01, {});
  EXPECT_THAT(said, HasSubstr("] - 0s 1ms/step"));
}

TEST(Progress, DrawsAtMostTwentyTimesASecond) {
  std::string said;
  Progress progress(ProgressMode::kBar, [&](std::string_view text) { said += text; });
  const auto begin = std::chrono::steady_clock::now();
  for (std::int64_t epoch = 1; epoch <= 40; ++epoch) {
    progress.start_epoch(epoch, 40, 2);
    progress.step(1, {});
    std::this_thread::sleep_for(std::chrono::milliseconds(3));
    progress.end_epoch(2, 0.003, {});
  }
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  std::size_t drawn = 0;
  for (std::size_t at = said.find("ETA"); at != std::string::npos; at = said.find("ETA", at + 1)) ++drawn;
  EXPECT_LE(static_cast<double>(drawn), seconds * 20 + 1);
  EXPECT_GE(drawn, 1u);
}

}  // namespace
}  // namespace hone
