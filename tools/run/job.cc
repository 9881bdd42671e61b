#include "tools/run/job.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdlib>

#include "base/checked.h"
#include "base/diag.h"
#include "base/files.h"
#include "base/text.h"
#include "runtime/collective/agreement.h"
#include "runtime/device/drivers.h"
#include "runtime/device/host_memory.h"
#include "runtime/library/arena.h"
#include "runtime/trace.h"
#include "runtime/train/checkpoint.h"
#include "runtime/train/memory_budget.h"
#include "runtime/train/replica_runner.h"
#include "runtime/train/run_log.h"
#include "runtime/train/weights.h"
#include "tools/command_line.h"
#include "tools/output_file.h"

namespace hone {

/// A dry run evaluates on what it trains with.
RunCalls calls_of(const Job& job, const Arguments& arguments) {
  return {.replicas = job.replicas.total(), .shares = job.replicas.optimizer_shares(), .norms = arguments.log_grad_norms, .evaluates = not arguments.valid.empty() or arguments.dry_run};
}

namespace {

constexpr std::int64_t kMostReplicas = 1024;
constexpr const char* kAuto = "auto";

/// How many replicas this process has. A physical device is one logical device, or as many as --virtual says; each has one replica, unless fewer are asked for.
int replicas_here(const Arguments& a) {
  const std::vector<std::string> physical = devices_in(a.device);
  if (a.replicas < 0 or a.virtual_devices < 0 or a.shards < 0)
    throw Error(Code::kUsage, "--replicas, --virtual and --shards are numbers of at least 1", {}, {"leave them out for one replica on one device"});
  const std::int64_t devices = std::max<std::int64_t>(std::min(a.virtual_devices, kMostReplicas + 1), 1) * static_cast<std::int64_t>(physical.size());
  if (devices > kMostReplicas) throw Error(Code::kUsage, fmt::format("--virtual {}: at most {} logical devices", devices, kMostReplicas), {}, {"each has weights and memory of its own"});
  if (a.replicas > devices)
    throw Error(Code::kUsage, fmt::format("--replicas {}: there {} {} device{}", a.replicas, devices == 1 ? "is" : "are", devices, devices == 1 ? "" : "s"), {},
                {fmt::format("--virtual {} makes logical devices out of a physical one; hone-run devices lists those", a.replicas)});
  return static_cast<int>(a.replicas > 0 ? a.replicas : devices);
}

constexpr const char* kMemoryLimit = "--memory-limit";

/// 0: none.
std::int64_t limit_of(const Arguments& arguments) { return arguments.memory_limit.empty() ? 0 : bytes_of_flag(kMemoryLimit, arguments.memory_limit, "4GiB"); }

/// What a replica on a device may take: what it has taken, and its share of what is left there. Replicas on one device are dealt out as evenly as can be.
void set_budget_on_device(MemoryBudget& budget, const Job& job, const Arguments& arguments) {
  const std::size_t devices = devices_in(arguments.device).size();
  const auto sharing = static_cast<std::int64_t>((static_cast<std::size_t>(job.replicas.local()) + devices - 1) / devices);
  const std::int64_t left = checked_cast<std::int64_t>(*job.session.free_device_memory(), "the device's memory") / sharing;
  budget.bytes = left + persistent_bytes(job.session.program().persistents) / job.replicas.optimizer_shares();
  budget.source = sharing == 1 ? fmt::format("{} on its device", human_bytes(static_cast<std::uint64_t>(budget.bytes)))
                               : fmt::format("{} for each of {} replicas on their device", human_bytes(static_cast<std::uint64_t>(budget.bytes)), sharing);
}

/// Of all processes, those whose replicas take the memory of this machine, too.
std::int64_t processes_here(const Job& job) {
  Communicator* all = job.replicas.between_processes();
  const std::uint64_t machine = machine_number();
  return all == nullptr ? 1 : std::ranges::count(numbers_of_all(*all, {&machine, 1}), machine);
}

/// What each replica may take: --memory-limit, or its share of its device's memory, or of most of what the machine has left.
MemoryBudget budget_for(const Job& job, const Arguments& arguments) {
  MemoryBudget budget{.bytes = 0, .calls = calls_of(job, arguments), .source = fmt::format("{} {}", kMemoryLimit, arguments.memory_limit)};
  budget.on_device = job.session.free_device_memory().has_value();
  if (arguments.memory_limit.empty() and budget.on_device) {
    set_budget_on_device(budget, job, arguments);
    return budget;
  }
  if (arguments.memory_limit.empty()) {
    constexpr double kOfWhatIsLeft = 0.8;  // data, code and other programs want some, too
    budget.bytes = static_cast<std::int64_t>(static_cast<double>(available_memory_bytes()) * kOfWhatIsLeft) / (processes_here(job) * job.replicas.local());
    budget.source = fmt::format("{} for each replica, of what the machine has left", human_bytes(static_cast<std::uint64_t>(budget.bytes)));
    return budget;
  }
  budget.bytes = limit_of(arguments);
  return budget;
}

/// --choices, or a file in the user's folder for what can be made anew; "": there is no such folder.
std::string choices_file(const Arguments& arguments) {
  if (not arguments.choices.empty()) return arguments.choices;
  const char *cache = std::getenv("XDG_CACHE_HOME"), *home = std::getenv("HOME");
  if (cache != nullptr and *cache == '/') return std::string(cache) + "/hone/choices.json";
  return home != nullptr and *home == '/' ? std::string(home) + "/.cache/hone/choices.json" : "";
}

/// The preferred driver that has a device that can be used, and no program in the plan; "" if there is none.
std::string unused_driver(const plan::Plan& plan) {
  for (const Driver& driver : all_drivers())
    if (driver.preferred and std::ranges::find(plan.programs, driver.name, &plan::Program::target) == plan.programs.end() and not usable_devices(driver).empty()) return std::string(driver.name);
  return "";
}

std::unique_ptr<StepRunner> runner_for(Job& job) {
  if (job.replicas.is_alone()) return std::make_unique<SessionRunner>(job.session);
  return std::make_unique<ReplicaRunner>(job.replicas, job.plan.batch_symbol);
}

/// A key of the recipe that a flag of its own sets.
struct KeyOfFlag {
  std::string_view key, flag;
};

/// The same error, which names the flags that were given, not the keys that they stand for.
Error said_of_flags(const Error& error, const std::vector<KeyOfFlag>& flags) {
  std::vector<Diag> diags = error.diags();
  for (Diag& diag : diags)
    for (const KeyOfFlag& given : flags)
      if (diag.loc.file == fmt::format("--set {}", given.key)) diag.loc.file = given.flag;
  return Error(std::move(diags));
}

/// What is beyond an int is refused as what is too large for it.
int narrowed(std::int64_t number) { return static_cast<int>(std::clamp<std::int64_t>(number, std::numeric_limits<int>::min(), std::numeric_limits<int>::max())); }

}  // namespace

Job::Job(const Arguments& arguments, Communicator* processes)
    : plan(plan::load(arguments.plan)),
      replicas(plan, {.devices = devices_in(arguments.device), .local = replicas_here(arguments), .processes = processes, .shards = narrowed(arguments.shards), .shard_optimizer = arguments.shard_optimizer},
               {.device = arguments.device, .threads = narrowed(arguments.threads), .memory_limit = static_cast<std::uint64_t>(limit_of(arguments)), .deterministic = arguments.deterministic, .choices_file = choices_file(arguments)}),
      session(replicas.session()),
      runner(runner_for(*this)) {
  if (arguments.device == kAuto)
    if (const std::string unused = unused_driver(plan); not unused.empty())
      print_message(fmt::format("note: there is a device for {} here, and the plan has no program for it: compile the model with --target cpu,{}", unused, unused));
  for (const std::string& note : session.notes()) print_message("note: " + note);
  plan.programs.clear();  // the session has what it needs of them
  if (not arguments.weights.empty()) load_weights(session, plan.recipe_json.empty() ? Recipe{} : recipe_from_json(plan.recipe_json), arguments.weights);
}

void Job::trace_replicas(Trace& trace) {
  for (int i = 0; i < replicas.local(); ++i) replicas.session(i).trace(&trace, replicas.is_alone() ? "device" : fmt::format("replica {}", replicas.first() + i));
}

void check_outputs(const Arguments& arguments, std::initializer_list<std::span<const DataSource>> sources) {
  if (arguments.json and arguments.out == "-") throw Error(Code::kUsage, "--json and --out -: both go to standard output, which would be neither lines of JSON nor a file", {}, {"write to a file, or leave --json out"});
  std::vector<std::pair<std::string_view, std::string>> outputs;
  if (not arguments.run_dir.empty())
    for (const std::string_view name : kRunFiles) outputs.emplace_back("--run-dir", fmt::format("{}/{}", arguments.run_dir, name));
  outputs.emplace_back("--out", arguments.out);
  outputs.emplace_back("--trace", arguments.trace);
  check_differ(outputs);
  std::vector<std::string> inputs = {arguments.plan, arguments.weights};
  if (is_folder(arguments.weights))  // a checkpoint's
    for (const std::string& name : list_folder(arguments.weights)) inputs.push_back(arguments.weights + "/" + name);
  for (const std::span<const DataSource> of_flag : sources)
    for (const DataSource& source : of_flag) inputs.push_back(source.path);
  for (const auto& [flag, path] : {std::pair("--out", &arguments.out), std::pair("--trace", &arguments.trace)})
    if (not path->empty()) {
      check_is_no_input(flag, *path, inputs);
      if (is_checkpoint(folder_of(*path))) throw Error(Code::kUsage, fmt::format("{} {}: that is within a checkpoint, which would not be sound any more", flag, quoted(*path)), {}, {"write to another folder"});
    }
}

void write_trace(const Trace& trace, const std::string& path) {
  const std::string text = trace.to_json();
  write_file_atomically(path, std::as_bytes(std::span(text)));
}

std::int64_t global_batch(const Job& job, const Recipe& recipe, const Arguments& arguments, std::int64_t fixed_batch) {
  const std::int64_t replicas = job.replicas.total(), batch = fixed_batch > 0 ? fixed_batch : recipe.data.batch_size;
  if (fixed_batch > 0 or not arguments.global_batch) return checked_multiply(batch, replicas, "the batch of all replicas");
  if (batch < replicas)
    throw Error(Code::kUsage, fmt::format("a global batch of {} sample{} leaves some of the {} replicas without any in every step", batch, batch == 1 ? "" : "s", replicas), {},
                {"take a larger --batch or fewer replicas"});
  return batch;
}

void settle_batch(Recipe& recipe, const Job& job, const Arguments& arguments, std::int64_t most) {
  const bool choose = arguments.batch == kAuto;
  const bool is_on_device = job.session.free_device_memory().has_value();
  if (not choose and arguments.memory_limit.empty() and (not is_on_device or arguments.memory_growth)) return;
  const MemoryBudget budget = budget_for(job, arguments);
  const plan::Program& program = job.session.program();
  const std::int64_t replicas = job.replicas.total(), of_each = arguments.global_batch ? (recipe.data.batch_size + replicas - 1) / replicas : recipe.data.batch_size;
  if (not choose) {
    if (not require_fits(program, job.plan.batch_symbol, budget, of_each) and not arguments.memory_limit.empty())
      throw Error(Code::kUsage, fmt::format("{}: what a step takes depends on sizes that are known only when it runs", budget.source), {}, {"give the model fixed sizes: hone-compile --dim NAME=SIZE", "or leave --memory-limit out"});
    return;
  }
  if (arguments.pre_batched or arguments.global_batch)
    throw Error(Code::kUsage, "--batch auto is the batch of each replica, of samples that come one by one", {}, {"leave --pre-batched and --global-batch out"});
  recipe.data.batch_size = largest_batch(program, job.plan.batch_symbol, budget, std::max<std::int64_t>(most / replicas, 1));
  if (Communicator* all = job.replicas.between_processes()) {  // each has seen what was left at another moment, or on another machine
    const auto own = static_cast<std::uint64_t>(recipe.data.batch_size);
    recipe.data.batch_size = static_cast<std::int64_t>(std::ranges::min(numbers_of_all(*all, {&own, 1})));
  }
}

Recipe recipe_for(const plan::Plan& plan, const Arguments& arguments, BatchFlag flag) {
  const Recipe stored = plan.recipe_json.empty() ? Recipe{} : recipe_from_json(plan.recipe_json);
  RecipeSource changes;
  for (const std::string& assignment : arguments.set) add_override(changes, assignment);
  const bool own_training = not stored.can_train() and not plan.recipe_json.empty();
  for (const auto& [key, value] : changes.values)
    if (own_training and (key.starts_with("optimizer.") or key.starts_with("schedule.")))
      throw Error(Code::kRecipeKey, fmt::format("{} is set, and the plan trains as its model says itself, which decides the learning rate", key), {},
                  {"compile the model with a recipe that has a loss and an optimizer, or change the model's training algorithm"});
  std::vector<KeyOfFlag> flags;
  const auto set = [&](const KeyOfFlag& given, const auto& value) { add_override(changes, fmt::format("{}={}", given.key, value)), flags.push_back(given); };
  if (arguments.epochs) set({"train.epochs", "--epochs"}, *arguments.epochs);
  if (not arguments.batch.empty() and not(flag == BatchFlag::kNumberOrAuto and arguments.batch == kAuto)) set({"data.batch_size", "--batch"}, arguments.batch);
  if (arguments.max_time != 0) set({"train.max_seconds", "--max-time"}, arguments.max_time);
  if (arguments.seed) set({"train.seed", "--seed"}, *arguments.seed);
  try {
    return change_at_run_time(stored, changes);
  } catch (const Error& error) { throw said_of_flags(error, flags); }
}

const plan::Entry& entry_with_loss(const Job& job, const char* name) {
  if (job.session.has_entry(name)) return job.session.entry(name);
  throw Error(Code::kPlanEntry, fmt::format("the plan was compiled without a recipe: it can predict, but it has no {}", name), {},
              {"compile it again: hone-compile MODEL.onnx -r train.toml -o PLAN.hone"});
}

BoundArrays open_data(const Job& job, const Recipe& recipe, const plan::Entry& entry, const char* flag, const std::vector<DataSource>& sources, bool pre_batched) {
  return {entry, sources, {.flag = flag, .batch_symbol = job.plan.batch_symbol, .pre_batched = pre_batched, .scale = recipe.data.scale, .loss = recipe.loss.kind}};
}

void say_notes(Progress& progress, const BoundArrays& data) {
  for (const std::string& note : data.notes()) progress.say("note: " + note);
}

void say_left_out(Progress& progress, const BoundArrays& data) {
  if (data.fixed_batch() > 0 and data.length() % data.fixed_batch() != 0)
    progress.say(
        fmt::format("note: the model takes exactly {} samples at a time; the last {} are left out", data.fixed_batch(), data.length() % data.fixed_batch()));
}

}  // namespace hone
