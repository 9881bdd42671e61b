#include "tests/random_graphs/compiled.h"

#include <algorithm>

#include "backends/cpu/cpu_target.h"
#include "backends/memory_limit.h"
#include "backends/panels.h"
#include "backends/prepare_graph.h"
#include "backends/schedule.h"
#include "ir/print.h"
#include "passes/precision.h"
#include "tests/random_graphs/draw.h"
#include "tests/support/host_level.h"

namespace hone::test {

namespace {

std::string entry_name(const Graph& graph, Values values) { return graph.name + (values == Values::kMadeAgain ? " made again" : ""); }

/// All that may be left out, but for one.
PassChoice all_but(std::string_view pass) {
  std::string names;
  for (const std::string& name : optional_passes())
    if (name != pass) names += name + ",";
  return PassChoice(names);
}

plan::Feed describe(const Graph& graph, const Input& input) {
  return {.name = input.name, .dtype = graph.type(input.value).dtype, .shape = graph.type(input.value).shape};
}

Recipe recipe_of(const Way& way) {
  Recipe recipe;
  recipe.train.precision = way.precision;
  return recipe;
}

}  // namespace

Making making_of(std::uint64_t seed) {
  static const std::vector<Way> every = {{"all passes", PassChoice(), true}, {"all but the library", all_but("library"), false}, {"no pass", PassChoice("none"), false}};
  static const std::vector<Way> some = [] {
    std::vector<Way> list = {{"bf16", PassChoice(), true, "bf16"}};
    for (const char* pass : {"factor", "loops", "layout", "library", "split", "fuse", "triangles", "panels"}) list.push_back({pass, PassChoice(pass), std::string_view(pass) == "library"});
    return list;
  }();
  Making making{.ways = every, .code = {.cpu = "x86-64-v3", .opt_level = 0}};
  making.ways.push_back(some[seed % some.size()]);
  if (seed / kBatch % 10 == 9) making.code = {.cpu = host_level()};
  return making;
}

bool has_effect(const Graph& graph, const Way& way) {
  const CpuTarget target;
  Graph made = graph.clone(), plain = graph.clone();
  prepare_graph(plain, target, {}, PassChoice("none"));
  prepare_graph(made, target, recipe_of(way), way.is_narrow() ? PassChoice("none") : way.passes);
  if (print(made) != print(plain)) return true;
  const std::size_t nodes = made.node_count();
  Fusion fusion = fuse_and_recompute(made, way.passes);
  if (way.name == "fuse") return fusion.groups.size() < nodes;
  KernelSet kernels;
  PersistentSet persistents;
  std::vector<plan::Entry> entries = {schedule(std::move(fusion), kernels, persistents, way.passes, describe).entry};
  if (way.name == "triangles") return std::ranges::any_of(kernels.kernels(), [](const Kernel& kernel) { return kernel.triangle.has_value(); });
  (void)lay_out_in_panels(entries, persistents.all(), kernels);
  return way.name == "panels" and std::ranges::any_of(persistents.all(), [](const plan::Persistent& persistent) { return persistent.panels.has_value(); });
}

struct CompiledGraphs::Program {
  Way way;
  KernelSet kernels = {};
  PersistentSet persistents = {};
  std::vector<plan::Entry> entries = {};
  plan::Plan plan = {};
  std::unique_ptr<Session> sessions[2] = {};  ///< of one thread, of two

  void compile(const EmitOptions& code) {
    if (way.passes.runs("panels")) (void)lay_out_in_panels(entries, persistents.all(), kernels);
    for (std::size_t i = 0, count = entries.size(); i < count; ++i) {
      plan::Entry again = entries[i];
      again.name += " made again";
      (void)fit_arena(again, kernels, drawn_sizes(), 0);  // less than anything takes
      entries.push_back(std::move(again));
    }
    std::vector<const Kernel*> pointers;
    for (const Kernel& kernel : kernels.kernels()) pointers.push_back(&kernel);
    plan::Program program{.target = "cpu", .code = {}, .persistents = std::move(persistents).take(), .entries = std::move(entries)};
    program.code.emplace_back(code.cpu, compile_shared_object(pointers, code));
    plan.programs.push_back(std::move(program));
    plan::check(plan);
    for (int threads : {1, 2}) sessions[threads - 1] = std::make_unique<Session>(plan, SessionOptions{.device = "cpu", .threads = threads});
  }
};

void CompiledGraphs::add(const Graph& graph, const Way& way) {
  const CpuTarget target;
  Graph made = graph.clone();
  if (way.is_narrow() and lower_precision(made, recipe_of(way), &target) == Changed::kNo) return;
  made = graph.clone();
  prepare_graph(made, target, recipe_of(way), way.passes);
  made.name = entry_name(graph, Values::kKept);
  std::shared_ptr<Program>& program = programs_[way.name];
  if (program == nullptr) program = std::make_shared<Program>(Program{.way = way});
  program->entries.push_back(schedule(fuse_and_recompute(made, way.passes), program->kernels, program->persistents, way.passes, describe).entry);
}

void CompiledGraphs::compile() {
  for (auto& [name, program] : programs_) program->compile(code_);
}

bool CompiledGraphs::has(const Graph& graph, const Way& way) const {
  const auto found = programs_.find(way.name);
  return found != programs_.end() and found->second->plan.programs[0].find(entry_name(graph, Values::kKept)) != nullptr;
}

std::vector<NamedTensor> CompiledGraphs::run(const Graph& graph, const Way& way, int threads, const Feeds& feeds, Values values) {
  Session& session = *programs_.at(way.name)->sessions[threads - 1];
  const std::string entry = entry_name(graph, values);
  std::vector<std::pair<std::string, TensorView>> views;
  for (const plan::Feed& feed : session.entry(entry).feeds) views.emplace_back(feed.name, feeds.find(feed.name)->second);
  for (const Alias& alias : graph.aliases()) session.write(graph.input_of(alias.state)->name, *graph.input_of(alias.state)->data);
  session.run(entry, views);
  std::vector<NamedTensor> results;
  for (const Output& output : graph.outputs()) results.push_back({output.name, session.result_tensor(output.name)});
  for (const Alias& alias : graph.aliases()) results.push_back({graph.input_of(alias.state)->name, session.read(graph.input_of(alias.state)->name)});
  return results;
}

}  // namespace hone::test
