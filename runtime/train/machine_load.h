// What else the machine does, and since when this process runs: what a measurement must say about itself.
#pragma once

#include <cstdint>
#include <optional>

namespace hone {

/// Seconds from the start of this process (before any second start of itself) until now, to the hundredth that the system keeps; 0 if it does not tell.
double seconds_since_process_start();

/// The most memory that this process has had at a time, files that it mapped included. What getrusage() tells counts the program that started it, too,
/// as it was before it became this one. 0 if the system does not tell.
std::uint64_t peak_memory_bytes();

/// How many cores other processes use, in the mean, from when this object was made. Time that a hypervisor takes away counts as theirs.
class OtherLoad {
 public:
  OtherLoad();
  /// 0 if the system does not tell.
  double cores() const;

 private:
  std::optional<double> machine_;  // seconds that all cores were busy
  double own_ = 0, begin_ = 0;
};

}  // namespace hone
