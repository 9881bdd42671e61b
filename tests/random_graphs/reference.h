// What a graph gives, and how far rounding may move each element: the interpreter's results, and those of runs in which the results of
// every node, in bodies, too, are off by about as much as they may be. An element that such runs do not move must agree but for its own last bits; one behind a step (floor, argmax, a
// mask) that rounding may cross may be on either side; and what is a difference of almost equal numbers may be off by what is lost there. So no graph needs a
// tolerance of its own.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "ir/kernel/interpret.h"

namespace hone::test {

/// Are matrix products and convolutions done in f32, or as mixed precision does them: are their factors and results, and what moves or adds those, off by what bf16 loses?
enum class Products : std::uint8_t { kFull, kNarrow };

class Reference {
 public:
  /// `graph`: expanded, and stays there.
  Reference(const Graph& graph, const Feeds& feeds, Products products = Products::kFull);

  /// Says where `found` (an output, or what a step leaves in a state) differs by more than rounding explains; "" nowhere.
  std::string difference(const NamedTensor& found);
  const GraphResults& results() const { return results_; }
  const Graph& graph() const { return graph_; }
  const Feeds& feeds() const { return feeds_; }

 private:
  struct Range {
    std::vector<double> low, high;
    std::vector<bool> is_nan;
  };
  struct Rounding {
    std::vector<bool> rounded;        ///< by value: may it be off at all?
    std::vector<double> errors = {};  ///< by value: by how much, relatively
  };
  static Rounding rounding_of(const Graph& graph, Products products);
  void shake(int runs);
  void widen(Range& range, const Tensor& values, bool numbers_only) const;
  Range& range_of(const std::string& name);

  const Graph& graph_;
  Feeds feeds_;
  std::map<const Graph*, Rounding> roundings_;  // of the graph, and of all bodies
  Interpreter interpreter_;
  GraphResults results_;
  std::vector<std::pair<std::string, Range>> ranges_;  // outputs, then states
  std::uint64_t runs_ = 0;
};

}  // namespace hone::test
