#include "tools/run/train.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdlib>

#include "base/diag.h"
#include "base/files.h"
#include "base/hash.h"
#include "base/output_kind.h"
#include "base/text.h"
#include "runtime/collective/agreement.h"
#include "runtime/collective/mpi_communicator.h"
#include "runtime/collective/mpi_launch.h"
#include "runtime/data/batches.h"
#include "runtime/train/adapter_files.h"
#include "runtime/train/dry_run.h"
#include "runtime/train/json_line.h"
#include "runtime/train/replica_runner.h"
#include "runtime/train/run_options.h"
#include "runtime/train/stop_signals.h"
#include "runtime/train/stop_together.h"
#include "runtime/train/told_run.h"
#include "runtime/train/training_loop.h"
#include "runtime/train/weights.h"
#include "tools/command_line.h"
#include "tools/output_file.h"

namespace hone {

namespace {

/// Of a run that was told to stop.
int stop_code(const Arguments& arguments) {
  const bool saves = not arguments.dry_run and (not arguments.out.empty() or not arguments.run_dir.empty());
  return saves ? kExitStoppedSaved : kExitStopped;
}

std::chrono::milliseconds timeout_of(const std::string& text) {
  const auto wrong = [&] { return Error(Code::kUsage, fmt::format("--collective-timeout {}: expected a time", quoted(text)), {}, {"for example 60s or 500ms"}); };
  std::size_t digits = 0;
  while (digits < text.size() and text[digits] >= '0' and text[digits] <= '9') ++digits;
  const std::string unit = text.substr(digits);
  if (digits == 0 or digits > 7 or (unit != "s" and unit != "ms" and not unit.empty())) throw wrong();
  const std::chrono::milliseconds time(std::stoll(text.substr(0, digits)) * (unit == "ms" ? 1 : 1000));
  if (time.count() == 0) throw wrong();
  return time;
}

void check_flags(const Arguments& a) {
  (void)timeout_of(a.collective_timeout);
  Diags diags;
  check_run_options({.steps = a.steps, .limit = a.limit, .log_every = a.log_every, .save_steps = a.save_steps, .keep = a.keep, .check_every = a.check_every, .has_run_dir = not a.run_dir.empty(), .resume = a.resume, .keep_best = a.keep_best, .dry_run = a.dry_run},
                    Spelling::kFlags, diags);
  const auto refuse = [&](bool wrong, std::string what, std::string way_out) {
    if (wrong) diags.error(Code::kUsage, std::move(what), {}, {std::move(way_out)});
  };
  refuse(a.resume and not a.weights.empty(), "--resume and --weights both say where the weights come from", "leave one of them out");
  refuse(a.pre_batched and not a.batch.empty(), "--batch says how many samples make a batch, and --pre-batched data are batches already", "leave one of them out");
  refuse(a.pre_batched and std::ranges::any_of(a.set, [](const std::string& set) { return set.starts_with("data.batch_size"); }), "data.batch_size says how many samples make a batch, and --pre-batched data are batches already", "leave one of them out");
  refuse(a.quiet and a.verbose, "--quiet asks for no messages, and --verbose for more of them", "leave one of them out");
  refuse(not a.trace.empty() and a.dry_run, "--dry-run leaves no file, and so no --trace", "leave one of them out; --steps 10 makes a short run");
  diags.throw_if_errors();
}

ToldRun told(const Job& job, const Arguments& arguments, std::int64_t batch_size) {
  return {.program = job.session.program(),
          .model_name = job.plan.model_name,
          .batch_symbol = job.plan.batch_symbol,
          .calls = calls_of(job, arguments),
          .batch_size = batch_size,
          .run_dir = arguments.run_dir,
          .all_weights = arguments.verbose,
          .counts_samples = not arguments.pre_batched};
}

/// Where the files of a run will go.
std::string folder_of_files(const Arguments& arguments) { return not arguments.out.empty() ? folder_of(arguments.out) : arguments.run_dir; }

std::string ending_text(const Recipe& recipe, const Arguments& arguments, const TrainResult& result) {
  const std::string model = arguments.out.empty() ? "" : fmt::format("; the trained {} {}", exports_adapters_alone(recipe) ? "adapters are" : "model is", arguments.out);
  const std::string weights = result.not_restored         ? ", with the weights after the last step, not those of the best epoch"
                              : result.restored_epoch > 0 ? fmt::format(", with the weights of epoch {}, the best one", result.restored_epoch)
                                                          : "";
  if (result.end == TrainResult::End::kOutOfTime) return fmt::format("Out of time after step {}{}{}", result.steps, weights, model);
  if (result.end == TrainResult::End::kNoProgress) return fmt::format("Stopped early after epoch {}{}{}", result.epochs, weights, model);
  if (result.end == TrainResult::End::kDone) {
    if (result.steps == result.earlier_steps) return fmt::format("All {} steps were done before: nothing was trained; {} asks for more{}", result.steps, arguments.steps > 0 ? "--steps" : "--epochs", model);
    return fmt::format("Trained {} steps in {}{}", result.steps - result.earlier_steps, human_duration(result.seconds), weights + model);
  }
  std::string text = fmt::format("Stopped after step {}", result.steps);
  if (not arguments.run_dir.empty()) text += "; the same command with --resume goes on";
  if (not arguments.out.empty()) text += "; the weights as they are now were written to " + arguments.out;
  else if (arguments.run_dir.empty()) text += "; nothing was saved, because there is neither --run-dir nor --out";
  return text;
}

/// A trained model that cannot be written where it was to go goes where there is room: it is all that a run without a run folder leaves. "" if it could not be written there either.
std::string save_elsewhere(Job& job, const Recipe& recipe, const Arguments& arguments) {
  if (not arguments.run_dir.empty()) return "";  // its last checkpoint has the weights
  const char* scratch = std::getenv("TMPDIR");
  for (const std::string& folder : {std::string("."), std::string(scratch != nullptr and *scratch != '\0' ? scratch : "/var/tmp")}) {
    std::string path = folder + "/rescued-" + file_name_of(arguments.out);
    for (int i = 1; file_exists(path); ++i) path = fmt::format("{}/rescued-{}-{}", folder, i, file_name_of(arguments.out));
    try {
      job.runner->save([&](const StateReader& reader) { save_trained(recipe, job.plan.onnx_model, job.session, path, reader); }, StepRunner::Kept::kModel);
      return path;
    } catch (const Error&) { continue; }  // the first place's error is what is told
  }
  return "";
}

Error said_where(const Error& error, const std::string& elsewhere, const Arguments& arguments) {
  std::vector<Diag> diags = error.diags();
  if (not elsewhere.empty()) diags.front().notes.push_back(fmt::format("the trained model was written to {} instead", elsewhere));
  else if (not arguments.run_dir.empty()) diags.front().notes.emplace_back("the weights are in the newest checkpoint: with room there, the same command with --resume writes the model");
  return Error(std::move(diags));
}

/// What is left to do and to say when the steps are over; the exit code.
int finish_training(Job& job, const Recipe& recipe, const Arguments& arguments, const TrainResult& result, Progress& progress, std::optional<DryRun>& dry) {
  if (dry) {
    dry->finish(recipe, job.plan.onnx_model, result.steps);
    progress.say(DryRun::kDone);
  } else {
    const bool takes_averages = result.end != TrainResult::End::kStopRequested and not result.wants_validated();
    if (takes_averages) job.replicas.gather_states(true, plan::kEmaSuffix);
    const bool averaged = takes_averages and take_averages(job.session, *job.runner);
    StepRunner::KeepState keep;
    if (not arguments.out.empty()) keep = [&](const StateReader& reader) { save_trained(recipe, job.plan.onnx_model, job.session, arguments.out, reader); };
    try {
      job.runner->save(keep, StepRunner::Kept::kModel);  // in all processes
    } catch (const Error& error) {
      if (error.exit_code() != exit_code(Code::kFileWrite) or job.replicas.processes() > 1) throw;
      throw said_where(error, save_elsewhere(job, recipe, arguments), arguments);
    }
    progress.say(ending_text(recipe, arguments, result));
    if (averaged and not arguments.out.empty()) progress.say("Its weights are the moving averages of those that were trained (train.ema_decay)");
  }
  if (arguments.json) {
    JsonLine line;
    line.text("kind", "result").integer("steps", result.steps).integer("epochs", result.epochs).number("seconds", result.seconds);
    for (const auto& [name, value] : result.values) line.number(name, value);
    print_data(line.str() + "\n");
  }
  return result.end == TrainResult::End::kStopRequested ? stop_code(arguments) : 0;
}

}  // namespace

namespace {

/// All processes of a run must have the same before the first step: they exchange nothing but gradients.
void require_same_job(Communicator& processes, const Job& job, const Arguments& a, const Recipe& recipe, const BoundArrays& data, const std::optional<BoundArrays>& valid, std::int64_t batch) {
  const std::string how = fmt::format("{} {} {} {} {} {} {} {} {} {} {} {} {} {}", job.replicas.local(), batch, a.no_shuffle, a.pre_batched, a.steps, a.limit, a.shards, a.check_every, a.save_steps, a.log_every,
                                      a.log_grad_norms, a.log_histograms, a.dry_run, a.shard_optimizer);
  const MappedFile plan(a.plan);
  require_same(processes, std::array<std::pair<std::string, std::uint64_t>, 5>{std::pair("another plan", hash_of(plan.bytes())),
                                                                               {"another recipe", hash_of(to_json(recipe))},
                                                                               {"other data", data.hash()},
                                                                               {"other data to validate on", valid ? valid->hash() : 0},
                                                                               {"another command line", hash_of(how)}});
}

/// Each process of a launcher that MPI does not know would train alone, and all write the same files.
void require_all_connected(const Communicator& processes) {
  const std::optional<LaunchedRank> launched = launched_rank();
  if (not launched or launched->size == processes.size()) return;
  throw Error(Code::kUsage, fmt::format("the launcher started {} processes, and MPI connects {} of them", launched->size, processes.size()), {},
              {"start them with the mpirun of the MPI that Hone was built with, or with srun --mpi=pmix"});
}

void say_replicas(Progress& progress, const Job& job, const Arguments& arguments, std::int64_t batch) {
  const int replicas = job.replicas.total();
  if (replicas == 1) return;
  const std::string where = job.replicas.processes() == 1 ? fmt::format("{} logical devices", replicas)
                            : job.replicas.local() == 1   ? fmt::format("{} processes", replicas)
                                                          : fmt::format("{} processes of {} logical devices", job.replicas.processes(), job.replicas.local());
  if (arguments.pre_batched and job.plan.batch_symbol.empty()) progress.say(fmt::format("{} replicas in {}: the model's sizes are fixed, so each batch of the data goes to one of them, and the others wait", replicas, where));
  else if (arguments.pre_batched) progress.say(fmt::format("{} replicas in {}: each batch of the data is split among them", replicas, where));
  else progress.say(fmt::format("{} replicas in {}: {} samples a step, {} for each", replicas, where, batch, batch % replicas == 0 ? std::to_string(batch / replicas) : fmt::format("{} or {}", batch / replicas, batch / replicas + 1)));
}

int train_here(const Arguments& arguments, Communicator* processes) {
  std::optional<Trace> trace;  // outlives all that writes to it
  if (not arguments.trace.empty()) trace.emplace();
  const auto train_sources = parse_data("--train", arguments.train), valid_sources = parse_data("--valid", arguments.valid);
  check_outputs(arguments, {train_sources, valid_sources});
  if (not arguments.out.empty()) check_ending("--out", arguments.out, kTrainedFile);
  Job job(arguments, processes);
  const TrainEntries entries = {.step = &entry_with_loss(job, plan::kTrainStep),
                                .step_norms = job.session.has_entry(plan::kTrainStepNorms) ? &job.session.entry(plan::kTrainStepNorms) : nullptr,
                                .accumulate = job.session.has_entry(plan::kAccumulateStep) ? &job.session.entry(plan::kAccumulateStep) : nullptr,
                                .evaluate = &entry_with_loss(job, plan::kEvalStep)};
  Recipe recipe = recipe_for(job.plan, arguments, BatchFlag::kNumberOrAuto);
  if (arguments.dry_run) recipe.train.epochs = 1;
  follow_recipe(job.session, recipe);
  BoundArrays data = open_data(job, recipe, *entries.step, "--train", train_sources, arguments.pre_batched);
  settle_batch(recipe, job, arguments, data.length());
  std::optional<BoundArrays> valid;
  if (not valid_sources.empty()) valid = open_data(job, recipe, *entries.evaluate, "--valid", valid_sources, arguments.pre_batched);
  const std::int64_t batch = global_batch(job, recipe, arguments, data.fixed_batch());
  if (processes != nullptr) require_same_job(*processes, job, arguments, recipe, data, valid, batch);
  const bool has_epochs = recipe.train.epochs > 1 and (arguments.steps == 0 or arguments.steps > data.length() / batch);
  if (processes == nullptr and has_epochs) {  // processes of a machine have one copy of a mapped file
    data.keep_as_bytes();
    if (valid) valid->keep_as_bytes();
  }
  Progress progress = Progress::to_standard_error(arguments.quiet);
  say_replicas(progress, job, arguments, batch);
  progress.set_batch_size(arguments.pre_batched ? 0 : std::min(batch, data.length()) * (entries.accumulate == nullptr ? 1 : recipe.train.gradient_accumulation_steps));
  say_notes(progress, data);
  say_left_out(progress, data);
  if (valid) {
    say_notes(progress, *valid);
    say_left_out(progress, *valid);
  }
  if (not arguments.quiet) say_summary(progress, told(job, arguments, recipe.data.batch_size));
  if (not arguments.out.empty()) check_trained_file("--out", recipe, arguments.out);
  if (exports_adapters_alone(recipe) and not arguments.out.empty() and not arguments.weights.empty()) {
    const std::string read = adapter_config_of(arguments.weights);  // of which alpha and rank are
    if (file_exists(read)) check_is_no_input("--out", adapter_config_of(arguments.out), {&read, 1});
  }

  GatherOptions gather = gather_for(job.replicas);
  if (processes != nullptr)
    gather.part = [&replicas = job.replicas, at_a_time = std::max<std::int64_t>(data.fixed_batch(), 1)](std::int64_t samples) { return replicas.part_here(samples, at_a_time); };
  BatchReader batches(data, batch, {.shuffle = not arguments.no_shuffle, .buffer = recipe.data.shuffle_buffer, .seed = recipe.train.seed}, gather);
  std::optional<BatchReader> validation;
  if (valid or arguments.dry_run) validation.emplace(valid ? *valid : data, batch, ShuffleOptions{.shuffle = false}, gather);
  Checkpoints checkpoints(arguments.run_dir, job.session, {.keep = arguments.keep, .keep_best = arguments.keep_best or recipe.train.early_stopping_restore_best});
  const bool has_folder = not arguments.run_dir.empty() and not arguments.dry_run;
  std::optional<TrainState> from;
  if (has_folder) from = checkpoints.begin_or_resume(arguments.resume, recipe, batches, progress);
  for (const std::string& file : {arguments.out, arguments.trace})
    if (not file.empty()) AtomicFile writable(file);  // better refused now than after the last epoch; they may be to lie in the run folder
  if (processes != nullptr) from = state_of_first(*processes, from);
  auto* runner = dynamic_cast<ReplicaRunner*>(job.runner.get());
  if (runner != nullptr) {
    runner->set_step(from ? from->step : 0);
    runner->compare_every(arguments.check_every);
  }
  if (arguments.run_dir.empty() and arguments.out.empty() and job.is_first_process() and not arguments.dry_run and not arguments.quiet)
    progress.say("note: neither --out nor --run-dir is given, so nothing of this run will be kept");
  const StopSignals signals;
  TrainOptions options = {.steps = arguments.dry_run ? 1 : arguments.steps,
                          .limit = arguments.limit,
                          .valid_limit = arguments.dry_run ? 1 : 0,
                          .log_every = arguments.log_every,
                          .log_grad_norms = arguments.log_grad_norms,
                          .log_histograms = arguments.log_histograms,
                          .run_dir = has_folder ? arguments.run_dir : "",
                          .checkpoints = has_folder ? &checkpoints : nullptr,
                          .save_steps = arguments.save_steps,
                          .stop_requested = [&] { return signals.came(); }};
  if (trace) {
    options.trace = &trace->add_track("training", "training loop");
    batches.trace(*trace);
    job.trace_replicas(*trace);
  }
  const StopTogether stops(job.replicas.processes() > 1 ? runner : nullptr, recipe.train.max_seconds, options);
  std::optional<DryRun> dry;
  if (arguments.dry_run) dry.emplace(folder_of_files(arguments), job.replicas);
  const TrainResult result = TrainingLoop(*job.runner, entries, recipe, batches, validation ? &*validation : nullptr, options, progress, from).run();
  if (trace) write_trace(*trace, arguments.trace);
  const int exit_code = finish_training(job, recipe, arguments, result, progress, dry);
  if (not arguments.dry_run and not arguments.quiet) say_report(progress, told(job, arguments, recipe.data.batch_size), result);
  if (result.not_restored) throw *result.not_restored;  // when everything is kept that there is
  return exit_code;
}

/// What a process prints and keeps that is not the first one: nothing, but its errors.
Arguments of_other_process(Arguments arguments) {
  arguments.run_dir.clear();
  arguments.out.clear();
  arguments.trace.clear();
  arguments.quiet = true;
  arguments.json = arguments.resume = arguments.keep_best = false;
  return arguments;
}

}  // namespace

int train(const Arguments& arguments) {
  check_flags(arguments);
  if (not started_by_mpi()) return train_here(arguments, nullptr);
  const auto processes = connect_with_mpi({.timeout = timeout_of(arguments.collective_timeout), .version = HONE_VERSION});
  require_all_connected(*processes);
  if (processes->size() == 1) return train_here(arguments, nullptr);
  try {
    const int exit_code = train_here(processes->rank() == 0 ? arguments : of_other_process(arguments), processes.get());
    return exit_code == kExitStopped ? stop_code(arguments) : exit_code;  // the first process has saved for all
  } catch (const Error& error) {
    processes->fail(error.diags().front().message.c_str());
    throw with_note(error, fmt::format("this is rank {} of {}", processes->rank(), processes->size()));
  } catch (const std::exception& error) {
    processes->fail(error.what());
    throw;
  }
}

}  // namespace hone
