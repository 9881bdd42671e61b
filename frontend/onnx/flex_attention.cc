// FlexAttention of ai.onnx.preview: attention whose scores and weights go through bodies of the node.
#include <fmt/format.h>

#include <cmath>
#include <utility>

#include "frontend/onnx/control.h"
#include "ir/ops/formulas.h"
#include "ir/ops/ops.h"

namespace hone::onnx {

namespace {

/// scores, score_mod, softmax, prob_mod, weights * value: a body at a time, where the node has it.
class FlexAttentionTask final : public ControlTask {
  using ControlTask::ControlTask;

  std::optional<std::vector<Item>> start() override {
    const Val query = node_.x(0), key = node_.x(1), value = node_.x(2);
    node_.require(query.rank() == 4 and key.rank() == 4 and value.rank() == 4, Code::kShape, "Q, K and V need four axes: [batch, heads, positions, features]");
    const Dim heads = query.shape()[1], key_heads = key.shape()[1];
    node_.require(floordiv(heads, key_heads) * key_heads == heads, Code::kShape, fmt::format("{} query heads for {} key heads", heads.text(), key_heads.text()));
    const DType type = node_.has_attribute("softmax_precision") ? node_.dtype("softmax_precision") : query.dtype() == DType::kF64 ? DType::kF64 : DType::kF32;
    Val scores = cast(attention_scores(query, key, scale_of(query.shape()[3])), type);
    return modify("score_mod", scores);
  }

  std::optional<std::vector<Item>> step(std::vector<Item> results) override {
    node_.require(results.size() == 1 and results[0].is_tensor() and results[0].tensor.type() == modified_, Code::kType,
                  fmt::format("its {} must give one {}", is_weights_ ? "prob_mod" : "score_mod", to_string(modified_)));
    return go_on(results[0].tensor);
  }

  double scale_of(const Dim& features) const {
    if (node_.has_attribute("scale")) return node_.real("scale", 1);
    if (not features.is_constant()) node_.fail(Code::kDynamic, fmt::format("the features of a head must be known when compiling, and are {}", features.text()));
    return 1 / std::sqrt(static_cast<double>(features.value()));
  }

  /// Writes the body `name` over `x`, or goes on with x itself.
  std::optional<std::vector<Item>> modify(const std::string& name, Val x) {
    if (not node_.has_attribute(name)) return go_on(x);
    modified_ = x.type();
    const BodyAttribute graph = body(name);
    require_inputs(*graph.graph, 1);
    push(graph, {x}, name);
    return std::nullopt;
  }

  std::optional<std::vector<Item>> go_on(Val x) {
    if (not std::exchange(is_weights_, true)) return modify("prob_mod", op::softmax(x, {kAxis = 3}));
    return std::vector<Item>{attend(cast(x, node_.x(2).dtype()), node_.x(2))};
  }

  bool is_weights_ = false;  ///< what is modified is no longer the scores
  Type modified_;
};

}  // namespace

std::unique_ptr<Task> flex_attention_task(GraphImport& import, ImportNode node, const NodeProto& proto, const Scope& scope) {
  return std::make_unique<FlexAttentionTask>(import, std::move(node), proto, scope);
}

}  // namespace hone::onnx
