// What a person sees while training: Keras's words in Keras's order.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "runtime/train/means.h"

namespace hone {

enum class ProgressMode {
  kQuiet,  ///< nothing
  kLines,  ///< one line when an epoch ends: files, pipes
  kBar,    ///< a line that is drawn again and again: a terminal
};

/// "loss: 0.4113", small numbers as "loss: 4.1130e-05".
std::string metric_text(std::string_view name, double value);
/// "4ms/step", "850us/step", "2s/step"
std::string step_time_text(double seconds);
/// " 37/125 [=======>......................] - ETA: 3s - loss: 0.4113", at most `width` - 1 characters; the bar gives way first.
std::string unfinished_line(std::int64_t done, std::int64_t total, double seconds, const NamedNumbers& values, int width);
/// "125/125 [==============================] - 1s 4ms/step - loss: 0.4113 - val_loss: 0.3000"
std::string finished_line(std::int64_t done, std::int64_t total, double epoch_seconds, double step_seconds, const NamedNumbers& values);

class Progress {
 public:
  using Write = std::function<void(std::string_view)>;
  Progress(ProgressMode mode, Write write, int width = 80) : mode_(mode), write_(std::move(write)), width_(width) {}
  /// To standard error: a bar when that is a terminal and TERM is not "dumb", lines otherwise.
  static Progress to_standard_error(bool quiet);

  /// A line of its own; nothing in quiet mode.
  void say(std::string_view text);
  void start_epoch(std::int64_t epoch, std::int64_t epochs, std::int64_t steps);
  /// Draws the bar, at most 20 times a second.
  void step(std::int64_t done, const NamedNumbers& values);
  /// `values` with those of the validation; `train_seconds` without it.
  void end_epoch(std::int64_t done, double train_seconds, const NamedNumbers& values);
  /// Leaves an unfinished bar where it is, so that a message can follow on its own line.
  void interrupt();

 private:
  using Clock = std::chrono::steady_clock;
  double seconds() const { return std::chrono::duration<double>(Clock::now() - start_).count(); }

  ProgressMode mode_;
  Write write_;
  int width_;
  std::int64_t total_ = 0;
  bool line_open_ = false;
  std::size_t drawn_ = 0;  // characters of the line on the terminal
  Clock::time_point start_;
  double last_drawn_ = 0;
};

}  // namespace hone
