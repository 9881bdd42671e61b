#include "passes/fuse_recurrences.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>

#include "base/patterns.h"
#include "ir/ops/ops.h"
#include "ir/ops/products.h"
#include "passes/recurrent_step.h"

namespace hone {

namespace {

/// A loop, as a layer.
struct RecurrentLayer {
  const Node* loop;
  RecurrentStep step;
  Ints places;  ///< by gate
  ValueId x, w;  ///< what is multiplied before the loop
  bool w_is_transposed = false;
  ValueId bias;  ///< of that product, or invalid
};

class LayerFinder {
 public:
  LayerFinder(const Graph& graph, const Target& target) : graph_(graph), target_(target), uses_(count_uses(graph)) {
    for (std::size_t i = 0; i < graph.node_count(); ++i)
      if (const Node& node = graph.node(NodeId(i)); node.op->region == Region::kScan) look_at(NodeId(i), node);
  }

  const std::map<NodeId, RecurrentLayer>& found() const { return found_; }
  const std::vector<std::string>& lines() const { return lines_; }

 private:
  /// Throws the reason.
  struct Refused {
    std::string why;
  };

  void look_at(NodeId id, const Node& node) {
    std::string what;
    try {
      const RecurrentLayer layer = layer_of(node);
      what = fmt::format("is one node ({}), and so is its gradient", to_string(layer.step.cell));
      found_.emplace(id, layer);
    } catch (const Refused& refused) { what = "stays a loop: " + refused.why; }
    lines_.push_back(fmt::format("{} {}", to_string(node.loc), what));
  }

  RecurrentLayer layer_of(const Node& node) const {
    if (not may_rearrange(node)) throw Refused{"its step reads sizes"};
    const LoopView loop(node);
    std::optional<RecurrentStep> step = recurrent_step(loop);
    if (not step) throw Refused{"its step is no cell that libraries have"};
    for (const LoopView::State& state : loop.states)
      if (uses_[state.began.index] > 0) throw Refused{"something reads the states that its steps began with"};
    for (const LoopView::Stack& stack : loop.stacks)
      if (stack.made != loop.states[0].next) throw Refused{"it stacks something else than the hidden states"};
    RecurrentLayer layer{.loop = &node, .step = std::move(*step), .places = {}, .x = {}, .w = {}, .bias = {}};
    layer.places = places_of(layer.step, graph_.type(loop.slices[0].operand).shape.back());
    for (RecurrentStep::Gate& gate : layer.step.gates) {
      gate.weight = unsliced(graph_, gate.weight);
      if (gate.bias) gate.bias = unsliced(graph_, *gate.bias);
    }
    read_products(loop.slices[0].operand, layer);
    const Shape states = graph_.type(loop.states[0].initial).shape;
    if (const std::string why = target_.why_no_recurrence({.cell = layer.step.cell, .steps = loop.trips, .samples = states[0], .features = graph_.type(layer.x).shape.back(), .hidden = states[1]}); not why.empty()) throw Refused{why};
    return layer;
  }

  /// All columns of a slice are gates, each once.
  static Ints places_of(const RecurrentStep& step, const Dim& columns) {
    const auto gates = static_cast<std::int64_t>(step.gates.size());
    Ints places;
    for (const RecurrentStep::Gate& gate : step.gates)
      for (std::int64_t place = 0; place < gates; ++place)
        if (gate.of_slice == step.hidden * place and std::ranges::find(places, place) == places.end()) {
          places.push_back(place);
          break;
        }
    if (places.size() != step.gates.size() or columns != step.hidden * gates) throw Refused{"its gates do not lie side by side"};
    return places;
  }

  /// [steps, samples, columns] as the product of x with w, and a bias.
  void read_products(ValueId products, RecurrentLayer& layer) const {
    const Dim columns = graph_.type(products).shape.back();
    const auto is_product = [&](ValueId value) { return graph_.is_op(value, op::matmul) and graph_.type(value).shape.back() == columns; };
    ValueId product = graph_.is_op(products, op::reshape) ? graph_.producer(products).operands[0] : products;
    if (graph_.is_op(product, op::add)) {
      const Node& sum = graph_.producer(product);
      const std::size_t first = is_product(sum.operands[0]) ? 0 : 1;
      product = sum.operands[first], layer.bias = sum.operands[1 - first];
      const Shape& bias = graph_.type(layer.bias).shape;
      if (bias.empty() or bias.back() != columns or std::any_of(bias.begin(), bias.end() - 1, [](const Dim& extent) { return not extent.is_constant(1); })) throw Refused{kNoProducts};
    }
    if (not is_product(product)) throw Refused{kNoProducts};
    const Node& node = graph_.producer(product);
    layer.x = node.operands[0], layer.w = node.operands[1], layer.w_is_transposed = node.attrs[kTransB];
    if (node.attrs[kTransA] or graph_.type(layer.w).shape.size() != 2 or graph_.type(layer.x).dtype != DType::kF32) throw Refused{kNoProducts};
  }

  static constexpr const char* kNoProducts = "what its steps are given is not x W with a bias, and nothing else";

  const Graph& graph_;
  const Target& target_;
  const std::vector<std::uint32_t> uses_;
  std::map<NodeId, RecurrentLayer> found_;
  std::vector<std::string> lines_;
};

Val columns_of(Val x, const Dim& first, const Dim& count) { return part_of(x, x.rank() - 1, first, count); }

/// The steps in the other order.
Val turned(Val x) { return part_of(x, 0, x.shape()[0] - 1, x.shape()[0], -1); }

class LayerFusing {
 public:
  LayerFusing(Rewriter& rewriter, const RecurrentLayer& layer) : rewriter_(rewriter), builder_(rewriter.builder()), layer_(layer), hidden_(layer.step.hidden), loop_(*layer.loop) {
    by_place_.resize(layer.places.size());
    for (std::size_t gate = 0; gate < layer.places.size(); ++gate) by_place_[static_cast<std::size_t>(layer.places[gate])] = &layer.step.gates[gate];
  }

  void build(bool tf32) {
    const bool is_reversed = layer_.loop->attrs[kReverse];
    const Dim samples = rewriter_.old().type(loop_.states[0].initial).shape[0];
    const Val x = rewriter_.mapped(layer_.x), w = rewriter_.mapped(layer_.w), steps = reshape(x, {loop_.trips, samples, x.shape().back()});
    std::vector<Val> operands = {is_reversed ? turned(steps) : steps, layer_.w_is_transposed ? w : transpose_last(w), state_weight(), bias(), state_bias()};
    for (const LoopView::State& state : loop_.states) operands.push_back(rewriter_.mapped(state.initial));
    const std::vector<Val> made = op::recurrent.build_all(operands, {kCell = static_cast<std::int64_t>(layer_.step.cell), kGates = layer_.places, kTf32 = tf32});
    for (std::size_t i = 0; i < loop_.states.size(); ++i) rewriter_.replace(loop_.states[i].last, made[1 + i]);
    for (const LoopView::Stack& stack : loop_.stacks) rewriter_.replace(stack.result, is_reversed ? turned(made[0]) : made[0]);
  }

 private:
  Dim rows() const { return hidden_ * static_cast<std::int64_t>(by_place_.size()); }
  Val zeros(const Dim& count) { return full(builder_, 0, DType::kF32, {count}); }
  static Val together(std::vector<Val> parts) { return parts.size() == 1 ? parts[0] : op::concat.build(std::move(parts), {kAxis = std::int64_t{0}}); }

  /// Do the gates' columns lie in one tensor as the gates do? Then that is it.
  ValueId tensor_of_all(std::optional<ColumnsOf> (*columns)(const RecurrentStep::Gate&)) const {
    ValueId tensor;
    for (std::size_t place = 0; place < by_place_.size(); ++place) {
      const std::optional<ColumnsOf> of = columns(*by_place_[place]);
      if (not of or (place > 0 and of->tensor != tensor) or of->first != hidden_ * static_cast<std::int64_t>(place)) return {};
      tensor = of->tensor;
    }
    return rewriter_.old().type(tensor).shape.back() == rows() ? tensor : ValueId{};
  }

  Val state_weight() {
    if (const ValueId all = tensor_of_all([](const RecurrentStep::Gate& gate) { return std::optional(gate.weight); }); all.valid()) return transpose_last(rewriter_.mapped(all));
    std::vector<Val> parts;
    for (const RecurrentStep::Gate* gate : by_place_) parts.push_back(transpose_last(columns_of(rewriter_.mapped(gate->weight.tensor), gate->weight.first, hidden_)));
    return together(std::move(parts));
  }

  Val bias() { return layer_.bias.valid() ? reshape(rewriter_.mapped(layer_.bias), {rows()}) : zeros(rows()); }

  Val state_bias() {
    if (std::ranges::none_of(by_place_, [](const RecurrentStep::Gate* gate) { return gate->bias.has_value(); })) return zeros(rows());
    if (const ValueId all = tensor_of_all([](const RecurrentStep::Gate& gate) { return gate.bias; }); all.valid()) return rewriter_.mapped(all);
    std::vector<Val> parts;
    for (const RecurrentStep::Gate* gate : by_place_) parts.push_back(gate->bias ? columns_of(rewriter_.mapped(gate->bias->tensor), gate->bias->first, hidden_) : zeros(hidden_));
    return together(std::move(parts));
  }

  Rewriter& rewriter_;
  Builder& builder_;
  const RecurrentLayer& layer_;
  const Dim hidden_;
  const LoopView loop_;
  std::vector<const RecurrentStep::Gate*> by_place_;
};

}  // namespace

std::vector<std::string> fuse_recurrences(Graph& graph, const Recipe& recipe, const Target& target) {
  if (std::ranges::any_of(graph.nodes(), [](const Node& node) { return *node.op == op::gradient; })) return {};
  const LayerFinder finder(graph, target);
  (void)Rewriter::rewrite(graph, [&](Rewriter& rewriter, NodeId id) {
    const auto found = finder.found().find(id);
    if (found == finder.found().end()) return false;
    LayerFusing(rewriter, found->second).build(recipe.train.precision != "f32" and not matches_any(recipe.train.keep_f32, rewriter.node(id).loc.node));
    return true;
  });
  return finder.lines();
}

}  // namespace hone
