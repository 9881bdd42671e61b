// Where numbers stop being finite: one run of an entry, step by step, with a look at everything that each step reads and leaves.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "runtime/plan/plan.h"
#include "runtime/session.h"

namespace hone {

/// The elements of a float tensor at one moment.
struct ValueRange {
  std::string name;
  TensorView tensor;  ///< its type and shape; the data may have gone
  double low = 0, high = 0;  ///< of the finite ones; low > high if there are none
  std::int64_t nans = 0, infinities = 0;
  std::int64_t first = -1;  ///< position of the first that is not finite

  bool is_finite() const { return first < 0; }
};

/// Looks at every element; nothing for a tensor that is not of floats.
std::optional<ValueRange> range_of(const std::string& name, const TensorView& tensor);

/// Has it no element that is infinite or NaN? What is not of floats has none.
bool are_finite(const TensorView& tensor);

/// A step of a plan and what it reads and leaves.
struct WatchedStep {
  const plan::Step* step = nullptr;
  std::vector<std::pair<std::string, TensorView>> operands, results;
};

/// What an executor tells of each step while it runs them one after the other on one thread.
class StepWatcher {
 public:
  virtual ~StepWatcher() = default;
  virtual void before(const WatchedStep& step) = 0;
  virtual void after(const WatchedStep& step) = 0;
};

/// A step that made something that is not finite.
struct NotFiniteStep {
  std::string what;    ///< as in StepTime
  std::string origin;  ///< likewise, with the names of all nodes that the step computes
  std::vector<ValueRange> operands;
  ValueRange result;
};

struct NotFiniteReport {
  std::vector<ValueRange> feeds, weights;  ///< those that were not finite before anything ran
  std::optional<NotFiniteStep> first_infinity, first_nan;
};

/// Keeps the first step that leaves an infinity, and the first that leaves a NaN: masks are infinite by right, so the second is the surer one.
class NotFiniteFinder : public StepWatcher {
 public:
  void before(const WatchedStep& step) override;
  void after(const WatchedStep& step) override;
  NotFiniteReport report;

 private:
  std::vector<ValueRange> operands_;
};

/// The report in sentences: what is not finite, where it comes from in the model's words, and the ranges of what went in.
std::vector<std::string> sentences(const NotFiniteReport& report);

}  // namespace hone
