#include "runtime/train/progress.h"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>

#include "base/text.h"

namespace hone {

namespace {

constexpr int kBarWidth = 30;
constexpr int kLeastBar = 5;
constexpr auto kRedraw = std::chrono::milliseconds(50);
constexpr int kColumnsOfFiles = 120;

std::string bar(std::int64_t done, std::int64_t total, int width) {
  const auto whole = static_cast<std::size_t>(width);
  if (done >= total) return std::string(whole, '=');
  const auto filled = static_cast<std::size_t>(static_cast<double>(done) / static_cast<double>(total) * width);
  const std::string text = filled > 0 ? std::string(filled - 1, '=') + ">" : "";
  return text + std::string(whole - text.size(), '.');
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

std::string seconds_text(const StepsDone& at) { return fmt::format("{:.0f}s {}", at.seconds, step_time_text(at.step_seconds)); }

std::string without_bar(const StepsDone& at, const std::string& after) { return (at.total > 0 ? count_text(at.done, at.total) : fmt::format("{}/Unknown", at.done)) + after; }

/// Before and after a bar that is as long as the width allows; without one where not even the shortest has room, or nobody knows how much there is to do.
std::string with_bar(const StepsDone& at, const std::string& after, int width) {
  const std::string before = count_text(at.done, at.total) + " [";
  if (at.total <= 0 or (width > 0 and static_cast<int>(before.size()) + kLeastBar + 1 > width - 1)) return without_bar(at, after);
  const int room = width - 1 - static_cast<int>(before.size() + 1 + after.size());
  return before + bar(at.done, at.total, width == 0 ? kBarWidth : std::clamp(room, kLeastBar, kBarWidth)) + "]" + after;
}

/// Of what does not fit the last values go first, each as a whole, as half a number reads as another one; then the bar; then the rest.
std::string shortened(const StepsDone& at, std::string after, int width, std::size_t most) {
  constexpr std::string_view kBetween = " - ";
  const std::size_t loss = std::min(after.find(kBetween, 1), after.size()), behind_loss = std::min(after.find(kBetween, loss + 1), after.size());
  const auto drop_last = [&] { after.resize(after.rfind(kBetween)); };
  std::string line = with_bar(at, after, width);
  for (; line.size() > most and after.size() > behind_loss; line = with_bar(at, after, width)) drop_last();
  if (line.size() > most) line = without_bar(at, after);
  for (; line.size() > most and not after.empty(); line = without_bar(at, after)) drop_last();
  return line.substr(0, most);
}

int terminal_width() {
  winsize size{};
  return ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 and size.ws_col > 0 ? size.ws_col : 80;
}

}  // namespace

std::string metric_text(std::string_view name, double value) {
  if (name.ends_with("_steps")) return fmt::format("{}: {:.0f}", name, value);  // a number of them
  if (std::isnan(value)) return fmt::format("{}: nan", name);  // whatever its sign
  const double size = std::abs(value);
  return (size > 1e-3 and size < 1e9) or value == 0 or not std::isfinite(value) ? fmt::format("{}: {:.4f}", name, value) : fmt::format("{}: {:.4e}", name, value);
}

std::string step_time_text(double seconds) {
  if (seconds >= 0.9995) return fmt::format("{:.0f}s/step", seconds);
  if (seconds >= 0.9995e-3) return fmt::format("{:.0f}ms/step", seconds * 1e3);
  return fmt::format("{:.0f}us/step", seconds * 1e6);
}

std::string unfinished_line(const StepsDone& at, const NamedNumbers& values, int width) {
  const auto most = static_cast<std::size_t>(std::max(1, width - 1));
  const std::string time = at.total > 0 ? "ETA: " + eta_text(at.step_seconds * static_cast<double>(at.total - at.done)) : seconds_text(at);
  const std::string after = " - " + time + values_text(values);
  if (at.samples_per_s > 0) {
    const std::string line = with_bar(at, after + fmt::format(" - {:.0f} samples/s", at.samples_per_s), 0);
    if (line.size() <= most) return line;
  }
  return shortened(at, after, width, most);
}

std::string finished_line(const StepsDone& at, const NamedNumbers& values, int width) {
  const std::string line = with_bar(at, " - " + seconds_text(at) + values_text(values), width);
  return width == 0 ? line : folded(line, " - ", width);
}

std::string folded(std::string_view text, std::string_view separator, int width) {
  const auto most = static_cast<std::size_t>(std::max(1, width - 1));
  std::string result;
  while (text.size() > most) {
    std::size_t end = text.substr(0, most + separator.size()).rfind(separator);
    if (end == std::string_view::npos or end == 0) end = text.find(separator, separator.size());
    if (end == std::string_view::npos) break;
    result += text.substr(0, end);
    result += '\n';
    text.remove_prefix(end);
  }
  return result + std::string(text);
}

Progress Progress::to_standard_error(bool quiet) {
  const char* terminal = std::getenv("TERM");
  const bool dumb = terminal != nullptr and std::string_view(terminal) == "dumb";
  const bool redraw = isatty(STDERR_FILENO) == 1 and not dumb;
  const auto write = [](std::string_view text) {
    std::fwrite(text.data(), 1, text.size(), stderr);
    std::fflush(stderr);
  };
  return {quiet ? ProgressMode::kQuiet : redraw ? ProgressMode::kBar : ProgressMode::kLines, write, terminal_width};
}

void Progress::say(std::string_view text) {
  if (mode_ == ProgressMode::kQuiet) return;
  interrupt();
  for (const std::string& line : split(text, '\n')) write_((mode_ == ProgressMode::kBar ? folded(line, " ", width_()) : line) + "\n");
}

int Progress::columns() const { return mode_ == ProgressMode::kBar ? width_() - 1 : kColumnsOfFiles; }

void Progress::start_epoch(std::int64_t epoch, std::int64_t epochs, std::int64_t steps) {
  epoch_ = epoch;
  total_ = steps;
  done_before_.reset();
  start_ = Clock::now();
  if (mode_ != ProgressMode::kQuiet) write_(fmt::format("Epoch {}/{}\n", epoch, epochs));
}

StepsDone Progress::at(std::int64_t done, double train_seconds) const {
  const std::int64_t own = done - done_before_.value_or(0);
  const double each = own > 0 ? train_seconds / static_cast<double>(own) : 0;
  return {.done = done,
          .total = total_,
          .seconds = std::chrono::duration<double>(Clock::now() - start_).count(),
          .step_seconds = each,
          .samples_per_s = each > 0 ? static_cast<double>(batch_size_) / each : 0};
}

/// With blanks over what is left of the line that is on the terminal.
std::string Progress::over_the_last(std::string line, int width) {
  const std::size_t length = line.find('\n'), first = length == std::string::npos ? line.size() : length;
  const std::size_t covered = std::min(drawn_, static_cast<std::size_t>(std::max(1, width - 1)));
  if (first < covered) line.insert(first, covered - first, ' ');
  return "\r" + line;
}

void Progress::step(std::int64_t done, const NamedNumbers& values) {
  if (not done_before_) done_before_ = done - 1;
  const auto now = Clock::now();
  if (mode_ != ProgressMode::kBar or now < next_drawn_) return;
  next_drawn_ = now + kRedraw;
  const int width = width_();
  const std::string line = unfinished_line(at(done, std::chrono::duration<double>(now - start_).count()), values, width);
  write_(over_the_last(line, width));
  drawn_ = line.size();
  line_open_ = true;
}

void Progress::end_epoch(std::int64_t done, double train_seconds, const NamedNumbers& values) {
  if (mode_ == ProgressMode::kQuiet) return;
  StepsDone end = at(done, train_seconds);
  if (end.total <= 0) end.total = done;
  const int width = mode_ == ProgressMode::kBar ? width_() : 0;
  const std::string line = finished_line(end, values, width);
  write_((line_open_ ? over_the_last(line, width) : line) + "\n");
  line_open_ = false;
  drawn_ = 0;
}

void Progress::interrupt() {
  if (line_open_) write_("\n");
  line_open_ = false;
  drawn_ = 0;
}

}  // namespace hone
