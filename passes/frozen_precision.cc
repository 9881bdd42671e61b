#include "passes/frozen_precision.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <set>

#include "base/kept_weight.h"
#include "base/text.h"
#include "ir/ops/ops.h"
#include "passes/input_replacement.h"
#include "passes/matrix_views.h"
#include "passes/names.h"

namespace hone {

namespace {

/// Axes of output channels, by input's value, as the first product, convolution or lookup that reads it has them.
std::map<std::uint32_t, std::uint32_t> output_axes(const Graph& graph) {
  std::map<std::uint32_t, std::uint32_t> axes;
  const MatrixViews views(graph);
  for (const Node& node : graph.nodes()) {
    if (*node.op == op::matmul) {
      for (const std::size_t i : {0, 1})
        if (const auto view = views.find(node.operands[i])) axes.try_emplace(view->weight.index, is_transposed(node, i, *view) == (i == 1) ? 0 : 1);
    } else if (*node.op == op::conv) {
      axes.try_emplace(node.operands[1].index, 0);
    } else if (*node.op == op::conv_input_grad) {  // a model's own: a transposed convolution
      axes.try_emplace(node.operands[1].index, 1);
    } else if (*node.op == op::gather and node.attrs[kAxis] == 0) {
      axes.try_emplace(node.operands[0].index, 0);
    }
  }
  return axes;
}

bool has_only_finite(const Tensor& tensor) {
  for (std::int64_t i = 0; i < tensor.element_count(); ++i)
    if (not std::isfinite(tensor.at(i))) return false;
  return true;
}

class Narrowing : public InputReplacement {
 public:
  Narrowing(const Graph& graph, DType kept, std::span<const std::string> trained) : InputReplacement(graph), kept_(kept), axes_(output_axes(graph)), trained_(trained.begin(), trained.end()) {}

  std::vector<NarrowedWeight> run(Graph& graph) {
    Graph made = replaced();
    if (not narrowed_.empty()) graph = std::move(made);
    return std::move(narrowed_);
  }

 private:
  Val replacement(const Input& input) override {
    if (not can_be_narrow(input)) return {};
    const Type& type = graph_.type(input.value);
    if (not has_only_finite(*input.data))
      throw Error(Code::kRecipeModel, fmt::format("model.frozen_precision: the weight {} has elements that are infinite or NaN", quoted(input.name)), {},
                  {"such a weight is kept as it is without model.frozen_precision; was the model saved from a run that had diverged?"});
    NarrowedWeight& weight = narrowed_.emplace_back(NarrowedWeight{.name = input.name, .outside = type.dtype, .kept = kept_});
    if (kept_ == DType::kI8) weight.axis = axes_.at(input.value.index);
    const KeptWeight kept = keep_as(*input.data, kept_, weight.axis);
    builder_.input(input.role, input.name, {kept_, type.shape}, kept.stored);
    if (kept_ == DType::kI8) {
      weight.scales = unused_name(graph_, input.name + kScalesSuffix);
      builder_.input(Role::kWeight, weight.scales, {DType::kF32, {type.shape[weight.axis]}}, kept.scales);
    }
    const Builder::Scope scope(builder_, Loc{.derived = "weight " + input.name}, Part::kForward);
    return widened_weight(builder_, input.name, narrowed_);
  }

  bool can_be_narrow(const Input& input) const {
    const Type& type = graph_.type(input.value);
    if (input.role != Role::kWeight or not input.data or trained_.contains(input.name) or type.dtype != DType::kF32 or type.shape.size() < 2 or input.data->element_count() == 0) return false;
    const auto is_shown = [&](const Output& output) { return output.value == input.value; };
    return std::ranges::none_of(graph_.outputs(), is_shown) and (kept_ != DType::kI8 or axes_.contains(input.value.index));
  }

  static constexpr const char* kScalesSuffix = "/int8_scale";
  const DType kept_;
  const std::map<std::uint32_t, std::uint32_t> axes_;
  const std::set<std::string> trained_;
  std::vector<NarrowedWeight> narrowed_;
};

/// What follows from narrowed weights and their scales alone, element by element or moved: in the order of the nodes.
class Widened {
 public:
  Widened(const Graph& graph, std::span<const NarrowedWeight> narrowed) : graph_(graph), from_(graph.value_count()) {
    for (const NarrowedWeight& weight : narrowed)
      for (const std::string& name : {weight.name, weight.scales})
        if (size_of(weight.kept) > size_of(weight.outside)) continue;  // a master is rounded once for all
        else if (const Input* input = graph.find_input(name)) from_[input->value.index] = true;
    for (const Node& node : graph.nodes()) {
      const bool moves = *node.op == op::reshape or *node.op == op::transpose or *node.op == op::broadcast_to;
      if (node.op->scalar == nullptr and not moves) continue;
      const bool all = std::ranges::all_of(node.operands, [this](ValueId operand) { return operand.valid() and from_[operand.index]; });
      if (all and not node.operands.empty()) from_[node.results[0].index] = true;
    }
  }
  /// Is it made by a node from such weights?
  bool is_made(ValueId value) const { return value.valid() and from_[value.index] and graph_.value(value).producer.valid(); }

 private:
  const Graph& graph_;
  std::vector<bool> from_;  // by value
};

/// A copy of what makes `value`, which has few nodes: a weight is widened, scaled, rounded and moved.
Val made_again(Rewriter& rewriter, const Widened& widened, ValueId value) {
  std::map<std::uint32_t, Val> made;
  std::vector<ValueId> wanted = {value};
  while (not wanted.empty()) {
    const ValueId next = wanted.back();
    const Node& maker = rewriter.node(rewriter.old().value(next).producer);
    const std::size_t before = wanted.size();
    for (const ValueId operand : maker.operands)
      if (widened.is_made(operand) and not made.contains(operand.index)) wanted.push_back(operand);
    if (wanted.size() > before) continue;
    wanted.pop_back();
    std::vector<Val> operands;
    for (const ValueId operand : maker.operands) operands.push_back(widened.is_made(operand) ? made.at(operand.index) : rewriter.mapped(operand));
    const Builder::Scope scope(rewriter.builder(), maker.loc, maker.part);
    made[next.index] = rewriter.builder().add(*maker.op, operands, maker.attrs)[0];
  }
  return made.at(value.index);
}

}  // namespace

bool narrows_frozen_weights(const Recipe& recipe) { return recipe.model.frozen_precision != "f32"; }

std::vector<NarrowedWeight> narrow_frozen_weights(Graph& graph, const Recipe& recipe, std::span<const std::string> trained) {
  if (not narrows_frozen_weights(recipe)) return {};
  const DType kept = recipe.model.frozen_precision == "int8" ? DType::kI8 : *dtype_from_name(recipe.model.frozen_precision);
  std::vector<NarrowedWeight> narrowed = Narrowing(graph, kept, trained).run(graph);
  if (narrowed.empty())
    throw Error(Code::kRecipeModel, fmt::format("model.frozen_precision = {}: no weight is frozen that could be kept so", quoted(recipe.model.frozen_precision)), {},
                {"it is for weights of f32 that are not trained, of rank 2 and more, which for int8 a product, a convolution or a lookup must read",
                 "freeze some with model.freeze or model.train_only, or with adapters ([lora] targets), or leave it out"});
  return narrowed;
}

Val widened_weight(Builder& builder, const std::string& name, std::span<const NarrowedWeight> narrowed) {
  const Val stored = builder.val(builder.graph().find_input(name)->value);
  const auto weight = std::ranges::find(narrowed, name, &NarrowedWeight::name);
  if (weight == narrowed.end()) return stored;
  if (weight->scales.empty()) return cast(stored, weight->outside);
  Shape along(stored.rank(), Dim(1));
  along[weight->axis] = stored.shape()[weight->axis];
  return cast(stored, weight->outside) * reshape(builder.val(builder.graph().find_input(weight->scales)->value), along);
}

Changed widen_where_read(Graph& graph, std::span<const NarrowedWeight> narrowed) {
  if (narrowed.empty()) return Changed::kNo;
  const Widened widened(graph, narrowed);
  const Changed changed = Rewriter::rewrite(graph, [&](Rewriter& rewriter, NodeId id) {
    const Node& node = rewriter.node(id);
    if (widened.is_made(node.results[0]) or node.op->region != Region::kNone or std::ranges::none_of(node.operands, [&](ValueId operand) { return widened.is_made(operand); })) return false;
    std::vector<Val> operands;
    for (const ValueId operand : node.operands) operands.push_back(widened.is_made(operand) ? made_again(rewriter, widened, operand) : rewriter.mapped(operand));
    const std::vector<Val> results = rewriter.builder().add(*node.op, operands, node.attrs);
    for (std::size_t i = 0; i < results.size(); ++i) rewriter.replace(node.results[i], results[i]);
    return true;
  });
  (void)Rewriter::drop_unused(graph);
  return changed;
}

}  // namespace hone
