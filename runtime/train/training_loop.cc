#include "runtime/train/training_loop.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <iterator>
#include <limits>

#include "base/diag.h"
#include "base/text.h"
#include "runtime/not_finite.h"

namespace hone {

namespace {

constexpr const char* kLossWithoutGradient = "what has a loss and no gradient, such as a square root or a norm of 0";
constexpr std::int64_t kNoEnd = std::numeric_limits<std::int64_t>::max();

double seconds_since(std::chrono::steady_clock::time_point begin) { return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count(); }

std::int64_t product_or_no_end(std::int64_t a, std::int64_t b) { return b > 0 and a > kNoEnd / b ? kNoEnd : a * b; }

template <std::size_t size>
std::vector<double> numbers_of(const std::array<double, size>& state) {
  return {state.begin(), state.end()};
}

/// What the logs say of what comes after `from` goes: it will be done once more, unless nothing is left to do.
std::optional<ResumePoint> resume_point(const std::optional<TrainState>& from, bool nothing_left) {
  if (not from) return std::nullopt;
  constexpr std::int64_t kEnd = std::numeric_limits<std::int64_t>::max() / 2;
  if (nothing_left) return ResumePoint{.epoch = kEnd, .step = kEnd};
  return ResumePoint{.epoch = from->epoch + 1, .step = from->step};
}

/// The run is over, and kept what it has; but its weights are not those that were asked for.
Error without_best(const BestEpoch& best, const std::string& why) {
  return {Code::kCheckpoint, fmt::format("the weights of epoch {}, the best one ({}), could not be restored: {}", best.epoch, metric_text(best.name, best.value), why), {},
          {"the weights are those after the last step; everything else of the run is as it should be",
           "for those of the best epoch put its checkpoint back and end the run once more with --resume, or train again in another run folder: the same seed gives the same run"}};
}

}  // namespace

TrainingLoop::TrainingLoop(StepRunner& runner, TrainEntries entries, const Recipe& recipe, BatchSource& train, BatchSource* valid, TrainOptions options, Progress& progress,
                           const std::optional<TrainState>& from)
    : runner_(runner),
      entries_(entries),
      recipe_(recipe),
      train_(train),
      valid_(valid),
      options_(std::move(options)),
      progress_(progress),
      means_(*entries.step, ""),
      state_(from.value_or(TrainState{})) {
  limit_ = batches_of_epoch();
  if (entries_.accumulate != nullptr) group_ = recipe.train.gradient_accumulation_steps;
  run_.steps_per_epoch = steps_in(limit_);
  if (limit_ > 0) run_.more_before = static_cast<double>(state_.epoch) * static_cast<double>(run_.steps_per_epoch) + static_cast<double>(steps_in(state_.batch)) - static_cast<double>(state_.step);
  run_.steps = limit_ > 0 ? steps_with(recipe.train.epochs) : kNoEnd;
  if (options_.steps > 0) run_.steps = std::min(run_.steps, options_.steps);
  if (state_.step < run_.steps) state_.reported = false;  // the epoch goes on
  check_length();
  if (recipe.schedule.warmup_steps >= run_.steps and run_.steps > 1)
    progress_.say(fmt::format("note: schedule.warmup_steps is {}, and the run has {} steps: it ends before the learning rate is what it was to become", recipe.schedule.warmup_steps, run_.steps));
  check_position();
  for (const plan::Feed& feed : entries_.step->feeds) {
    if (feed.kind != plan::Feed::Kind::kLearningRate) continue;
    HONE_CHECK(feed.dtype == DType::kF64, "a learning rate that is no f64");
    train_.add_feed(feed.name, TensorView(DType::kF64, std::vector<std::int64_t>(feed.shape.size(), 1), &rate_));
    feeds_rate_ = true;
  }
  if (recipe.schedule.kind == "plateau") {
    check_monitor("schedule.monitor", recipe.schedule.monitor);
    plateau_.emplace(recipe);
    const bool is_the_same = from and from->recipe.schedule.kind == recipe.schedule.kind and from->recipe.schedule.monitor == recipe.schedule.monitor;
    if (is_the_same and not from->plateau.empty()) plateau_->restore(from->plateau);
  }
  if (options_.learning_rate and not feeds_rate_)
    throw Error(Code::kUsage, "a function gives the learning rate, and the plan trains as its model says itself, which decides the rate", {}, {"leave learning_rate out, or compile the model with a recipe that has a loss and an optimizer"});
  if (state_.step > 0) rate_ = rate_of(state_.epoch, state_.step - 1);  // an epoch may be over but for its line
  if (const std::string& monitor = recipe.train.early_stopping_monitor; not monitor.empty()) {
    check_monitor("train.early_stopping.monitor", monitor);
    early_stopping_.emplace(recipe);
    if (from and from->recipe.train.early_stopping_monitor == monitor and not from->early_stopping.empty()) early_stopping_->restore(from->early_stopping);
    if (early_stopping_->is_over() and state_.batch == 0) result_.end = TrainResult::End::kNoProgress;  // as it was when the run was stopped
  }
  if (from) check_best();
  if (options_.log_grad_norms) find_norms();
  scales_loss_ = std::ranges::any_of(entries_.step->results, [](const plan::Result& result) { return result.name == plan::kLossScale; });
  state_.recipe = recipe;
  state_.order = train.order();
  state_.data_hash = train.data_hash();
  if (from and state_.batch > 0) means_.restore(from->means);
  seconds_before_ = state_.seconds;
  result_ = {.steps = state_.step, .earlier_steps = state_.step, .epochs = state_.epoch + (state_.batch > 0 ? 1 : 0), .end = result_.end, .values = state_.values};
  log_.emplace(options_.run_dir, recipe, resume_point(from, is_done()));
}

/// 0: nobody knows.
std::int64_t TrainingLoop::batches_of_epoch() const {
  const std::int64_t known = train_.known_batch_count().value_or(0);
  return options_.limit > 0 and (known == 0 or options_.limit < known) ? options_.limit : known;
}

/// Those that were done and those that are left: epochs before may have had another number, of other data.
std::int64_t TrainingLoop::steps_with(std::int64_t epochs) const {
  if (state_.epoch >= epochs) return state_.step;
  const std::int64_t left = product_or_no_end(epochs - state_.epoch - 1, run_.steps_per_epoch), of_this = steps_in(std::max<std::int64_t>(limit_ - state_.batch, 0));
  return left >= kNoEnd - of_this - state_.step ? kNoEnd : state_.step + of_this + left;
}

void TrainingLoop::check_length() const {
  if (run_.steps == kNoEnd and recipe_.schedule.total_steps == 0 and needs_length(recipe_.schedule.kind))
    throw Error(Code::kRecipeValue, fmt::format("schedule.kind = \"{}\" must know how long the run is, and the data do not tell", recipe_.schedule.kind), {},
                {"set schedule.total_steps, or a number of steps (--steps)"});
  if (limit_ == 0 and counts_epochs(recipe_.schedule))
    throw Error(Code::kRecipeValue, fmt::format("schedule.kind = \"{}\" goes by epochs, and the data do not tell how many batches one has", recipe_.schedule.kind), {},
                {"count steps with schedule.every_steps, say how many with --limit, or let the data set end after a number of batches (take)"});
  if (limit_ == 0 and group_ > 1)
    throw Error(Code::kRecipeValue, "gradients are accumulated, and the data do not tell how many batches an epoch has", {},
                {"say how many with --limit, or let the data set end after a number of batches (take)"});
}

void TrainingLoop::check_position() const {
  const std::optional<std::int64_t> batches = train_.known_batch_count();
  if (not batches or state_.batch <= *batches) return;
  throw Error(Code::kPlanMismatch, fmt::format("the run was stopped after batch {} of an epoch, and an epoch of these data has {}", state_.batch, *batches), {},
              {"go on with the data that the run began with; where they are the same, the checkpoint is damaged: remove it, and --resume goes on from an older one"});
}

void TrainingLoop::check_monitor(std::string_view key, const std::string& monitor) const {
  std::vector<std::string> names = means_.names();
  if (valid_ != nullptr)
    for (const std::string& name : Means(*entries_.evaluate, "val_").names()) names.push_back(name);
  if (std::find(names.begin(), names.end(), monitor) != names.end()) return;
  const bool is_validated = valid_ != nullptr or not monitor.starts_with("val_");
  throw Error(Code::kRecipeValue, fmt::format("{} = {}, and no epoch has such a value", key, quoted(monitor)), {},
              {"there are " + quoted_list(names), is_validated ? "metrics.list says what else is computed" : "values that begin with val_ are there when data are given to validate on (--valid)"});
}

void TrainingLoop::find_norms() {
  if (entries_.step_norms == nullptr)
    throw Error(Code::kPlanEntry, "the plan has no entry that computes gradient norms", {},
                {"compile it again with this version of hone-compile, or leave out --log-grad-norms"});
  const std::string_view prefix = plan::kGradNormPrefix;
  for (const plan::Result& result : entries_.step_norms->results) {
    if (not result.name.starts_with(prefix)) continue;
    norm_results_.push_back(result.name);
    grad_norms_.emplace_back(result.name.substr(prefix.size()), 0);
  }
}

TrainResult TrainingLoop::run() {
  begin_ = last_log_ = Clock::now();
  while (not is_done()) run_epoch();
  if (state_.step > 0 and scaling_.skipped_steps == state_.step)
    progress_.say(fmt::format("note: gradients overflowed f16 in all {} steps, which were left out, and nothing was learned: each halves the scale of the loss ({:.3g} in the last one), so more steps may do, or a smaller train.loss_scale", state_.step, scaling_.scale));
  save();
  if (state_.reported) choose_best({.epoch = state_.epoch + 1, .learning_rate = rate_, .seconds = 0, .values = state_.values});  // for this end alone: a run that goes on finishes the epoch first
  if (early_stopping_ and recipe_.train.early_stopping_restore_best and result_.end != TrainResult::End::kStopRequested) restore_best();
  if (state_.step > result_.earlier_steps) refuse_weights_gone();
  result_.steps = state_.step;
  result_.seconds = seconds_since(begin_);
  result_.history = log_->history().epochs();
  result_.best = state_.best;
  return result_;
}

void TrainingLoop::run_epoch() {
  const auto begin = Clock::now();
  result_.epochs = state_.epoch + 1;
  if (state_.batch == 0) means_.reset();
  const std::int64_t all = steps_in(batches_of_epoch());  // a data set that is cached may know by now; schedules go by what was known at the beginning, as they do when a run goes on
  const std::int64_t steps = run_.steps == kNoEnd ? all : std::min(all, steps_in(state_.batch) + run_.steps - state_.step);
  progress_.start_epoch(result_.epochs, recipe_.train.epochs, steps);
  start_data();
  bool more = true;
  while (not is_over() and not is_epoch_over() and (more = next_batch())) {
    run_step();
    after_step();
  }
  const bool is_waited_for = result_.end != TrainResult::End::kStopRequested and result_.end != TrainResult::End::kOutOfTime;
  if (more and limit_ == 0 and not train_.is_endless() and is_waited_for) more = next_batch();  // did the epoch end with the run? Only the data tell
  if (not more and state_.batch == 0) refuse_no_batch("train on");
  end_epoch(is_epoch_over() or not more, begin);
}

void TrainingLoop::start_data() {
  if (not train_.is_endless()) return train_.start_epoch(state_.epoch, state_.batch);
  if (not has_begun_) train_.start_epoch(0, state_.batches);
  has_begun_ = true;
}

bool TrainingLoop::next_batch() {
  const TraceScope scope(options_.trace, "next batch");
  return train_.next();
}

/// `epoch` and `step` count from 0.
double TrainingLoop::rate_of(std::int64_t epoch, std::int64_t step) const {
  const double scheduled = learning_rate_at(recipe_, step, run_) * (plateau_ ? plateau_->factor() : 1);
  if (not options_.learning_rate) return scheduled;
  const double rate = options_.learning_rate({.epoch = epoch + 1, .step = step + 1, .learning_rate = scheduled});
  if (not std::isfinite(rate) or rate < 0)
    throw Error(Code::kUsage, fmt::format("the function learning_rate gave {} for step {} of epoch {}", rate, step + 1, epoch + 1), {}, {"a learning rate is a finite number of at least 0; the schedule's own is what it is called with"});
  return rate;
}

/// An update, of one batch or of a group whose gradients are added up; the last group of an epoch may be smaller.
void TrainingLoop::run_step() {
  const TraceScope scope(options_.trace, Trace::kStep, state_.step + 1);
  const bool logged = options_.log_every > 0 and (state_.step + 1) % options_.log_every == 0;
  const bool with_norms = logged and options_.log_grad_norms;
  rate_ = rate_of(state_.epoch, state_.step);
  double loss_sum = 0, targets = 0;
  bool updated = false;
  if (group_ > 1) means_before_group_ = means_.state();
  for (in_group_ = 0; not updated;) {
    updated = in_group_ + 1 == group_ or state_.batch + 1 == limit_;
    loss_sum += run_batch(not updated ? *entries_.accumulate : with_norms ? *entries_.step_norms : *entries_.step);
    targets += scalar_result(runner_, plan::kTargetCount);
    if (not updated and not next_batch())
      throw Error(Code::kDataLength, fmt::format("the data end after batch {} of epoch {}, and should have {}", state_.batch, result_.epochs, limit_), {},
                  {"the length of a data set must be the same in every epoch"});
  }
  ++state_.step;
  const double loss = targets == 0 and loss_sum == 0 ? std::numeric_limits<double>::quiet_NaN() : loss_sum / targets;
  if (scales_loss_) note_scale(loss);
  if (logged or options_.on_step) log_step(loss, with_norms);
}

/// A step whose gradients overflow is left out, and the next one is scaled less: that is how the scale is found, and no error. One that no scale helps is.
void TrainingLoop::note_scale(double loss) {
  constexpr double kLeast = 0x1p-24;  // what an f16 larger than 0 may be multiplied by at most
  scaling_ = {.scale = scalar_result(runner_, plan::kLossScale),
              .overflows = scalar_result(runner_, plan::kOverflows),
              .skipped_steps = static_cast<std::int64_t>(scalar_result(runner_, plan::kSkippedSteps))};
  if (scaling_.overflows == 0) return;
  log_->skipped_step({.epoch = result_.epochs, .step = state_.step, .loss = loss, .learning_rate = rate_, .scaling = scaling_});
  if (scaling_.scale >= kLeast) return;
  progress_.interrupt();
  throw Error(Code::kNotFinite, fmt::format("gradients overflow f16 at epoch {}, step {}, however little the loss is scaled ({:.3g})", result_.epochs, state_.step, scaling_.scale), {},
              {fmt::format("{} steps were left out; the weights are those before them", scaling_.skipped_steps), "train in bf16 (train.precision), or keep the nodes that overflow in f32 (train.keep_f32)"});
}

/// The sum of its losses.
double TrainingLoop::run_batch(const plan::Entry& entry) {
  runner_.feed_ahead(entry.name, train_);
  if (&entry == entries_.accumulate and feeds_rate_) {
    feeds_without_rate_.assign(train_.feeds().begin(), train_.feeds().end() - 1);
    runner_.run(entry.name, feeds_without_rate_);
  } else {
    runner_.run(entry.name, train_.feeds());
  }
  const double loss_sum = scalar_result(runner_, plan::kLossSum);
  if (not std::isfinite(loss_sum)) refuse_loss(loss_sum);
  means_.add(runner_);
  ++in_group_;
  ++state_.batch;
  ++state_.batches;
  result_.samples += train_.size();
  samples_since_log_ += train_.size();
  return loss_sum;
}

void TrainingLoop::log_step(double loss, bool with_norms) {
  for (std::size_t i = 0; with_norms and i < norm_results_.size(); ++i) grad_norms_[i].second = scalar_result(runner_, norm_results_[i]);
  const double seconds = std::max(trained_since_log_ + seconds_since(last_log_), 1e-9);
  const StepRecord record = {.epoch = result_.epochs,
                             .step = state_.step,
                             .loss = loss,
                             .learning_rate = rate_,
                             .samples_per_s = static_cast<double>(samples_since_log_) / seconds,
                             .grad_norms = with_norms ? &grad_norms_ : nullptr,
                             .values = &means_.values(),
                             .scaling = scaling_};
  if (options_.on_step) options_.on_step(record);
  if (options_.log_every == 0 or state_.step % options_.log_every != 0) return;
  log_->step(record);
  samples_since_log_ = 0;
  trained_since_log_ = 0;
  last_log_ = Clock::now();
}

/// What the progress line says of the epoch: its values, and how many steps were left out.
const NamedNumbers& TrainingLoop::shown(const NamedNumbers& values) {
  if (scaling_.skipped_steps == 0) return values;
  shown_ = values;
  shown_.emplace_back("skipped_steps", static_cast<double>(scaling_.skipped_steps));
  return shown_;
}

/// What is asked and kept between two steps. A checkpoint at the end of an epoch can wait for the validation, unless somebody wants the run to stop.
void TrainingLoop::after_step() {
  progress_.step(steps_in(state_.batch), shown(means_.values()));
  if (options_.stop_requested()) result_.end = TrainResult::End::kStopRequested;
  else if (options_.out_of_time ? options_.out_of_time() : recipe_.train.max_seconds > 0 and seconds_since(begin_) >= recipe_.train.max_seconds) result_.end = TrainResult::End::kOutOfTime;
  end_if_asked();
  if (options_.save_steps > 0 and state_.step % options_.save_steps == 0 and not is_epoch_over()) save();
}

void TrainingLoop::end_if_asked() {
  if (result_.end == TrainResult::End::kDone and options_.end_requested()) result_.end = TrainResult::End::kEnded;
}

/// An epoch that was cut short is reported as far as it went; after an interruption nobody waits for a validation.
void TrainingLoop::end_epoch(bool whole, Clock::time_point begin) {
  const double train_seconds = seconds_since(begin);
  trained_since_log_ += seconds_since(last_log_);  // but not how long the validation and saving take
  result_.values = means_.values();
  const bool validated = result_.end != TrainResult::End::kStopRequested and add_validation();
  progress_.end_epoch(steps_in(state_.batch), train_seconds, shown(result_.values));
  if (std::isnan(value_of(result_.values, "loss")))  // no step's own would have passed
    progress_.say(fmt::format("note: no target of epoch {} counted: each is loss.ignore_index, or weighs 0; nothing was learned from them", result_.epochs));
  if (validated) record_epoch(whole, begin);
  last_log_ = Clock::now();
}

/// False when the run is to stop before it is over.
bool TrainingLoop::add_validation() {
  if (valid_ == nullptr) return true;
  const TraceScope scope(options_.trace, "validation of epoch", result_.epochs);
  const std::optional<NamedNumbers> valid = evaluate(runner_, *entries_.evaluate, *valid_, {.prefix = "val_", .stop_requested = options_.stop_requested, .limit = options_.valid_limit, .say = [this](const std::string& text) { progress_.say(text); }});
  if (valid) result_.values.insert(result_.values.end(), valid->begin(), valid->end());
  else result_.end = TrainResult::End::kStopRequested;
  return valid.has_value();
}

void TrainingLoop::record_epoch(bool whole, Clock::time_point begin) {
  const EpochRecord record = {.epoch = result_.epochs, .values = &result_.values, .learning_rate = rate_, .seconds = seconds_since(begin)};
  log_->epoch(record);
  if (options_.on_epoch) options_.on_epoch(record);
  end_if_asked();
  state_.values = result_.values;
  state_.reported = not whole;
  if (not whole) return;  // a run that goes on does so with the next batch
  if (options_.log_histograms)
    for (const auto& [name, value] : runner_.weights()) log_->histogram(state_.step, "weights/" + name, value);
  state_.epoch = result_.epochs;
  state_.batch = 0;
  judge_epoch({.epoch = state_.epoch, .learning_rate = rate_, .seconds = record.seconds, .values = result_.values});
  save();
}

/// What follows from how an epoch was that is over.
void TrainingLoop::judge_epoch(const EpochPoint& epoch) {
  if (plateau_ and plateau_->observe(value_of(epoch, recipe_.schedule.monitor)))
    progress_.say(fmt::format("Epoch {}: {} is no longer getting better; the learning rate is multiplied by {:.6g} now", epoch.epoch, recipe_.schedule.monitor, plateau_->factor()));
  if (choose_best(epoch) and result_.end == TrainResult::End::kDone) result_.end = TrainResult::End::kNoProgress;
}

/// Is it the best one so far? Returns whether early stopping has waited long enough for a better one.
bool TrainingLoop::choose_best(const EpochPoint& epoch) {
  EarlyStopping::Verdict verdict;
  if (early_stopping_) {
    const std::string& monitor = recipe_.train.early_stopping_monitor;
    verdict = early_stopping_->observe(value_of(epoch, monitor));
    if (verdict.is_best) state_.best = BestEpoch{.epoch = epoch.epoch, .name = monitor, .value = value_of(epoch, monitor)};
  } else {
    state_.best = best_epoch(log_->history());
    verdict.is_best = state_.best and state_.best->epoch == epoch.epoch;
  }
  if (verdict.is_best) {
    state_.best_step = state_.step;
    if (early_stopping_ and recipe_.train.early_stopping_restore_best and options_.checkpoints == nullptr) best_weights_ = runner_.weights();
  }
  return verdict.stop;
}

void TrainingLoop::restore_best() {
  if (not state_.best) return;
  if (state_.best_step != state_.step) {  // else they are there
    try {
      if (options_.checkpoints != nullptr) best_weights_ = options_.checkpoints->weights(state_.best_step);
    } catch (const Error& error) {
      result_.not_restored = without_best(*state_.best, error.diags().front().message);
      best_weights_.clear();
    }
    runner_.set_weights(best_weights_);  // nothing in a process that could not read them: it is the first one, whose weights all get, and the others have theirs from memory
    if (result_.not_restored) return;
  }
  result_.restored_epoch = state_.best->epoch;
}

/// Of a run that goes on: whoever took the checkpoint away may still have it.
void TrainingLoop::check_best() const {
  if (not early_stopping_ or not recipe_.train.early_stopping_restore_best or options_.checkpoints == nullptr or not state_.best or state_.best_step == state_.step) return;
  try {
    check_checkpoint(options_.checkpoints->path(state_.best_step));
  } catch (const Error& error) {
    progress_.say(fmt::format("note: epoch {} is the best one so far, and its weights cannot be restored when the run ends, unless a later one is better: {}", state_.best->epoch, error.diags().front().message));
  }
}

void TrainingLoop::save(Checkpoints::Older older) {
  const TraceScope scope(options_.trace, "save");
  if (options_.checkpoints == nullptr) return runner_.save({});
  state_.means = state_.batch > 0 ? means_.state() : std::vector<double>{};
  state_.seconds = seconds_before_ + seconds_since(begin_);
  state_.plateau = plateau_ ? numbers_of(plateau_->state()) : std::vector<double>();
  state_.early_stopping = early_stopping_ ? numbers_of(early_stopping_->state()) : std::vector<double>();
  std::string gone;
  runner_.save([&](const StateReader& reader) { gone = options_.checkpoints->save(state_, older, reader); });
  if (not gone.empty() and older == Checkpoints::Older::kPruned and std::exchange(told_of_, state_.step) != state_.step)
    progress_.say(fmt::format("note: there is no checkpoint of step {}, because the weight {} is not finite any more", state_.step, quoted(gone)));
}

/// Of a run whose last weights are of no use: --resume, which takes older ones.
std::string TrainingLoop::where_to_go_on() const {
  const std::vector<std::int64_t> older = options_.checkpoints == nullptr ? std::vector<std::int64_t>() : options_.checkpoints->steps();
  return older.empty() ? "the run has no checkpoint to go on from: begin it again" : fmt::format("--resume goes on from {}, with another optimizer.learning_rate", options_.checkpoints->path(older.front()));
}

/// As if no batch of the group had been run: nothing goes on in the middle of one.
void TrainingLoop::take_back_group() {
  runner_.forget_accumulated();
  means_.restore(means_before_group_);
  state_.batch -= in_group_;
  state_.batches -= in_group_;
}

void TrainingLoop::refuse_loss(double loss) {
  progress_.interrupt();
  std::vector<std::string> notes = why_not_finite(runner_, *entries_.step, train_);
  const std::string gone = runner_.weight_gone();
  if (gone.empty()) {
    notes.emplace_back("the weights are still those before this step, because only a finite loss updates them; no trained model was written");
    if (in_group_ > 0) take_back_group();
    save(Checkpoints::Older::kAllStay);  // older ones may be needed, if these weights have grown too large already
    if (options_.checkpoints != nullptr)
      notes.push_back(fmt::format("they are in {}; --resume goes on there, with another optimizer.learning_rate or without the bad data; where these weights are too large already, remove it, and --resume goes on from an older one",
                                  options_.checkpoints->path(state_.step)));
  } else {
    notes.push_back(fmt::format("the step before made {} infinite or nan, so there is no trained model and no checkpoint of these weights; {}", quoted(gone), where_to_go_on()));
  }
  notes.push_back(fmt::format("try a smaller optimizer.learning_rate (it was {:.6g}), or look for {}", rate_, gone.empty() ? "nan and very large numbers in the data" : kLossWithoutGradient));
  throw Error(Code::kNotFinite, fmt::format("the loss is {} at epoch {}, step {}", without_nan_sign(loss), result_.epochs, state_.step + 1), {}, std::move(notes));
}

/// A run that would go on sees it in its next loss.
void TrainingLoop::refuse_weights_gone() {
  const std::string gone = runner_.weight_gone();
  if (gone.empty()) return;
  progress_.interrupt();
  throw Error(Code::kNotFinite, fmt::format("the last update, of step {}, made the weight {} infinite or nan, though the loss that it followed from was finite", state_.step, quoted(gone)), {},
              {"no trained model was written; " + where_to_go_on(),
               fmt::format("try a smaller optimizer.learning_rate (it was {:.6g}), or look for {}", rate_, kLossWithoutGradient)});
}

}  // namespace hone
