#include "runtime/train/roofline.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <vector>

#include "base/text.h"
#include "runtime/device/device.h"

namespace hone {

namespace {

constexpr std::size_t kMostKernels = 25, kMostNodes = 10;

/// Seconds that are needed at least.
struct Demand {
  double memory = 0, arithmetic = 0;
  double seconds() const { return std::max(memory, arithmetic); }
};

Demand need_of(const StepTime& time, const MachinePeak& peak) { return {.memory = time.bytes / peak.bytes_per_second, .arithmetic = time.flops / peak.flops_per_second}; }

/// Is there work that was counted, and a peak to hold it against?
bool is_known(const StepTime& time, const Roof& roof) { return roof.peak and (time.flops > 0 or time.bytes > 0); }

/// "memory": what it would wait for at the peak.
std::string_view limit_of(const StepTime& time, const Roof& roof) {
  if (not is_known(time, roof)) return "";
  const Demand need = need_of(time, *roof.peak);
  return need.memory >= need.arithmetic ? "memory" : "arithmetic";
}

std::string share_text(const StepTime& time, const Roof& roof) {
  return is_known(time, roof) and time.seconds > 0 ? fmt::format("{:.0f} %", 100 * need_of(time, *roof.peak).seconds() / time.seconds) : "-";
}

/// Seconds beyond what it needs at the peak: all, where that is not known.
double lost(const StepTime& time, const Roof& roof) { return roof.peak ? time.seconds - std::min(time.seconds, need_of(time, *roof.peak).seconds()) : time.seconds; }

std::string roof_text(const Roof& roof) {
  const std::string_view launches = roof.on_device ? "; a step's time is from its launch until the host has waited for it" : "";
  if (not roof.peak) return fmt::format("\nroofline: what {} can do at most is not known, so no share of it is told{}\n", roof.of, launches);
  return fmt::format("\nroofline: {} can move {:.1f} GB/s from and to memory, and compute {:.1f} GFLOP/s (f32){}{}\n", roof.of, roof.peak->bytes_per_second * 1e-9, roof.peak->flops_per_second * 1e-9,
                     roof.on_device ? ", by its clocks" : "", launches);
}

std::string rate_text(double amount, double seconds) { return amount > 0 and seconds > 0 ? fmt::format("{:.1f}", amount / seconds * 1e-9) : "-"; }

/// The steps that ran, bodies' ones included, regions themselves not.
std::vector<StepTime> that_ran(std::span<const StepTime> times) {
  std::vector<StepTime> steps;
  for (const StepTime& time : times)
    if (time.kind != StepTime::Kind::kRegion and time.runs > 0) steps.push_back(time);
  return steps;
}

std::vector<StepTime> by_name(const std::vector<StepTime>& steps) {
  std::map<std::string, StepTime> sums;
  for (const StepTime& time : steps) {
    StepTime& sum = sums[time.what];
    sum.what = time.what;
    sum.runs += time.runs;
    sum.seconds += time.seconds;
    sum.flops += time.flops;
    sum.bytes += time.bytes;
  }
  std::vector<StepTime> names;
  for (const auto& [name, sum] : sums) names.push_back(sum);
  return names;
}

template <typename Key>
void keep_largest(std::vector<StepTime>& times, std::size_t most, const Key& key) {
  std::stable_sort(times.begin(), times.end(), [&](const StepTime& a, const StepTime& b) { return key(a) > key(b); });
  if (times.size() > most) times.resize(most);
}

/// What a step is to the user: the nodes whose work it does.
std::string nodes_text(const StepTime& time) { return printable(time.nodes.empty() ? time.origin : join(time.nodes, " + "), 120); }

}  // namespace

Roof roof_of(const Session& session) {
  if (const Device* device = session.device(); device != nullptr) return {.of = device->name(), .peak = device->peak(), .on_device = true};
  const int threads = session.threads();
  return {.of = fmt::format("{} thread{} of this machine", threads, threads == 1 ? "" : "s"), .peak = measure_peak(threads)};
}

std::string roofline_text(std::span<const StepTime> times, const BenchResult& result, const Roof& roof) {
  if (result.measured_steps == 0) return "";
  const double steps = static_cast<double>(result.measured_steps);
  std::string text = roof_text(roof);
  std::vector<StepTime> ran = that_ran(times), kernels = by_name(ran);
  keep_largest(kernels, kMostKernels, [](const StepTime& time) { return time.seconds; });
  text += fmt::format("{:>8}  {:>8}  {:<6} {:>8}  {:>8}  {:>8}  {:<10}  {}\n", "of step", "time", "calls", "GB/s", "GFLOP/s", "of peak", "limit", "kernel or library call");
  for (const StepTime& time : kernels)
    text += fmt::format("{:>6.1f} %  {:>8}  x{:<5} {:>8}  {:>8}  {:>8}  {:<10}  {}\n", 100 * time.seconds / result.measured_seconds, human_duration(time.seconds / steps),
                        (time.runs + result.measured_steps - 1) / result.measured_steps, rate_text(time.bytes, time.seconds), rate_text(time.flops, time.seconds), share_text(time, roof),
                        limit_of(time, roof), printable(time.what));
  keep_largest(ran, kMostNodes, [&](const StepTime& time) { return lost(time, roof); });
  text += fmt::format("\nworth looking at, because most time goes there{}:\n{:>8}  {:>8}  {:>8}  {:<24}  {}\n", roof.peak ? " beyond what is needed at the peak" : "", "beyond", "time", "of peak", "kernel", "nodes");
  for (const StepTime& time : ran)
    text += fmt::format("{:>8}  {:>8}  {:>8}  {:<24}  {}\n", roof.peak ? human_duration(lost(time, roof) / steps) : "-", human_duration(time.seconds / steps), share_text(time, roof), printable(time.what), nodes_text(time));
  return text + (roof.peak ? "more than 100 % of the peak: the data came out of a cache; -: no work that is counted\n" : "");
}

JsonLine roofline_json(std::span<const StepTime> times, const BenchResult& result, const Roof& roof) {
  JsonLine line;
  if (result.measured_steps == 0) return line;
  double bytes = 0, flops = 0, beyond = 0, seconds = 0;
  for (const StepTime& time : that_ran(times)) {
    bytes += time.bytes;
    flops += time.flops;
    seconds += time.seconds;
    beyond += lost(time, roof);
  }
  const double steps = static_cast<double>(result.measured_steps);
  if (roof.peak) line.number("peak_gb_per_s", roof.peak->bytes_per_second * 1e-9).number("peak_gflop_per_s", roof.peak->flops_per_second * 1e-9);
  line.number("gb_per_step", bytes / steps * 1e-9).number("gflop_per_step", flops / steps * 1e-9);
  if (roof.peak) line.number("share_of_peak", (seconds - beyond) / result.measured_seconds);
  return line;
}

}  // namespace hone
