#include "tests/collective/launch.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <thread>
#include <utility>

#include "base/text.h"
#include "runtime/collective/mpi_communicator.h"

extern char** environ;

namespace hone::test {

using std::chrono::steady_clock;
using namespace std::chrono_literals;

namespace {

bool is_in_path(const std::string& program) {
  const char* path = std::getenv("PATH");
  for (const std::string& folder : split(path == nullptr ? "" : path, ':'))
    if (access((folder + "/" + program).c_str(), X_OK) == 0) return true;
  return false;
}

/// One thread each, as in all tests of the tools. What is written is renamed, since others look at it.
std::string script(const TempFolder& folder, const std::string& name, const std::string& command, const std::map<int, std::string>& others) {
  std::string cases;
  for (const auto& [rank, other] : others) cases += fmt::format("{}) set -- {};;\n", rank, other);
  return fmt::format(
      "#!/bin/sh\ncd {0}\nrank=$OMPI_COMM_WORLD_RANK\nexport HONE_THREADS=1\n"
      "case $rank in\n{3}*) set -- {2};;\nesac\n"
      "tool=$1; shift\n"
      "{4}/$tool \"$@\" >{1}.out.$rank 2>{1}.said.$rank &\n"
      "echo $! >{1}.process.$rank.new; mv {1}.process.$rank.new {1}.process.$rank\n"
      "wait $!; code=$?\n"
      "echo $code >{1}.exit.$rank.new; mv {1}.exit.$rank.new {1}.exit.$rank\n"
      "exit $code\n",
      folder.path(), name, command, cases, HONE_BIN_DIR);
}

}  // namespace

std::string no_mpi() {
#ifdef __SANITIZE_ADDRESS__
  return "Open MPI and its plugins have not been tried with AddressSanitizer";
#endif
#ifdef __SANITIZE_THREAD__
  return "ThreadSanitizer does not know what Open MPI's own threads do";
#endif
  if (not has_mpi()) return "this build has no MPI";
  return is_in_path("mpirun") ? "" : "there is no mpirun (Debian: openmpi-bin)";
}

Process::Process(std::vector<std::string> words, const std::string& says) {
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

Process::~Process() {
  if (process_ == 0) return;
  kill(process_, SIGTERM);
  wait();
}

int Process::wait() {
  int status = 0;
  waitpid(std::exchange(process_, 0), &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

bool Process::ends_within(std::chrono::milliseconds time) const {
  for (const auto end = steady_clock::now() + time;; std::this_thread::sleep_for(5ms)) {
    siginfo_t state{};
    if (process_ == 0 or waitid(P_PID, static_cast<id_t>(process_), &state, WEXITED | WNOHANG | WNOWAIT) != 0 or state.si_pid != 0) return true;
    if (steady_clock::now() >= end) return false;
  }
}

std::vector<std::string> Launch::words() const {
  if (between != nullptr) return between->words(*this);
  std::vector<std::string> words = {"mpirun", "-q", "--enable-recovery", "--oversubscribe", "--bind-to", "none", "--mca", "btl", transport + ",self"};
  words.insert(words.end(), options.begin(), options.end());
  words.insert(words.end(), {"-n", std::to_string(size)});
  words.insert(words.end(), program.begin(), program.end());
  return words;
}

TwoMachines::TwoMachines(const TempFolder& folder) : folder_(folder), a_(fmt::format("hone-a-{}", getpid())), b_(fmt::format("hone-b-{}", getpid())) {
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

TwoMachines::~TwoMachines() { Process({"sh", "-c", fmt::format("ip netns del {}; ip netns del {}", a_, b_)}, folder_ / "network").wait(); }

std::string TwoMachines::why_not() const {
  return is_up_ ? "" : "network namespaces, which stand for machines, cannot be made here (root, iproute2): " + folder_.read("network");
}

std::vector<std::string> TwoMachines::words(Launch launch) const {
  launch.between = nullptr;
  launch.transport = "tcp";
  const std::string each = std::to_string((launch.size + 1) / 2);
  launch.options = {"--host", "10.77.0.1:" + each + ",10.77.0.2:" + each, "--map-by", "node", "--mca", "plm_rsh_agent", folder_ / "agent",
                    "--mca", "oob_tcp_if_include", "10.77.0.0/24", "--mca", "btl_tcp_if_include", "10.77.0.0/24"};
  std::vector<std::string> words = {"ip", "netns", "exec", a_, "unshare", "--uts", "sh", "-c", "hostname hone-a; exec \"$@\"", "sh"};
  for (const std::string& word : launch.words()) words.push_back(word);
  return words;
}

std::optional<std::string> awaited(const TempFolder& folder, const std::string& name, std::chrono::milliseconds patience) {
  for (const auto end = steady_clock::now() + patience; not std::filesystem::exists(folder / name); std::this_thread::sleep_for(5ms))
    if (steady_clock::now() >= end) return std::nullopt;
  return folder.read(name);
}

bool awaited_checkpoint(const TempFolder& folder, const std::string& run, std::chrono::milliseconds patience) {
  for (const auto deadline = steady_clock::now() + patience;; std::this_thread::sleep_for(5ms)) {
    std::error_code problem;  // folders come and go
    for (std::filesystem::directory_iterator entry(folder / run, problem), end; not problem and entry != end; entry.increment(problem))
      if (entry->path().filename().string().starts_with("checkpoint-")) return true;
    if (steady_clock::now() >= deadline) return false;
  }
}

Ranks::Ranks(const TempFolder& folder, std::string name, Launch launch, const std::string& command, const std::map<int, std::string>& others)
    : folder_(folder), name_(std::move(name)), size_(launch.size) {
  for (int rank = 0; rank < size_; ++rank)
    for (const char* what : {"process", "exit", "said", "out"}) std::filesystem::remove(folder_ / file(what, rank));
  const std::string path = folder.write(name_ + ".sh", script(folder, name_, command, others));
  std::filesystem::permissions(path, std::filesystem::perms::owner_all);
  launch.program = {path};
  mpirun_.emplace(launch.words(), folder / (name_ + ".mpirun"));
}

Ranks::~Ranks() {
  for (int rank = 0; rank < size_; ++rank)
    if (const std::optional<std::string> process = awaited(folder_, file("process", rank), 0ms); process and not has_ended(rank)) kill(std::stoi(*process), SIGKILL);
  (void)mpirun_->ends_within(10s);
}

std::string Ranks::file(const char* what, int rank) const { return fmt::format("{}.{}.{}", name_, what, rank); }

pid_t Ranks::process(int rank) const {
  const std::optional<std::string> process = awaited(folder_, file("process", rank));
  return process ? std::stoi(*process) : 0;
}

std::optional<int> Ranks::exit_code(int rank, std::chrono::milliseconds patience) const {
  const std::optional<std::string> code = awaited(folder_, file("exit", rank), patience);
  return code ? std::optional(std::stoi(*code)) : std::nullopt;
}

bool Ranks::has_ended(int rank) const { return std::filesystem::exists(folder_ / file("exit", rank)); }

std::string Ranks::all_said() const {
  std::string all;
  for (int rank = 0; rank < size_; ++rank) all += fmt::format("rank {} said:\n{}\n", rank, said(rank));
  return all + "mpirun said:\n" + folder_.read(name_ + ".mpirun");
}

void Ranks::expect_all_well() const {
  for (int rank = 0; rank < size_; ++rank) {
    EXPECT_EQ(exit_code(rank), 0) << "rank " << rank << " of " << size_ << "\n" << all_said();
    if (rank > 0) EXPECT_EQ(said(rank) + folder_.read(file("out", rank)), "") << "rank " << rank << " of " << size_;
  }
}

}  // namespace hone::test
