#include "runtime/train/roofline.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <vector>

#include "base/text.h"

namespace hone {

namespace {

constexpr std::size_t kMostKernels = 25, kMostNodes = 10;

/// Seconds that the machine needs at least.
struct Demand {
  double memory = 0, arithmetic = 0;
  double seconds() const { return std::max(memory, arithmetic); }
};

Demand need_of(const StepTime& time, const MachinePeak& peak) { return {.memory = time.bytes / peak.bytes_per_second, .arithmetic = time.flops / peak.flops_per_second}; }

bool is_known(const StepTime& time) { return time.flops > 0 or time.bytes > 0; }

/// "memory": what it would wait for at the peak. Nothing for what does no work that was counted.
std::string_view limit_of(const StepTime& time, const MachinePeak& peak) {
  const Demand need = need_of(time, peak);
  return not is_known(time) ? "" : need.memory >= need.arithmetic ? "memory" : "arithmetic";
}

std::string share_text(const StepTime& time, const MachinePeak& peak) {
  return is_known(time) and time.seconds > 0 ? fmt::format("{:.0f} %", 100 * need_of(time, peak).seconds() / time.seconds) : "-";
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

std::string roofline_text(std::span<const StepTime> times, const BenchResult& result, const MachinePeak& peak, int threads) {
  if (result.measured_steps == 0) return "";
  const double steps = static_cast<double>(result.measured_steps);
  std::string text = fmt::format("\nroofline: {} thread{} of this machine move {:.1f} GB/s from and to memory, and compute {:.1f} GFLOP/s (f32)\n", threads, threads == 1 ? "" : "s",
                                 peak.bytes_per_second * 1e-9, peak.flops_per_second * 1e-9);
  std::vector<StepTime> ran = that_ran(times), kernels = by_name(ran);
  keep_largest(kernels, kMostKernels, [](const StepTime& time) { return time.seconds; });
  text += fmt::format("{:>8}  {:>8}  {:<6} {:>8}  {:>8}  {:>8}  {:<10}  {}\n", "of step", "time", "calls", "GB/s", "GFLOP/s", "of peak", "limit", "kernel or library call");
  for (const StepTime& time : kernels)
    text += fmt::format("{:>6.1f} %  {:>8}  x{:<5} {:>8}  {:>8}  {:>8}  {:<10}  {}\n", 100 * time.seconds / result.measured_seconds, human_duration(time.seconds / steps),
                        (time.runs + result.measured_steps - 1) / result.measured_steps, rate_text(time.bytes, time.seconds), rate_text(time.flops, time.seconds), share_text(time, peak),
                        limit_of(time, peak), printable(time.what));
  const auto lost = [&](const StepTime& time) { return time.seconds - std::min(time.seconds, need_of(time, peak).seconds()); };
  keep_largest(ran, kMostNodes, lost);
  text += fmt::format("\nworth looking at, because most time goes there beyond what the machine needs:\n{:>8}  {:>8}  {:>8}  {:<24}  {}\n", "beyond", "time", "of peak", "kernel", "nodes");
  for (const StepTime& time : ran)
    text += fmt::format("{:>8}  {:>8}  {:>8}  {:<24}  {}\n", human_duration(lost(time) / steps), human_duration(time.seconds / steps), share_text(time, peak), printable(time.what), nodes_text(time));
  return text + "more than 100 % of the peak: the data came out of a cache; -: no work that is counted\n";
}

JsonLine roofline_json(std::span<const StepTime> times, const BenchResult& result, const MachinePeak& peak) {
  JsonLine line;
  if (result.measured_steps == 0) return line;
  double bytes = 0, flops = 0, need = 0;
  for (const StepTime& time : that_ran(times)) {
    bytes += time.bytes;
    flops += time.flops;
    need += std::min(time.seconds, need_of(time, peak).seconds());
  }
  const double steps = static_cast<double>(result.measured_steps);
  line.number("peak_gb_per_s", peak.bytes_per_second * 1e-9).number("peak_gflop_per_s", peak.flops_per_second * 1e-9);
  line.number("gb_per_step", bytes / steps * 1e-9).number("gflop_per_step", flops / steps * 1e-9).number("share_of_peak", need / result.measured_seconds);
  return line;
}

}  // namespace hone
