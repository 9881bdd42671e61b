// Random graphs through every pass and the whole compiler. HONE_RANDOM_GRAPHS=N tries more of them, HONE_RANDOM_SEED=S other ones.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdlib>

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

/// Batch sizes with which each graph runs: the one that it was drawn for, and another one, which binds all sizes again.
std::vector<Feeds> feeds_of(const DrawnGraph& drawn) {
  DimBindings larger = drawn_sizes();
  larger["N"] = 5;
  return {drawn.feeds, feeds_for(drawn, larger)};
}

/// What `attempt` finds; what it throws is a finding, too.
template <typename Attempt>
void expect_nothing_found(const DrawnGraph& drawn, const Feeds& feeds, Attempt attempt) {
  std::optional<Finding> finding;
  try {
    finding = attempt();
  } catch (const std::exception& error) { finding = {"an exception", error.what()}; }
  if (finding)
    ADD_FAILURE() << "HONE_RANDOM_SEED=" << drawn.seed << " HONE_RANDOM_GRAPHS=1\n"
                  << finding->stage << ": " << finding->what << "\n"
                  << report(drawn.graph, feeds);
}

void try_batch(std::uint64_t first, std::uint64_t end, int opt_level) {
  std::vector<DrawnGraph> drawn;
  std::vector<Graph> plain;
  CompiledGraphs compiled;
  for (std::uint64_t seed = first; seed < end; ++seed) {
    const DrawnGraph& added = drawn.emplace_back(draw_graph(seed));
    for (const Feeds& feeds : feeds_of(added)) expect_nothing_found(added, feeds, [&] { return try_passes(added.graph, feeds); });
    plain.push_back(expanded(added.graph));
    expect_nothing_found(added, added.feeds, [&] { return compiled.add(plain.back()), std::nullopt; });
  }
  compiled.compile(opt_level);
  for (std::size_t i = 0; i < drawn.size(); ++i)
    for (const Feeds& feeds : feeds_of(drawn[i])) expect_nothing_found(drawn[i], feeds, [&] { return try_compiled(compiled, plain[i], feeds); });
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
