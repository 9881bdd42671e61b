#include "frontend/onnx/examine.h"

#include <algorithm>

#include "base/files.h"
#include "frontend/onnx/ops.h"
#include "frontend/onnx/order.h"

namespace hone::onnx {

namespace {

/// Functions of the model itself, as their nodes name them.
std::map<std::string, bool> local_functions(const ModelProto& model) {
  std::map<std::string, bool> names;
  for (const FunctionProto& function : model.functions()) names[function.domain() + "." + function.name()] = true;
  return names;
}

class Operators {
 public:
  explicit Operators(const ModelProto& model) : functions_(local_functions(model)) {
    add(model.graph().node());
    for (const FunctionProto& function : model.functions()) add(function.node());
  }
  std::vector<OperatorUse> take() {
    std::vector<OperatorUse> list;
    for (auto& [name, use] : uses_) list.push_back(std::move(use));
    return list;
  }

 private:
  template <typename Nodes>
  void add(const Nodes& nodes) {
    for (const NodeProto& node : nodes) {
      add(node);
      for (const AttributeProto& attribute : node.attribute()) {
        if (attribute.has_g()) add(attribute.g().node());
        for (const GraphProto& body : attribute.graphs()) add(body.node());
      }
    }
  }

  void add(const NodeProto& node) {
    const bool standard = canonical_domain(node.domain()).empty();
    const std::string name = standard ? node.op_type() : node.domain() + "." + node.op_type();
    OperatorUse& use = uses_[name];
    if (use.nodes++ > 0) return;
    use.name = name;
    if (functions_.contains(node.domain() + "." + node.op_type())) return;  // its nodes are counted
    use.refusal = refusal(node, standard);
  }

  static std::string refusal(const NodeProto& node, bool standard) {
    if (is_supported(node.op_type(), node.domain())) return "";
    if (not standard) return "only operators of the standard domain ai.onnx are known";
    for (const RefusedOperator& refused : refused_operators())
      if (refused.name == node.op_type()) return std::string(refused.reason);
    return is_standard_operator(node.op_type()) ? "not supported" : "ONNX has no such operator";
  }

  std::map<std::string, bool> functions_;
  std::map<std::string, OperatorUse> uses_;
};

}  // namespace

Examined examine_model(const std::string& path, const ImportOptions& options) {
  Examined examined;
  ModelProto model = load_model(path);
  examined.operators = Operators(model).take();
  const Locations locations(model.graph().node(), file_name_of(path));
  for (const NodeProto& node : model.graph().node()) examined.operator_of[locations.of(node).node] = node.op_type();
  Diags diags;
  examined.imported = import_parts(std::move(model), file_name_of(path), folder_of(path), options, diags);
  for (const Diag& diag : diags.all())
    if (diag.severity == Severity::kError) examined.problems.push_back(diag);
  return examined;
}

}  // namespace hone::onnx
