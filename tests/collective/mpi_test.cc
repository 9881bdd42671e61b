// Replicas that are processes.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <chrono>
#include <string>
#include <vector>

#include "tests/collective/launch.h"

namespace hone::test {
namespace {

using std::chrono::steady_clock;
constexpr int kTimeout = 2000;  // ms, in the tests of failures

/// mpi_worker in some replicas.
struct Job {
  int size = 3;
  std::string what;
  std::string transport = "vader";  // Open MPI's name of shared memory
  std::vector<std::string> options = {};

  Launch launch(const TempFolder& folder) const {
    std::vector<std::string> worker = {std::string(HONE_BIN_DIR) + "/mpi_worker", what, folder.path()};
    if (not what.starts_with("conform") and what != "part") worker.push_back(fmt::format("{}", kTimeout));
    return {.size = size, .program = std::move(worker), .transport = transport, .options = options};
  }
};

/// The file's content, once it is there.
std::string expected(const TempFolder& folder, const std::string& name) {
  if (std::optional<std::string> text = awaited(folder, name)) return *text;
  ADD_FAILURE() << name << " has not come; mpirun says:\n" << folder.read("mpirun");
  return "";
}

void expect_all_well(const TempFolder& folder, int size) {
  for (int rank = 0; rank < size; ++rank) {
    EXPECT_EQ(expected(folder, fmt::format("exit.{}", rank)), "0");
    EXPECT_EQ(folder.read(fmt::format("said.{}", rank)), "");
  }
  if (testing::Test::HasFailure()) ADD_FAILURE() << folder.read("mpirun");
}

class Mpi : public testing::Test {
 protected:
  void SetUp() override {
    if (const std::string why = no_mpi(); not why.empty()) GTEST_SKIP() << why;
  }
  TempFolder folder_;
};

void conform(const Job& job) {
  const TempFolder folder;
  Process mpirun(job.launch(folder).words(), folder / "mpirun");
  expect_all_well(folder, job.size);
}

TEST_F(Mpi, ConformsInOneReplica) { conform({.size = 1, .what = "conform"}); }
TEST_F(Mpi, ConformsInTwoReplicas) { conform({.size = 2, .what = "conform"}); }
TEST_F(Mpi, ConformsInThreeReplicas) { conform({.size = 3, .what = "conform"}); }
TEST_F(Mpi, ConformsInFourReplicas) { conform({.size = 4, .what = "conform"}); }
TEST_F(Mpi, ConformsInTwoReplicasOfEachOfThreeProcesses) { conform({.size = 3, .what = "conform_nested"}); }
TEST_F(Mpi, ConformsOverTcp) { conform({.size = 3, .what = "conform", .transport = "tcp"}); }
/// As in containers, which forbid a process to read another's memory.
TEST_F(Mpi, ConformsWithoutReadingOthersMemory) { conform({.size = 3, .what = "conform", .options = {"--mca", "btl_vader_single_copy_mechanism", "none"}}); }

TEST_F(Mpi, PartsWithoutAWord) {
  const Job job = {.size = 3, .what = "part"};
  Process mpirun(job.launch(folder_).words(), folder_ / "mpirun");
  EXPECT_EQ(mpirun.wait(), 0);
  EXPECT_EQ(folder_.read("mpirun"), "");
  expect_all_well(folder_, job.size);
}

/// Replica 1 gets the signal, if any; the others must say `words`, and must do so in time.
void expect_others_to_say(const Job& job, int signal, const std::vector<std::string>& words) {
  const TempFolder folder;
  Process mpirun(job.launch(folder).words(), folder / "mpirun");
  pid_t victim = 0;
  if (signal != 0) {
    const std::string process = expected(folder, "ready.1");
    if (process.empty()) return;
    victim = std::stoi(process);
    kill(victim, signal);
  }
  const auto begin = steady_clock::now();
  for (int rank = 0; rank < job.size; ++rank) {
    if (rank == 1) continue;
    EXPECT_EQ(expected(folder, fmt::format("exit.{}", rank)), "9") << "replica " << rank;
    for (const std::string& word : words) EXPECT_NE(folder.read(fmt::format("said.{}", rank)).find(word), std::string::npos) << word << " is not in:\n" << folder.read(fmt::format("said.{}", rank));
  }
  if (signal != 0) EXPECT_LT(steady_clock::now() - begin, std::chrono::milliseconds(kTimeout) + std::chrono::seconds(8));
  if (victim != 0) kill(victim, SIGKILL);  // mpirun waits for it
}

const std::vector<std::string> kDidNotCome = {"error[HN-0801]: rank 1 (process ", ") did not come within 2 s", "--collective-timeout", "--resume"};

TEST_F(Mpi, NamesAReplicaThatWasKilled) { expect_others_to_say({.size = 4, .what = "all_reduce"}, SIGKILL, kDidNotCome); }
TEST_F(Mpi, NamesAReplicaThatWasKilledInABroadcast) { expect_others_to_say({.size = 4, .what = "broadcast"}, SIGKILL, kDidNotCome); }
TEST_F(Mpi, NamesAReplicaThatWasKilledOverTcp) { expect_others_to_say({.size = 4, .what = "all_reduce", .transport = "tcp"}, SIGKILL, kDidNotCome); }
TEST_F(Mpi, NamesAReplicaThatWasStopped) { expect_others_to_say({.size = 4, .what = "all_reduce"}, SIGSTOP, kDidNotCome); }
TEST_F(Mpi, NamesAReplicaThatWasStoppedAmongSmallCalls) { expect_others_to_say({.size = 3, .what = "small", .transport = "tcp"}, SIGSTOP, kDidNotCome); }
TEST_F(Mpi, NamesAReplicaThatFailsAndSaysWhy) {
  expect_others_to_say({.size = 4, .what = "fail"}, 0, {"error[HN-0801]: rank 1 (process ", ") has failed: its disk is full", "look at that replica's own messages", "--resume"});
}
TEST_F(Mpi, DoesNotWaitForeverForAReplicaThatDoesNotStart) { expect_others_to_say({.size = 2, .what = "late"}, SIGSTOP, {"MPI did not start within 2 s", "--collective-timeout"}); }

TEST_F(Mpi, NamesReplicasOfOtherVersions) {
  std::vector<std::string> command = Job{.size = 2, .what = "small"}.launch(folder_).words();
  command.push_back("1.0");
  for (const std::string& word : {std::string(":"), std::string("-n"), std::string("1"), std::string(HONE_BIN_DIR) + "/mpi_worker", std::string("small"), folder_.path(), std::string("2000"), std::string("2.0")})
    command.push_back(word);
  Process mpirun(command, folder_ / "mpirun");
  for (int rank = 0; rank < 3; ++rank) {
    EXPECT_EQ(expected(folder_, fmt::format("exit.{}", rank)), "9");
    EXPECT_NE(folder_.read(fmt::format("said.{}", rank)).find("different versions: 1.0 (protocol 2) on ranks 0, 1; 2.0 (protocol 2) on rank 2"), std::string::npos) << folder_.read(fmt::format("said.{}", rank));
  }
}

TEST_F(Mpi, ConformsBetweenMachines) {
  const TwoMachines machines(folder_);
  if (const std::string why = machines.why_not(); not why.empty()) GTEST_SKIP() << why;
  Launch launch = Job{.size = 4, .what = "conform"}.launch(folder_);
  launch.between = &machines;
  Process mpirun(launch.words(), folder_ / "mpirun");
  expect_all_well(folder_, 4);
}

}  // namespace
}  // namespace hone::test
