// Loss and metrics over many batches.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/objectives.h"
#include "runtime/data/batches.h"
#include "runtime/data/named_tensors.h"
#include "runtime/not_finite.h"
#include "runtime/plan/plan.h"
#include "runtime/train/state_reader.h"

namespace hone {

/// What trainer and evaluation need of a session; a test may stand in for it.
class StepRunner {
 public:
  virtual ~StepRunner() = default;
  virtual void run(std::string_view entry, const NamedViews& feeds) = 0;
  /// Lets a device take the batch after this one while it runs the entry with this one.
  virtual void feed_ahead(std::string_view, BatchSource&) {}
  /// A result of the last run, valid until the next.
  virtual TensorView result(std::string_view name) = 0;
  /// Why a loss is not finite, in sentences: the entry runs again, and changes nothing.
  virtual std::vector<std::string> find_not_finite(std::string_view, const NamedViews&) { return {}; }
  /// Weights and running statistics, by their names in the model.
  virtual NamedTensors weights() { return {}; }
  virtual void set_weights(const NamedTensors&) {}
  /// weight_gone() of runtime/train/weights.h.
  virtual std::string weight_gone() { return ""; }
  /// forget_accumulated() of runtime/train/weights.h.
  virtual void forget_accumulated() {}
  /// What keeps the state after the last run. Empty: another process keeps it, or nobody.
  using KeepState = std::function<void(const StateReader&)>;
  /// What is kept: everything, or what other programs can use, of which replicas hold no parts.
  enum class Kept : std::uint8_t { kAll, kModel };
  /// Calls `keep`, and lets other processes do so, which say the same of what is kept. Throws where it must not be kept.
  virtual void save(const KeepState& keep, Kept /*what*/ = Kept::kAll) {
    if (keep) keep({});
  }
};

/// The session itself.
class SessionRunner : public StepRunner {
 public:
  explicit SessionRunner(Session& session) : session_(session) {}
  void run(std::string_view entry, const NamedViews& feeds) override { session_.run(entry, feeds); }
  void feed_ahead(std::string_view entry, BatchSource& batches) override;
  TensorView result(std::string_view name) override { return session_.result(name); }
  std::vector<std::string> find_not_finite(std::string_view entry, const NamedViews& feeds) override { return sentences(session_.find_not_finite(entry, feeds)); }
  NamedTensors weights() override;
  void set_weights(const NamedTensors& weights) override;
  std::string weight_gone() override;
  void forget_accumulated() override;

 private:
  Session& session_;
};

/// A result of one element, f32 or f64.
double scalar_result(StepRunner& runner, std::string_view name);

using NamedNumbers = std::vector<std::pair<std::string, double>>;

/// NaN where there is none of that name.
double value_of(const NamedNumbers& values, std::string_view name);

/// Loss and metrics over many batches: sums of what each batch's step gave, in double, and what follows from them. Metrics are not weighted: what classes and
/// samples count in the loss is no matter to them.
class Means {
 public:
  /// The loss and every metric among the results of `entry`; `prefix` ("", "val_") goes before their names. Throws kPlanEntry when it has no loss, kPlanMismatch when
  /// a metric has other sums than its formula takes.
  Means(const plan::Entry& entry, std::string_view prefix);

  void reset();
  /// Adds the results of the last run; returns its own mean loss (NaN when no target counted).
  double add(StepRunner& runner);
  /// Loss and metrics so far, "loss" first: the same memory each time. NaN when no target counted.
  const NamedNumbers& values();
  /// What they are called.
  std::vector<std::string> names() const;

  /// All sums, for a checkpoint: loss and its divisor, then for each metric the number of its sums and these.
  std::vector<double> state() const;
  /// Goes on from what state() gave. Throws kPlanMismatch when it cannot be of this entry; nothing is then changed.
  void restore(std::span<const double> state);

 private:
  struct Metric {
    std::string result;      ///< "metric:..."
    const MetricKind* kind;  ///< null: sums are one over the targets, and their number
    std::vector<double> sums;
  };
  static Metric metric_of(const plan::Entry& entry, const plan::Result& result, std::string_view name);

  std::vector<Metric> metrics_;
  double loss_sum_ = 0, count_ = 0;
  NamedNumbers values_;
};

}  // namespace hone
