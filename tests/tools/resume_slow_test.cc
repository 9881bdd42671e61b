// Every step, and fifty killed runs.
#include <gtest/gtest.h>

#include <csignal>
#include <random>

#include "tests/tools/resume.h"

namespace hone::test {
namespace {

TEST(ResumeSlow, GoesOnAfterEveryStep) {
  const ResumedRun run;
  for (int step = 1; step <= ResumedRun::kSteps; ++step) {
    run.remove("part");
    run.stop_after(step, "part");
    run_well(run.folder.path(), run.command("part") + " --resume");
    EXPECT_TRUE(run.is_as_whole("part")) << "after step " << step;
  }
}

/// Killed up to three times in a row, at moments that lie anywhere in the run, most of which is saving.
TEST(ResumeSlow, FiftyKilledRunsEndAsOneThatWasNot) {
  const ResumedRun run;
  std::mt19937 random(2);
  std::uniform_real_distribution<double> seconds(0, 0.6);
  int killed = 0;
  for (int i = 0; i < 50; ++i) {
    run.remove("killed");
    for (int times = 0; times <= i % 3; ++times)
      killed += run_and_signal(run.folder.path(), run.command("killed") + " --resume", seconds(random), SIGKILL).exit == 128 + SIGKILL ? 1 : 0;
    run_well(run.folder.path(), run.command("killed") + " --resume");
    EXPECT_TRUE(run.is_as_whole("killed")) << "run " << i;
  }
  EXPECT_GT(killed, 30);
}

}  // namespace
}  // namespace hone::test
