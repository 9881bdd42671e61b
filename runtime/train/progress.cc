#include "runtime/train/progress.h"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>

namespace hone {

namespace {

constexpr int kBarWidth = 30;
constexpr double kRedrawSeconds = 0.05;

std::string bar(std::int64_t done, std::int64_t total, int width) {
  const int filled = total <= 0 ? width : static_cast<int>(std::min<std::int64_t>(width, done * width / total));
  if (done >= total) return std::string(static_cast<std::size_t>(width), '=');
  std::string text = filled > 0 ? std::string(static_cast<std::size_t>(filled - 1), '=') + ">" : "";
  return text + std::string(static_cast<std::size_t>(width) - text.size(), '.');
}

std::string eta_text(double seconds) {
  const auto whole = static_cast<std::int64_t>(std::min(seconds, 1e9));
  if (whole >= 3600) return fmt::format("{}:{:02}:{:02}", whole / 3600, whole / 60 % 60, whole % 60);
  if (whole >= 60) return fmt::format("{}:{:02}", whole / 60, whole % 60);
  return fmt::format("{}s", whole);
}

std::string values_text(const NamedNumbers& values) {
  std::string text;
  for (const auto& [name, value] : values) text += " - " + metric_text(name, value);
  return text;
}

std::string count_text(std::int64_t done, std::int64_t total) {
  const std::string all = fmt::format("{}", total);
  return fmt::format("{:>{}}/{}", done, all.size(), all);
}

int terminal_width() {
  winsize size{};
  return ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 and size.ws_col > 0 ? size.ws_col : 80;
}

}  // namespace

std::string metric_text(std::string_view name, double value) {
  return std::abs(value) > 1e-3 or value == 0 or not std::isfinite(value) ? fmt::format("{}: {:.4f}", name, value) : fmt::format("{}: {:.4e}", name, value);
}

std::string step_time_text(double seconds) {
  if (seconds >= 0.9995) return fmt::format("{:.0f}s/step", seconds);
  if (seconds >= 0.9995e-3) return fmt::format("{:.0f}ms/step", seconds * 1e3);
  return fmt::format("{:.0f}us/step", seconds * 1e6);
}

std::string unfinished_line(std::int64_t done, std::int64_t total, double seconds, const NamedNumbers& values, int width) {
  const double left = done > 0 ? seconds / static_cast<double>(done) * static_cast<double>(total - done) : 0;
  const std::string before = count_text(done, total) + " [", after = fmt::format("] - ETA: {}{}", eta_text(left), values_text(values));
  const int room = width - 1 - static_cast<int>(before.size() + after.size());
  const std::string line = before + bar(done, total, std::clamp(room, 5, kBarWidth)) + after;
  return line.substr(0, static_cast<std::size_t>(std::max(1, width - 1)));
}

std::string finished_line(std::int64_t done, std::int64_t total, double epoch_seconds, double step_seconds, const NamedNumbers& values) {
  return fmt::format("{} [{}] - {:.0f}s {}{}", count_text(done, total), bar(done, total, kBarWidth), epoch_seconds, step_time_text(step_seconds),
                     values_text(values));
}

Progress Progress::to_standard_error(bool quiet) {
  const char* terminal = std::getenv("TERM");
  const bool dumb = terminal != nullptr and std::string_view(terminal) == "dumb";
  const bool redraw = isatty(STDERR_FILENO) == 1 and not dumb;
  const auto write = [](std::string_view text) {
    std::fwrite(text.data(), 1, text.size(), stderr);
    std::fflush(stderr);
  };
  return {quiet ? ProgressMode::kQuiet : redraw ? ProgressMode::kBar : ProgressMode::kLines, write, redraw ? terminal_width() : 80};
}

void Progress::say(std::string_view text) {
  if (mode_ == ProgressMode::kQuiet) return;
  interrupt();
  write_(std::string(text) + "\n");
}

void Progress::start_epoch(std::int64_t epoch, std::int64_t epochs, std::int64_t steps) {
  total_ = steps;
  start_ = Clock::now();
  last_drawn_ = 0;
  if (mode_ != ProgressMode::kQuiet) write_(fmt::format("Epoch {}/{}\n", epoch, epochs));
}

void Progress::step(std::int64_t done, const NamedNumbers& values) {
  if (mode_ != ProgressMode::kBar) return;
  const double now = seconds();
  if (now - last_drawn_ < kRedrawSeconds) return;
  last_drawn_ = now;
  std::string line = unfinished_line(done, total_, now, values, width_);
  const std::size_t length = line.size();
  if (length < drawn_) line.append(drawn_ - length, ' ');  // covers what is left of the last one
  drawn_ = length;
  line_open_ = true;
  write_("\r" + line);
}

void Progress::end_epoch(std::int64_t done, double train_seconds, const NamedNumbers& values) {
  if (mode_ == ProgressMode::kQuiet) return;
  const double each = done > 0 ? train_seconds / static_cast<double>(done) : 0;
  std::string line = finished_line(done, total_, seconds(), each, values);
  if (line_open_) {
    if (line.size() < drawn_) line.append(drawn_ - line.size(), ' ');
    line = "\r" + line;
  }
  line_open_ = false;
  drawn_ = 0;
  write_(line + "\n");
}

void Progress::interrupt() {
  if (line_open_) write_("\n");
  line_open_ = false;
  drawn_ = 0;
}

}  // namespace hone
