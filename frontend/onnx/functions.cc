#include "frontend/onnx/functions.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "base/text.h"
#include "frontend/onnx/ops.h"
#include "frontend/onnx/versions.h"

namespace hone::onnx {

Functions::Functions(const ModelProto& model, const Loc& file, Diags& diags) {
  for (const FunctionProto& function : model.functions()) {
    const Key key = {std::string(canonical_domain(function.domain())), function.name(), function.overload()};
    if (not by_key_.emplace(key, &function).second)
      diags.error(Code::kBadGraph, fmt::format("there are two functions {}", name_of(function)), file);
  }
}

const FunctionProto* Functions::called_by(const NodeProto& node) const {
  if (by_key_.empty()) return nullptr;
  const auto found = by_key_.find({std::string(canonical_domain(node.domain())), node.op_type(), node.overload()});
  return found == by_key_.end() ? nullptr : found->second;
}

bool Functions::has_domain(std::string_view domain) const {
  return std::any_of(by_key_.begin(), by_key_.end(), [&](const auto& entry) { return std::get<0>(entry.first) == canonical_domain(domain); });
}

FunctionCall call_of(const FunctionProto& function, const ImportNode& node, const NodeProto& proto, const Scope& scope) {
  if (proto.input_size() > function.input_size())
    node.fail(Code::kBadGraph, fmt::format("has {} inputs, and the function {} takes {}", proto.input_size(), name_of(function), function.input_size()));
  if (proto.output_size() > function.output_size())
    node.fail(Code::kBadGraph, fmt::format("has {} outputs, and the function {} gives {}", proto.output_size(), name_of(function), function.output_size()));
  FunctionCall call{&function, {}, {}};
  for (const AttributeProto& attribute : function.attribute_proto()) call.attributes.emplace(attribute.name(), &attribute);
  for (const AttributeProto& attribute : proto.attribute()) {
    const AttributeProto* value = node.attribute(attribute.name());
    if (value == nullptr) continue;  // refers to what the calling function was not given
    call.attributes.insert_or_assign(attribute.name(), value);
    const Scope* written_in = &scope;
    if (not attribute.ref_attr_name().empty() and scope.call != nullptr)
      if (const auto found = scope.call->written_in.find(attribute.ref_attr_name()); found != scope.call->written_in.end()) written_in = found->second;
    call.written_in.insert_or_assign(attribute.name(), written_in);
  }
  return call;
}

std::int64_t opset_of(const FunctionProto& function, std::int64_t outside, const Loc& loc) {
  std::optional<std::int64_t> opset;
  for (const OperatorSetIdProto& import : function.opset_import())
    if (canonical_domain(import.domain()).empty()) opset = std::max(opset.value_or(0), import.version());
  if (opset and (*opset < kOldestOpset or *opset > kNewestOpset))
    throw Error(Code::kOpset, fmt::format("the function {} is written for opset {}: {} to {} are supported", name_of(function), *opset, kOldestOpset, kNewestOpset),
                loc, {"convert the model with onnx.version_converter"});
  return opset.value_or(outside);
}

std::string name_of(const FunctionProto& function) {
  std::string name = function.domain().empty() ? function.name() : function.domain() + "." + function.name();
  if (not function.overload().empty()) name += ":" + function.overload();
  return printable(name);
}

}  // namespace hone::onnx
