#include "tests/random_graphs/compiled.h"

#include "backends/cpu/cpu_target.h"
#include "backends/llvm/emit.h"
#include "backends/memory_limit.h"
#include "backends/schedule.h"
#include "backends/split_reductions.h"
#include "ir/verify.h"
#include "passes/pipeline.h"
#include "tests/random_graphs/draw.h"

namespace hone::test {

namespace {

std::string entry_name(const Graph& graph, const Way& way, Values values) {
  return graph.name + " " + way.name + (values == Values::kMadeAgain ? " made again" : "");
}

}  // namespace

struct CompiledGraphs::Parts {
  KernelSet kernels;
  PersistentSet persistents;
};

const std::vector<Way>& ways() {
  static const std::vector<Way> list = {
      {"all passes", PassChoice(), true}, {"fused, without library", PassChoice("fold,simplify,cse,dce,split,fuse"), false}, {"no pass", PassChoice("none"), false}};
  return list;
}

void CompiledGraphs::add(const Graph& graph) {
  if (parts_ == nullptr) parts_ = std::make_shared<Parts>();
  const CpuTarget target;
  for (const Way& way : ways()) {
    Graph made = graph.clone();
    optimize(made, way.passes);
    if (way.passes.runs("library")) (void)select_library(made, target);
    if (way.passes.runs("split")) (void)split_reductions(made);
    verify(made);
    made.name = entry_name(graph, way, Values::kKept);
    const auto describe = [](const Graph& g, const Input& input) {
      return plan::Feed{.name = input.name, .dtype = g.type(input.value).dtype, .shape = g.type(input.value).shape};
    };
    entries_.push_back(schedule(fuse_and_recompute(made, way.passes), parts_->kernels, parts_->persistents, way.passes, describe).entry);
    plan::Entry again = entries_.back();
    again.name = entry_name(graph, way, Values::kMadeAgain);
    (void)fit_arena(again, parts_->kernels, drawn_sizes(), 0);  // less than anything takes
    entries_.push_back(std::move(again));
  }
}

void CompiledGraphs::compile(int opt_level) {
  std::vector<const Kernel*> kernels;
  for (const Kernel& kernel : parts_->kernels.kernels()) kernels.push_back(&kernel);
  plan::Program program{.target = "cpu", .code = {}, .persistents = std::move(parts_->persistents).take(), .entries = std::move(entries_)};
  program.code.emplace_back("x86-64-v3", compile_shared_object(kernels, {.opt_level = opt_level}));
  plan_.programs.push_back(std::move(program));
  plan::check(plan_);
  for (int threads : {1, 2}) sessions_[threads - 1] = std::make_unique<Session>(plan_, SessionOptions{.device = "cpu", .threads = threads});
}

std::vector<NamedTensor> CompiledGraphs::run(const Graph& graph, const Way& way, int threads, const Feeds& feeds, Values values) {
  Session& session = *sessions_[threads - 1];
  const std::string entry = entry_name(graph, way, values);
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
