#include "tests/random_graphs/proof.h"

#include <fmt/format.h>

#include <algorithm>

#include "ir/print.h"
#include "ir/verify.h"
#include "passes/pipeline.h"

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

std::vector<NamedTensor> results_of(Interpreter& interpreter, const Reference& reference) {
  GraphResults results = interpreter.run(reference.feeds(), reference.results().bindings);
  std::move(results.states.begin(), results.states.end(), std::back_inserter(results.outputs));
  return std::move(results.outputs);
}

bool are_same_bits(const std::vector<NamedTensor>& a, const std::vector<NamedTensor>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](const NamedTensor& x, const NamedTensor& y) { return std::ranges::equal(x.value.bytes(), y.value.bytes()); });
}

/// Graphs that need not be interpreted again: what gives the same text from the same data gives the same results.
class SeenGraphs {
 public:
  explicit SeenGraphs(const Graph& first) { (void)add(first); }

  /// Is it another one than all before?
  bool add(const Graph& graph) {
    std::string text = print(graph);
    for (const auto& [other_text, other] : seen_)
      if (text == other_text and std::ranges::equal(graph.inputs(), other.inputs(), have_same_data)) return false;
    seen_.emplace_back(std::move(text), graph.clone());
    return true;
  }

 private:
  /// The text leaves out large data.
  static bool have_same_data(const Input& a, const Input& b) {
    return a.data.has_value() == b.data.has_value() and (not a.data or std::ranges::equal(a.data->bytes(), b.data->bytes()));
  }

  std::vector<std::pair<std::string, Graph>> seen_;
};

}  // namespace

std::optional<Finding> try_passes(const Graph& graph, std::span<Reference> references) {
  SeenGraphs seen(references[0].graph());
  const auto attempt = [&](const std::string& stage, const std::function<void(Graph&)>& pass) -> std::optional<Finding> {
    Graph made = graph.clone();
    pass(made);
    verify(made);
    made = expanded(made);
    if (not seen.add(made)) return std::nullopt;
    Interpreter interpreter(made, Precision::kFloat);
    for (Reference& reference : references)
      if (std::string what = difference(reference, results_of(interpreter, reference)); not what.empty()) return Finding{stage, what, reference.feeds()};
    return std::nullopt;
  };
  for (const NamedPass& pass : named_passes())
    if (auto finding = attempt(fmt::format("pass {}", pass.name), [&](Graph& made) { (void)pass.run(made); })) return finding;
  return attempt("all passes", [](Graph& made) {
    (void)expand(made);
    optimize(made);
  });
}

std::optional<Finding> try_compiled(CompiledGraphs& compiled, const Making& making, std::span<Reference> references) {
  for (Reference& reference : references) {
    const Feeds& feeds = reference.feeds();
    for (const Way& way : making.ways) {
      if (not compiled.has(reference.graph(), way)) continue;
      std::optional<Reference> narrow;
      if (way.is_narrow()) narrow.emplace(reference.graph(), feeds, Products::kNarrow);
      Reference& wanted = narrow ? *narrow : reference;
      const std::vector<NamedTensor> one = compiled.run(reference.graph(), way, 1, feeds), two = compiled.run(reference.graph(), way, 2, feeds);
      if (std::string what = difference(wanted, one); not what.empty()) return Finding{"compiled, " + way.name, what, feeds};
      if (std::string what = difference(wanted, two); not what.empty()) return Finding{"compiled, on two threads, " + way.name, what, feeds};
      if (not way.has_library and not are_same_bits(one, two))
        return Finding{"compiled, " + way.name, "results on one and on two threads are not the same bits", feeds};
      if (not are_same_bits(one, compiled.run(reference.graph(), way, 1, feeds, Values::kMadeAgain)))
        return Finding{"compiled, " + way.name, "what is made again is not the same bits", feeds};
    }
  }
  return std::nullopt;
}

std::optional<Finding> try_all(const Graph& graph, const Feeds& feeds, const Making& making) {
  std::string stage = "passes";
  try {
    const Graph plain = expanded(graph);
    Reference reference(plain, feeds);
    if (auto finding = try_passes(graph, std::span(&reference, 1))) return finding;
    stage = "compiling";
    CompiledGraphs compiled(making.code);
    for (const Way& way : making.ways) compiled.add(plain, way);
    compiled.compile();
    stage = "running";
    return try_compiled(compiled, making, std::span(&reference, 1));
  } catch (const std::exception& error) { return Finding{stage + " throws", error.what(), feeds}; }
}

}  // namespace hone::test
