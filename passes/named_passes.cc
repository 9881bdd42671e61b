#include <fmt/format.h>

#include <array>

#include "base/text.h"
#include "passes/passes.h"

namespace hone {

namespace {

constexpr std::array kNamedPasses = {
    NamedPass{"expand", expand, "ops of meaning `lower` become ordinary ops"},
    NamedPass{"fold", fold_constants, "nodes over constants become constants"},
    NamedPass{"simplify", simplify, "algebraic rules"},
    NamedPass{"layout", choose_layout, "activations of convolution and pooling lie channels last where that is cheaper"},
    NamedPass{"factor", factor_gradients, "gradients are multiplied by one derivative"},
    NamedPass{"cse", eliminate_common_subexpressions, "equal nodes become one"},
    NamedPass{"dce", eliminate_dead_code, "nodes that nobody reads go"},
    NamedPass{"prune_loops", prune_loops, "loops lose what nobody reads"},
    NamedPass{"hoist_invariants", hoist_invariants, "what is the same in all iterations goes before the loop"},
    NamedPass{"reuse_iterations", reuse_iterations, "loops read what an earlier one computed in the same iteration"},
    NamedPass{"hoist_from_loops", hoist_from_loops, "what needs slices alone goes before the loop, for all iterations at once"},
    NamedPass{"sink_from_loops", sink_from_loops, "what the loop itself does not need goes behind it, for all iterations at once"},
};

}  // namespace

std::span<const NamedPass> named_passes() { return kNamedPasses; }

void run_named_passes(Graph& graph, std::string_view list) {
  for (const std::string& name : split(list, ',')) {
    if (name.empty()) continue;
    const NamedPass* found = nullptr;
    std::vector<std::string> names;
    for (const NamedPass& pass : kNamedPasses) {
      names.emplace_back(pass.name);
      if (pass.name == name) found = &pass;
    }
    if (found == nullptr) throw Error(Code::kUsage, fmt::format("--passes: there is no pass {}", quoted(name)), {}, {did_you_mean(name, names), "passes: " + quoted_list(names)});
    (void)found->run(graph);
  }
}

}  // namespace hone
