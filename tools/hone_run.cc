// hone-run: trains, evaluates and calls a plan. Links no compiler.
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <iterator>

#include "base/diag.h"
#include "base/files.h"
#include "base/text.h"
#include "formats/npy.h"
#include "formats/npz.h"
#include "runtime/device/cpu.h"
#include "runtime/collective/mpi_communicator.h"
#include "runtime/data/batches.h"
#include "runtime/device/devices.h"
#include "runtime/train/bench.h"
#include "runtime/train/breakdown.h"
#include "runtime/train/json_line.h"
#include "runtime/train/machine_load.h"
#include "runtime/train/predict.h"
#include "runtime/train/roofline.h"
#include "runtime/train/scaling.h"
#include "runtime/train/training_loop.h"
#include "runtime/train/weights.h"
#include "tools/command_line.h"
#include "tools/run/job.h"
#include "tools/run/train.h"

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
  take_all_cores();  // the second start would find no others
  execv(self, argv);
}

std::string values_text(const NamedNumbers& values) {
  std::string text;
  for (const auto& [name, value] : values) text += (text.empty() ? "" : " - ") + metric_text(name, value);
  return text;
}

int evaluate_plan(const Arguments& arguments) {
  const auto sources = parse_data("--data", arguments.data);
  Job job(arguments);
  const plan::Entry& entry = entry_with_loss(job, plan::kEvalStep);
  const Recipe recipe = recipe_for(job.plan, arguments);
  const BoundArrays data = open_data(job, recipe, entry, "--data", sources, arguments.pre_batched);
  Progress progress = Progress::to_standard_error(arguments.quiet);
  say_notes(progress, data);
  say_left_out(progress, data);
  BatchReader batches(data, global_batch(job, recipe, arguments, data.fixed_batch()), {.shuffle = false}, gather_for(job.replicas));
  const NamedNumbers values = evaluate(*job.runner, entry, batches, {.say = [&](const std::string& text) { progress.say(text); }}).value();  // nobody asks it to stop
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
  check_outputs(arguments, {sources});
  Job job(arguments);
  const plan::Entry& entry = job.session.entry(plan::kPredict);
  if (npy and entry.results.size() != 1)
    throw Error(Code::kUsage, fmt::format("--out {}: the model has {} outputs, and .npy holds one array", quoted(arguments.out), entry.results.size()), {},
                {"write to a file that ends in .npz"});
  const Recipe recipe = recipe_for(job.plan, arguments);
  const BoundArrays data = open_data(job, recipe, entry, "--data", sources, arguments.pre_batched);
  Progress progress = Progress::to_standard_error(arguments.quiet);
  say_notes(progress, data);
  const NamedTensors outputs = predict(*job.runner, entry, data, recipe.data.batch_size);
  if (npy) write_npy(arguments.out, outputs.at(0).second);
  else write_npz(arguments.out, outputs);
  return 0;
}

int call_plan(const Arguments& arguments) {
  if (not is_npz(arguments.out) and arguments.out != "-")
    throw Error(Code::kUsage, fmt::format("--out {}: expected a name that ends in .npz", quoted(arguments.out)), {}, {"for example --out out.npz"});
  const auto sources = parse_data("--in", arguments.in);
  check_outputs(arguments, {sources});
  Job job(arguments);
  NamedArrays inputs;
  for (const DataSource& source : sources) inputs.emplace_back(source.name, Array::open(source));
  write_npz(arguments.out, call(*job.runner, job.session.entry(plan::kPredict), inputs));
  return 0;
}

std::vector<std::int64_t> devices_to_simulate(const Job& job, const Arguments& arguments) {
  std::vector<std::int64_t> devices;
  if (arguments.simulate.empty()) return devices;
  if (not job.replicas.is_alone()) throw Error(Code::kUsage, "--simulate measures the step of one replica", {}, {"leave out --virtual and --replicas"});
  if (not(arguments.network > 0) or not(arguments.latency >= 0)) throw Error(Code::kUsage, "--network is more than 0 GB/s, and --latency 0 microseconds or more", {}, {"leave them out for 10 Gbit/s and 20 us"});
  for (const std::string& item : split(arguments.simulate, ',')) {
    const auto number = parse_bytes(item);
    if (not number or *number == 0 or *number > 1'000'000) throw Error(Code::kUsage, fmt::format("--simulate {}: expected numbers of devices", quoted(arguments.simulate)), {}, {"for example --simulate 8,64,1024"});
    devices.push_back(static_cast<std::int64_t>(*number));
  }
  return devices;
}

int bench_plan(const Arguments& arguments) {
  if (arguments.steps < 0) throw Error(Code::kUsage, "--steps counts steps: 0 or more", {}, {"leave it out to time as many as --seconds hold"});
  if (not(arguments.seconds >= 0) or not(arguments.warm_up >= 0)) throw Error(Code::kUsage, "--seconds is how long to time, and --warmup how long to train before: 0 or more", {}, {"leave them out for what hone-run bench --help says"});
  const auto sources = parse_data("--data", arguments.data);
  check_outputs(arguments, {sources});
  std::optional<Trace> trace;  // outlives all that writes to it
  if (not arguments.trace.empty()) trace.emplace();
  Job job(arguments);
  const std::string replica_step = plan::replica_entry(plan::kTrainStep);
  const std::vector<std::int64_t> simulated = devices_to_simulate(job, arguments);
  const plan::Entry& entry = entry_with_loss(job, simulated.empty() ? plan::kTrainStep : replica_step.c_str());
  Recipe recipe = recipe_for(job.plan, arguments, BatchFlag::kNumberOrAuto);
  follow_recipe(job.session, recipe);
  const DimBindings dims = sizes_of_flag(arguments.dim, 1);
  std::vector<std::string> sizes;
  for (const plan::Feed& feed : entry.feeds)
    for (const Dim& dim : feed.shape) std::ranges::copy(dim.symbols(), std::back_inserter(sizes));
  require_sizes(dims, std::move(sizes));
  constexpr std::int64_t kMostSamples = 1 << 20;  // of made-up data
  settle_batch(recipe, job, arguments, kMostSamples);
  const std::string measured = job.replicas.is_alone() ? entry.name : replica_step;
  std::function<void()> start_measuring;
  if (arguments.breakdown or arguments.roofline or not simulated.empty()) start_measuring = [&] { job.session.measure_steps(measured, true); };
  std::vector<StepTime> times;
  const auto start_tracing = [&] {
    times = job.session.step_times(measured);
    job.session.measure_steps(measured, false);
    job.trace_replicas(*trace);
    return &trace->add_track("training", "benchmark");
  };
  if (not arguments.trace.empty()) AtomicFile writable(arguments.trace);
  const BenchResult result = bench(*job.runner, entry,
                                   {.batch_size = global_batch(job, recipe, arguments, 0),
                                    .steps = arguments.steps,
                                    .seconds = arguments.seconds,
                                    .warm_up_seconds = arguments.warm_up,
                                    .learning_rate = recipe.optimizer.learning_rate,
                                    .batch_symbol = job.plan.batch_symbol,
                                    .gather = gather_for(job.replicas),
                                    .dims = dims,
                                    .data = sources,
                                    .scale = recipe.data.scale,
                                    .start_measuring = start_measuring,
                                    .start_tracing = trace ? std::function<TraceTrack*()>(start_tracing) : nullptr});
  if (trace) write_trace(*trace, arguments.trace);
  else times = job.session.step_times(measured);
  const std::optional<Roof> roof = arguments.roofline ? std::optional(roof_of(job.session)) : std::nullopt;
  const Network network = {.bytes_per_second = arguments.network * 1e9, .latency = arguments.latency * 1e-6};
  const double per_second = static_cast<double>(result.batch) / result.median;
  if (not arguments.json) {
    print_data(fmt::format("{} steps of {} samples: median {}, p10 {}, p90 {}; {:.0f} samples/s; first step {}, done {} after the start; loss {:.5g} to {:.5g}\n",
                           result.steps, result.batch, human_duration(result.median), human_duration(result.p10), human_duration(result.p90), per_second,
                           human_duration(result.first_step), human_duration(result.process_to_first_step), result.first_loss, result.final_loss) +
               (arguments.breakdown ? breakdown_text(times, result) : "") + (roof ? roofline_text(times, result, *roof) : "") +
               (simulated.empty() ? "" : scaling_text(timeline_of(entry, times), simulated, network)));
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
  if (roof) line.object("roofline", roofline_json(times, result, *roof));
  if (not simulated.empty()) line.object("simulated", scaling_json(timeline_of(entry, times), simulated, network));
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
  for (const LibraryInfo& library : list_libraries()) {
    JsonLine line;
    line.text("library", library.name).text("version", library.version).boolean("usable", not library.version.empty()).text("reason", library.reason);
    const std::string text = fmt::format("{:6} {}", "", library.version.empty() ? fmt::format("{} cannot be used: {}", library.name, library.reason) : fmt::format("{} {}", library.name, library.version));
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
                        {"--weights", "FILE", "an .onnx or .safetensors file, or a checkpoint, to take the weights from", &a.weights},
                        {"--device", "D", "auto, or one that hone-run devices lists: cpu, cuda, cuda:1; cuda:0,1 for a replica on each", &a.device},
                        {"--threads", "T", "0: as many as there are cores", &a.threads},
                        {"--deterministic", "", "take the algorithms that a device's libraries recommend, not those that a timing chose: the same bits in every run on such a device", &a.deterministic},
                        {"--choices", "FILE.json", "where a device keeps what it chose by timing; without it hone/choices.json in the folder for caches", &a.choices}};
  const Flags looks = {{"--quiet", "", "no messages but errors", &a.quiet}, {"--json", "", "results as JSON, one object a line", &a.json}};
  const Flags batching = {{"--batch", "B", "samples of a step; training takes auto: as many as fit into the memory", &a.batch},
                          {"--pre-batched", "", "the first axis of the data is the batch's number; each slice is fed as it is, in order", &a.pre_batched},
                          {"--set", "KEY=VALUE", "changes a key of the recipe that may still be changed", &a.set}};
  const Flags devices = {{"--virtual", "V", "logical devices on each physical one, each with weights, memory and threads of its own", &a.virtual_devices},
                         {"--replicas", "R", "that train or evaluate together, each on a device; without it as many as there are devices", &a.replicas},
                         {"--global-batch", "", "--batch is what all replicas get together, not each of them", &a.global_batch}};
  const Flags data = {{"--data", "NAME=FILE,...", "arrays by input name; x is the only input, y the target", &a.data, true}};
  const Flags training = {{"--train", "NAME=FILE,...", "data to train on, by input name; x is the only input, y the target", &a.train, true},
                          {"--valid", "NAME=FILE,...", "data to evaluate after each epoch; rows of the same files will do: x=X.npy[9000:],y=Y.npy[9000:]", &a.valid},
                          {"--epochs", "E", "how often to go through the data", &a.epochs},
                          {"--seed", "S", "of the data's order", &a.seed},
                          {"--no-shuffle", "", "take the samples in their order", &a.no_shuffle},
                          {"--out", "FILE.onnx", "where the trained model goes: the one that came in, with new weights; or the weights alone, as .safetensors", &a.out},
                          {"--run-dir", "DIR", "where checkpoints, metrics, curves, TensorBoard's events and the recipe go", &a.run_dir},
                          {"--resume", "", "go on from the newest sound checkpoint in --run-dir", &a.resume},
                          {"--save-steps", "N", "a checkpoint every so many steps, too, not only after every epoch", &a.save_steps},
                          {"--keep", "K", "how many checkpoints stay: the newest", &a.keep, false, "--run-dir"},
                          {"--keep-best", "", "and that of the best epoch", &a.keep_best},
                          {"--steps", "N", "stop after so many steps", &a.steps},
                          {"--limit", "N", "batches of an epoch at most", &a.limit},
                          {"--max-time", "S", "stop after so many seconds", &a.max_time},
                          {"--log-every", "N", "steps from line to line in metrics.jsonl; 0: no lines for steps", &a.log_every, false, "--run-dir"},
                          {"--log-grad-norms", "", "log the norm of each weight's gradient too", &a.log_grad_norms, false, "--run-dir"},
                          {"--log-histograms", "", "show TensorBoard how each weight is spread, after every epoch", &a.log_histograms, false, "--run-dir"},
                          {"--shards", "S", "form gradients as S partial sums, in a fixed order: the same weights for 1 to S replicas, bit by bit", &a.shards},
                          {"--shard-optimizer", "", "each replica updates its part of the weights, and holds that part of the optimizer's states alone: the same weights, bit by bit", &a.shard_optimizer},
                          {"--collective-timeout", "T", "how long replicas in other processes are waited for: 60s, 500ms", &a.collective_timeout},
                          {"--memory-limit", "BYTES", "what each replica may take, 4GiB for example: a batch that does not fit is refused before the start", &a.memory_limit},
                          {"--memory-growth", "", "take a device's memory when it is needed: a batch is not refused before the start", &a.memory_growth},
                          {"--check-every", "K", "compare the weights of all replicas every so many steps, before each save and before the trained model is written; 0: only at the start", &a.check_every},
                          {"--trace", "FILE.json", "when each thread ran what in the last steps, for ui.perfetto.dev", &a.trace},
                          {"--dry-run", "", "one step, one evaluation, one save, one resume, then stop; nothing is left", &a.dry_run},
                          {"--verbose", "", "list every weight before the start", &a.verbose}};
  const Flags benching = {{"--batch", "B", "samples of a step; auto: as many as fit into the memory", &a.batch},
                          {"--memory-limit", "BYTES", "what each replica may take, 4GiB for example: a batch that does not fit is refused", &a.memory_limit},
                          {"--steps", "N", "steps to time; 0: as many as --seconds hold", &a.steps},
                          {"--seconds", "S", "how long to time", &a.seconds},
                          {"--warmup", "S", "how long to train before timing", &a.warm_up},
                          {"--data", "NAME=FILE,...", "arrays by input name; without them data are made up", &a.data},
                          {"--breakdown", "", "say where the time goes", &a.breakdown},
                          {"--roofline", "", "say how near each kernel is to what this machine can do, which is measured, or its device, by its clocks", &a.roofline},
                          {"--trace", "FILE.json", "when each thread ran what in twenty more steps, for ui.perfetto.dev", &a.trace},
                          {"--simulate", "N,N,...", "what a step would take on so many devices", &a.simulate},
                          {"--network", "GB/s", "of each device, for --simulate", &a.network, false, "--simulate"},
                          {"--latency", "US", "microseconds of a message, for --simulate", &a.latency, false, "--simulate"},
                          {"--dim", "NAME=N", "a symbolic size, such as T=128", &a.dim},
                          {"--workload", "W", "what the JSON line calls it", &a.workload, false, "--json"},
                          {"--set", "KEY=VALUE", "changes a key of the recipe that may still be changed", &a.set}};
  return {.name = "hone-run",
          .doc = "Trains, evaluates and calls a plan.",
          .commands = {{"train", "train the plan's model on data", with(with(with(with(common, devices), training), batching), looks), [&a] { return train(a); }},
                       {"eval", "loss and metrics over a data set", with(with(with(with(common, devices), data), batching), looks), [&a] { return evaluate_plan(a); }},
                       {"predict", "the model's outputs for each sample",
                        with(with(with(common, data), batching), {{"--out", "Y.npy|Y.npz", "where they go", &a.out, true}, looks[0]}),
                        [&a] { return predict_plan(a); }},
                       {"call", "one call with tensors as they are",
                        with(common, {{"--in", "NAME=FILE,...", "tensors by input name; none for a model without inputs", &a.in},
                                      {"--out", "OUT.npz", "where every output goes, by name", &a.out, true}}),
                        [&a] { return call_plan(a); }},
                       {"bench", "time training steps", with(with(with(common, devices), benching), looks), [&a] { return bench_plan(a); }},
                       {"devices", "what is here and can be used", {looks[1]}, [&a] { return show_devices(a); }}}};
}

}  // namespace
}  // namespace hone

int main(int argc, char** argv) {
  hone::bound_spinning(argv);
  hone::Arguments arguments;
  const int exit_code = hone::run_tool(hone::make_tool(arguments), argc, argv);
  if (not hone::mpi_is_unfinished()) return exit_code;
  std::fflush(nullptr);
  std::_Exit(exit_code);  // MPI's own end would wait for replicas that have failed
}
