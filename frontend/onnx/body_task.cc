#include "frontend/onnx/body_task.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"
#include "frontend/onnx/constant_value.h"
#include "frontend/onnx/control.h"
#include "frontend/onnx/ops.h"
#include "frontend/onnx/values.h"
#include "frontend/onnx/versions.h"
#include "ir/ops/ops.h"

namespace hone::onnx {

BodyTask::BodyTask(GraphImport& import, Scope scope, std::optional<FunctionCall> call) : import_(import), scope_(std::move(scope)), call_(std::move(call)) {
  if (not call_) return;
  scope_.call = &*call_;
  import_.open(*call_->function);
}

BodyTask::~BodyTask() {
  if (call_) import_.close(*call_->function);
}

std::optional<std::vector<Item>> BodyTask::resume(std::vector<Item> results) {
  if (waiting_ != nullptr) {
    const Loc loc = scope_.loc_of(*waiting_);
    results.resize(std::max(results.size(), static_cast<std::size_t>(waiting_->output_size())));
    for (int i = 0; i < waiting_->output_size(); ++i) add_result(*waiting_, i, std::move(results[static_cast<std::size_t>(i)]), loc);
    waiting_ = nullptr;
  }
  while (next_ < scope_.body->order.size()) {
    start(scope_.body->body.nodes->Get(scope_.body->order[next_++]));
    if (waiting_ != nullptr) return std::nullopt;
  }
  std::vector<Item> outputs;
  for (const std::string_view name : scope_.body->body.outputs) outputs.push_back(scope_.find(name));
  return outputs;
}

/// The node's operands; nothing when one of them could not be made.
std::optional<std::vector<Item>> BodyTask::operands_of(const NodeProto& proto) const {
  std::vector<Item> operands;
  for (const std::string& name : proto.input()) {
    operands.push_back(name.empty() ? Item::left_out() : scope_.find(name));
    if (operands.back().failed()) return std::nullopt;
  }
  while (not operands.empty() and operands.back().kind == Item::Kind::kLeftOut) operands.pop_back();
  return operands;
}

void BodyTask::start(const NodeProto& proto) {
  const Loc loc = scope_.loc_of(proto);
  if (is_inner()) import_.count(1, loc);
  for (const std::string& name : proto.output()) scope_.values.emplace(name, Item());  // until it is made; nothing further out is meant
  const FunctionProto* function = import_.context().functions.called_by(proto);
  if (function == nullptr and not is_supported(proto.op_type(), proto.domain())) return import_.unknown().add(proto, loc);
  auto operands = operands_of(proto);
  if (not operands) return;
  std::vector<bool> wanted;
  for (const std::string& name : proto.output()) wanted.push_back(not name.empty() and scope_.body->read.contains(name));
  try {
    // A constant is written once, outside of all bodies, however often its node is.
    const bool is_constant = proto.op_type() == "Constant" and function == nullptr and is_inner() and
                             std::all_of(proto.attribute().begin(), proto.attribute().end(), [](const auto& one) { return one.ref_attr_name().empty(); });
    if (const auto made = import_.constants().find(&proto); made != import_.constants().end()) return add_result(proto, 0, made->second, loc);
    Builder& builder = is_constant ? import_.root().builder() : scope_.region->builder();
    const Builder::Scope in(builder, loc, Part::kForward);
    for (std::size_t i = 0; i < operands->size() and not is_inner(); ++i)
      if (Item& item = (*operands)[i]; item.is_tensor() and is_float(item.tensor.dtype()) and import_.context().detached.contains(proto, static_cast<int>(i)))
        item.tensor = op::stop_gradient(item.tensor);
    ImportNode node(builder, proto, *operands, std::move(wanted), loc, import_.context().folder, scope_.attributes());
    if (function != nullptr) import_.push_call(*function, scope_, node, proto, *operands);
    else if (is_control(proto)) import_.push(control_task(import_, std::move(node), proto, scope_));
    else return write(proto, node, is_constant);
    waiting_ = &proto;
  } catch (const Error& error) { import_.report(error, proto, loc); }
}

void BodyTask::write(const NodeProto& proto, ImportNode& node, bool is_constant) {
  to_newest_form(node, scope_.opset);
  if (import_.context().batch) fit_to_batch(node, *import_.context().batch);
  add_results(proto, node, import_node(node));
  if (is_constant and proto.output_size() == 1) import_.constants().emplace(&proto, scope_.values.at(proto.output(0)));
}

void BodyTask::add_results(const NodeProto& proto, const ImportNode& node, std::vector<Item> results) {
  for (std::size_t i = 0; i < node.result_count(); ++i) {
    const bool is_there = i < results.size() and not results[i].failed();
    if (not is_there and node.wants(i))
      node.fail(Code::kUnknownOp, fmt::format("its result {} ({}) is not supported", i, quoted(proto.output(static_cast<int>(i)))));
    if (not is_there) continue;
    if (results[i].is_tensor()) results[i].tensor = known(results[i].tensor);
    add_result(proto, static_cast<int>(i), std::move(results[i]), node.loc());
  }
}

void BodyTask::add_result(const NodeProto& proto, int i, Item item, const Loc& loc) {
  const std::string& name = proto.output(i);
  if (name.empty() or item.failed()) return;
  import_.count(item.elements.size() / 16, loc);  // a sequence takes memory, too
  if (item.is_tensor()) {
    const Val result = item.tensor;
    check_size(result.type(), quoted(name), loc);
    if (result.builder().graph().value(result.id()).name.empty()) result.builder().set_name(result, scope_.path + name);
  }
  scope_.values.insert_or_assign(name, std::move(item));
}

/// Integers that follow from constants, if by float arithmetic, as a constant: a size may be computed from them.
Val BodyTask::known(Val result) {
  const Graph& graph = result.builder().graph();
  if (is_float(result.dtype()) or graph.value(result.id()).known or graph.input_of(result.id()) != nullptr) return result;
  const auto value = constant_value(graph, result.id());
  return value ? result.builder().constant(*value) : result;
}

}  // namespace hone::onnx
