#include "runtime/train/scaling.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/diag.h"
#include "base/text.h"

namespace hone {

namespace {

/// How many of the times belong to the step: its own, and those of the bodies' steps.
std::size_t times_of(const plan::Step& step) {
  std::size_t count = 1;
  if (const auto* region = std::get_if<plan::RegionStep>(&step.what))
    for (const plan::Entry& body : region->bodies)
      for (const plan::Step& inner : body.steps) count += times_of(inner);  // plan::check limits the depth
  return count;
}

double bytes_of(const plan::Entry& entry, const plan::AllReduceStep& exchange) {
  double bytes = 0;
  for (const std::uint32_t buffer : exchange.buffers) {
    const plan::Buffer& exchanged = entry.buffers[buffer];
    bytes += static_cast<double>(element_count(exchanged.shape).value()) * static_cast<double>(size_of(exchanged.dtype));
  }
  return bytes;
}

}  // namespace

StepTimeline timeline_of(const plan::Entry& entry, std::span<const StepTime> times) {
  StepTimeline timeline;
  std::size_t next = 0;
  for (const plan::Step& step : entry.steps) {
    if (next >= times.size()) throw Error(Code::kPlanMismatch, fmt::format("{} has more steps than were measured", entry.name), {}, {"measure the same entry"});
    const StepTime& time = times[next];
    next += times_of(step);
    if (const auto* exchange = std::get_if<plan::AllReduceStep>(&step.what)) timeline.exchanges.push_back({timeline.compute, bytes_of(entry, *exchange)});
    else timeline.compute += time.runs > 0 ? time.seconds / static_cast<double>(time.runs) : 0;
  }
  return timeline;
}

ScaledStep simulate(const StepTimeline& step, std::int64_t devices, const Network& network) {
  const auto others = static_cast<double>(devices - 1);
  ScaledStep scaled{.devices = devices};
  double last = 0, ready = 0;  // when the exchanges so far are over, and when the last of them could begin
  for (const StepTimeline::Exchange& exchange : step.exchanges) {
    const double piece = exchange.bytes / static_cast<double>(devices);
    const double seconds = devices == 1 ? 0 : 2 * (network.latency + others * (network.message + piece / network.bytes_per_second));
    scaled.sent += 2 * others * piece;
    scaled.exchange += seconds;
    ready = exchange.ready;
    last = std::max(last, ready) + seconds;
  }
  scaled.in_turn = step.compute + scaled.exchange;
  scaled.overlapped = std::max(last, ready) + step.compute - ready;
  return scaled;
}

JsonLine scaling_json(const StepTimeline& step, std::span<const std::int64_t> devices, const Network& network) {
  JsonLine all;
  for (const std::int64_t count : devices) {
    const ScaledStep scaled = simulate(step, count, network);
    JsonLine one;
    one.number("sent_bytes", scaled.sent).number("exchange_ms", scaled.exchange * 1e3).number("in_turn_ms", scaled.in_turn * 1e3).number("overlapped_ms", scaled.overlapped * 1e3);
    all.object(std::to_string(count), one);
  }
  return all;
}

std::string scaling_text(const StepTimeline& step, std::span<const std::int64_t> devices, const Network& network) {
  std::string text = fmt::format("Simulated: steps measured here, on a network of {:.4g} GB/s and {:.4g} us\n{:>8} {:>12} {:>12} {:>12} {:>11} {:>12} {:>11}\n", network.bytes_per_second / 1e9, network.latency * 1e6,
                                 "devices", "sent a step", "exchanges", "in turn", "efficiency", "overlapped", "efficiency");
  for (const std::int64_t count : devices) {
    const ScaledStep scaled = simulate(step, count, network);
    text += fmt::format("{:>8} {:>12} {:>12} {:>12} {:>10.0f}% {:>12} {:>10.0f}%\n", count, human_bytes(static_cast<std::uint64_t>(scaled.sent)), human_duration(scaled.exchange), human_duration(scaled.in_turn),
                        100 * step.compute / scaled.in_turn, human_duration(scaled.overlapped), 100 * step.compute / scaled.overlapped);
  }
  return text;
}

}  // namespace hone
