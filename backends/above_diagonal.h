// What a graph's matrices hold above their diagonals. Behind a causal mask weights are 0 there, and nobody looks at the scores: products with them need half of their terms.
#pragma once

#include <optional>
#include <vector>

#include "ir/graph.h"
#include "ir/kernel/kernel.h"

namespace hone {

/// Of the matrices in a value's last two axes: where the column is greater than the row. That numbers which are not known are finite, and divisors not 0, is taken for granted: where they are not, a product with 0 may be 0 that would be NaN.
class AboveDiagonal {
 public:
  explicit AboveDiagonal(const Graph& graph);

  /// The one number that is there; nothing: it is not known, or there are several.
  std::optional<double> of(ValueId value) const;
  /// What is asked of the numbers that are there.
  enum class Need : std::uint8_t {
    kNothing,  ///< nobody reads them, or another branch is chosen
    kFinite,   ///< they are multiplied by 0, or added to an infinity
    kNumber    ///< results depend on them
  };
  Need need(ValueId value) const { return needs_[value.index]; }

 private:
  struct Content {
    double number = 0;
    bool is_everywhere = false;  ///< below and on the diagonal, too
  };

  void find_content(const Node& node);
  void find_needs(const Node& node);
  Need need_of(const Node& node, std::size_t operand) const;
  const std::optional<Content>& content(ValueId value) const { return contents_[value.index]; }
  std::optional<Content> chosen(const Node& node) const;
  std::optional<Content> element_of(const Node& node, std::size_t operand) const;
  std::optional<bool> condition_of(const Node& where) const;
  bool keeps_matrices(ValueId from, ValueId to) const;

  const Graph& graph_;
  std::vector<std::optional<Content>> contents_;  // by value
  std::vector<Need> needs_;                       // by value
};

/// Which points count for the contraction of `kernel`, whose buffers hold `values`; nothing: all do, or the kernel is none.
std::optional<Triangle> triangle_of(const Kernel& kernel, const std::vector<ValueId>& values, const Graph& graph, const AboveDiagonal& above);

}  // namespace hone
