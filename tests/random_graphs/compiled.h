// Many graphs in one program: compiling them together takes a fraction of the time.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "backends/llvm/emit.h"
#include "ir/kernel/interpret.h"
#include "passes/choice.h"
#include "runtime/session.h"

namespace hone::test {

/// A way in which a graph is compiled.
struct Way {
  std::string name;
  PassChoice passes;
  bool has_library = true;         ///< rows may block sums as the number of threads asks for
  std::string precision = "f32";  ///< train.precision
  bool is_narrow() const { return precision != "f32"; }
};
/// Does what is made stay in memory, or is as much as possible made again (backends/memory_limit.h)?
enum class Values : std::uint8_t { kKept, kMadeAgain };

/// How graphs are compiled.
struct Making {
  std::vector<Way> ways;
  EmitOptions code;
};
/// All passes and none for every graph; each pass by itself, and bf16, for some of them. One batch of graphs in ten gets the code that the tool makes for this processor, the others such as is made
/// in no time. Graphs of one batch have the same code.
Making making_of(std::uint64_t seed);
inline constexpr std::uint64_t kBatch = 25;  // graphs of one program
/// Does the way, of one pass or of another precision, make another schedule than no pass? `graph`: expanded.
bool has_effect(const Graph& graph, const Way& way);

class CompiledGraphs {
 public:
  explicit CompiledGraphs(EmitOptions code) : code_(std::move(code)) {}
  /// `graph`: expanded; its name and those of its inputs with data are its own.
  void add(const Graph& graph, const Way& way);
  void compile();

  /// Is there something to run? A graph without products is no other in another precision, and is left out.
  bool has(const Graph& graph, const Way& way) const;
  /// Outputs, then states, of a run that begins with the states' first values.
  std::vector<NamedTensor> run(const Graph& graph, const Way& way, int threads, const Feeds& feeds, Values values = Values::kKept);

 private:
  struct Program;  // of one way
  EmitOptions code_;
  std::map<std::string, std::shared_ptr<Program>> programs_;
};

}  // namespace hone::test
