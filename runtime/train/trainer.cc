#include "runtime/train/trainer.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>

#include "base/diag.h"
#include "base/recipe_changes.h"
#include "base/text.h"
#include "runtime/train/dry_run.h"
#include "runtime/train/predict.h"
#include "runtime/train/run_options.h"
#include "runtime/train/stop_together.h"
#include "runtime/train/weights.h"

namespace hone {

namespace {

/// Outputs of batches, one behind the other.
Tensor stacked(const std::string& name, const std::vector<Tensor>& parts) {
  std::vector<std::int64_t> shape = parts.front().shape();
  shape[0] = 0;
  for (const Tensor& part : parts) {
    if (not std::equal(part.shape().begin() + 1, part.shape().end(), shape.begin() + 1, shape.end()))
      throw Error(Code::kDataShape, fmt::format("the output {} is {} for one batch and {} for another", quoted(name), shape_text(parts.front().shape()), shape_text(part.shape())), {},
                  {"give all batches samples of one shape: pad_sequence() makes sequences equally long"});
    shape[0] += part.shape()[0];
  }
  return Tensor::make(parts.front().dtype(), shape, [&](std::span<std::byte> bytes) {
    auto to = bytes.begin();
    for (const Tensor& part : parts) to = std::copy(part.bytes().begin(), part.bytes().end(), to);
  });
}

void check_options(const FitOptions& o) {
  Diags diags;
  check_run_options({.steps = o.steps, .limit = o.limit, .valid_limit = o.valid_limit, .log_every = o.log_every, .save_steps = o.save_steps, .keep = o.keep, .check_every = o.check_every, .has_valid = o.valid.has_value(), .has_run_dir = not o.run_dir.empty(), .resume = o.resume, .keep_best = o.keep_best, .dry_run = o.dry_run},
                    Spelling::kMembers, diags);
  diags.throw_if_errors();
}

void check_end(const Dataset& data, const char* what, const char* way_out = nullptr) {
  if (not data.is_endless()) return;
  std::vector<std::string> notes = {"take(n) takes so many batches of them, and repeat(n) goes through them so often"};
  if (way_out != nullptr) notes.insert(notes.begin(), way_out);
  throw Error(Code::kUsage, fmt::format("{} have no end", what), {}, std::move(notes));
}

/// To what a dry run does.
void shorten(FitOptions& options, const Dataset& train) {
  options.epochs = options.steps = options.valid_limit = 1;
  if (not options.valid) options.valid = train;
  options.run_dir.clear();
}

Recipe recipe_with(const Recipe& recipe, const RecipeSource& changes, const char* where) {
  try {
    return change_at_run_time(recipe, changes);
  } catch (const Error& error) {
    std::vector<Diag> diags = error.diags();
    for (Diag& diag : diags) diag.loc.file = where;
    throw Error(std::move(diags));
  }
}

}  // namespace

Trainer::Trainer(const plan::Plan& plan, SessionOptions options, ReplicaOptions replicas)
    : model_name_(plan.model_name),
      batch_symbol_(plan.batch_symbol),
      onnx_model_(plan.onnx_model),
      compiled_recipe_(plan.recipe_json.empty() ? Recipe{} : recipe_from_json(plan.recipe_json)),
      recipe_(compiled_recipe_),
      replicas_(plan, replicas, std::move(options)),
      session_(replicas_.session()),
      alone_(session_) {
  if (not replicas_.is_alone()) together_.emplace(replicas_, batch_symbol_);
}

StepRunner& Trainer::runner() {
  if (not together_) return alone_;
  together_->share_weights();  // which the caller may have changed
  return *together_;
}

const plan::Entry& Trainer::entry(const char* name, const char* purpose) const {
  if (session_.has_entry(name)) return session_.entry(name);
  throw Error(Code::kPlanEntry, fmt::format("the plan was compiled without a recipe: it can predict, and not {}", purpose), {}, {"give compile_model() a recipe with a loss and an optimizer"});
}

BindOptions Trainer::bound(const char* flag) const { return {.flag = flag, .batch_symbol = batch_symbol_, .pre_batched = false, .scale = recipe_.data.scale, .loss = recipe_.loss.kind}; }

std::unique_ptr<DatasetBatches> Trainer::batches(const plan::Entry& entry, const Dataset& data, const char* flag, std::int64_t epochs) {
  const bool shares_files = replicas_.processes() > 1;  // of which a machine has one copy
  return std::make_unique<DatasetBatches>(entry, own_part(entry, data), bound(flag), gather_for(replicas_), epochs > 1 and not shares_files ? Passes::kSeveral : Passes::kOne);
}

/// Of batches that are dealt out by samples, as ReplicaRunner does it.
Dataset Trainer::own_part(const plan::Entry& entry, const Dataset& data) const {
  const bool is_dealt_out = std::ranges::all_of(entry.feeds, [&](const plan::Feed& feed) {
    return not plan::is_data(feed) or (not feed.shape.empty() and (batch_symbol_.empty() or feed.shape[0] == Dim::symbol(batch_symbol_)));
  });
  if (replicas_.processes() == 1 or not is_dealt_out) return data;
  return data.in_parts([this](std::int64_t samples) { return replicas_.part_here(samples, batch_symbol_.empty() ? samples : 1); });
}

/// What a program changed by hand is checked as what a recipe's file, or --set, says.
Recipe Trainer::recipe_of_run(const FitOptions& options) const {
  const Recipe recipe = recipe_with(compiled_recipe_, changes_between(compiled_recipe_, recipe_), "Trainer::recipe()");
  RecipeSource changes;
  if (options.epochs) changes.values["train.epochs"] = {.kind = RecipeValue::Kind::kInt, .integer = *options.epochs};
  return recipe_with(recipe, changes, "the options of fit");
}

TrainEntries Trainer::entries(const FitOptions& options) const {
  const auto if_there = [&](const char* name) { return session_.has_entry(name) ? &session_.entry(name) : nullptr; };
  return {.step = &entry(plan::kTrainStep, "train"),
          .step_norms = options.log_grad_norms ? if_there(plan::kTrainStepNorms) : nullptr,
          .accumulate = if_there(plan::kAccumulateStep),
          .evaluate = &entry(plan::kEvalStep, "evaluate")};
}

ToldRun Trainer::told(const FitOptions& options, std::optional<std::int64_t> batch) const {
  const std::int64_t replicas = replicas_.total();
  return {.program = session_.program(),
          .model_name = model_name_,
          .batch_symbol = batch_symbol_,
          .calls = {.replicas = replicas_.total(), .shares = replicas_.optimizer_shares(), .norms = options.log_grad_norms, .evaluates = options.valid.has_value()},
          .batch_size = (batch.value_or(0) + replicas - 1) / replicas,
          .run_dir = options.run_dir,
          .all_weights = options.verbose};
}

TrainResult Trainer::fit(const Dataset& train, FitOptions options) {
  check_options(options);
  if (not options.stop_requested) options.stop_requested = [] { return false; };
  is_ended_ = false;
  std::optional<DryRun> dry;
  if (options.dry_run) {
    dry.emplace(options.run_dir, replicas_);
    shorten(options, train);
  }
  const TrainEntries entries = this->entries(options);
  const Recipe recipe = recipe_of_run(options);
  if (options.limit == 0 and options.steps == 0 and recipe.train.max_seconds == 0)
    check_end(train, "the data to train on", "limit = n makes an epoch of the next n batches, and steps = n ends the run after so many");
  if (options.valid and options.valid_limit == 0) check_end(*options.valid, "the data to validate on", "valid_limit = n evaluates n batches of them");
  follow_recipe(session_, recipe);
  forget_accumulated(session_);
  if (replicas_.process() != 0) {
    options.run_dir.clear();
    options.quiet = true;
  }
  Progress progress = Progress::to_standard_error(options.quiet);
  const auto say_note = [&](const std::string& note) { progress.say("note: " + note); };
  const std::unique_ptr<DatasetBatches> source = batches(*entries.step, train, "the data to train on", recipe.train.epochs);
  source->on_note(say_note);
  std::unique_ptr<DatasetBatches> valid;
  if (options.valid) {
    valid = batches(*entries.evaluate, *options.valid, "the data to validate on", recipe.train.epochs);
    valid->on_note(say_note);
    if (not valid->peek()) refuse_no_batch("evaluate");  // better refused now than after the first epoch
  }
  progress.set_batch_size(train.batch_size().value_or(0) * (entries.accumulate == nullptr ? 1 : recipe.train.gradient_accumulation_steps));
  const ToldRun told = this->told(options, train.batch_size());
  if (not options.quiet) say_summary(progress, told);
  std::optional<Checkpoints> checkpoints;
  std::optional<TrainState> from;
  if (not options.run_dir.empty()) {
    checkpoints.emplace(options.run_dir, session_, CheckpointOptions{.keep = options.keep, .keep_best = options.keep_best or recipe.train.early_stopping_restore_best});
    from = checkpoints->begin_or_resume(options.resume, recipe, *source, progress);
  }
  TrainOptions how = {.steps = options.steps,
                      .limit = options.limit,
                      .valid_limit = options.valid_limit,
                      .log_every = options.log_every,
                      .log_grad_norms = options.log_grad_norms,
                      .log_histograms = options.log_histograms,
                      .run_dir = options.run_dir,
                      .checkpoints = checkpoints ? &*checkpoints : nullptr,
                      .save_steps = options.save_steps,
                      .stop_requested = options.stop_requested,
                      .end_requested = [this] { return is_ended_; },
                      .learning_rate = options.learning_rate,
                      .on_step = options.on_step,
                      .on_epoch = options.on_epoch};
  const bool has_peers = replicas_.processes() > 1;
  if (has_peers) from = state_of_first(*replicas_.between_processes(), from);
  if (together_) {
    together_->set_step(from ? from->step : 0);
    together_->compare_every(options.check_every);
  }
  const StopTogether stops(has_peers ? &*together_ : nullptr, recipe.train.max_seconds, how);
  StepRunner& steps = runner();
  const TrainResult result = TrainingLoop(steps, entries, recipe, *source, valid.get(), how, progress, from).run();
  if (dry) {
    dry->finish(recipe, onnx_model_, result.steps);
    progress.say(DryRun::kDone);
    return result;
  }
  if (has_peers) together_->save({}, StepRunner::Kept::kModel);
  if (not options.quiet) say_report(progress, told, result);
  if (result.not_restored) throw *result.not_restored;
  if (result.end == TrainResult::End::kStopRequested or result.wants_validated()) return result;
  replicas_.gather_states(true, plan::kEmaSuffix);
  if (take_averages(session_, steps)) steps.save({}, StepRunner::Kept::kModel);  // all have them before anybody changes something
  return result;
}

NamedNumbers Trainer::evaluate(const Dataset& data) {
  const plan::Entry& called = entry(plan::kEvalStep, "evaluate");
  check_end(data, "the data to evaluate on");
  return hone::evaluate(runner(), called, *batches(called, data, "the data to evaluate on", 1)).value();  // nobody asks it to stop
}

NamedTensors Trainer::predict(const Dataset& data) {
  const plan::Entry& called = session_.entry(plan::kPredict);
  check_end(data, "the data to predict on");
  BindOptions how = bound("the data to predict on");
  how.left_out = {"y", "target", "sample_weight"};
  DatasetBatches source(called, data, std::move(how), gather_for(replicas_));
  std::vector<std::vector<Tensor>> parts(called.results.size());
  source.start_epoch(0);
  std::int64_t batches = 0;
  for (; source.next(); ++batches) {
    session_.run(called.name, source.feeds());
    for (std::size_t i = 0; i < parts.size(); ++i) {
      const std::string& name = called.results[i].name;
      Tensor output = session_.result_tensor(name);
      require_sample_axis(called, name, output.shape(), source.size(), batch_symbol_.empty(), "run the entry \"predict\" on the session for one call of the model");
      parts[i].push_back(std::move(output));
    }
  }
  NamedTensors outputs;
  if (batches == 0) refuse_no_batch("predict on");
  for (std::size_t i = 0; i < parts.size(); ++i) outputs.emplace_back(called.results[i].name, stacked(called.results[i].name, parts[i]));
  return outputs;
}

void Trainer::save(const std::string& path) {
  check_trained_file("save", recipe_, path);  // in all processes
  const StepRunner::KeepState write = [&](const StateReader& reader) { save_trained(recipe_, onnx_model_, session_, path, reader); };
  if (replicas_.processes() == 1) return write({});
  together_->save(replicas_.process() == 0 ? write : StepRunner::KeepState(), StepRunner::Kept::kModel);
}
void Trainer::load(const std::string& path) {
  load_weights(session_, recipe_, path);
  if (together_ and replicas_.processes() == 1) together_->share_weights();  // at once: a callback may load in the middle of fit()
}

}  // namespace hone
