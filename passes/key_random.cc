// Keys of random numbers: what is drawn is a function of seed, stream, step, iteration and sample, and of nothing else. The replica, the thread and the order of
// the work do not matter, and a backward pass that computes something again draws what the forward pass drew.
#include <algorithm>
#include <optional>
#include <string>

#include "ir/ops/ops.h"
#include "ir/ops/random.h"
#include "passes/names.h"
#include "passes/passes.h"

namespace hone {

namespace {

/// What nodes are keyed by besides their own seed and stream: values of their graph; invalid where there is none.
struct Key {
  Val event;  ///< what stands for the step
  Val first;  ///< the first sample of this batch in the whole one
};
using MakeKey = std::function<Key(Rewriter&)>;

/// Does the node, or one in its bodies, draw numbers without a key?
bool lacks_key(const Node& node) {
  if (draws(*node.op)) {
    const std::size_t step = step_operand(*node.op);
    return step >= node.operands.size() or not node.operands[step].valid();
  }
  return std::any_of(node.bodies.begin(), node.bodies.end(), [](const auto& body) {  // depth is limited by import and parser
    return std::any_of(body->nodes().begin(), body->nodes().end(), lacks_key);
  });
}

/// The axis of `shape` along which the samples lie, and how many elements of it each has.
struct SampleAxis {
  std::int64_t axis;
  Dim per_sample;
};

/// Nothing if there is none, as for noise on weights: every replica draws the same. Where sizes are fixed, the first axis is taken to be the samples' if it can be.
std::optional<SampleAxis> sample_axis(const Shape& shape, const Dim& samples) {
  const bool is_fixed = samples.is_constant();
  const std::size_t candidates = is_fixed ? std::min<std::size_t>(shape.size(), samples.value() > 0 ? 1 : 0) : shape.size();
  for (std::size_t i = 0; i < candidates; ++i) {
    if (is_fixed and (not shape[i].is_constant() or shape[i].value() == 0)) continue;
    const Dim per_sample = floordiv(shape[i], samples);
    if (not per_sample.is_constant(0) and per_sample * samples == shape[i]) return SampleAxis{static_cast<std::int64_t>(i), per_sample};
  }
  return std::nullopt;
}

/// Does a node without a key draw something for each sample?
bool draws_by_sample(const Graph& graph, const Dim& samples) {
  return std::any_of(graph.nodes().begin(), graph.nodes().end(), [&](const Node& node) {
    if (not lacks_key(node)) return false;
    if (draws(*node.op)) return sample_axis(graph.type(node.results[0]).shape, samples).has_value();
    return std::any_of(node.bodies.begin(), node.bodies.end(), [&](const auto& body) { return draws_by_sample(*body, samples); });
  });
}

class Keyer {
 public:
  explicit Keyer(Dim samples) : samples_(samples) {}

  Changed run(Graph& graph, const MakeKey& make_key) const {
    std::optional<Key> key;
    return Rewriter::rewrite(graph, [&](Rewriter& rewriter, NodeId id) {
      const Node& node = rewriter.node(id);
      if (not lacks_key(node)) return false;
      if (not key) key = make_key(rewriter);
      return node.bodies.empty() ? key_node(rewriter, node, *key) : key_region(rewriter, node, *key);
    });
  }

 private:
  bool key_node(Rewriter& rewriter, const Node& node, const Key& key) const {
    if (not key.event.valid()) return false;
    const std::size_t step = step_operand(*node.op);
    std::vector<Val> operands(step + 2);
    for (std::size_t i = 0; i < node.operands.size(); ++i) operands[i] = rewriter.operand(node, i);
    Attrs attrs = node.attrs;
    operands[step] = key.event;
    const auto by_sample = sample_axis(rewriter.old().type(node.results[0]).shape, samples_);
    if (by_sample and key.first.valid()) {
      attrs.set(kBatchAxis = by_sample->axis);
      operands[step + 1] = by_sample->per_sample.is_constant(1) ? key.first : key.first * size_value(rewriter.builder(), by_sample->per_sample, DType::kI64);
    }
    replace_all(rewriter, node, rewriter.builder().add(*node.op, operands, std::move(attrs)));
    return true;
  }

  /// The bodies are given the key as two more operands; of an iteration's number they make an event of their own.
  bool key_region(Rewriter& rewriter, const Node& node, const Key& key) const {
    std::vector<Val> operands;
    for (std::size_t i = 0; i < node.operands.size(); ++i) operands.push_back(rewriter.operand(node, i));
    for (const Val& given : {key.event, key.first})
      if (given.valid()) operands.push_back(given);
    std::vector<std::unique_ptr<Graph>> bodies;
    for (const auto& body : node.bodies) {
      bodies.push_back(std::make_unique<Graph>(body->clone()));
      Graph& inner = *bodies.back();
      Builder builder(inner);
      const auto captured = [&](const Val& given, const char* name) {
        return given.valid() ? builder.input(Role::kInput, unused_name(inner, name), given.type()).id() : ValueId{};
      };
      const ValueId event = captured(key.event, "event"), first = captured(key.first, "first_sample");
      const ValueId iteration = node.op->region == Region::kBranch ? ValueId{} : first_fed(inner);
      const Attrs stream = {kStream = node.attrs[kStream]};
      (void)run(inner, [&](Rewriter& inside) {
        const Val pair[] = {inside.mapped(event), inside.mapped(iteration)};
        return Key{inside.builder().add(op::random_event, pair, stream)[0], inside.mapped(first)};
      });
    }
    replace_all(rewriter, node, rewriter.builder().add(*node.op, operands, node.attrs, std::move(bodies)));
    return true;
  }

  static ValueId first_fed(const Graph& body) {
    const auto& inputs = body.inputs();
    return std::find_if(inputs.begin(), inputs.end(), [](const Input& input) { return input.role == Role::kInput; })->value;
  }

  static void replace_all(Rewriter& rewriter, const Node& node, const std::vector<Val>& results) {
    for (std::size_t i = 0; i < results.size(); ++i) rewriter.replace(node.results[i], results[i]);
  }

  Dim samples_;
};

}  // namespace

Changed key_random(Graph& graph, std::int64_t seed, const Dim& samples) {
  const bool by_sample = draws_by_sample(graph, samples);
  return Keyer(samples).run(graph, [&](Rewriter& rewriter) {
    Builder& builder = rewriter.builder();
    const auto number = [&](const char* name, std::int64_t value) {
      return builder.input(Role::kState, unused_name(builder.graph(), name), {DType::kI64, {}}, Tensor::scalar(value));
    };
    const Val step = number("random_step", 0), run = number("random_seed", seed);
    {
      const Builder::Scope scope(builder, Loc{.derived = "update"}, Part::kUpdate);
      builder.alias(step, step + builder.constant(Tensor::scalar(std::int64_t{1})));
    }
    const Builder::Scope scope(builder, Loc{.derived = "key of random numbers"}, Part::kForward);
    const Val first = by_sample ? builder.input(Role::kInput, unused_name(builder.graph(), "first_sample"), {DType::kI64, {}}) : Val();
    return Key{op::random_event(step, run), first};
  });
}

Changed key_iterations(Graph& graph) {
  return Keyer(0).run(graph, [](Rewriter&) { return Key{}; });
}

}  // namespace hone
