// A simulated device whose events tell the time of a clock that a test sets: what takes how long is then no matter of the machine's load.
#pragma once

#include <map>

#include "runtime/device/sim_device.h"

namespace hone::test {

class ClockedDevice : public SimDevice {
 public:
  /// `milliseconds` outlives it.
  explicit ClockedDevice(const std::int64_t& milliseconds, std::uint64_t memory_bytes = 1 << 24) : SimDevice({.memory_bytes = memory_bytes}), milliseconds_(milliseconds) {}

  void record_time(Event event, Stream) override { times_[event] = milliseconds_; }
  std::optional<std::int64_t> time_between(Event from, Event to) override { return (times_.at(to) - times_.at(from)) * 1'000'000; }

 private:
  const std::int64_t& milliseconds_;
  std::map<Event, std::int64_t> times_;
};

}  // namespace hone::test
