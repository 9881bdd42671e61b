// Many graphs in one program: compiling them together takes a fraction of the time.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "ir/kernel/interpret.h"
#include "passes/choice.h"
#include "runtime/session.h"

namespace hone::test {

/// A way in which a graph is compiled.
struct Way {
  std::string name;
  PassChoice passes;
  bool has_library = true;  ///< rows may block sums as the number of threads asks for
};
/// Does what is made stay in memory, or is as much as possible made again (backends/memory_limit.h)?
enum class Values : std::uint8_t { kKept, kMadeAgain };
const std::vector<Way>& ways();

class CompiledGraphs {
 public:
  /// `graph`: expanded; its name and those of its inputs with data are its own.
  void add(const Graph& graph);
  /// `opt_level`: of LLVM.
  void compile(int opt_level);

  /// Outputs, then states, of a run that begins with the states' first values.
  std::vector<NamedTensor> run(const Graph& graph, const Way& way, int threads, const Feeds& feeds, Values values = Values::kKept);

 private:
  plan::Plan plan_;
  std::vector<plan::Entry> entries_;
  struct Parts;
  std::shared_ptr<Parts> parts_;
  std::unique_ptr<Session> sessions_[2];  // of one thread, of two
};

}  // namespace hone::test
