// Derivatives as one factor: g * a + g * b -> g * (a + b) in the backward pass.
#include <algorithm>
#include <array>

#include "ir/ops/ops.h"
#include "passes/passes.h"

namespace hone {

namespace {

/// The factors of a product of several, in order.
using Factors = std::vector<ValueId>;

class FactorGradients {
 public:
  explicit FactorGradients(const Graph& graph) : graph_(graph), uses_(count_uses(graph)), is_known_(known_values(graph)), has_map_readers_(values_for_maps(graph)) {}

  /// What stands for an add of the backward pass, if that is a gradient times two things that the forward pass knows.
  Val factored(Rewriter& rewriter, const Node& node) const {
    if (*node.op != op::add or node.part != Part::kBackward) return {};
    const Type& type = graph_.type(node.results[0]);
    if (not is_float(type.dtype)) return {};
    std::array<Factors, 2> terms;
    for (std::size_t i = 0; i < 2; ++i)
      if (uses_[node.operands[i].index] != 1 or not split(node.operands[i], type, terms[i])) return {};
    const Factors gradients = take_unknown(terms[0]);
    if (gradients.size() != 1 or take_unknown(terms[1]) != gradients or graph_.type(gradients[0]) != type or terms[0].empty() or terms[1].empty()) return {};
    const Builder::Scope scope(rewriter.builder(), graph_.producer(node.operands[0]).loc, node.part);  // of the activation; the add stands where its argument was made
    return rewriter.mapped(gradients[0]) * (product(rewriter, terms[0]) + product(rewriter, terms[1]));
  }

 private:
  static constexpr std::size_t kMostFactors = 16;

  /// What is worked out of the forward pass's values, element by element.
  static std::vector<bool> known_values(const Graph& graph) {
    std::vector<bool> known(graph.value_count());
    for (const Input& input : graph.inputs()) known[input.value.index] = true;
    for (const Node& node : graph.nodes()) {
      const bool is_map = node.op->scalar != nullptr and std::ranges::all_of(node.operands, [&](ValueId operand) { return operand.valid() and known[operand.index]; });
      for (const ValueId result : node.results) known[result.index] = node.part < Part::kBackward or is_map;
    }
    return known;
  }

  /// What nobody but elementwise ops reads: it need not be kept.
  static std::vector<bool> values_for_maps(const Graph& graph) {
    std::vector<bool> for_maps(graph.value_count(), true);
    for (const Node& node : graph.nodes())
      for (const ValueId operand : node.operands)
        if (operand.valid() and node.op->scalar == nullptr) for_maps[operand.index] = false;
    for (const Output& output : graph.outputs()) for_maps[output.value.index] = false;
    for (const Alias& alias : graph.aliases()) for_maps[alias.value.index] = false;
    return for_maps;
  }

  bool is_product(ValueId value, const Type& type) const {
    if (not graph_.is_op(value, op::mul) or graph_.type(value) != type) return false;
    return graph_.producer(value).part == Part::kBackward and not is_known_[value.index] and has_map_readers_[value.index];
  }

  /// The factors of a term. False: it is no product, or they are too many.
  bool split(ValueId term, const Type& type, Factors& factors) const {
    if (not is_product(term, type)) return false;
    std::vector<ValueId> open = {term};
    while (not open.empty()) {
      const ValueId value = open.back();
      open.pop_back();
      if (is_product(value, type)) {
        const std::vector<ValueId>& operands = graph_.producer(value).operands;
        open.insert(open.end(), {operands[1], operands[0]});
      } else {
        factors.push_back(value);
      }
      if (open.size() + factors.size() > kMostFactors) return false;
    }
    return true;
  }

  /// Takes out the factors that hang on the gradient.
  Factors take_unknown(Factors& factors) const {
    const auto known = std::ranges::stable_partition(factors, [this](ValueId factor) { return not is_known_[factor.index]; });
    Factors unknown(factors.begin(), known.begin());
    factors.erase(factors.begin(), known.begin());
    return unknown;
  }

  /// Numbers first, so that they become one.
  Val product(Rewriter& rewriter, Factors factors) const {
    std::ranges::stable_partition(factors, [this](ValueId factor) { return graph_.scalar_constant(factor).has_value(); });
    Val result = rewriter.mapped(factors[0]);
    for (std::size_t i = 1; i < factors.size(); ++i) result = result * rewriter.mapped(factors[i]);
    return result;
  }

  const Graph& graph_;
  const std::vector<std::uint32_t> uses_;
  const std::vector<bool> is_known_, has_map_readers_;  // by value
};

Changed factor_once(Graph& graph) {
  const FactorGradients factors(graph);
  return Rewriter::rewrite(graph, [&](Rewriter& rewriter, NodeId id) {
    const Node& node = rewriter.node(id);
    const Val value = factors.factored(rewriter, node);
    if (value.valid()) rewriter.replace(node.results[0], value);
    return value.valid();
  });
}

}  // namespace

Changed factor_gradients(Graph& graph) {
  Changed any = Changed::kNo;
  while (factor_once(graph) == Changed::kYes) any = Changed::kYes;  // of three terms two become one first
  return any;
}

}  // namespace hone
