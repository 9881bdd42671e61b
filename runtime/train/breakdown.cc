#include "runtime/train/breakdown.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <vector>

#include "base/text.h"
#include "runtime/library/rows.h"

namespace hone {

namespace {

constexpr std::size_t kLongest = 15;

/// In the order of StepTime::Kind; regions themselves are overhead.
constexpr std::array<std::string_view, 5> kKindNames = {"kernels", "library", "host", "copies", "overhead"};

/// Seconds a step by kind.
std::array<double, 5> sums_of(std::span<const StepTime> times, const BenchResult& result) {
  std::array<double, 5> sums = {};
  double all = 0;
  for (const StepTime& time : times) {
    if (time.kind == StepTime::Kind::kRegion) continue;
    sums[static_cast<std::size_t>(time.kind)] += time.seconds;
    all += time.seconds;
  }
  sums.back() = std::max(0.0, result.measured_seconds - all);
  for (double& sum : sums) sum /= static_cast<double>(result.measured_steps);
  return sums;
}

/// Lines of what took longest, of times that belong to steps.
std::string longest_text(std::vector<StepTime> times, const BenchResult& result) {
  std::stable_sort(times.begin(), times.end(), [](const StepTime& a, const StepTime& b) { return a.seconds > b.seconds; });
  if (times.size() > kLongest) times.resize(kLongest);
  const double steps = static_cast<double>(result.measured_steps);
  std::string text;
  for (const StepTime& time : times)
    text += fmt::format("{:5.1f} %  {:>8}  x{:<5} {:24}{}{}\n", 100 * time.seconds / result.measured_seconds, human_duration(time.seconds / steps),
                        (time.runs + result.measured_steps - 1) / result.measured_steps, printable(time.what), time.origin.empty() ? "" : "  ", printable(time.origin, 120));
  return text;
}

/// The library calls of the steps whose results depend on the number of threads; every other step gives the same bits with any number.
std::string thread_sums_text(const std::map<std::string, StepTime>& by_name) {
  std::string text;
  for (const auto& [name, time] : by_name) {
    const LibraryRow* row = time.kind == StepTime::Kind::kLibrary ? find_library_row(name) : nullptr;
    if (row != nullptr and not row->thread_sums.empty()) text += fmt::format("  {}: sums {}\n", name, row->thread_sums);
  }
  return "\nlast bits that may differ with the number of threads:\n" + (text.empty() ? "  none\n" : text);
}

}  // namespace

std::string breakdown_text(std::span<const StepTime> times, const BenchResult& result) {
  if (result.measured_steps == 0) return "";
  const std::array<double, 5> sums = sums_of(times, result);
  std::string text = fmt::format("a step of {}:", human_duration(result.measured_seconds / static_cast<double>(result.measured_steps)));
  for (std::size_t i = 0; i < sums.size(); ++i) text += fmt::format("{} {} {}", i == 0 ? "" : ",", human_duration(sums[i]), kKindNames[i]);
  std::vector<StepTime> steps;
  std::map<std::string, StepTime> by_name;
  for (const StepTime& time : times) {
    if (time.kind == StepTime::Kind::kRegion or time.runs == 0) continue;
    steps.push_back(time);
    StepTime& sum = by_name[time.what];
    sum.what = time.what;
    sum.kind = time.kind;
    sum.runs += time.runs;
    sum.seconds += time.seconds;
  }
  std::vector<StepTime> names;
  for (const auto& [name, sum] : by_name) names.push_back(sum);
  return text + "\n\nby kernel and library call:\n" + longest_text(std::move(names), result) + "\nby step:\n" + longest_text(std::move(steps), result) + thread_sums_text(by_name);
}

JsonLine breakdown_json(std::span<const StepTime> times, const BenchResult& result) {
  JsonLine line;
  if (result.measured_steps == 0) return line;
  const std::array<double, 5> sums = sums_of(times, result);
  for (std::size_t i = 0; i < sums.size(); ++i) line.number(fmt::format("{}_ms", kKindNames[i]), sums[i] * 1e3);
  return line;
}

}  // namespace hone
