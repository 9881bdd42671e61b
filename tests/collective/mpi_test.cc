// Replicas that are processes. mpirun is told to let the others live when one dies: Hone itself must notice.
#include <fcntl.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <thread>
#include <vector>

#include "base/text.h"
#include "runtime/collective/mpi_communicator.h"
#include "tests/support/temp_folder.h"

extern char** environ;

namespace hone::test {
namespace {

using std::chrono::steady_clock;
constexpr int kTimeout = 2000;  // ms, in the tests of failures
constexpr std::chrono::seconds kPatience{180};

bool is_in_path(const std::string& program) {
  const char* path = std::getenv("PATH");
  for (const std::string& folder : split(path == nullptr ? "" : path, ':'))
    if (access((folder + "/" + program).c_str(), X_OK) == 0) return true;
  return false;
}

/// Why nothing here can run, or nothing.
std::string no_mpi() {
#ifdef __SANITIZE_THREAD__
  return "ThreadSanitizer does not know what Open MPI's own threads do";
#endif
  if (not has_mpi()) return "this build has no MPI";
  return is_in_path("mpirun") ? "" : "there is no mpirun (Debian: openmpi-bin)";
}

/// A program with all its children. What it says goes to a file.
class Process {
 public:
  Process(std::vector<std::string> words, const std::string& says) {
    std::vector<std::string> variables = {"OMPI_ALLOW_RUN_AS_ROOT=1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1", "ASAN_OPTIONS=detect_leaks=0"};
    for (char** variable = environ; *variable != nullptr; ++variable) variables.emplace_back(*variable);
    const auto pointers = [](std::vector<std::string>& texts) {
      std::vector<char*> result;
      for (std::string& text : texts) result.push_back(text.data());
      result.push_back(nullptr);
      return result;
    };
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_addopen(&actions, 1, says.c_str(), O_WRONLY | O_CREAT | O_APPEND, 0600);
    posix_spawn_file_actions_adddup2(&actions, 1, 2);
    if (posix_spawnp(&process_, words[0].c_str(), &actions, nullptr, pointers(words).data(), pointers(variables).data()) != 0) throw std::runtime_error("cannot run " + words[0]);
    posix_spawn_file_actions_destroy(&actions);
  }
  /// mpirun ends what it has started.
  ~Process() {
    if (process_ == 0) return;
    kill(process_, SIGTERM);
    wait();
  }
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;

  /// Its exit code.
  int wait() {
    int status = 0;
    waitpid(std::exchange(process_, 0), &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  }

 private:
  pid_t process_ = 0;
};

/// mpi_worker in some replicas.
struct Job {
  int size = 3;
  std::string what;
  std::string transport = "vader";  // Open MPI's name of shared memory
  std::vector<std::string> options = {};

  std::vector<std::string> command(const TempFolder& folder) const {
    std::vector<std::string> words = {"mpirun", "-q", "--enable-recovery", "--oversubscribe", "--bind-to", "none", "--mca", "btl", transport + ",self"};
    words.insert(words.end(), options.begin(), options.end());
    const std::vector<std::string> worker = {"-n", fmt::format("{}", size), std::string(HONE_BIN_DIR) + "/mpi_worker", what, folder.path()};
    words.insert(words.end(), worker.begin(), worker.end());
    if (what != "conform" and what != "part") words.push_back(fmt::format("{}", kTimeout));
    return words;
  }
};

/// The file's content, once it is there.
std::string awaited(const TempFolder& folder, const std::string& name) {
  for (const auto end = steady_clock::now() + kPatience; steady_clock::now() < end; std::this_thread::sleep_for(std::chrono::milliseconds(5)))
    if (std::filesystem::exists(folder / name)) return folder.read(name);
  ADD_FAILURE() << name << " has not come; mpirun says:\n" << folder.read("mpirun");
  return "";
}

void expect_all_well(const TempFolder& folder, int size) {
  for (int rank = 0; rank < size; ++rank) {
    EXPECT_EQ(awaited(folder, fmt::format("exit.{}", rank)), "0");
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
  Process mpirun(job.command(folder), folder / "mpirun");
  expect_all_well(folder, job.size);
}

TEST_F(Mpi, ConformsInOneReplica) { conform({.size = 1, .what = "conform"}); }
TEST_F(Mpi, ConformsInTwoReplicas) { conform({.size = 2, .what = "conform"}); }
TEST_F(Mpi, ConformsInThreeReplicas) { conform({.size = 3, .what = "conform"}); }
TEST_F(Mpi, ConformsInFourReplicas) { conform({.size = 4, .what = "conform"}); }
TEST_F(Mpi, ConformsOverTcp) { conform({.size = 3, .what = "conform", .transport = "tcp"}); }
/// As in containers, which forbid a process to read another's memory.
TEST_F(Mpi, ConformsWithoutReadingOthersMemory) { conform({.size = 3, .what = "conform", .options = {"--mca", "btl_vader_single_copy_mechanism", "none"}}); }

TEST_F(Mpi, PartsWithoutAWord) {
  const Job job = {.size = 3, .what = "part"};
  Process mpirun(job.command(folder_), folder_ / "mpirun");
  EXPECT_EQ(mpirun.wait(), 0);
  EXPECT_EQ(folder_.read("mpirun"), "");
  expect_all_well(folder_, job.size);
}

/// Replica 1 gets the signal, if any; the others must say `words`, and must do so in time.
void expect_others_to_say(const Job& job, int signal, const std::vector<std::string>& words) {
  const TempFolder folder;
  Process mpirun(job.command(folder), folder / "mpirun");
  pid_t victim = 0;
  if (signal != 0) {
    const std::string process = awaited(folder, "ready.1");
    if (process.empty()) return;
    victim = std::stoi(process);
    kill(victim, signal);
  }
  const auto begin = steady_clock::now();
  for (int rank = 0; rank < job.size; ++rank) {
    if (rank == 1) continue;
    EXPECT_EQ(awaited(folder, fmt::format("exit.{}", rank)), "9") << "replica " << rank;
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
  std::vector<std::string> command = Job{.size = 2, .what = "small"}.command(folder_);
  command.push_back("1.0");
  for (const std::string& word : {std::string(":"), std::string("-n"), std::string("1"), std::string(HONE_BIN_DIR) + "/mpi_worker", std::string("small"), folder_.path(), std::string("2000"), std::string("2.0")})
    command.push_back(word);
  Process mpirun(command, folder_ / "mpirun");
  for (int rank = 0; rank < 3; ++rank) {
    EXPECT_EQ(awaited(folder_, fmt::format("exit.{}", rank)), "9");
    EXPECT_NE(folder_.read(fmt::format("said.{}", rank)).find("different versions: 1.0 (protocol 1) on ranks 0, 1; 2.0 (protocol 1) on rank 2"), std::string::npos) << folder_.read(fmt::format("said.{}", rank));
  }
}

/// Two machines, as far as the network is concerned, for as long as it lives.
class TwoMachines {
 public:
  explicit TwoMachines(const TempFolder& folder) : folder_(folder), a_(fmt::format("hone-a-{}", getpid())), b_(fmt::format("hone-b-{}", getpid())) {
    const std::string script = fmt::format(
        "set -e; ip netns add {0}; ip netns add {1}; ip link add hone0 netns {0} type veth peer name hone1 netns {1};"
        "ip -n {0} addr add 10.77.0.1/24 dev hone0; ip -n {1} addr add 10.77.0.2/24 dev hone1;"
        "ip -n {0} link set hone0 up; ip -n {1} link set hone1 up; ip -n {0} link set lo up; ip -n {1} link set lo up;"
        "ip netns exec {0} unshare --uts true",
        a_, b_);
    is_up_ = Process({"sh", "-c", script}, folder / "network").wait() == 0;
    // What mpirun uses in place of ssh: HOST COMMAND...
    std::filesystem::permissions(folder.write("agent", fmt::format("#!/bin/sh\nshift\nexec ip netns exec {} unshare --uts sh -c \"hostname hone-b; $*\"\n", b_)), std::filesystem::perms::owner_all);
  }
  ~TwoMachines() { Process({"sh", "-c", fmt::format("ip netns del {}; ip netns del {}", a_, b_)}, folder_ / "network").wait(); }
  TwoMachines(const TwoMachines&) = delete;
  TwoMachines& operator=(const TwoMachines&) = delete;

  bool is_up() const { return is_up_; }
  /// Half of the replicas on each.
  std::vector<std::string> command(Job job) const {
    job.transport = "tcp";
    job.options = {"--host", "10.77.0.1:2,10.77.0.2:2", "--map-by", "node", "--mca", "plm_rsh_agent", folder_ / "agent",
                   "--mca", "oob_tcp_if_include", "10.77.0.0/24", "--mca", "btl_tcp_if_include", "10.77.0.0/24"};
    std::vector<std::string> words = {"ip", "netns", "exec", a_, "unshare", "--uts", "sh", "-c", "hostname hone-a; exec \"$@\"", "sh"};
    for (const std::string& word : job.command(folder_)) words.push_back(word);
    return words;
  }

 private:
  const TempFolder& folder_;
  const std::string a_, b_;
  bool is_up_ = false;
};

TEST_F(Mpi, ConformsBetweenMachines) {
  const TwoMachines machines(folder_);
  if (not machines.is_up()) GTEST_SKIP() << "network namespaces, which stand for machines, cannot be made here (root, iproute2): " << folder_.read("network");
  Process mpirun(machines.command({.size = 4, .what = "conform"}), folder_ / "mpirun");
  expect_all_well(folder_, 4);
}

}  // namespace
}  // namespace hone::test
