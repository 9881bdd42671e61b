#include "frontend/onnx/unknown_operators.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"
#include "frontend/onnx/ops.h"

namespace hone::onnx {

void UnknownOperators::add(const NodeProto& node, Loc loc) {
  if (seen_.insert(&node).second) nodes_[{std::string(canonical_domain(node.domain())), node.op_type()}].push_back(std::move(loc));
}

void UnknownOperators::report(Diags& diags) const {
  for (const auto& [name, locs] : nodes_) {
    const std::string count = locs.size() == 1 ? "1 node" : fmt::format("{} nodes", locs.size());
    const std::string domain = name.first.empty() ? "" : fmt::format(" of domain {}", quoted(name.first));
    diags.error(Code::kUnknownOp, fmt::format("operator {}{} is not supported ({})", printable(name.second), domain, count), locs[0], notes(name, locs));
  }
}

std::vector<std::string> UnknownOperators::notes(const Name& name, const std::vector<Loc>& locs) const {
  constexpr std::size_t kMostNamed = 4;
  std::vector<std::string> notes;
  std::string others;
  for (std::size_t i = 1; i < std::min(locs.size(), kMostNamed + 1); ++i) others += (i == 1 ? "also at " : ", ") + quoted(locs[i].node);
  if (locs.size() > kMostNamed + 1) others += fmt::format(" and {} more", locs.size() - kMostNamed - 1);
  if (not others.empty()) notes.push_back(others);
  for (const RefusedOperator& refused : refused_operators())
    if (name.first.empty() and refused.name == name.second) notes.emplace_back(refused.reason);
  if (not name.first.empty() and functions_.has_domain(name.first)) {
    notes.emplace_back("the model has functions of this domain, and none of this name (and overload)");
  } else if (const std::vector<std::string> known = supported_operators(name.first); not name.first.empty() and not known.empty()) {
    notes.emplace_back("of this domain Hone knows " + quoted_list(known));
    if (name.first == "com.microsoft") notes.emplace_back("ONNX Runtime's optimizer fuses for inference: take the model as it was exported, and optimize what comes out of the training");
  } else if (name.first == "com.microsoft.nchwc") {
    notes.emplace_back("ONNX Runtime laid the model out for one processor and inference: take it as it was exported, or save it with ORT_ENABLE_EXTENDED or lower (ORT_ENABLE_ALL adds these nodes)");
  } else if (name.first == "ai.onnx.ml") {
    notes.emplace_back("this domain is for trees, linear models and tables of labels, as scikit-learn's models have them, and nothing in it is trained by gradients");
    notes.emplace_back("a network in front of such nodes can be cut out: onnx.utils.extract_model(file, new_file, input_names, output_names)");
  } else if (not name.first.empty()) {
    notes.emplace_back("Hone does not know this domain; export the model with the operator as a function of the model, or out of ONNX's own operators");
  } else if (not is_standard_operator(name.second)) {
    const std::string hint = did_you_mean(name.second, supported_operators());
    notes.push_back("ONNX has no such operator" + (hint.empty() ? "" : "; " + hint));
  }
  return notes;
}

}  // namespace hone::onnx
