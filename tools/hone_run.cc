// hone-run: trains, evaluates and calls a plan. Links no compiler.
#include <fmt/format.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>

#include "base/diag.h"
#include "base/files.h"
#include "base/text.h"
#include "formats/npy.h"
#include "formats/npz.h"
#include "runtime/device/cpu.h"
#include "runtime/device/devices.h"
#include "runtime/train/bench.h"
#include "runtime/train/breakdown.h"
#include "runtime/train/export_onnx.h"
#include "runtime/train/json_line.h"
#include "runtime/train/machine_load.h"
#include "runtime/train/predict.h"
#include "runtime/train/report.h"
#include "runtime/train/summary.h"
#include "runtime/train/trainer.h"
#include "tools/command_line.h"

namespace hone {
namespace {

/// libgomp's threads spin at barriers for milliseconds before they sleep; when another program wants the cores, steps become 10 to 100 times slower. A spin bounded
/// to about 0.1 ms costs nothing on a quiet machine. libgomp reads this while it is loaded, so it takes a second start to say it. Goes on as it is if that fails.
void bound_spinning(char** argv) {
  if (std::getenv("GOMP_SPINCOUNT") != nullptr or std::getenv("OMP_WAIT_POLICY") != nullptr) return;
  char self[4096];
  const ssize_t length = readlink("/proc/self/exe", self, sizeof self - 1);
  if (length <= 0 or setenv("GOMP_SPINCOUNT", "2000", 0) != 0) return;
  self[length] = '\0';
  execv(self, argv);
}

constexpr int kStoppedSaved = 75, kStopped = 130;

volatile std::sig_atomic_t interrupts = 0;  // the one thing that a signal handler may touch

extern "C" void on_interrupt(int) {
  if (interrupts != 0) _exit(kStopped);
  interrupts = 1;
}

/// What the command line says, for all commands.
struct Arguments {
  std::string plan, weights, out, run_dir, device = "auto", workload;
  std::vector<std::string> train, valid, data, in, set, dim;
  std::optional<std::int64_t> epochs, batch, seed;
  std::int64_t steps = 0, log_every = 100, threads = 0;
  double seconds = 3, warm_up = 0.2;
  bool no_shuffle = false, pre_batched = false, quiet = false, verbose = false, json = false, dry_run = false, log_grad_norms = false, breakdown = false;
};

/// A plan on a device, with the weights that were asked for.
struct Job {
  explicit Job(const Arguments& arguments)
      : plan(plan::load(arguments.plan)), session(plan, {.device = arguments.device, .threads = static_cast<int>(arguments.threads)}), runner(session) {
    plan.programs.clear();  // the session has what it needs of them
    if (not arguments.weights.empty()) load_weights(session, arguments.weights);
  }
  plan::Plan plan;  // without its programs
  Session session;
  SessionRunner runner;
};

/// The plan's recipe with what the command line changes. Throws kPlanEntry when the plan can only predict.
Recipe recipe_for(const plan::Plan& plan, const Arguments& arguments) {
  const Recipe stored = plan.recipe_json.empty() ? Recipe{} : recipe_from_json(plan.recipe_json);
  RecipeSource changes;
  for (const std::string& assignment : arguments.set) add_override(changes, assignment);
  const bool own_training = not stored.can_train() and not plan.recipe_json.empty();
  for (const auto& [key, value] : changes.values)
    if (own_training and (key.starts_with("optimizer.") or key.starts_with("schedule.")))
      throw Error(Code::kRecipeKey, fmt::format("{} is set, and the plan trains as its model says itself, which decides the learning rate", key), {},
                  {"compile the model with a recipe that has a loss and an optimizer, or change the model's training algorithm"});
  if (arguments.epochs) add_override(changes, fmt::format("train.epochs={}", *arguments.epochs));
  if (arguments.batch) add_override(changes, fmt::format("data.batch_size={}", *arguments.batch));
  if (arguments.seed) add_override(changes, fmt::format("train.seed={}", *arguments.seed));
  return change_at_run_time(stored, changes);
}

const plan::Entry& entry_with_loss(const Job& job, const char* name) {
  if (job.session.has_entry(name)) return job.session.entry(name);
  throw Error(Code::kPlanEntry, fmt::format("the plan was compiled without a recipe: it can predict, but it has no {}", name), {},
              {"compile it again: hone-compile MODEL.onnx -r train.toml -o PLAN.hone"});
}

BoundArrays open_data(const Job& job, const Recipe& recipe, const plan::Entry& entry, const char* flag, const std::vector<DataSource>& sources, bool pre_batched) {
  return {entry, sources, {.flag = flag, .batch_symbol = job.plan.batch_symbol, .pre_batched = pre_batched, .scale = recipe.data.scale}};
}

void say_notes(Progress& progress, const BoundArrays& data) {
  for (const std::string& note : data.notes()) progress.say("note: " + note);
  if (data.fixed_batch() > 0 and data.length() % data.fixed_batch() != 0)
    progress.say(
        fmt::format("note: the model takes exactly {} samples at a time; the last {} are left out", data.fixed_batch(), data.length() % data.fixed_batch()));
}

std::string values_text(const NamedNumbers& values) {
  std::string text;
  for (const auto& [name, value] : values) text += (text.empty() ? "" : " - ") + metric_text(name, value);
  return text;
}

/// Saves once, to a folder of its own beside where the model will go, and takes it away again.
void try_saving(const Job& job, const Arguments& arguments) {
  std::string beside = not arguments.out.empty() ? folder_of(arguments.out) : not arguments.run_dir.empty() ? arguments.run_dir : ".";
  while (not file_exists(beside)) beside = folder_of(beside);  // a run makes its folder; a dry run leaves none
  const std::string scratch = fmt::format("{}/.hone-dry-run-{}", beside, getpid());
  struct Remover {
    const std::string& folder;
    ~Remover() {
      try {
        remove_tree(folder);
      } catch (const Error& error) { print_message(error.what()); }
    }
  } remover{scratch};
  make_folders(scratch);
  export_onnx(job.plan.onnx_model, job.session, scratch + "/trained.onnx");
}

std::optional<PlannedMemory> planned_for(const Job& job, std::int64_t batch_size) {
  return planned_memory(job.session.program(), job.plan.batch_symbol, batch_size);
}

void say_summary(Progress& progress, const Job& job, const Arguments& arguments, std::int64_t batch_size) {
  progress.say(model_summary(job.session.program(), {.model_name = job.plan.model_name,
                                                     .batch_size = batch_size,
                                                     .planned = planned_for(job, batch_size),
                                                     .all_weights = arguments.verbose,
                                                     .columns = progress.columns()}));
}

/// The run's best epoch, those included that an earlier run went through.
std::optional<BestEpoch> best_of_run(const Arguments& arguments, const Progress& progress) {
  if (arguments.run_dir.empty()) return progress.best();
  RunHistory history;
  for_each_line(arguments.run_dir + "/metrics.jsonl", [&](std::string_view line) { history.add_line(line); });
  return best_epoch(history);
}

void say_report(Progress& progress, const Job& job, const Arguments& arguments, const TrainResult& result, const Dataset& data, std::int64_t batch_size) {
  progress.say(training_report({.steps = result.steps,
                                .samples = arguments.pre_batched ? 0 : samples_of(result.steps, batch_size, data.length()),
                                .seconds = result.seconds,
                                .best = best_of_run(arguments, progress),
                                .peak_bytes = peak_memory_bytes(),
                                .planned = planned_for(job, batch_size),
                                .run_dir = arguments.run_dir}));
}

/// What is left to do and to say when the steps are over.
int finish_training(const Job& job, const Arguments& arguments, const TrainResult& result, Progress& progress) {
  if (arguments.dry_run) {
    try_saving(job, arguments);
    progress.say("Dry run: one step, one evaluation and one save went well; nothing is left of them");
  } else if (not arguments.out.empty()) {
    export_onnx(job.plan.onnx_model, job.session, arguments.out);
  }
  const bool saved = not arguments.dry_run and not arguments.out.empty();
  if (result.interrupted)
    progress.say(fmt::format("Stopped after step {}{}", result.steps,
                             saved ? "; the weights as they are now were written to " + arguments.out : "; nothing was saved, because there is no --out"));
  else if (not arguments.dry_run)
    progress.say(fmt::format("Trained {} steps in {}{}", result.steps, human_duration(result.seconds), saved ? "; the trained model is " + arguments.out : ""));
  if (arguments.json) {
    JsonLine line;
    line.text("kind", "result").integer("steps", result.steps).integer("epochs", result.epochs).number("seconds", result.seconds);
    for (const auto& [name, value] : result.values) line.number(name, value);
    print_data(line.str() + "\n");
  }
  return not result.interrupted ? 0 : saved ? kStoppedSaved : kStopped;
}

/// The plan begins with the seed that it was compiled with.
void set_seed(Session& session, std::int64_t seed) {
  for (const plan::Persistent& persistent : session.program().persistents)
    if (persistent.role == plan::Persistent::Role::kState and persistent.name == plan::kRandomSeed) session.write(persistent.name, Tensor::scalar(seed));
}

int train(const Arguments& arguments) {
  if (arguments.steps < 0 or arguments.log_every < 0)
    throw Error(Code::kUsage, "--steps and --log-every count steps: 0 or more", {}, {"leave them out for all steps, and every 100th"});
  const auto train_sources = parse_data("--train", arguments.train), valid_sources = parse_data("--valid", arguments.valid);
  Job job(arguments);
  const TrainEntries entries = {.step = &entry_with_loss(job, plan::kTrainStep),
                                .step_norms = job.session.has_entry(plan::kTrainStepNorms) ? &job.session.entry(plan::kTrainStepNorms) : nullptr,
                                .evaluate = &entry_with_loss(job, plan::kEvalStep)};
  Recipe recipe = recipe_for(job.plan, arguments);
  set_seed(job.session, recipe.train.seed);
  const BoundArrays data = open_data(job, recipe, *entries.step, "--train", train_sources, arguments.pre_batched);
  std::optional<BoundArrays> valid;
  if (not valid_sources.empty()) valid = open_data(job, recipe, *entries.evaluate, "--valid", valid_sources, arguments.pre_batched);
  Progress progress = Progress::to_standard_error(arguments.quiet);
  progress.set_batch_size(arguments.pre_batched ? 0 : recipe.data.batch_size);
  say_notes(progress, data);
  if (valid) say_notes(progress, *valid);
  if (not arguments.quiet) say_summary(progress, job, arguments, recipe.data.batch_size);
  if (not arguments.out.empty()) AtomicFile writable(arguments.out);  // better refused now than after the last epoch
  TrainOptions options = {.shuffle = not arguments.no_shuffle,
                          .steps = arguments.steps,
                          .log_every = arguments.log_every,
                          .log_grad_norms = arguments.log_grad_norms,
                          .run_dir = arguments.run_dir,
                          .stop_requested = [] { return interrupts != 0; }};
  const BoundArrays* validation = valid ? &*valid : nullptr;
  if (arguments.dry_run) {
    options.steps = 1;
    options.run_dir.clear();
    recipe.train.epochs = 1;
    if (validation == nullptr) validation = &data;
  }
  std::signal(SIGINT, on_interrupt);
  const TrainResult result = Trainer(job.runner, entries, recipe, data, validation, options, progress).fit();
  const int exit_code = finish_training(job, arguments, result, progress);
  if (not arguments.dry_run and not arguments.quiet) say_report(progress, job, arguments, result, data, recipe.data.batch_size);
  return exit_code;
}

int evaluate_plan(const Arguments& arguments) {
  const auto sources = parse_data("--data", arguments.data);
  Job job(arguments);
  const plan::Entry& entry = entry_with_loss(job, plan::kEvalStep);
  const Recipe recipe = recipe_for(job.plan, arguments);
  const BoundArrays data = open_data(job, recipe, entry, "--data", sources, arguments.pre_batched);
  Progress progress = Progress::to_standard_error(arguments.quiet);
  say_notes(progress, data);
  const NamedNumbers values = evaluate(job.runner, entry, data, recipe.data.batch_size);
  JsonLine line;
  for (const auto& [name, value] : values) line.number(name, value);
  print_data((arguments.json ? line.str() : values_text(values)) + "\n");
  return 0;
}

bool is_npz(const std::string& path) { return lower_case(path).ends_with(".npz"); }

int predict_plan(const Arguments& arguments) {
  const bool npy = arguments.out == "-" or lower_case(arguments.out).ends_with(".npy");
  if (not npy and not is_npz(arguments.out))
    throw Error(Code::kUsage, fmt::format("--out {}: expected a name that ends in .npy or .npz", quoted(arguments.out)), {},
                {".npz holds every output by name"});
  const auto sources = parse_data("--data", arguments.data);
  Job job(arguments);
  const plan::Entry& entry = job.session.entry(plan::kPredict);
  if (npy and entry.results.size() != 1)
    throw Error(Code::kUsage, fmt::format("--out {}: the model has {} outputs, and .npy holds one array", quoted(arguments.out), entry.results.size()), {},
                {"write to a file that ends in .npz"});
  const Recipe recipe = recipe_for(job.plan, arguments);
  const BoundArrays data = open_data(job, recipe, entry, "--data", sources, arguments.pre_batched);
  Progress progress = Progress::to_standard_error(arguments.quiet);
  say_notes(progress, data);
  const NamedTensors outputs = predict(job.runner, entry, data, recipe.data.batch_size);
  if (npy) write_npy(arguments.out, outputs.at(0).second);
  else write_npz(arguments.out, outputs);
  return 0;
}

int call_plan(const Arguments& arguments) {
  if (not is_npz(arguments.out) and arguments.out != "-")
    throw Error(Code::kUsage, fmt::format("--out {}: expected a name that ends in .npz", quoted(arguments.out)), {}, {"for example --out out.npz"});
  const auto sources = parse_data("--in", arguments.in);
  Job job(arguments);
  std::vector<std::pair<std::string, Array>> inputs;
  for (const DataSource& source : sources) inputs.emplace_back(source.name, Array::open(source));
  write_npz(arguments.out, call(job.runner, job.session.entry(plan::kPredict), inputs));
  return 0;
}

DimBindings dims_from(const std::vector<std::string>& items) {
  DimBindings dims;
  for (const std::string& item : items) {
    const std::size_t equals = item.find('=');
    const auto number = equals == std::string::npos ? std::nullopt : parse_bytes(item.substr(equals + 1));
    if (not number or *number == 0) throw Error(Code::kUsage, fmt::format("--dim {}: expected NAME=NUMBER", quoted(item)), {}, {"for example --dim T=128"});
    dims[item.substr(0, equals)] = static_cast<std::int64_t>(*number);
  }
  return dims;
}

int bench_plan(const Arguments& arguments) {
  if (arguments.steps < 0) throw Error(Code::kUsage, "--steps counts steps: 0 or more", {}, {"leave it out to time as many as --seconds hold"});
  const auto sources = parse_data("--data", arguments.data);
  Job job(arguments);
  const plan::Entry& entry = entry_with_loss(job, plan::kTrainStep);
  const Recipe recipe = recipe_for(job.plan, arguments);
  std::function<void()> start_measuring;
  if (arguments.breakdown) start_measuring = [&] { job.session.measure_steps(entry.name, true); };
  const BenchResult result = bench(job.runner, entry,
                                   {.batch_size = recipe.data.batch_size,
                                    .steps = arguments.steps,
                                    .seconds = arguments.seconds,
                                    .warm_up_seconds = arguments.warm_up,
                                    .learning_rate = recipe.optimizer.learning_rate,
                                    .batch_symbol = job.plan.batch_symbol,
                                    .dims = dims_from(arguments.dim),
                                    .data = sources,
                                    .scale = recipe.data.scale,
                                    .start_measuring = start_measuring});
  const std::vector<StepTime> times = job.session.step_times(entry.name);
  const double per_second = static_cast<double>(result.batch) / result.median;
  if (not arguments.json) {
    print_data(fmt::format("{} steps of {} samples: median {}, p10 {}, p90 {}; {:.0f} samples/s; first step {}, done {} after the start; loss {:.5g} to {:.5g}\n",
                           result.steps, result.batch, human_duration(result.median), human_duration(result.p10), human_duration(result.p90), per_second,
                           human_duration(result.first_step), human_duration(result.process_to_first_step), result.first_loss, result.final_loss) +
               breakdown_text(times, result));
    return 0;
  }
  JsonLine line;
  line.text("workload", arguments.workload.empty() ? job.plan.model_name : arguments.workload)
      .text("framework", "hone")
      .text("variant", recipe.train.precision);
  line.integer("threads", arguments.threads > 0 ? arguments.threads : usable_cores()).integer("batch", result.batch).integer("steps_timed", result.steps);
  line.number("ms_per_step_median", result.median * 1e3)
      .number("ms_p10", result.p10 * 1e3)
      .number("ms_p90", result.p90 * 1e3)
      .number("samples_per_s", per_second);
  line.number("peak_rss_mb", static_cast<double>(peak_memory_bytes()) / (1 << 20)).number("first_loss", result.first_loss).number("final_loss", result.final_loss);
  line.integer("steps_per_chunk", 1).number("other_load", result.other_load).number("first_step_s", result.process_to_first_step);
  line.text("version", "hone " HONE_VERSION).text("cpu", fmt::format("{} x{} {}", host_cpu_model(), sysconf(_SC_NPROCESSORS_ONLN), to_string(host_cpu_level())));
  if (arguments.breakdown) line.object("breakdown", breakdown_json(times, result));
  print_data(line.str() + "\n");
  return 0;
}

int show_devices(const Arguments& arguments) {
  for (const DeviceInfo& device : list_devices()) {
    JsonLine line;
    line.text("device", device.name).text("description", device.description).boolean("usable", device.usable).text("reason", device.reason);
    const std::string text = fmt::format("{:6} {}{}", device.name, device.description, device.usable ? "" : ": cannot be used: " + device.reason);
    print_data((arguments.json ? line.str() : text) + "\n");
  }
  return 0;
}

using Flags = std::vector<Flag>;

Flags with(Flags flags, const Flags& more) {
  flags.insert(flags.end(), more.begin(), more.end());
  return flags;
}

Tool make_tool(Arguments& a) {
  const Flags common = {{"PLAN", "", "the plan that hone-compile wrote", &a.plan, true},
                        {"--weights", "FILE", "an .onnx file to take the weights from", &a.weights},
                        {"--device", "D", "auto or cpu", &a.device},
                        {"--threads", "T", "0: as many as there are cores", &a.threads}};
  const Flags looks = {{"--quiet", "", "no messages but errors", &a.quiet}, {"--json", "", "results as JSON, one object a line", &a.json}};
  const Flags batching = {{"--batch", "B", "samples of a step", &a.batch},
                          {"--pre-batched", "", "the first axis of the data is the batch's number; each slice is fed as it is, in order", &a.pre_batched},
                          {"--set", "KEY=VALUE", "changes a key of the recipe that may still be changed", &a.set}};
  const Flags data = {{"--data", "NAME=FILE,...", "arrays by input name; x is the only input, y the target", &a.data, true}};
  const Flags training = {{"--train", "NAME=FILE,...", "data to train on, by input name; x is the only input, y the target", &a.train, true},
                          {"--valid", "NAME=FILE,...", "data to evaluate after each epoch", &a.valid},
                          {"--epochs", "E", "how often to go through the data", &a.epochs},
                          {"--seed", "S", "of the data's order", &a.seed},
                          {"--no-shuffle", "", "take the samples in their order", &a.no_shuffle},
                          {"--out", "FILE.onnx", "where the trained model goes: the one that came in, with new weights", &a.out},
                          {"--run-dir", "DIR", "where metrics, curves, TensorBoard's events and the recipe go", &a.run_dir},
                          {"--steps", "N", "stop after so many steps", &a.steps},
                          {"--log-every", "N", "steps from line to line in metrics.jsonl; 0: no lines for steps", &a.log_every},
                          {"--log-grad-norms", "", "log the norm of each weight's gradient too", &a.log_grad_norms},
                          {"--dry-run", "", "one step, one evaluation, one save, then stop; nothing is left", &a.dry_run},
                          {"--verbose", "", "list every weight before the start", &a.verbose}};
  const Flags benching = {{"--batch", "B", "samples of a step", &a.batch},
                          {"--steps", "N", "steps to time; 0: as many as --seconds hold", &a.steps},
                          {"--seconds", "S", "how long to time", &a.seconds},
                          {"--warmup", "S", "how long to train before timing", &a.warm_up},
                          {"--data", "NAME=FILE,...", "arrays by input name; without them data are made up", &a.data},
                          {"--breakdown", "", "say where the time goes", &a.breakdown},
                          {"--dim", "NAME=N", "a symbolic size, such as T=128", &a.dim},
                          {"--workload", "W", "what the JSON line calls it", &a.workload},
                          {"--set", "KEY=VALUE", "changes a key of the recipe that may still be changed", &a.set}};
  return {.name = "hone-run",
          .doc = "Trains, evaluates and calls a plan.",
          .commands = {{"train", "train the plan's model on data", with(with(with(common, training), batching), looks), [&a] { return train(a); }},
                       {"eval", "loss and metrics over a data set", with(with(with(common, data), batching), looks), [&a] { return evaluate_plan(a); }},
                       {"predict", "the model's outputs for each sample",
                        with(with(with(common, data), batching), {{"--out", "Y.npy|Y.npz", "where they go", &a.out, true}, looks[0]}),
                        [&a] { return predict_plan(a); }},
                       {"call", "one call with tensors as they are",
                        with(common, {{"--in", "NAME=FILE,...", "tensors by input name; none for a model without inputs", &a.in},
                                      {"--out", "OUT.npz", "where every output goes, by name", &a.out, true}}),
                        [&a] { return call_plan(a); }},
                       {"bench", "time training steps", with(with(common, benching), looks), [&a] { return bench_plan(a); }},
                       {"devices", "what is here and can be used", {looks[1]}, [&a] { return show_devices(a); }}},
          .not_yet = {{"--resume", "going on from a checkpoint"},
                      {"--save-steps", "checkpoints"},
                      {"--keep", "checkpoints"},
                      {"--keep-best", "checkpoints"},
                      {"--replicas", "several devices"},
                      {"--virtual", "several devices"},
                      {"--shards", "several devices"},
                      {"--collective-timeout", "several devices"},
                      {"--memory-growth", "memory limits"},
                      {"--memory-limit", "memory limits"},
                      {"--deterministic", "it is the only way of working here"},
                      {"--trace", "traces of single steps"}}};
}

}  // namespace
}  // namespace hone

int main(int argc, char** argv) {
  hone::bound_spinning(argv);
  hone::Arguments arguments;
  return hone::run_tool(hone::make_tool(arguments), argc, argv);
}
