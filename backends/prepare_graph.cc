#include "backends/prepare_graph.h"

#include "backends/split_reductions.h"
#include "backends/split_weight_gradients.h"
#include "backends/suit_products.h"
#include "ir/verify.h"
#include "passes/pipeline.h"
#include "passes/precision.h"

namespace hone {

void prepare_graph(Graph& graph, const Target& target, const Recipe& recipe, const PassChoice& passes, const std::vector<NarrowedWeight>& narrowed, PassLog* log) {
  const auto run = [&](std::string_view name, const auto& pass) {
    Changed changed = Changed::kNo;
    if (log != nullptr) log->run(name, graph, [&] { changed = pass(); });
    else changed = pass();
    return changed;
  };
  verify(graph);  // cheap next to code generation, and a wrong graph must not become a plan
  optimize(graph, passes, log);
  if (passes.runs("factor") and run("factor", [&] { return factor_gradients(graph); }) == Changed::kYes) optimize(graph, passes, log);  // because numbers among the factors are known
  if (run("precision", [&] { return lower_precision(graph, recipe, &target); }) == Changed::kYes)
    optimize(graph, passes, log);  // because a weight is rounded once for all who read it, before loops and not in them
  if (passes.runs("layout") and run("layout", [&] { return choose_layout(graph); }) == Changed::kYes) optimize(graph, passes, log);  // because transposes meet, and cancel, only now
  if (passes.runs("library") and run("suit products", [&] { return suit_products(graph, target, log); }) == Changed::kYes)
    (void)run("cse", [&] { return eliminate_common_subexpressions(graph); });  // because several products may read one factor
  (void)run("widen", [&] { return widen_where_read(graph, narrowed); });  // because equal nodes are merged no more
  (void)run("library", [&] { return passes.runs("library") ? select_library(graph, target) : expand(graph); });  // because rows were what some nodes waited for
  if (passes.runs("split")) (void)run("split weight gradients", [&] { return split_weight_gradients(graph, target, log); });  // because what runs as kernels is known by now
  if (passes.runs("split")) (void)run("split", [&] { return split_reductions(graph, target.parallelism(), log); });  // because what runs as kernels, and on which axes, is known by now
  verify(graph);
}

}  // namespace hone
