#include "passes/recurrent_step.h"

#include <algorithm>
#include <utility>

#include "ir/ops/ops.h"

namespace hone {

namespace {

using Gate = RecurrentStep::Gate;

/// Is the node a slice of the last axis alone?
bool cuts_columns(const Graph& graph, const Node& node) {
  const Shape &starts = node.attrs[kStarts], &sizes = node.attrs[kSizes], &whole = graph.type(node.operands[0]).shape;
  for (std::size_t axis = 0; axis < whole.size(); ++axis)
    if (node.attrs[kSteps][axis] != 1 or (axis + 1 < whole.size() and (not starts[axis].is_constant(0) or sizes[axis] != whole[axis]))) return false;
  return not whole.empty();
}

/// What one gate adds up, as far as it has been read.
struct Sum {
  std::optional<Dim> of_slice;
  std::optional<ColumnsOf> weight, bias;

  /// A gate that lacks nothing.
  std::optional<Gate> gate() const { return of_slice and weight ? std::optional(Gate{*of_slice, *weight, bias}) : std::nullopt; }
};

class Reader {
 public:
  explicit Reader(const LoopView& loop) : loop_(loop), body_(loop.body), h_(loop.states[0].in), next_h_(loop.states[0].next) {}

  std::optional<RecurrentStep> step() const {
    RecurrentStep step{.hidden = body_.type(h_).shape[1], .gates = {}};
    const auto found = [&](RecurrentCell cell, std::optional<std::vector<Gate>> gates) {
      if (not gates) return false;
      step.cell = cell, step.gates = std::move(*gates);
      return true;
    };
    if (loop_.states.size() == 2) return found(RecurrentCell::kLstm, lstm()) ? std::optional(step) : std::nullopt;
    const bool is_cell = found(RecurrentCell::kTanh, plain()) or found(RecurrentCell::kGru, gru());
    return is_cell ? std::optional(step) : std::nullopt;
  }

 private:
  using Pair = std::pair<ValueId, ValueId>;

  /// The operands of a sum or a product, both ways round; none where it is something else.
  std::vector<Pair> both_ways(ValueId value, const OpDef& op) const {
    if (not body_.is_op(value, op)) return {};
    const Node& node = body_.producer(value);
    return {{node.operands[0], node.operands[1]}, {node.operands[1], node.operands[0]}};
  }

  std::optional<std::vector<Gate>> plain() const {
    const std::optional<Gate> gate = activated(next_h_, op::tanh);
    return gate ? std::optional(std::vector{*gate}) : std::nullopt;
  }

  std::optional<std::vector<Gate>> lstm() const {
    const ValueId c = loop_.states[1].in, next_c = loop_.states[1].next;
    for (const auto& [kept, added] : both_ways(next_c, op::add))
      for (const auto& [forget, before] : both_ways(kept, op::mul))
        for (const auto& [input, candidate] : both_ways(added, op::mul))
          for (const auto& [output, told] : both_ways(next_h_, op::mul)) {
            if (before != c or not body_.is_op(told, op::tanh) or body_.producer(told).operands[0] != next_c) continue;
            const std::optional<Gate> gates[] = {activated(input, op::sigmoid), activated(forget, op::sigmoid), activated(candidate, op::tanh), activated(output, op::sigmoid)};
            if (std::ranges::all_of(gates, [](const auto& gate) { return gate.has_value(); })) return std::vector{*gates[0], *gates[1], *gates[2], *gates[3]};
          }
    return std::nullopt;
  }

  std::optional<std::vector<Gate>> gru() const {
    for (const auto& [kept, added] : both_ways(next_h_, op::add))
      for (const auto& [update, before] : both_ways(kept, op::mul))
        for (const auto& [rest, candidate] : both_ways(added, op::mul)) {
          if (before != h_ or not is_rest(rest, update) or not body_.is_op(candidate, op::tanh)) continue;
          const std::optional<Gate> of_update = activated(update, op::sigmoid);
          for (const auto& [of_input, of_state] : both_ways(body_.producer(candidate).operands[0], op::add))
            for (const auto& [reset, product] : both_ways(of_state, op::mul)) {
              const std::optional<Gate> of_reset = activated(reset, op::sigmoid);
              Sum sum, of_product;
              if (not of_update or not of_reset or not read_sum({of_input, 0}, sum) or not read_sum({product, 0}, of_product) or of_product.of_slice or sum.weight or sum.bias) continue;
              sum.weight = of_product.weight, sum.bias = of_product.bias;
              if (const std::optional<Gate> of_candidate = sum.gate()) return std::vector{*of_reset, *of_update, *of_candidate};
            }
        }
    return std::nullopt;
  }

  /// 1 - update
  bool is_rest(ValueId value, ValueId update) const {
    if (not body_.is_op(value, op::sub)) return false;
    const Node& node = body_.producer(value);
    return body_.scalar_constant(node.operands[0]) == 1.0 and node.operands[1] == update;
  }

  /// The function of a gate's sum.
  std::optional<Gate> activated(ValueId value, const OpDef& function) const {
    const ColumnsOf columns = unsliced(body_, {value, 0});
    Sum sum;
    if (not body_.is_op(columns.tensor, function) or not read_sum({body_.producer(columns.tensor).operands[0], columns.first}, sum)) return std::nullopt;
    return sum.gate();
  }

  /// False where it is no sum of a slice, a product with h and a bias, each at most once.
  bool read_sum(ColumnsOf columns, Sum& sum) const {
    columns = unsliced(body_, columns);
    const auto keep = [](auto& place, auto what) { return place ? false : (place = what, true); };
    const ValueId value = columns.tensor;
    if (value == loop_.slices[0].in) return keep(sum.of_slice, columns.first);
    if (const ValueId bias = whole(value, 1); bias.valid()) return keep(sum.bias, ColumnsOf{bias, columns.first});
    if (body_.is_op(value, op::matmul)) {
      const Node& product = body_.producer(value);
      const ValueId weight = whole(product.operands[1], 2);
      return product.operands[0] == h_ and weight.valid() and not product.attrs[kTransA] and not product.attrs[kTransB] and keep(sum.weight, ColumnsOf{weight, columns.first});
    }
    if (not body_.is_op(value, op::add)) return false;
    const Node& node = body_.producer(value);
    const Dim width = body_.type(value).shape.back();
    return std::ranges::all_of(node.operands, [&](ValueId operand) {
      const Shape& shape = body_.type(operand).shape;
      return not shape.empty() and shape.back() == width and read_sum({operand, columns.first}, sum);  // a bias may be short of the samples, and of nothing else
    });
  }

  /// The tensor around the loop of which the value is the whole, if it has so many axes.
  ValueId whole(ValueId value, std::size_t rank) const {
    const auto found = std::ranges::find_if(loop_.whole, [&](const LoopView::Fed& fed) { return fed.in == value; });
    return found != loop_.whole.end() and body_.type(value).shape.size() == rank ? found->operand : ValueId{};
  }

  const LoopView& loop_;
  const Graph& body_;
  const ValueId h_, next_h_;
};

}  // namespace

ColumnsOf unsliced(const Graph& graph, ColumnsOf columns) {
  while (graph.is_op(columns.tensor, op::slice) and cuts_columns(graph, graph.producer(columns.tensor))) {
    const Node& slice = graph.producer(columns.tensor);
    columns = {slice.operands[0], columns.first + slice.attrs[kStarts].back()};
  }
  return columns;
}

std::optional<RecurrentStep> recurrent_step(const LoopView& loop) {
  if (loop.slices.size() != 1 or loop.states.empty() or loop.states.size() > 2) return std::nullopt;
  const Type& state = loop.body.type(loop.states[0].in);
  if (state.dtype != DType::kF32 or state.shape.size() != 2 or loop.body.type(loop.slices[0].in).shape.size() != 2) return std::nullopt;
  if (loop.states.size() == 2 and loop.body.type(loop.states[1].in) != state) return std::nullopt;
  return Reader(loop).step();
}

}  // namespace hone
