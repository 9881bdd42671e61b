// What a person sees while training: Keras's words in Keras's order.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
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
/// How far an epoch is.
struct StepsDone {
  std::int64_t done = 0;
  std::int64_t total = 0;  ///< 0: nobody knows, as of data from a generator
  double seconds = 0;      ///< since it began
  double step_seconds = 0;
  double samples_per_s = 0;  ///< 0: not known
};

/// " 37/125 [=======>......................] - ETA: 3s - loss: 0.4113 - 912 samples/s", or "37/Unknown - 3s 4ms/step - loss: 0.4113"; at most `width` - 1
/// characters: samples give way first, then the bar, then what is at the end.
std::string unfinished_line(const StepsDone& at, const NamedNumbers& values, int width);
/// "125/125 [==============================] - 1s 4ms/step - loss: 0.4113 - val_loss: 0.3000". With a `width` that is too small for it the bar gives way, and
/// then it goes on in further lines, each of at most `width` - 1 characters; 0: one line, however long.
std::string finished_line(const StepsDone& at, const NamedNumbers& values, int width = 0);
/// `text` with a line end before some of its `separator`s, so that lines have at most `width` - 1 characters wherever a separator allows it.
std::string folded(std::string_view text, std::string_view separator, int width);

class Progress {
 public:
  using Write = std::function<void(std::string_view)>;
  using Width = std::function<int()>;
  /// `width` is asked whenever a line is drawn, because terminals change.
  Progress(ProgressMode mode, Write write, Width width = [] { return 80; }) : mode_(mode), write_(std::move(write)), width_(std::move(width)) {}
  /// To standard error: a bar when that is a terminal and TERM is not "dumb", lines otherwise.
  static Progress to_standard_error(bool quiet);

  /// Lines of their own, folded between words on a terminal; nothing in quiet mode.
  void say(std::string_view text);
  /// The columns that there are for a table.
  int columns() const;
  /// How many samples a step takes: for samples/s.
  void set_batch_size(std::int64_t samples) { batch_size_ = samples; }
  /// `steps` 0: not known.
  void start_epoch(std::int64_t epoch, std::int64_t epochs, std::int64_t steps);
  /// Draws the bar, at most 20 times a second. An epoch that is gone on with begins with the number of its next step.
  void step(std::int64_t done, const NamedNumbers& values);
  /// `values` with those of the validation; `train_seconds` without it.
  void end_epoch(std::int64_t done, double train_seconds, const NamedNumbers& values);
  /// Leaves an unfinished bar where it is, so that a message can follow on its own line.
  void interrupt();

 private:
  using Clock = std::chrono::steady_clock;
  StepsDone at(std::int64_t done, double train_seconds) const;
  std::string over_the_last(std::string line, int width);

  ProgressMode mode_;
  Write write_;
  Width width_;
  std::int64_t batch_size_ = 0, epoch_ = 0, total_ = 0;
  std::optional<std::int64_t> done_before_;  // steps of this epoch that an earlier run did
  bool line_open_ = false;
  std::size_t drawn_ = 0;  // characters of the line on the terminal
  Clock::time_point start_, next_drawn_;
};

}  // namespace hone
