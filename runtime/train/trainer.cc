#include "runtime/train/trainer.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/diag.h"

namespace hone {

namespace {

double seconds_since(std::chrono::steady_clock::time_point begin) { return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count(); }

}  // namespace

NamedNumbers evaluate(StepRunner& runner, const plan::Entry& entry, const BoundArrays& data, std::int64_t batch_size, std::string_view prefix) {
  Means means(entry, prefix);
  BatchReader batches(data, batch_size, {.shuffle = false});
  batches.start_epoch(0);
  while (batches.next()) {
    runner.run(entry.name, batches.feeds());
    means.add(runner);
  }
  return means.values();
}

Trainer::Trainer(StepRunner& runner, TrainEntries entries, const Recipe& recipe, const BoundArrays& train, const BoundArrays* valid, TrainOptions options,
                 Progress& progress)
    : runner_(runner),
      entries_(entries),
      recipe_(recipe),
      valid_(valid),
      options_(std::move(options)),
      progress_(progress),
      batches_(train, recipe.data.batch_size, {.shuffle = options_.shuffle, .buffer = recipe.data.shuffle_buffer, .seed = recipe.train.seed}),
      means_(*entries.step, ""),
      log_(options_.run_dir, recipe) {
  if (options_.log_grad_norms and entries_.step_norms == nullptr)
    throw Error(Code::kPlanEntry, "the plan has no entry that computes gradient norms", {},
                {"compile it again with this version of hone-compile, or leave out --log-grad-norms"});
  run_.steps_per_epoch = batches_.batch_count();
  run_.steps = recipe.train.epochs > std::numeric_limits<std::int64_t>::max() / run_.steps_per_epoch ? std::numeric_limits<std::int64_t>::max()
                                                                                                     : recipe.train.epochs * run_.steps_per_epoch;
  if (options_.steps > 0) run_.steps = std::min(run_.steps, options_.steps);
  for (const plan::Feed& feed : entries_.step->feeds) {
    if (feed.kind != plan::Feed::Kind::kLearningRate) continue;
    HONE_CHECK(feed.dtype == DType::kF64, "a learning rate that is no f64");
    batches_.add_feed(feed.name, TensorView(DType::kF64, std::vector<std::int64_t>(feed.shape.size(), 1), &rate_));
  }
  if (not options_.log_grad_norms) return;
  const std::string_view prefix = plan::kGradNormPrefix;
  for (const plan::Result& result : entries_.step_norms->results) {
    if (not result.name.starts_with(prefix)) continue;
    norm_results_.push_back(result.name);
    grad_norms_.emplace_back(result.name.substr(prefix.size()), 0);
  }
}

TrainResult Trainer::fit() {
  const auto begin = Clock::now();
  last_log_ = begin;
  for (std::int64_t epoch = 1; epoch <= recipe_.train.epochs and not is_over(); ++epoch) run_epoch(epoch);
  result_.seconds = seconds_since(begin);
  return result_;
}

void Trainer::run_epoch(std::int64_t epoch) {
  const auto begin = Clock::now();
  result_.epochs = epoch;
  means_.reset();
  progress_.start_epoch(epoch, recipe_.train.epochs, std::min(run_.steps_per_epoch, run_.steps - result_.steps));
  batches_.start_epoch(epoch - 1);
  std::int64_t steps = 0;
  while (not is_over() and batches_.next()) {
    run_step(epoch);
    progress_.step(++steps, means_.values());
    result_.interrupted = options_.stop_requested();
  }
  end_epoch(epoch, steps, begin);
}

void Trainer::run_step(std::int64_t epoch) {
  const bool logged = options_.log_every > 0 and (result_.steps + 1) % options_.log_every == 0;
  const bool with_norms = logged and options_.log_grad_norms;
  rate_ = learning_rate_at(recipe_, result_.steps, run_);
  runner_.run(with_norms ? entries_.step_norms->name : entries_.step->name, batches_.feeds());
  const double loss_sum = scalar_result(runner_, plan::kLossSum);
  if (not std::isfinite(loss_sum)) refuse_loss(epoch, loss_sum);
  const double loss = means_.add(runner_);
  ++result_.steps;
  samples_since_log_ += batches_.size();
  if (logged) log_step(epoch, loss, with_norms);
}

void Trainer::log_step(std::int64_t epoch, double loss, bool with_norms) {
  for (std::size_t i = 0; with_norms and i < norm_results_.size(); ++i) grad_norms_[i].second = scalar_result(runner_, norm_results_[i]);
  const double seconds = std::max(seconds_since(last_log_), 1e-9);
  log_.step({.epoch = epoch,
             .step = result_.steps,
             .loss = loss,
             .learning_rate = rate_,
             .samples_per_s = static_cast<double>(samples_since_log_) / seconds,
             .grad_norms = with_norms ? &grad_norms_ : nullptr});
  samples_since_log_ = 0;
  last_log_ = Clock::now();
}

/// An epoch that was cut short is reported as far as it went; after an interruption nobody waits for a validation.
void Trainer::end_epoch(std::int64_t epoch, std::int64_t steps, Clock::time_point begin) {
  const double train_seconds = seconds_since(begin);
  result_.values = means_.values();
  if (valid_ != nullptr and not result_.interrupted) {
    const NamedNumbers valid = evaluate(runner_, *entries_.evaluate, *valid_, recipe_.data.batch_size, "val_");
    result_.values.insert(result_.values.end(), valid.begin(), valid.end());
  }
  progress_.end_epoch(steps, train_seconds, result_.values);
  if (not result_.interrupted) log_.epoch({.epoch = epoch, .values = &result_.values, .learning_rate = rate_, .seconds = seconds_since(begin)});
  last_log_ = Clock::now();
}

void Trainer::refuse_loss(std::int64_t epoch, double loss) const {
  progress_.interrupt();
  throw Error(Code::kNotFinite, fmt::format("the loss is {} at epoch {}, step {}", std::isnan(loss) ? std::abs(loss) : loss, epoch, result_.steps + 1), {},
              {"the weights are still those before this step, because only a finite loss updates them; no trained model was written",
               fmt::format("try a smaller optimizer.learning_rate (it was {:.6g}), or look for nan and very large numbers in the data", rate_)});
}

}  // namespace hone
