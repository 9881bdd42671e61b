// One replica of a test, started by mpirun: mpi_worker WHAT FOLDER [TIMEOUT_MS [VERSION]]. What it has to say goes to FOLDER/said.RANK, its exit code to FOLDER/exit.RANK: mpirun's own exit
// code is one for all. WHAT is
//   conform                                every case of conformance.h
//   conform_nested                         the same, of two replicas in each process
//   part                                   meet the others, and part from them
//   all_reduce, small, broadcast, barrier  over and over, until an Error comes. FOLDER/ready.RANK, with the process's number, says that it may be killed or stopped
//   fail                                   the same, and replica 1 fails
//   late                                   replica 1 does not come at all
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "base/diag.h"
#include "runtime/collective/mpi_communicator.h"
#include "runtime/collective/nested_communicators.h"
#include "tests/collective/conformance.h"

namespace hone::test {
namespace {

struct Arguments {
  std::string what, folder;
  int timeout_ms = 20'000;
  std::string version = "1.2.3";
};

Arguments parse(int count, char** words) {
  if (count < 3) throw std::runtime_error("usage: mpi_worker WHAT FOLDER [TIMEOUT_MS [VERSION]]");
  Arguments arguments = {words[1], words[2]};
  if (count > 3) arguments.timeout_ms = std::stoi(words[3]);
  if (count > 4) arguments.version = words[4];
  return arguments;
}

/// All at once, since others look at it.
void write(const std::string& path, const std::string& text) {
  std::ofstream(path + ".new") << text;
  std::filesystem::rename(path + ".new", path);
}

/// Without MPI: word that a replica has failed may overtake what it sent before, so none may fail while another is still in the case before.
void meet_in(const std::string& folder, const Communicator& all) {
  write(fmt::format("{}/here.{}", folder, all.rank()), "");
  for (int rank = 0; rank < all.size(); ++rank)
    while (not std::filesystem::exists(fmt::format("{}/here.{}", folder, rank))) std::this_thread::sleep_for(std::chrono::milliseconds(1));
}

int conform(Communicator& all, const std::string& folder) {
  int wrong = 0;
  for (const ConformanceCase& each : conformance_cases()) {
    if (&each == &conformance_cases().back()) meet_in(folder, all);
    if (const std::string problem = each.run(all); not problem.empty()) {
      std::cerr << fmt::format("replica {} of {}: {}: {}\n", all.rank(), all.size(), each.name, problem);
      ++wrong;
    }
  }
  return wrong == 0 ? 0 : 1;
}

int conform_nested(Communicator& processes, const std::string& folder) {
  NestedCommunicators nested(processes, 2);
  int wrong[2] = {};
  std::thread second([&] { wrong[1] = conform(nested.of(1), folder); });
  wrong[0] = conform(nested.of(0), folder);
  second.join();
  return std::max(wrong[0], wrong[1]);
}

/// Until an Error comes. The numbers are small, so that sums are exact.
void repeat(Communicator& all, const Arguments& arguments) {
  const std::int64_t count = arguments.what == "small" ? 10 : 1'000'000;
  std::vector<float> elements(static_cast<std::size_t>(count), 1);
  const ExchangedTensor tensor = {DType::kF32, count, elements.data()};
  for (int round = 0;; ++round) {
    if (round == 20) write(fmt::format("{}/ready.{}", arguments.folder, all.rank()), fmt::format("{}", getpid()));
    if (arguments.what == "fail" and all.rank() == 1 and round == 30) {
      all.fail("its disk is full");
      throw Error(Code::kFileWrite, "the disk is full");
    }
    if (arguments.what == "broadcast") all.broadcast({&tensor, 1}, round % all.size());
    else if (arguments.what == "barrier") all.barrier();
    else all.all_reduce({&tensor, 1});
    if (round % 10 == 9) elements.assign(elements.size(), 1);
  }
}

void say(const std::string& folder, int rank, const std::string& said, int code) {
  if (not said.empty()) std::cerr << said + "\n" << std::flush;
  write(fmt::format("{}/said.{}", folder, rank), said);
  write(fmt::format("{}/exit.{}", folder, rank), fmt::format("{}", code));
}

int run(const Arguments& arguments, int rank) {
  if (arguments.what == "late" and rank == 1) {
    write(arguments.folder + "/ready.1", fmt::format("{}", getpid()));
    std::this_thread::sleep_for(std::chrono::minutes(5));
  }
  const auto all = connect_with_mpi({.timeout = std::chrono::milliseconds(arguments.timeout_ms), .version = arguments.version, .when_stuck = [&](const Error& error) {
                                       say(arguments.folder, rank, error.what(), error.exit_code());
                                       std::_Exit(error.exit_code());
                                     }});
  if (arguments.what == "conform") return conform(*all, arguments.folder);
  if (arguments.what == "conform_nested") return conform_nested(*all, arguments.folder);
  if (arguments.what == "part") return 0;
  repeat(*all, arguments);
  return 0;
}

}  // namespace
}  // namespace hone::test

int main(int count, char** words) {
  const int rank = hone::launched_rank().value_or(hone::LaunchedRank{}).rank;
  int code = 1;
  std::string said;
  const hone::test::Arguments arguments = hone::test::parse(count, words);
  try {
    code = hone::test::run(arguments, rank);
  } catch (const hone::Error& error) {
    code = error.exit_code();
    said = error.what();
  } catch (const std::exception& error) {
    said = error.what();
  }
  hone::test::say(arguments.folder, rank, said, code);
  if (hone::mpi_is_unfinished()) std::_Exit(code);
  return code;
}
