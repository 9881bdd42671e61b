// What tf2onnx makes of Keras's layers, and a file does not tell by itself.
#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "base/text.h"
#include "frontend/onnx/mend_model.h"

namespace hone::onnx {

namespace {

// --- Recurrent layers: one bias in Keras, two in ONNX ---

/// A GRU that resets behind its product has two biases in Keras, too.
bool has_single_bias(const NodeProto& node) {
  return is_recurrent(node) and node.input_size() > kRecurrentBias and (node.op_type() != "GRU" or integer_attribute(node, "linear_before_reset") == 0);
}

/// Are all rows zero from column `first` on?
bool is_zero_from(const Tensor& tensor, std::int64_t first) {
  const std::size_t row = static_cast<std::size_t>(tensor.shape()[1]) * size_of(tensor.dtype()), begin = static_cast<std::size_t>(first) * size_of(tensor.dtype());
  for (std::size_t at = 0; row > 0 and at < tensor.bytes().size(); at += row)
    for (const std::byte byte : tensor.bytes().subspan(at + begin, row - begin))
      if (byte != std::byte{0}) return false;
  return true;
}

void learn_single_biases(const MendModel& m, Roles& roles) {
  std::vector<std::string> names, without;
  for (const NodeProto& node : m.graph().node()) {
    if (not has_single_bias(node) or not m.is_weight(node.input(kRecurrentBias)) or m.is_trained_by_name(node.input(kRecurrentBias))) continue;
    const auto values = m.values(node.input(kRecurrentBias));
    if (not values or values->shape().size() != 2 or values->shape()[1] % 2 != 0) continue;
    const std::int64_t half = values->shape()[1] / 2;
    if (node.op_type() == "LSTM" and is_zero_from(*values, 0)) {
      if (roles.of.emplace(node.input(kRecurrentBias), Role::kConstant).second) without.push_back(node.input(kRecurrentBias));
      continue;
    }
    if (half > 0 and is_zero_from(*values, half) and roles.learned_columns.emplace(node.input(kRecurrentBias), half).second) names.push_back(node.input(kRecurrentBias));
  }
  if (not names.empty())
    m.warn(fmt::format("recurrent layers of Keras have one bias, and ONNX's have two: the second half of {} stays as it is, zero", list_of(names)),
           {fmt::format("to train both, name {} in model.train_only", names.size() == 1 ? "it" : "them")});
  if (not without.empty())
    m.warn(fmt::format("zero is taken for no bias in {}: tf2onnx writes it for an LSTM of Keras with use_bias=False, and others begin with ones; not trained", list_of(without)),
           {"if there is one, as with unit_forget_bias=False, give it other values before exporting: for v in model.weights: if v.name == \"bias\": v.assign(v + 1e-7)"});
}

// --- Biases that are not there ---

/// A model in which nothing has a bias is a fresh one, most likely: Keras begins with biases of zero, and tf2onnx takes away what adds nothing.
void name_lost_biases(const MendModel& m) {
  std::vector<std::string> without;
  for (const NodeProto& node : m.graph().node()) {
    if (not is_layer_with_weight(m, node)) continue;
    const HasBias has = has_bias(m, node);
    if (has == HasBias::kYes) return;
    if (has == HasBias::kNo) without.push_back(m.loc(node).node);
  }
  if (without.empty()) return;
  m.warn(fmt::format("no layer has a bias, {} neither: tf2onnx leaves out what is zero when it exports, such as all biases of a fresh model, and what is left out is not trained",
                     list_of(without)),
         {"if the layers have biases in Keras, ask for them: [model] add_bias = [\"*\"], or the names of those that have",
          "or give them other values before exporting: for v in model.weights: if v.name == \"bias\": v.assign(v + 1e-7)"});
}

}  // namespace

void name_keras(const MendModel& m, Roles& roles) {
  learn_single_biases(m, roles);
  name_lost_biases(m);
}

}  // namespace hone::onnx
