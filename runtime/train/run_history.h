// What a run has been like so far: the numbers of metrics.jsonl, in memory and read back from the file.
#pragma once

#include <cmath>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/train/means.h"

namespace hone {

struct StepPoint {
  std::int64_t step = 0;  ///< of the whole run, from 1
  double loss = 0, learning_rate = 0;
};
struct EpochPoint {
  std::int64_t epoch = 0;  ///< from 1
  double learning_rate = 0, seconds = 0;
  NamedNumbers values;  ///< loss and metrics, those of the validation too
};

/// Where a run goes on.
struct ResumePoint {
  std::int64_t epoch = 1;  ///< the epoch that is gone on with, or begun
  std::int64_t step = 0;   ///< how many steps the run has done
};

class RunHistory {
 public:
  void add(const StepPoint& point);
  void add(EpochPoint point);
  /// Takes a line of metrics.jsonl; what is no such line changes nothing. A number that was not finite is read as NaN.
  void add_line(std::string_view line);

  /// Every logged step, or of a long run every second, fourth, ... of them: 65,536 at most.
  const std::vector<StepPoint>& steps() const { return steps_; }
  const std::vector<EpochPoint>& epochs() const { return epochs_; }
  /// The names of all values, in the order in which they were seen first.
  const std::vector<std::string>& names() const { return names_; }

 private:
  std::vector<StepPoint> steps_;
  std::vector<EpochPoint> epochs_;
  std::vector<std::string> names_;
  std::int64_t stride_ = 1, until_next_ = 0;
};

/// Was a line of metrics.jsonl written before that point? Not when it belongs to a later step or to an epoch that is not over, or when it is no whole JSON object.
bool is_before(std::string_view line, ResumePoint point);

/// Calls `use` with each whole line of a file, without its end; a last line without an end is left out. Nothing for a missing file. Throws kFileOpen, kFileRead.
void for_each_line(const std::string& path, const std::function<void(std::string_view)>& use);

/// As it is written down: NaN without a sign, which says nothing.
inline double without_nan_sign(double value) { return std::isnan(value) ? std::abs(value) : value; }

/// The value of an epoch by name; NaN if it has none.
inline double value_of(const EpochPoint& epoch, std::string_view name) { return value_of(epoch.values, name); }

/// The epoch with the least val_loss, or the least loss where nothing was validated; epochs without a finite one do not count. Where early stopping monitors
/// something, it says instead which one is the best (TrainResult::best).
struct BestEpoch {
  std::int64_t epoch = 0;
  std::string name;  ///< of the value by which it is the best
  double value = 0;
};
std::optional<BestEpoch> best_epoch(const RunHistory& history);

}  // namespace hone
