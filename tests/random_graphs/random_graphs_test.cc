// Random graphs through every pass and the whole compiler. HONE_RANDOM_GRAPHS=N tries more of them, HONE_RANDOM_SEED=S other ones.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <deque>

#include "tests/random_graphs/proof.h"

namespace hone::test {
namespace {

std::uint64_t from_environment(const char* name, std::uint64_t otherwise) {
  const char* text = std::getenv(name);
  return text == nullptr ? otherwise : std::strtoull(text, nullptr, 10);
}

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr std::uint64_t kGraphs = 100;  // ten times as slow
#else
constexpr std::uint64_t kGraphs = 500;
#endif
constexpr std::uint64_t kBatch = 25;  // graphs of one program

/// A graph on its way through all of it.
struct Trial {
  DrawnGraph drawn;
  Graph plain = {};  ///< expanded
  std::vector<Reference> references = {};  ///< of `plain`, for the batch size that it was drawn for and another one, which binds all sizes again
};

void expand_and_interpret(Trial& trial) {
  trial.plain = expanded(trial.drawn.graph);
  trial.references.emplace_back(trial.plain, trial.drawn.feeds);
  DimBindings larger = drawn_sizes();
  larger["N"] = 5;
  trial.references.emplace_back(trial.plain, feeds_for(trial.drawn, larger));
}

/// What `attempt` finds; what it throws is a finding, too.
template <typename Attempt>
void expect_nothing_found(const Trial& trial, Attempt attempt) {
  std::optional<Finding> finding;
  try {
    finding = attempt();
  } catch (const std::exception& error) { finding = {"an exception", error.what(), trial.drawn.feeds}; }
  if (finding)
    ADD_FAILURE() << "HONE_RANDOM_SEED=" << trial.drawn.seed << " HONE_RANDOM_GRAPHS=1\n"
                  << finding->stage << ": " << finding->what << "\n"
                  << report(trial.drawn.graph, finding->feeds);
}

void try_batch(std::uint64_t first, std::uint64_t end, int opt_level) {
  std::deque<Trial> trials;  // references point at their graphs
  CompiledGraphs compiled;
  for (std::uint64_t seed = first; seed < end; ++seed) {
    Trial& trial = trials.emplace_back(Trial{draw_graph(seed)});
    expect_nothing_found(trial, [&] {
      expand_and_interpret(trial);
      return try_passes(trial.drawn.graph, trial.references);
    });
    expect_nothing_found(trial, [&] { return compiled.add(trial.plain), std::nullopt; });
  }
  compiled.compile(opt_level);
  for (Trial& trial : trials) expect_nothing_found(trial, [&] { return try_compiled(compiled, trial.references); });
}

class RandomGraphs : public testing::TestWithParam<std::uint64_t> {};

TEST_P(RandomGraphs, GiveEqualResultsHoweverTheyAreCompiled) {
  const std::uint64_t end = from_environment("HONE_RANDOM_SEED", 1) + from_environment("HONE_RANDOM_GRAPHS", kGraphs);
  const std::uint64_t first = from_environment("HONE_RANDOM_SEED", 1) + GetParam();
  try_batch(first, std::min(end, first + kBatch), static_cast<int>(from_environment("HONE_RANDOM_OPT_LEVEL", 0)));
}

INSTANTIATE_TEST_SUITE_P(From, RandomGraphs, testing::Range<std::uint64_t>(0, from_environment("HONE_RANDOM_GRAPHS", kGraphs), kBatch),
                         testing::PrintToStringParamName());

}  // namespace
}  // namespace hone::test
