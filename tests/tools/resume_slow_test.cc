// Every step, and fifty killed runs.
#include <gtest/gtest.h>

#include <chrono>
#include <csignal>
#include <random>

#include "tests/tools/resume.h"

namespace hone::test {
namespace {

TEST(ResumeSlow, GoesOnAfterEveryStep) {
  const ResumedRun run;
  for (int step = 1; step <= ResumedRun::kSteps; ++step) {
    remove_run(run.folder, "part");
    stop_run_after(run.folder, step, "part", "whole");
    run_well(run.folder.path(), run.command("part") + " --resume");
    EXPECT_TRUE(run.is_as_whole("part")) << "after step " << step;
  }
}

/// Killed at a moment that lies anywhere in the run, most of which is saving; one run in three again when it goes on.
TEST(ResumeSlow, FiftyKilledRunsEndAsOneThatWasNot) {
  const ResumedRun run;
  const auto start = std::chrono::steady_clock::now();
  run_well(run.folder.path(), run.command("timed"));
  const std::chrono::duration<double> whole = std::chrono::steady_clock::now() - start;

  std::mt19937 random(2);
  std::uniform_real_distribution<double> seconds(0, whole.count());
  const auto is_killed = [&](const char* more) {
    return run_and_signal(run.folder.path(), run.command("killed") + more, seconds(random), SIGKILL).exit == 128 + SIGKILL;
  };
  int killed = 0;
  for (int tries = 0; killed < 50; ++tries) {
    ASSERT_LT(tries, 500) << "most runs end before they are killed";
    remove_run(run.folder, "killed");
    if (not is_killed("")) continue;
    ++killed;
    if (killed % 3 == 0) is_killed(" --resume");
    run_well(run.folder.path(), run.command("killed") + " --resume");
    EXPECT_TRUE(run.is_as_whole("killed")) << "run " << killed;
  }
}

}  // namespace
}  // namespace hone::test
