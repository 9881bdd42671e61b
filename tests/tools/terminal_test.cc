// hone-run train on a terminal: whatever its width, no line is broken by the terminal, and what stays is what was meant to stay.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/tools/run_tool.h"
#include "tests/support/tools/small_files.h"

namespace hone::test {
namespace {

using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::Not;

/// For 12 epochs.
const std::string kTrainInTerminal = "hone-run train conv.hone --train x=x.npy,y=y.npy --valid x=x.npy,y=y.npy --out trained.onnx --run-dir run --epochs 12";

/// A terminal as far as the tools use one: characters, carriage returns, line ends.
struct Screen {
  explicit Screen(const std::string& shown) {
    std::size_t column = 0;
    lines.emplace_back();
    for (const char c : shown) {
      if (c == '\r') {
        column = 0;
        ++returns;
      } else if (c == '\n') {
        lines.emplace_back();
      } else {
        std::string& line = lines.back();
        if (line.size() <= column) line.resize(column + 1, ' ');
        line[column++] = c;
      }
    }
  }
  std::size_t longest() const {
    std::size_t result = 0;
    for (const std::string& line : lines) result = std::max(result, line.size());
    return result;
  }
  /// The lines one after the other, as if the terminal had no width.
  std::string text() const {
    std::string result;
    for (const std::string& line : lines) result += line.substr(0, line.find_last_not_of(' ') + 1);
    return result;
  }
  std::vector<std::string> lines;  // one that the terminal would break is longer than it is wide
  std::size_t returns = 0;
};

class TerminalOfWidth : public ::testing::TestWithParam<int> {};

TEST_P(TerminalOfWidth, NoLineIsBrokenAndNothingIsLost) {
  const TempFolder folder;
  write_conv_plan(folder);
  const std::string shown = run_on_terminal(folder.path(), kTrainInTerminal, GetParam()).err;
  const Screen screen(shown);
  EXPECT_LT(screen.longest(), static_cast<std::size_t>(GetParam()));
  EXPECT_GT(screen.returns, screen.lines.size()) << "no line was drawn again";
  EXPECT_THAT(shown, HasSubstr("ETA: "));
  EXPECT_THAT(shown, Not(HasSubstr("\x1b"))) << "no colours and no other escapes, NO_COLOR or not";
  EXPECT_THAT(screen.text(), Not(HasSubstr("ETA: "))) << "every bar ends as a finished line";
  for (int epoch = 1; epoch <= 12; ++epoch) EXPECT_THAT(screen.lines, testing::Contains("Epoch " + std::to_string(epoch) + "/12"));
  const std::string value = ": [0-9.e-]+";
  const std::string line = "13/13 \\[=+\\] - 0s [0-9]+[mu]s/step - loss" + value + " - accuracy" + value + " - val_loss" + value + " - val_accuracy" + value;
  EXPECT_THAT(screen.text(), ContainsRegex(line + "Epoch 2/12.*" + line + "Epoch 12/12" + line + "Trained 156 steps in"));
}

INSTANTIATE_TEST_SUITE_P(Progress, TerminalOfWidth, ::testing::Values(40, 80, 200));

TEST(Terminal, LinesFollowItsWidthWhileItIsResized) {
  const TempFolder folder;
  write_conv_plan(folder);
  bool narrow = false;
  const auto narrow_from_the_third_epoch = [&](const std::string& shown) { return (narrow = narrow or shown.find("Epoch 3/") != std::string::npos) ? 50 : 200; };
  const std::string shown = run_on_terminal(folder.path(), kTrainInTerminal + "0", 200, narrow_from_the_third_epoch).err;
  const std::size_t last = shown.rfind("Epoch 120/120");
  EXPECT_GT(Screen(shown.substr(0, shown.find("Epoch 2/"))).longest(), 60u);
  EXPECT_LT(Screen(shown.substr(last)).longest(), 50u) << shown.substr(last);
}

TEST(Terminal, QuietShowsNothing) {
  const TempFolder folder;
  write_conv_plan(folder);
  EXPECT_EQ(run_on_terminal(folder.path(), kTrainInTerminal + " --quiet", 80).err, "");
}

TEST(Terminal, WithoutOneThereIsNoBar) {
  const TempFolder folder;
  write_conv_plan(folder);
  const ToolRun run = run_well(folder.path(), kTrainInTerminal);
  EXPECT_THAT(run.err, Not(HasSubstr("\r")));
  EXPECT_THAT(run.err, Not(HasSubstr("ETA")));
}

}  // namespace
}  // namespace hone::test
