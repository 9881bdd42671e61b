// Random graphs through every pass and the whole compiler. HONE_RANDOM_GRAPHS=N tries more of them, HONE_RANDOM_SEED=S other ones.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <deque>
#include <map>

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

std::uint64_t first_seed() { return from_environment("HONE_RANDOM_SEED", 0); }
std::uint64_t end_of_seeds() { return first_seed() + from_environment("HONE_RANDOM_GRAPHS", kGraphs); }

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
                  << report(trial.drawn.graph, finding->feeds, making_of(trial.drawn.seed));
}

/// Graphs that have the same code.
void try_batch(std::uint64_t first, std::uint64_t end) {
  std::deque<Trial> trials;  // references point at their graphs
  CompiledGraphs compiled(making_of(first).code);
  for (std::uint64_t seed = first; seed < end; ++seed) {
    Trial& trial = trials.emplace_back(Trial{draw_graph(seed)});
    expect_nothing_found(trial, [&] {
      expand_and_interpret(trial);
      return try_passes(trial.drawn.graph, trial.references);
    });
    expect_nothing_found(trial, [&] {
      for (const Way& way : making_of(seed).ways) compiled.add(trial.plain, way);
      return std::nullopt;
    });
  }
  compiled.compile();
  for (Trial& trial : trials) expect_nothing_found(trial, [&] { return try_compiled(compiled, making_of(trial.drawn.seed), trial.references); });
}

TEST(RandomGraphs, GiveEachWaySomethingToDo) {
  if (kGraphs < 500) GTEST_SKIP() << "there are too few";
  std::map<std::string, int> graphs;
  for (std::uint64_t seed = 0; seed < kGraphs; ++seed) {
    const Way way = making_of(seed).ways.back();
    graphs[way.name] += has_effect(expanded(draw_graph(seed).graph), way) ? 1 : 0;
  }
  EXPECT_EQ(graphs.size(), 9);
  for (const auto& [way, count] : graphs) EXPECT_GE(count, 1) << way;
}

class RandomGraphsInBatches : public testing::TestWithParam<std::uint64_t> {};

TEST_P(RandomGraphsInBatches, GiveEqualResultsHoweverTheyAreCompiled) {
  try_batch(std::max(GetParam(), first_seed()), std::min(GetParam() + kBatch, end_of_seeds()));
}

INSTANTIATE_TEST_SUITE_P(From, RandomGraphsInBatches, testing::Range<std::uint64_t>(first_seed() / kBatch * kBatch, end_of_seeds(), kBatch), testing::PrintToStringParamName());

}  // namespace
}  // namespace hone::test
