// What a step would take on more devices than there are: its measured steps, and exchanges over a network of given speed.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "runtime/plan/plan.h"
#include "runtime/step_times.h"
#include "runtime/train/json_line.h"

namespace hone {

struct Network {
  double bytes_per_second = 1.25e9;  ///< each device's, in each direction: 10 Gbit/s
  double latency = 20e-6;            ///< seconds until the first byte of a message arrives
  double message = 1e-6;             ///< seconds of a device's time that each message takes
};

/// A step as the network sees it.
struct StepTimeline {
  struct Exchange {
    double ready = 0;  ///< seconds of computing before it
    double bytes = 0;
  };
  std::vector<Exchange> exchanges;  ///< in their order
  double compute = 0;               ///< seconds of all steps that compute
};

/// From the times of replica_step's steps, measured on one device, in their order. Throws kPlanMismatch for times of another entry.
StepTimeline timeline_of(const plan::Entry& entry, std::span<const StepTime> times);

struct ScaledStep {
  std::int64_t devices = 1;
  double sent = 0;        ///< bytes that each device sends in a step
  double exchange = 0;    ///< seconds of all exchanges
  double in_turn = 0;     ///< seconds of a step whose computing waits for every exchange
  double overlapped = 0;  ///< seconds if computing went on meanwhile: only what comes behind the last exchange waits for it
};

/// Every device has a batch as large as the measured one. An exchange of n bytes among d devices is a reduce_scatter and an all_gather, in each of which a device sends d - 1
/// messages of n / d bytes: 2 * (latency + (d - 1) * (message + n / d / bytes_per_second)).
ScaledStep simulate(const StepTimeline& step, std::int64_t devices, const Network& network);

/// By number of devices: bytes sent, and milliseconds.
JsonLine scaling_json(const StepTimeline& step, std::span<const std::int64_t> devices, const Network& network);
std::string scaling_text(const StepTimeline& step, std::span<const std::int64_t> devices, const Network& network);

}  // namespace hone
