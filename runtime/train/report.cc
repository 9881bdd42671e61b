#include "runtime/train/report.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/files.h"
#include "base/text.h"
#include "runtime/train/progress.h"
#include "runtime/train/run_log.h"

namespace hone {

namespace {

std::string speed_line(const RunReport& report) {
  if (report.steps == 0 or report.seconds <= 0) return "";
  const double steps = static_cast<double>(report.steps) / report.seconds, samples = static_cast<double>(report.samples) / report.seconds;
  const std::string text = fmt::format("Speed: {:.{}f} steps/s", steps, steps < 10 ? 2 : 0);
  return report.samples == 0 ? text + "\n" : text + fmt::format(", {} samples/s\n", grouped(std::llround(samples)));
}

std::string best_line(const RunReport& report) {
  return report.best ? fmt::format("Best epoch: {}, {}\n", report.best->epoch, metric_text(report.best->name, report.best->value)) : "";
}

std::string memory_line(const RunReport& report) {
  if (report.peak_bytes == 0 and not report.planned) return "";
  const std::string peak = report.peak_bytes == 0 ? "" : human_bytes(report.peak_bytes) + " at the peak";
  return fmt::format("Memory: {}{}{}\n", peak, peak.empty() or not report.planned ? "" : "; planned ", report.planned ? planned_text(*report.planned) : "");
}

std::string files_line(const RunReport& report) {
  if (report.run_dir.empty()) return "";
  const std::vector<std::string> all = list_folder(report.run_dir);
  const bool checkpoints = std::any_of(all.begin(), all.end(), [](const std::string& name) { return name.starts_with("checkpoint-"); });
  std::string names = checkpoints ? "checkpoints" : "";
  for (const char* name : kRunFiles)
    if (file_exists(report.run_dir + "/" + name)) names += fmt::format("{}{}", names.empty() ? "" : ", ", name);
  return fmt::format("Files: {} in {}; tensorboard --logdir {} shows them, too\n", names, report.run_dir, report.run_dir);
}

}  // namespace

std::string run_report(const RunReport& report) {
  const std::string text = speed_line(report) + best_line(report) + memory_line(report) + files_line(report);
  return text.substr(0, text.empty() ? 0 : text.size() - 1);
}

}  // namespace hone
