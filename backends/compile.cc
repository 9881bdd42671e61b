#include "backends/compile.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "backends/arithmetic.h"
#include "backends/early_order.h"
#include "backends/epilogues.h"
#include "backends/explain.h"
#include "backends/node_story.h"
#include "backends/own_parts.h"
#include "backends/panels.h"
#include "backends/parts.h"
#include "backends/prepare_graph.h"
#include "backends/schedule.h"
#include "backends/step_nodes.h"
#include "backends/targets.h"
#include "base/parallel.h"
#include "base/text.h"
#include "ir/ops/ops.h"
#include "ir/ops/window.h"
#include "ir/print.h"
#include "passes/precision.h"
#include "runtime/library/arena.h"
#include "runtime/plan/adapters.h"

namespace hone {

namespace {

/// For every fed integer that indexes something: the range in which it must be. Looks through casts, reshapes and arithmetic-free ops.
void derive_index_bounds(Graph& graph) {
  Builder builder(graph);
  for (const Node& node : graph.nodes()) {
    if (*node.op != op::gather) continue;
    ValueId index = node.operands[1];
    while (graph.is_op(index, op::reshape) or graph.is_op(index, op::cast) or graph.is_op(index, op::transpose)) index = graph.producer(index).operands[0];
    const Input* input = graph.input_of(index);
    if (input == nullptr or input->role != Role::kInput or not is_integer(graph.type(index).dtype)) continue;
    const Dim extent = graph.type(node.operands[0]).shape[static_cast<std::size_t>(node.attrs[kAxis])];
    if (extent.is_constant()) builder.set_bounds(index, Dim(0) - extent, extent);
  }
}

/// Does the model's own training feed `input`?
bool is_given(const OwnTraining* own, const Input& input) { return own != nullptr and own->step and own->step->find_input(input.name) != nullptr; }

/// Is `input` the only one that the model's own training, `step`, adds to its graph?
bool is_target(const Graph& imported, const Graph& step, const Input& input) {
  return std::none_of(step.inputs().begin(), step.inputs().end(), [&](const Input& other) {
    return other.role == Role::kInput and other.name != input.name and imported.find_input(other.name) == nullptr;
  });
}

plan::Feed describe_feed(const Graph& imported, const Recipe& recipe, const OwnTraining* own, const Graph& graph, const Input& input) {
  plan::Feed feed;
  feed.name = input.name;
  feed.dtype = graph.type(input.value).dtype;
  feed.shape = graph.type(input.value).shape;
  if (imported.find_input(input.name) != nullptr) feed.kind = plan::Feed::Kind::kModelInput;
  else if (recipe.can_train() and input.name.starts_with("learning_rate")) feed.kind = plan::Feed::Kind::kLearningRate;
  else if (is_given(own, input)) feed.kind = is_target(imported, *own->step, input) ? plan::Feed::Kind::kTarget : plan::Feed::Kind::kModelInput;
  else if (input.name.starts_with("first_sample")) feed.kind = plan::Feed::Kind::kFirstSample;
  else feed.kind = input.name.starts_with("sample_weight") ? plan::Feed::Kind::kSampleWeight : plan::Feed::Kind::kTarget;  // with the rate, the four that training adds
  if (input.bounds and input.bounds->first.is_constant() and input.bounds->second.is_constant())
    feed.bounds = {input.bounds->first.value(), input.bounds->second.value()};
  if (feed.kind == plan::Feed::Kind::kTarget and recipe.loss.has_ignore_index) feed.ignored = recipe.loss.ignore_index;
  return feed;
}

/// The model's own training, where that is what is compiled; else null.
const OwnTraining* compiled_training(const Recipe& recipe, const OwnTraining* own, const CompileOptions& options) {
  return options.gradients or recipe.can_train() or own == nullptr or not own->step ? nullptr : own;
}

std::vector<EntryGraph> wanted_entries(const Graph& imported, const Recipe& recipe, const OwnTraining* own, const CompileOptions& options, const Target& target, TrainingReport& report) {
  check_keep_f32(imported, recipe);
  if (not options.gradients) return build_entries(imported, recipe, report, own, options.passes.runs("library") ? &target : nullptr);
  std::vector<EntryGraph> entries;
  entries.push_back({"predict", build_gradient_function(imported, recipe, *options.gradients)});
  return entries;
}

/// The graphs of all entries, ready to be scheduled for the target.
/// `logs`, if given, hear what passes make of the entries: of the first one, or of each.
std::vector<EntryGraph> prepared_entries(const std::vector<EntryGraph>& wanted, const Target& target, const Recipe& recipe, const PassChoice& passes, const TrainingReport& report,
                                         std::span<PassLog> logs = {}) {
  std::vector<EntryGraph> entries(wanted.size());
  on_all_cores(entries.size(), [&](std::size_t i) {
    EntryGraph& entry = entries[i];
    entry = {wanted[i].name, wanted[i].graph.clone(), wanted[i].exchange};
    PassLog* const log = i < logs.size() ? &logs[i] : nullptr;
    prepare_graph(entry.graph, target, recipe, passes, report.narrowed, log);
    derive_index_bounds(entry.graph);
  });
  require_narrow(entries.front().graph, recipe);
  return entries;
}

struct Scheduled {
  KernelSet kernels;
  PersistentSet persistents;
  std::vector<plan::Entry> entries;
  std::map<std::string, StepNodes> nodes;  ///< of the graph of each entry that is called alone, by step
  std::vector<std::string> panels;  ///< how each weight lies that products read
  std::vector<std::string> epilogues;  ///< which pairs of steps are one
  std::vector<std::string> shares;  ///< what replicas can share of the optimizer's states
  std::optional<LimitedProgram> limited;

  std::vector<const Kernel*> kernel_pointers() const {
    std::vector<const Kernel*> pointers;
    for (const Kernel& kernel : kernels.kernels()) pointers.push_back(&kernel);
    return pointers;
  }
};

/// The symbols of all kernels that are called.
std::set<std::string> called(const std::vector<plan::Entry>& entries) {
  std::set<std::string> symbols;
  for (const plan::Entry& entry : entries)
    for (const plan::Step& step : entry.steps) {
      if (const auto* call = std::get_if<plan::KernelStep>(&step.what)) symbols.insert(call->symbol);
      else if (const auto* library = std::get_if<plan::LibraryStep>(&step.what)) {
        if (library->own_kernel) symbols.insert(library->own_kernel->symbol);
        if (library->epilogue) symbols.insert(library->epilogue->kernel.symbol);
      }
      else if (const auto* region = std::get_if<plan::RegionStep>(&step.what)) symbols.merge(called(region->bodies));  // the verifier limits the depth
    }
  return symbols;
}

/// What an entry exchanges, in order.
std::vector<std::string> exchanges_of(const plan::Entry& entry) {
  std::vector<std::string> exchanges;
  for (const plan::Step& step : entry.steps) {
    const auto* exchange = std::get_if<plan::AllReduceStep>(&step.what);
    if (exchange == nullptr) continue;
    exchanges.push_back(fmt::format("bucket {}:", exchange->bucket));
    for (const std::uint32_t buffer : exchange->buffers) exchanges.back() += fmt::format(" {}[{}]", to_string(entry.buffers[buffer].dtype), to_string(entry.buffers[buffer].shape));
  }
  return exchanges;
}

/// Replicas with and without samples meet in every exchange, or wait for each other forever.
void check_same_exchanges(const plan::Entry& step, const plan::Entry& idle) {
  const std::vector<std::string> a = exchanges_of(step), b = exchanges_of(idle);
  HONE_CHECK(a == b, fmt::format("{} exchanges {}; {} {}", step.name, join(a, ", "), idle.name, join(b, ", ")));
}

/// What follows from the replicas' step with norms: the same for a replica that is alone, which asks for norms to look at them and can wait; the steps without norms; and
/// a shard's part, where it does not wait for others.
void add_parts(std::vector<plan::Entry>& entries, const Recipe& recipe) {
  const plan::Entry* norms = plan::find(entries, plan::replica_entry(plan::kTrainStepNorms));
  if (norms == nullptr) return;
  std::vector<plan::Entry> parts = {without_exchanges(*norms, plan::kTrainStepNorms), without_norms(*norms, plan::replica_entry(plan::kTrainStep)),
                                    without_norms(*plan::find(entries, plan::idle_entry(plan::kTrainStepNorms)), plan::idle_entry(plan::kTrainStep))};
  if (not recipe.model.sync_batch_norm) parts.push_back(shard_of(*norms, plan::kShardStep));
  std::ranges::move(parts, std::back_inserter(entries));
}

/// The symbol of the samples' axis, "" if it is fixed.
std::string batch_symbol_of(const Graph& imported) {
  const Dim samples = samples_of(imported);
  return samples.is_symbol() ? samples.text() : "";
}

/// Is the entry of that name what a person on one device trains, evaluates and predicts with?
bool is_called_alone(std::string_view name) {
  for (const char* one : {plan::kTrainStep, plan::kAccumulateStep, plan::kEvalStep, plan::kPredict})
    if (name == one) return true;
  return false;
}

/// Lines are told of entries that are called alone: those for replicas have much the same.
void pair_in_all(Scheduled& scheduled) {
  for (plan::Entry& entry : scheduled.entries) {
    const auto nodes = scheduled.nodes.find(entry.name);
    for (std::string& line : pair_epilogues(entry, scheduled.kernels, nodes == scheduled.nodes.end() ? nullptr : &nodes->second))
      if (is_called_alone(entry.name) or entry.name == plan::replica_entry(plan::kTrainStep)) scheduled.epilogues.push_back(fmt::format("{}: {}", entry.name, line));
  }
}

Scheduled schedule_all(const Graph& imported, const Recipe& recipe, const OwnTraining* own, const CompileOptions& options, const Backend& backend, const std::vector<EntryGraph>& graphs) {
  const PassChoice& passes = options.passes;
  Scheduled scheduled;
  struct Wanted {
    const EntryGraph* entry;
    std::string name;
    Exchange exchange;
    Fusion fusion = {};
  };
  std::vector<Wanted> all;
  for (const EntryGraph& entry : graphs) {
    const bool for_replicas = entry.exchange == Exchange::kNone and exchanges(entry.graph);
    const bool norms = entry.name == plan::kTrainStepNorms;  // alone it is a part of the replicas' step, and that without norms is one for replicas
    if (not(for_replicas and norms)) all.push_back({&entry, entry.name, entry.exchange});
    if (for_replicas and entry.name != plan::kTrainStep) all.push_back({&entry, plan::replica_entry(entry.name), Exchange::kAll});
  }
  on_all_cores(all.size(), [&](std::size_t i) { all[i].fusion = fuse_and_recompute(all[i].entry->graph, passes, all[i].exchange, backend.parallelism()); });
  const DescribeFeed describe = [&](const Graph& graph, const Input& input) { return describe_feed(imported, recipe, own, graph, input); };
  for (Wanted& wanted : all) {
    ScheduledEntry made = schedule(std::move(wanted.fusion), scheduled.kernels, scheduled.persistents, passes, describe);
    scheduled.entries.push_back(std::move(made.entry));
    scheduled.entries.back().name = std::move(wanted.name);
    if (is_called_alone(scheduled.entries.back().name)) scheduled.nodes[scheduled.entries.back().name] = same_nodes(wanted.entry->graph, made.graph, made.nodes);
    if (wanted.entry->exchange == Exchange::kAll) scheduled.entries.back() = without_data(scheduled.entries.back());
  }
  scheduled.persistents.name_constants();
  for (const plan::Entry& entry : scheduled.entries)
    if (const auto* idle = plan::find(scheduled.entries, plan::idle_entry(entry.name))) check_same_exchanges(*plan::find(scheduled.entries, plan::replica_entry(entry.name)), *idle);
  if (backend.wants_panels() and passes.runs("panels")) scheduled.panels = lay_out_in_panels(scheduled.entries, scheduled.persistents.all(), scheduled.kernels);
  add_parts(scheduled.entries, recipe);
  scheduled.shares = share_updates(scheduled.entries, scheduled.persistents.all(), scheduled.kernels);
  if (passes.runs("epilogues")) pair_in_all(scheduled);
  scheduled.kernels.keep(called(scheduled.entries));
  if (options.memory_limit) {
    scheduled.limited = fit_program(scheduled.entries, scheduled.persistents.all(), scheduled.kernels, batch_symbol_of(imported), *options.memory_limit);
    for (const LimitedEntry& limited : scheduled.limited->entries)
      if (const auto found = scheduled.nodes.find(limited.name); found != scheduled.nodes.end() and not limited.step_before.empty()) found->second = nodes_again(found->second, limited.step_before);
  }
  return scheduled;
}

/// Marks what goes back into the .onnx, and takes its data out of the stored model. What sets first values goes: a trained model would forget what it learned.
std::vector<std::byte> skeleton(onnx::ModelProto model, bool own_training, std::vector<plan::Program>& programs) {
  std::multimap<std::string, plan::Persistent*, std::less<>> by_name;
  for (plan::Program& program : programs)
    for (plan::Persistent& persistent : program.persistents)
      if (persistent.role != plan::Persistent::Role::kConstant) by_name.emplace(persistent.name, &persistent);
  const auto strip = [&](onnx::GraphProto& graph) {
    for (auto& tensor : *graph.mutable_initializer()) {
      const auto [first, end] = by_name.equal_range(tensor.name());
      if (first == end) continue;
      for (auto found = first; found != end; ++found) found->second->in_model = true;
      tensor.clear_raw_data();
      tensor.clear_float_data();
      tensor.clear_double_data();
      tensor.clear_int32_data();
      tensor.clear_int64_data();
      tensor.clear_uint64_data();
      tensor.clear_external_data();
      tensor.clear_data_location();
    }
  };
  strip(*model.mutable_graph());
  if (own_training) {
    onnx::TrainingInfoProto& training = *model.mutable_training_info(0);
    strip(*training.mutable_algorithm());
    training.clear_initialization();
    training.clear_initialization_binding();
  }
  std::vector<std::byte> bytes(model.ByteSizeLong());
  HONE_CHECK(model.SerializeToArray(bytes.data(), static_cast<int>(bytes.size())), "the model does not serialize");
  return bytes;
}

/// What goes into files of adapters alone: these, and what else of the model training changes.
void name_for_adapter_files(const std::vector<Adapter>& adapters, std::vector<plan::Persistent>& persistents) {
  for (plan::Persistent& persistent : persistents) {
    for (const Adapter& adapter : adapters)
      if (persistent.name == adapter.a or persistent.name == adapter.b) persistent.exported_as = persistent.name == adapter.a ? adapter.exported_a : adapter.exported_b;
    const bool changes = persistent.trained or persistent.role == plan::Persistent::Role::kState;
    if (not adapters.empty() and persistent.in_model and changes) persistent.exported_as = plan::kExportedPrefix + persistent.name;
  }
}

void mark_narrowed(const std::vector<NarrowedWeight>& narrowed, std::vector<plan::Persistent>& persistents) {
  for (plan::Persistent& persistent : persistents)
    for (const NarrowedWeight& weight : narrowed)
      if (persistent.name == weight.name) persistent.narrowed = plan::Persistent::Narrowed{.outside = weight.outside, .scales = weight.scales, .axis = weight.axis};
}

/// "; arena 1 MiB at batch 32 (at least 1 MiB live at one step; library scratch left out)"; nothing if other sizes stay open.
std::string arena_text(const plan::Entry& entry, const std::string& batch_symbol, std::int64_t batch) {
  const auto size = arena_size(entry, sizes_for(batch_symbol, batch));
  if (not size) return "";
  const auto text = [](std::int64_t bytes) { return human_bytes(static_cast<std::uint64_t>(bytes)); };
  return fmt::format("; arena {} at batch {} (at least {} live at one step; library scratch left out)", text(size->bytes), batch, text(size->lower_bound));
}

/// Each target once, in the order in which they are wanted.
std::vector<const Backend*> backends_of(const CompileOptions& options) {
  std::vector<const Backend*> backends;
  for (const std::string& target : options.targets)
    if (const Backend* backend = &find_backend(target); std::ranges::find(backends, backend) == backends.end()) backends.push_back(backend);
  if (backends.empty()) throw Error(Code::kUsage, "--target names no target", {}, {"leave --target out"});
  return backends;
}

/// Constants that are too large for the text are called as what holds them (backends/step_nodes.h), so that who reads the text finds them.
void name_constants(Graph& graph, const PersistentSet& persistents) {
  Builder builder(graph);
  std::map<std::string, std::size_t> named;
  for (const Input& input : graph.inputs())
    if (input.role == Role::kConstant and input.data and not is_printed(*input.data)) {
      const std::string held = persistents.name_of_constant(graph, input);
      builder.set_name(builder.val(input.value), held.empty() ? fmt::format("{}{}", kUnreadConstant, input.value.index) : name_of_equal(held, named[held]++));
    }
  (void)Rewriter::in_bodies(graph, [&](Graph& body) { return name_constants(body, persistents), Changed::kYes; });  // depth is limited by import and parser
}

std::string kernels_text(const Scheduled& scheduled) {
  std::string text;
  for (const Kernel* kernel : scheduled.kernel_pointers()) text += print(*kernel) + "\n";
  return text;
}

/// The graphs and kernels of a program as text, for who looks at the plan. `target` is "" for the first program.
void add_texts(std::map<std::string, std::string>& texts, const std::string& target, const std::vector<EntryGraph>& graphs, const Scheduled& scheduled) {
  const auto add = [&](const std::string& stage, std::string text) { texts[target.empty() ? stage : stage_for(stage, target)] = std::move(text); };
  for (const EntryGraph& entry : graphs) {
    Graph shown = entry.graph.clone();
    name_constants(shown, scheduled.persistents);
    add(entry.name, print(shown));
  }
  add("kernels", kernels_text(scheduled));
  for (const auto& [entry, nodes] : scheduled.nodes) add(step_nodes_stage(entry), to_text(nodes));
  add(kArithmeticStage, arithmetic_text(scheduled.kernels));
}

/// `scheduled` gives away its entries and persistents.
plan::Program program_of(Scheduled& scheduled, const Backend& backend, const TrainingReport& training, const CompileOptions& options) {
  plan::Program program;
  program.target = backend.name();
  program.code = backend.emit(scheduled.kernel_pointers(), options.levels);
  program.entries = std::move(scheduled.entries);
  program.persistents = std::move(scheduled.persistents).take();
  for (plan::Persistent& persistent : program.persistents)
    persistent.trained = std::ranges::any_of(training.trained, [&](const TrainedWeight& weight) { return weight.name == persistent.name; });
  return program;
}

/// `program` is what was scheduled.
std::string explain_scheduled(const Scheduled& scheduled, const std::vector<EntryGraph>& graphs, const plan::Program& program) {
  std::vector<std::string> updates;
  for (const EntryGraph& graph : graphs)
    if (const auto nodes = scheduled.nodes.find(graph.name); nodes != scheduled.nodes.end())
      for (std::string& line : updates_of(*program.find(graph.name), program.persistents, graph.graph, nodes->second)) updates.push_back(std::move(line));
  return explain_updates(updates) + explain_weights(scheduled.panels) + explain_epilogues(scheduled.epilogues) + explain_shares(scheduled.shares) + (scheduled.limited ? explain_limit(*scheduled.limited) : "");
}

void tell_entries(NodeStory& story, const std::vector<EntryGraph>& graphs, const Backend& backend, const plan::Program& program, const PassChoice& passes, const std::string& batch_symbol,
                  std::int64_t batch) {
  for (const EntryGraph& entry : graphs) {
    const plan::Entry* const scheduled = is_called_alone(entry.name) ? program.find(entry.name) : nullptr;
    if (scheduled == nullptr) continue;
    story.prepared(entry, backend, passes);
    story.scheduled(*scheduled, program.target, program.persistents, batch_symbol, batch);
  }
}

}  // namespace

Compiled compile(ModelSource model, const Recipe& recipe, const CompileOptions& options) {
  const std::vector<const Backend*> backends = backends_of(options);
  Compiled compiled;
  std::optional<NodeStory> story;
  if (not options.explain_node.empty()) story.emplace(options.explain_node, model.proto, model.graph);
  plan::Plan& plan = compiled.plan;
  const OwnTraining* const own_training = compiled_training(recipe, model.own, options);
  for (const Backend* backend : backends) {
    const std::vector<EntryGraph> wanted = wanted_entries(model.graph, recipe, model.own, options, *backend, compiled.training);
    if (backend == backends.front()) {
      if (story) story->built(wanted.front(), backends.size() > 1);
      if (wanted.front().name == plan::kTrainStep) plan.graphs["training"] = print(wanted.front().graph);
    }
    std::vector<PassLog> logs(options.explain and not story ? wanted.size() : 0);
    const std::span<PassLog> told = story and backend == backends.front() ? std::span(&story->log(), 1) : std::span(logs);
    const std::vector<EntryGraph> graphs = prepared_entries(wanted, *backend, recipe, options.passes, compiled.training, told);
    Scheduled scheduled = schedule_all(model.graph, recipe, own_training, options, *backend, graphs);
    add_texts(plan.graphs, backend == backends.front() ? "" : std::string(backend->name()), graphs, scheduled);
    plan.programs.push_back(program_of(scheduled, *backend, compiled.training, options));
    if (story) tell_entries(*story, graphs, *backend, plan.programs.back(), options.passes, batch_symbol_of(model.graph), recipe.data.batch_size);
    if (options.explain and not story) compiled.why += explain(*backend, graphs, logs, recipe, options.passes) + explain_attention(compiled.training.attention) + explain_recurrences(compiled.training.recurrences) + explain_scheduled(scheduled, graphs, plan.programs.back());
    if (backend == backends.front()) compiled.limited = std::move(scheduled.limited);
  }
  plan.model_name = model.name;
  if (not options.gradients and (recipe.can_train() or own_training != nullptr)) plan.recipe_json = to_json(recipe);
  plan.onnx_model = skeleton(std::move(model.proto), own_training != nullptr, plan.programs);
  for (plan::Program& program : plan.programs) {
    name_for_adapter_files(compiled.training.adapters, program.persistents);
    mark_narrowed(compiled.training.narrowed, program.persistents);
  }
  plan.batch_symbol = batch_symbol_of(model.graph);
  plan.graphs["imported"] = print(model.graph);
  compiled.warnings = recipe_warnings(model.graph, recipe);
  if (story) compiled.why = story->text();
  return compiled;
}

std::string summary(const Compiled& compiled, const std::string& path, std::int64_t batch) {
  const plan::Program& program = compiled.plan.programs.front();
  std::int64_t trained = 0;
  for (const plan::Persistent& persistent : program.persistents)
    if (persistent.trained) trained += persistent.initial.element_count();
  std::string text = fmt::format("{}: {} weights trained ({} parameters)", path, compiled.training.trained.size(), trained);
  if (const auto& adapters = compiled.training.adapters; not adapters.empty()) {
    std::vector<std::string> names;
    for (const Adapter& adapter : adapters) names.push_back(adapter.weight);
    text += fmt::format("\n  adapters          {}", printable(join(names, ", "), 500));
  }
  if (not compiled.training.dropped_after.empty()) text += fmt::format("\n  dropout after     {}", printable(join(compiled.training.dropped_after, ", "), 500));
  std::size_t others = 0;
  for (const plan::Entry& entry : program.entries) {
    if (not is_called_alone(entry.name)) {
      ++others;
      continue;
    }
    const auto calls = std::count_if(entry.steps.begin(), entry.steps.end(), [](const plan::Step& step) {
      const auto* region = std::get_if<plan::RegionStep>(&step.what);
      return std::holds_alternative<plan::LibraryStep>(step.what) or (region != nullptr and region->kind == plan::RegionStep::Kind::kCall);
    });
    text += fmt::format("\n  {:<16} {} steps, {} of them library calls{}", entry.name, entry.steps.size(), calls,
                        arena_text(entry, compiled.plan.batch_symbol, batch));
  }
  if (others > 0) text += fmt::format("\n  and {} entries for replicas, shards, gradient norms and saving, which hone-dump lists", others);
  if (compiled.limited) text += "\n" + to_text(*compiled.limited);
  return text;
}

namespace {

struct StageContext {
  const Graph& imported;
  const Recipe& recipe;
  const OwnTraining* own;
  const CompileOptions& options;
  const Backend& backend;
  TrainingReport report = {};
  std::vector<EntryGraph> made = {};  ///< what is scheduled

  std::vector<EntryGraph> raw() { return wanted_entries(imported, recipe, own, options, backend, report); }
  std::vector<EntryGraph> prepared() {
    const std::vector<EntryGraph> wanted = raw();  // which fills the report
    return prepared_entries(wanted, backend, recipe, options.passes, report);
  }
  Scheduled scheduled() {
    made = prepared();
    return schedule_all(imported, recipe, compiled_training(recipe, own, options), options, backend, made);
  }
  /// What the backend makes of the kernels, level by level.
  std::string code(std::string_view kind) { return backend.text(scheduled().kernel_pointers(), kind, options.levels); }
};

struct Stage {
  std::string_view name;
  std::string (*text)(StageContext&);
  std::string_view target = {};  ///< for which alone there is such a thing
};

constexpr Stage kStages[] = {
    {"imported", [](StageContext& c) { return print(c.imported); }},
    {"training", [](StageContext& c) { return print(c.raw().front().graph); }},
    {"optimized", [](StageContext& c) { return print(c.prepared().front().graph); }},
    {"fused",
     [](StageContext& c) {
       const Scheduled scheduled = c.scheduled();
       const EntryGraph& first = c.made.front();
       const auto entry = std::ranges::find(scheduled.entries, first.name, &plan::Entry::name);
       return fused_text(first.graph, scheduled.nodes.at(first.name), entry->steps);
     }},
    {"kernels", [](StageContext& c) { return kernels_text(c.scheduled()); }},
    {"schedule",
     [](StageContext& c) {
       const Scheduled scheduled = c.scheduled();
       std::string text;
       for (const plan::Entry& entry : scheduled.entries) text += print(entry, scheduled.persistents.all()) + "\n";
       return text;
     }},
    {"llvm", [](StageContext& c) { return c.code("llvm"); }},
    {"asm", [](StageContext& c) { return c.code("asm"); }},
    {"ptx", [](StageContext& c) { return c.code("ptx"); }, "cuda"},
};

}  // namespace

const std::vector<std::string>& stage_names() {
  static const std::vector<std::string> names = [] {
    std::vector<std::string> list;
    for (const Stage& stage : kStages) list.emplace_back(stage.name);
    return list;
  }();
  return names;
}

std::string emit_stage(const Graph& imported, const Recipe& recipe, const std::string& wanted, const OwnTraining* own, const CompileOptions& options) {
  for (const Stage& stage : kStages) {
    if (stage.name != wanted) continue;
    StageContext context{imported, recipe, own, options, stage.target.empty() ? *backends_of(options).front() : find_backend(stage.target)};
    return stage.text(context);
  }
  throw Error(Code::kUsage, fmt::format("--emit {}: no such stage", quoted(wanted)), {}, {did_you_mean(wanted, stage_names()), "stages: " + quoted_list(stage_names()) + "; behind --passes also \"hir\""});
}

}  // namespace hone
