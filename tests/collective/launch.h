// Programs in several processes, started by mpirun on one machine or on two. mpirun is told to let the others live when one dies: Hone itself must notice.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "tests/support/temp_folder.h"

namespace hone::test {

constexpr std::chrono::seconds kPatience{180};

/// Why nothing here can be started by mpirun, or nothing.
std::string no_mpi();

/// A program with all its children. What it says goes to a file.
class Process {
 public:
  Process(std::vector<std::string> words, const std::string& says);
  /// mpirun ends what it has started.
  ~Process();
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;

  /// Its exit code.
  int wait();
  /// Waits for its end, so long at most.
  bool ends_within(std::chrono::milliseconds time) const;

 private:
  pid_t process_ = 0;
};

class TwoMachines;

/// mpirun with what it starts.
struct Launch {
  int size = 3;
  std::vector<std::string> program = {};
  std::string transport = "vader";  // Open MPI's name of shared memory
  std::vector<std::string> options = {};
  const TwoMachines* between = nullptr;

  std::vector<std::string> words() const;
};

/// Two machines, as far as the network is concerned, for as long as it lives.
class TwoMachines {
 public:
  explicit TwoMachines(const TempFolder& folder);
  ~TwoMachines();
  TwoMachines(const TwoMachines&) = delete;
  TwoMachines& operator=(const TwoMachines&) = delete;

  /// Empty if they are up.
  std::string why_not() const;
  /// Half of the replicas on each.
  std::vector<std::string> words(Launch launch) const;

 private:
  const TempFolder& folder_;
  const std::string a_, b_;
  bool is_up_ = false;
};

/// The file's content, once it is there, which it must be in time.
std::optional<std::string> awaited(const TempFolder& folder, const std::string& name, std::chrono::milliseconds patience = kPatience);

/// Waits until the run has left a checkpoint, whichever: on a fast machine the first ones are soon gone again.
bool awaited_checkpoint(const TempFolder& folder, const std::string& run, std::chrono::milliseconds patience = kPatience);

/// A tool of this build ("hone-run ...") in several processes, in `folder`. NAME.sh there starts it and keeps what mpirun makes one for all: each rank's own words and exit code.
class Ranks {
 public:
  /// `others` are the commands of single ranks that differ from that of all.
  Ranks(const TempFolder& folder, std::string name, Launch launch, const std::string& command, const std::map<int, std::string>& others = {});
  /// Kills those that still run.
  ~Ranks();
  Ranks(const Ranks&) = delete;
  Ranks& operator=(const Ranks&) = delete;

  int size() const { return size_; }
  /// Of the tool itself. Waits until it has been started; 0 where it is not.
  pid_t process(int rank) const;
  /// Nothing where it does not end in time.
  std::optional<int> exit_code(int rank, std::chrono::milliseconds patience = kPatience) const;
  bool has_ended(int rank) const;
  std::string said(int rank) const { return folder_.read(file("said", rank)); }
  /// Of all of them and of mpirun.
  std::string all_said() const;
  /// All end with 0, and say nothing but what the first one may say.
  void expect_all_well() const;

 private:
  std::string file(const char* what, int rank) const;

  const TempFolder& folder_;
  const std::string name_;
  const int size_;
  std::optional<Process> mpirun_;
};

}  // namespace hone::test
