#include "frontend/onnx/leftovers.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "formats/onnx_file.h"
#include "frontend/onnx/ops.h"

namespace hone::onnx {

namespace {

/// One operator of a formula. Operands: "x", the node's; "1", the number; "", there is none; anything else, the result of the step before.
struct FormulaStep {
  std::string_view op_type;
  std::array<std::string_view, 2> operands;
};

struct Leftover {
  std::string_view name;
  std::vector<FormulaStep> steps;  ///< the last one gives the result
};

/// TensorFlow's functions of one operand that tf2onnx has no conversion for.
const std::vector<Leftover>& leftovers() {
  static const std::vector<Leftover> kLeftovers = {
      {"Erfc", {{"Erf", {"x"}}, {"Sub", {"1", "y"}}}},
      {"Expm1", {{"Exp", {"x"}}, {"Sub", {"y", "1"}}}},
      {"Inv", {{"Reciprocal", {"x"}}}},
      {"Log1p", {{"Add", {"x", "1"}}, {"Log", {"y"}}}},
  };
  return kLeftovers;
}

const Leftover* find_leftover(const NodeProto& node) {
  if (not canonical_domain(node.domain()).empty() or node.input_size() != 1 or node.output_size() != 1) return nullptr;
  const auto found = std::find_if(leftovers().begin(), leftovers().end(), [&](const Leftover& one) { return one.name == node.op_type(); });
  return found == leftovers().end() ? nullptr : &*found;
}

std::int64_t opset_of_default_domain(const ModelProto& model) {
  for (const OperatorSetIdProto& opset : model.opset_import())
    if (canonical_domain(opset.domain()).empty()) return opset.version();
  return 0;
}

/// The model's main graph and all bodies in it, however deep.
std::vector<GraphProto*> graphs_of(ModelProto& model) {
  std::vector<GraphProto*> graphs = {model.mutable_graph()};
  for (std::size_t i = 0; i < graphs.size(); ++i)
    for (NodeProto& node : *graphs[i]->mutable_node())
      for (AttributeProto& attribute : *node.mutable_attribute()) {
        if (attribute.has_g()) graphs.push_back(attribute.mutable_g());
        for (GraphProto& body : *attribute.mutable_graphs()) graphs.push_back(&body);
      }
  return graphs;
}

using NodeProtos = google::protobuf::RepeatedPtrField<NodeProto>;

/// Writes leftovers out, with names that the file does not have.
class LeftoverWriter {
 public:
  explicit LeftoverWriter(ModelProto& model) : graphs_(graphs_of(model)), has_cast_like_(opset_of_default_domain(model) >= kCastLike) {}

  /// How many nodes of each name there were.
  std::map<std::string_view, int> run() {
    const auto has_any = [](const GraphProto* graph) {
      return std::any_of(graph->node().begin(), graph->node().end(), [](const NodeProto& node) { return find_leftover(node) != nullptr; });
    };
    if (std::none_of(graphs_.begin(), graphs_.end(), has_any)) return {};
    for (const GraphProto* graph : graphs_) take_names(*graph);
    for (auto graph = graphs_.rbegin(); graph != graphs_.rend(); ++graph)  // bodies first: moving nodes keeps what they hold where it is
      if (has_any(*graph)) rewrite(**graph);
    return counts_;
  }

 private:
  static constexpr std::int64_t kCastLike = 15;  ///< the first opset with this operator

  void take_names(const GraphProto& graph) {
    for (const ValueInfoProto& input : graph.input()) taken_.insert(input.name());
    for (const TensorProto& tensor : graph.initializer()) taken_.insert(tensor.name());
    for (const NodeProto& node : graph.node()) taken_.insert(node.output().begin(), node.output().end());
  }

  std::string fresh(const std::string& hint) {
    std::string name = hint;
    for (int i = 0; not taken_.insert(name).second; ++i) name = fmt::format("{}_{}", hint, i);
    return name;
  }

  void rewrite(GraphProto& graph) {
    NodeProtos nodes;
    for (NodeProto& node : *graph.mutable_node()) {
      if (const Leftover* leftover = find_leftover(node)) write(node, *leftover, nodes);
      else *nodes.Add() = std::move(node);
    }
    graph.mutable_node()->Swap(&nodes);
  }

  void write(const NodeProto& node, const Leftover& leftover, NodeProtos& nodes) {
    ++counts_[leftover.name];
    std::string result;
    for (std::size_t i = 0; i < leftover.steps.size(); ++i) {
      const FormulaStep& step = leftover.steps[i];
      std::vector<std::string> operands;
      for (const std::string_view operand : step.operands) {
        if (operand.empty()) continue;
        operands.push_back(operand == "x" ? node.input(0) : operand == "1" ? one_like(node, nodes) : result);
      }
      const bool is_last = i + 1 == leftover.steps.size();
      result = is_last ? node.output(0) : fresh(fmt::format("{}/{}", node.output(0), step.op_type));
      NodeProto& made = *nodes.Add();
      made = node;
      made.set_op_type(std::string(step.op_type));
      made.clear_attribute();  // TensorFlow's
      made.clear_input();
      for (const std::string& operand : operands) made.add_input(operand);
      made.set_output(0, result);
      if (not is_last and not node.name().empty()) made.set_name(fmt::format("{}/{}", node.name(), step.op_type));
    }
  }

  /// 1 in the type of the node's operand; f32, where the opset has no way to say so.
  std::string one_like(const NodeProto& node, NodeProtos& nodes) {
    NodeProto& constant = *nodes.Add();
    constant.set_op_type("Constant");
    AttributeProto& value = *constant.add_attribute();
    value.set_name("value");
    value.set_type(AttributeProto::TENSOR);
    store_tensor(value.mutable_t(), Tensor::scalar(1.0F));
    const std::string one = fresh(node.output(0) + "/one");
    constant.add_output(one);
    if (not has_cast_like_) return one;
    NodeProto& cast = *nodes.Add();
    cast.set_op_type("CastLike");
    cast.add_input(one);
    cast.add_input(node.input(0));
    return *cast.add_output() = fresh(one + "/like");
  }

  std::vector<GraphProto*> graphs_;
  bool has_cast_like_;
  std::set<std::string> taken_;
  std::map<std::string_view, int> counts_;
};

}  // namespace

void write_leftovers(ModelProto& model, const Loc& file, Diags& diags) {
  const auto is_of_default_domain = [](const FunctionProto& function) { return canonical_domain(function.domain()).empty(); };
  if (std::any_of(model.functions().begin(), model.functions().end(), is_of_default_domain)) return;  // the model may say itself what they are
  const std::map<std::string_view, int> counts = LeftoverWriter(model).run();
  if (counts.empty()) return;
  std::string list;
  for (const auto& [name, count] : counts) list += fmt::format("{}{} ({} node{})", list.empty() ? "" : ", ", name, count, count == 1 ? "" : "s");
  diags.warn(Code::kModelWarning, fmt::format("the exporter left operators of TensorFlow in the file, which ONNX does not have: {}; they are written in ONNX's own", list), file,
             {"other programs refuse this file; they can read the trained one"});
}

}  // namespace hone::onnx
