#include "tests/random_graphs/proof.h"

#include <fmt/format.h>

#include <algorithm>

#include "ir/verify.h"
#include "passes/pipeline.h"
#include "tests/random_graphs/reference.h"

namespace hone::test {

Graph expanded(const Graph& graph) {
  Graph made = graph.clone();
  (void)expand(made);
  return made;
}

namespace {

std::string difference(Reference& reference, const std::vector<NamedTensor>& results) {
  for (const NamedTensor& result : results)
    if (std::string what = reference.difference(result); not what.empty()) return what;
  return "";
}

std::vector<NamedTensor> results_of(const Graph& graph, const Feeds& feeds, const DimBindings& sizes) {
  GraphResults results = interpret(graph, feeds, Precision::kFloat, sizes);
  std::move(results.states.begin(), results.states.end(), std::back_inserter(results.outputs));
  return std::move(results.outputs);
}

bool are_same_bits(const std::vector<NamedTensor>& a, const std::vector<NamedTensor>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](const NamedTensor& x, const NamedTensor& y) { return std::ranges::equal(x.value.bytes(), y.value.bytes()); });
}

}  // namespace

std::optional<Finding> try_passes(const Graph& graph, const Feeds& feeds) {
  const Graph plain = expanded(graph);
  Reference reference(plain, feeds);
  const auto attempt = [&](const std::string& stage, const std::function<void(Graph&)>& pass) -> std::optional<Finding> {
    Graph made = graph.clone();
    pass(made);
    verify(made);
    made = expanded(made);
    if (std::string what = difference(reference, results_of(made, feeds, reference.results().bindings)); not what.empty()) return Finding{stage, what};
    return std::nullopt;
  };
  for (const NamedPass& pass : named_passes())
    if (auto finding = attempt(fmt::format("pass {}", pass.name), [&](Graph& made) { (void)pass.run(made); })) return finding;
  return attempt("all passes", [](Graph& made) {
    (void)expand(made);
    optimize(made);
  });
}

std::optional<Finding> try_compiled(CompiledGraphs& compiled, const Graph& graph, const Feeds& feeds) {
  Reference reference(graph, feeds);
  for (const Way& way : ways()) {
    const std::vector<NamedTensor> one = compiled.run(graph, way, 1, feeds), two = compiled.run(graph, way, 2, feeds);
    if (std::string what = difference(reference, one); not what.empty()) return Finding{"compiled, " + way.name, what};
    if (std::string what = difference(reference, two); not what.empty()) return Finding{"compiled, on two threads, " + way.name, what};
    if (not way.has_library and not are_same_bits(one, two)) return Finding{"compiled, " + way.name, "results on one and on two threads are not the same bits"};
  }
  return std::nullopt;
}

std::optional<Finding> try_all(const Graph& graph, const Feeds& feeds) {
  std::string stage = "passes";
  try {
    if (auto finding = try_passes(graph, feeds)) return finding;
    stage = "compiling";
    const Graph plain = expanded(graph);
    CompiledGraphs compiled;
    compiled.add(plain);
    compiled.compile(0);
    stage = "running";
    return try_compiled(compiled, plain, feeds);
  } catch (const std::exception& error) { return Finding{stage + " throws", error.what()}; }
}

}  // namespace hone::test
