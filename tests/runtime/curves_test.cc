// The picture of a run and its axes.
#include "runtime/train/curves.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "base/files.h"
#include "runtime/train/axis.h"
#include "runtime/train/run_log.h"
#include "tests/support/temp_folder.h"

namespace hone {
namespace {

using test::TempFolder;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

std::vector<std::string> labels(const Axis& axis) {
  std::vector<std::string> result;
  for (const Tick& tick : axis.ticks()) result.push_back(tick.label);
  return result;
}

Axis axis_of(const std::vector<double>& values) { return Axis::of_values(values); }

std::size_t count(const std::string& text, const std::string& part) {
  std::size_t found = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++found;
  return found;
}

RunHistory epochs(const std::vector<NamedNumbers>& values) {
  RunHistory history;
  for (std::size_t i = 0; i < values.size(); ++i)
    history.add(EpochPoint{.epoch = static_cast<std::int64_t>(i + 1), .learning_rate = 0.01, .seconds = 1, .values = values[i]});
  return history;
}

/// Every tag is closed by its own end, and no coordinate is anything but a number.
void expect_well_formed(const std::string& svg) {
  std::vector<std::string> open;
  for (std::size_t at = svg.find('<'); at != std::string::npos; at = svg.find('<', at + 1)) {
    const std::size_t end = svg.find('>', at);
    ASSERT_NE(end, std::string::npos);
    const std::string tag = svg.substr(at + 1, end - at - 1), name = tag.substr(0, tag.find(' '));
    if (tag.starts_with("/")) {
      ASSERT_FALSE(open.empty());
      EXPECT_EQ("/" + open.back(), tag);
      open.pop_back();
    } else if (not tag.ends_with("/")) {
      open.push_back(name);
    }
    for (const char* wrong : {"nan", "inf"}) EXPECT_EQ(tag.find(wrong), std::string::npos) << tag.substr(0, 200);
  }
  EXPECT_TRUE(open.empty());
}

TEST(Axis, TicksAreEvenNumbers) {
  EXPECT_THAT(labels(axis_of({0.1, 0.9})), ElementsAre("0.2", "0.4", "0.6", "0.8"));
  EXPECT_THAT(labels(axis_of({0.02, 0.9})), ElementsAre("0", "0.2", "0.4", "0.6", "0.8")) << "zero is close";
  EXPECT_THAT(labels(axis_of({-3, 7})), ElementsAre("-2", "0", "2", "4", "6"));
  EXPECT_THAT(labels(Axis::of_counts(1, 4)), ElementsAre("1", "2", "3", "4"));
  EXPECT_THAT(labels(Axis::of_counts(1, 10'000)), ElementsAre("2000", "4000", "6000", "8000", "10000"));
}

TEST(Axis, SpansOfMoreThanTwoPowersOfTenAreLogarithmic) {
  EXPECT_TRUE(axis_of({2.3, 0.01}).is_logarithmic());
  EXPECT_THAT(labels(axis_of({2.3, 0.01})), ElementsAre("0.01", "0.02", "0.05", "0.1", "0.2", "0.5", "1", "2"));
  EXPECT_THAT(labels(axis_of({1e-12, 1})), ElementsAre("1e-12", "1e-09", "1e-06", "0.001", "1"));
  EXPECT_FALSE(axis_of({2.3, 0.5}).is_logarithmic());
  EXPECT_FALSE(axis_of({2.3, 0}).is_logarithmic());
  EXPECT_FALSE(axis_of({1000, -0.1}).is_logarithmic());
  EXPECT_NEAR(axis_of({0.01, 100}).place(1), 0.5, 1e-12);
}

TEST(Axis, OneValueNoneAndTheLargest) {
  EXPECT_NEAR(axis_of({3}).place(3), 0.5, 1e-12);
  EXPECT_NEAR(axis_of({0, 0}).place(0), 0.5, 1e-12);
  EXPECT_NEAR(Axis::of_counts(1, 1).place(1), 0.5, 1e-12);
  EXPECT_THAT(labels(Axis::of_counts(1, 1)), ElementsAre("1"));
  for (const std::vector<double>& values : {std::vector<double>{}, {kNan}, {1.7e308, -1.7e308}, {5e-324, 1.7e308}, {1e-320}, {-1e-320, 1e300}, {1, 1 + 1e-15}}) {
    const Axis axis = axis_of(values);
    EXPECT_TRUE(axis.ticks().size() >= 2 and axis.ticks().size() <= 11) << axis.ticks().size();
    for (const Tick& tick : axis.ticks()) EXPECT_TRUE(tick.place >= 0 and tick.place <= 1) << tick.label;
    for (const double value : values)
      if (std::isfinite(value)) EXPECT_TRUE(axis.place(value) >= 0 and axis.place(value) <= 1) << value;
  }
}

TEST(Curves, OnePanelForTheLossAndForEachMetricWithItsValidation) {
  const std::string svg = curves_svg(epochs({{{"loss", 2}, {"accuracy", 0.5}, {"val_loss", 3}, {"val_accuracy", 0.4}},
                                             {{"loss", 1}, {"accuracy", 0.7}, {"val_loss", 2}, {"val_accuracy", 0.6}}}));
  expect_well_formed(svg);
  EXPECT_EQ(count(svg, "<g transform"), 3u) << "loss, accuracy, learning rate";
  for (const char* part : {">loss</text>", ">accuracy</text>", ">learning rate</text>", ">val_loss 2</text>", ">val_accuracy 0.6</text>", "2 epochs"})
    EXPECT_THAT(svg, HasSubstr(part));
  EXPECT_EQ(count(svg, "<path class=\"line c0\" d=\"M62 34"), 3u) << "legends";
  EXPECT_EQ(count(svg, "<path class=\"line c1\" d=\"M62.0"), 2u) << "validation";
}

TEST(Curves, OneEpochIsADot) {
  const std::string svg = curves_svg(epochs({{{"loss", 2}}}));
  expect_well_formed(svg);
  EXPECT_EQ(count(svg, "<circle"), 2u) << "loss and learning rate";
  EXPECT_THAT(svg, HasSubstr("1 epoch<"));
}

TEST(Curves, LoggedStepsGetTheirOwnPanels) {
  RunHistory history = epochs({{{"loss", 2}}});
  for (std::int64_t step = 1; step <= 50; ++step) history.add(StepPoint{step, 3.0 / static_cast<double>(step), 1e-3});
  const std::string svg = curves_svg(history);
  expect_well_formed(svg);
  EXPECT_THAT(svg, HasSubstr(">loss of single steps</text>"));
  EXPECT_EQ(count(svg, ">step<"), 2u);
}

TEST(Curves, ValuesThatAreNotFiniteAreGaps) {
  const double infinite = std::numeric_limits<double>::infinity();
  const std::string svg = curves_svg(epochs({{{"loss", 5}}, {{"loss", 4}}, {{"loss", kNan}}, {{"loss", infinite}}, {{"loss", 3}}, {{"loss", kNan}}, {{"loss", 2}}, {{"loss", 1}}}));
  expect_well_formed(svg);
  EXPECT_EQ(count(svg, "<circle"), 1u) << "the 3 stands alone";
  const std::size_t at = svg.find("<path class=\"line c0\" d=\"M62.0");
  const std::string line = svg.substr(at, svg.find("/>", at) - at);
  EXPECT_EQ(count(line, "M"), 2u) << line;
  expect_well_formed(curves_svg(epochs({{{"loss", kNan}}, {{"loss", kNan}}})));
  expect_well_formed(curves_svg(epochs({{{"loss", 1}}, {{"loss", 2}, {"val_loss", 1}}})));
}

TEST(Curves, TenThousandEpochsAreThinnedAndKeepWhatStandsOut) {
  std::vector<NamedNumbers> values;
  for (int i = 0; i < 10'000; ++i) values.push_back({{"loss", i == 5'001 ? 50.0 : 1 + 0.1 * std::sin(i)}, {"val_loss", 2}});
  const RunHistory history = epochs(values);
  const std::string svg = curves_svg(history);
  expect_well_formed(svg);
  EXPECT_LT(svg.size(), 60'000u);
  const std::string peak = fmt::format(" {:.1f}", 46 + 182 * (1 - Axis::of_values(std::vector<double>{0.9, 50.0}).place(50)));
  EXPECT_THAT(svg, HasSubstr(peak));
}

TEST(Curves, NamesAreEscaped) {
  const std::string svg = curves_svg(epochs({{{"<b>&\"\n\xff", 1}}, {{"<b>&\"\n\xff", 2}}}));
  expect_well_formed(svg);
  EXPECT_THAT(svg, HasSubstr("&lt;b&gt;&amp;"));
  EXPECT_THAT(svg, Not(HasSubstr("\xff")));
}

TEST(Curves, NothingYetIsAnEmptyPicture) { expect_well_formed(curves_svg({})); }

TEST(Curves, TheRunFolderHasThePictureOfAllEpochs) {
  const TempFolder folder;
  {
    RunLog log(folder.path(), {});
    for (std::int64_t epoch = 1; epoch <= 30; ++epoch) {
      const NamedNumbers values = {{"loss", 1.0 / static_cast<double>(epoch)}};
      log.epoch({.epoch = epoch, .values = &values});
      EXPECT_TRUE(file_exists(folder / "curves.svg"));
    }
  }
  EXPECT_THAT(folder.read("curves.svg"), HasSubstr("30 epochs"));
  EXPECT_THAT(folder.names(), ElementsAre("curves.svg", "metrics.csv", "metrics.jsonl", "recipe.json", "train"));
  const RunLog fresh(folder.path(), {});
  EXPECT_FALSE(file_exists(folder / "curves.svg")) << "that of an earlier run";
}

}  // namespace
}  // namespace hone
