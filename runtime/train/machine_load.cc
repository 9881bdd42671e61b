#include "runtime/train/machine_load.h"

#include <unistd.h>

#include <algorithm>
#include <ctime>
#include <fstream>
#include <numeric>
#include <sstream>
#include <string>
#include <vector>

namespace hone {

namespace {

double clock_seconds(clockid_t clock) {
  timespec now{};
  clock_gettime(clock, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

double ticks_to_seconds(double ticks) { return ticks / static_cast<double>(sysconf(_SC_CLK_TCK)); }

/// Seconds that all cores together were busy since the machine started: proc(5), /proc/stat, of user nice system idle iowait irq softirq steal all but idle
/// and iowait.
std::optional<double> machine_seconds() {
  std::ifstream file("/proc/stat");
  std::string word;
  std::vector<double> ticks(8);
  file >> word;
  for (double& value : ticks) file >> value;
  if (not file) return std::nullopt;
  return ticks_to_seconds(std::accumulate(ticks.begin(), ticks.end(), 0.0) - ticks[3] - ticks[4]);
}

}  // namespace

double seconds_since_process_start() {
  std::ifstream file("/proc/self/stat");
  std::string line;
  if (not std::getline(file, line) or line.rfind(')') == std::string::npos) return 0;
  std::istringstream fields(line.substr(line.rfind(')') + 1));  // field 3 on; the name before may hold anything
  std::string field;
  for (int i = 3; i <= 22; ++i) fields >> field;  // 22: starttime, in ticks since the machine started
  double ticks = 0;
  std::istringstream(field) >> ticks;
  return fields ? std::max(0.0, clock_seconds(CLOCK_BOOTTIME) - ticks_to_seconds(ticks)) : 0;
}

std::uint64_t peak_memory_bytes() {
  std::ifstream status("/proc/self/status");
  std::string word;
  std::uint64_t kibibytes = 0;
  while (status >> word)
    if (word == "VmHWM:") return status >> kibibytes ? kibibytes << 10 : 0;
  return 0;
}

OtherLoad::OtherLoad() : machine_(machine_seconds()), own_(clock_seconds(CLOCK_PROCESS_CPUTIME_ID)), begin_(clock_seconds(CLOCK_MONOTONIC)) {}

double OtherLoad::cores() const {
  const std::optional<double> machine = machine_seconds();
  const double elapsed = clock_seconds(CLOCK_MONOTONIC) - begin_;
  if (not machine or not machine_ or elapsed <= 0) return 0;
  return std::max(0.0, (*machine - *machine_ - (clock_seconds(CLOCK_PROCESS_CPUTIME_ID) - own_)) / elapsed);
}

}  // namespace hone
