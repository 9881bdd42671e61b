#include "frontend/onnx/node.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"
#include "frontend/onnx/exported_program.h"
#include "ir/known.h"
#include "ir/op.h"

namespace hone::onnx {

namespace {

std::string_view describe(AttributeProto::AttributeType type) {
  switch (type) {
    case AttributeProto::FLOAT: return "a number";
    case AttributeProto::INT: return "a whole number";
    case AttributeProto::STRING: return "a text";
    case AttributeProto::TENSOR: return "a tensor";
    case AttributeProto::FLOATS: return "a list of numbers";
    case AttributeProto::INTS: return "a list of whole numbers";
    default: return "something else";
  }
}

/// Exporters before IR version 2 left the type out; then the field that is filled says it.
bool fits(const AttributeProto& attribute, AttributeProto::AttributeType type) {
  if (attribute.has_type() and attribute.type() != AttributeProto::UNDEFINED) return attribute.type() == type;
  switch (type) {
    case AttributeProto::FLOAT: return attribute.has_f();
    case AttributeProto::INT: return attribute.has_i();
    case AttributeProto::STRING: return attribute.has_s();
    case AttributeProto::TENSOR: return attribute.has_t();
    case AttributeProto::FLOATS: return attribute.ints_size() == 0;
    case AttributeProto::INTS: return attribute.floats_size() == 0;
    default: return false;
  }
}

/// Where a value that would have to be known comes from, for people.
std::string origin(const Graph& graph, ValueId id) {
  const Value& value = graph.value(id);
  const std::string name = value.name.empty() ? "it" : quoted(value.name);
  if (const Input* input = graph.input_of(id)) {
    if (input->role == Role::kInput) return fmt::format("{} is an input of the model", name);
    return fmt::format("{} is an initializer of element type {} with {} elements; only integers, at most 64 of them, are followed", name,
                       to_string(value.type.dtype), element_count(value.type.shape).text());
  }
  return fmt::format("{} is computed {}", name, to_string(graph.producer(id).loc));
}

}  // namespace

std::string to_string(const Item& item) {
  switch (item.kind) {
    case Item::Kind::kFailed: return "nothing";
    case Item::Kind::kLeftOut: return "left out";
    case Item::Kind::kTensor: return to_string(item.tensor.type());
    case Item::Kind::kSequence: return fmt::format("a sequence of {} tensors", item.elements.size());
    case Item::Kind::kAbsent: return "an optional that holds nothing";
  }
  return "";
}

ImportNode::ImportNode(Builder& builder, const NodeProto& proto, std::vector<Item> operands, std::vector<bool> wanted_results, Loc loc,
                       const std::string& folder, const BoundAttributes* bound)
    : builder_(builder), proto_(proto), wanted_(std::move(wanted_results)), loc_(std::move(loc)), folder_(folder), bound_(bound) {
  for (Item& operand : operands) operands_.push_back({std::move(operand), std::nullopt});
}

Val ImportNode::x(std::size_t i) const {
  if (i < operands_.size() and operands_[i].literal) return builder_.ints(*operands_[i].literal);
  if (not item(i).is_tensor()) fail(Code::kType, fmt::format("input {} is {}, and must be a tensor", i, to_string(item(i))));
  return item(i).tensor;
}

const Item& ImportNode::item(std::size_t i) const {
  if (not has(i)) fail(Code::kBadGraph, fmt::format("input {} is missing; the node has {}", i, operands_.size()));
  return operands_[i].item;
}

const std::vector<Val>& ImportNode::sequence(std::size_t i) const {
  if (item(i).kind != Item::Kind::kSequence) fail(Code::kType, fmt::format("input {} is {}, and must be a sequence", i, to_string(item(i))));
  return item(i).elements;
}

std::vector<Val> ImportNode::rest(std::size_t first) const {
  std::vector<Val> vals;
  for (std::size_t i = first; i < operands_.size(); ++i) vals.push_back(x(i));
  return vals;
}

/// What the value symbols of operand `id` are called: after the value, which the file names once.
std::string ImportNode::symbol_name(ValueId id, std::string_view name) const {
  const std::string& own = builder_.graph().value(id).name;
  return own.empty() ? fmt::format("{}.{}.{}", loc_.node, name, id.index) : own;
}

bool ImportNode::is_fed(std::size_t i) const {
  return has(i) and not operands_[i].literal and not builder_.graph().value(x(i).id()).known and not element_count(x(i).shape()).is_constant(0);
}

std::vector<Dim> ImportNode::contents(std::size_t i, std::string_view name) const {
  if (has(i) and operands_[i].literal) return shape_of(*operands_[i].literal);
  const Val value = x(i);
  if (const auto& known = builder_.graph().value(value.id()).known) return *known;
  if (is_integer(value.dtype()) and can_be_known(value.type())) return builder_.materialize(value, symbol_name(value.id(), name));
  fail_unknown(i, name);
}

void ImportNode::fail_unknown(std::size_t i, std::string_view name) const {
  fail(Code::kDynamic, fmt::format("the contents of input {} ({}) must be known when compiling", i, name),
       {origin(builder_.graph(), x(i).id()), "export the model with this value fixed, give it with --bind NAME=FILE, or fix the sizes that it is computed from with --dim NAME=N"});
}

Ints ImportNode::numbers(std::size_t i, std::string_view name) const {
  Ints numbers;
  if (is_fed(i)) fail_unknown(i, name);  // no number can be read for it later
  for (const Dim& dim : contents(i, name)) {
    if (not dim.is_constant()) {
      fail(Code::kDynamic, fmt::format("input {} ({}) must be a number, and is {}", i, name, dim.text()),
           {fmt::format("fix the size with --dim {}=N", dim.symbols().front())});
    }
    numbers.push_back(dim.value());
  }
  return numbers;
}

Dim ImportNode::content(std::size_t i, std::string_view name) const {
  const std::vector<Dim> all = contents(i, name);
  if (all.size() != 1) fail(Code::kShape, fmt::format("input {} ({}) must have one element, and has {}", i, name, all.size()));
  return all[0];
}

const AttributeProto* ImportNode::attribute(std::string_view name) const {
  for (const AttributeProto& attribute : proto_.attribute()) {
    if (attribute.name() != name) continue;
    if (attribute.ref_attr_name().empty()) return &attribute;
    if (bound_ == nullptr) fail(Code::kBadAttribute, fmt::format("attribute {} refers to a function's attribute outside of a function", name));
    const auto found = bound_->find(attribute.ref_attr_name());
    return found == bound_->end() ? nullptr : found->second;
  }
  return nullptr;
}

const AttributeProto* ImportNode::find(std::string_view name, AttributeProto::AttributeType type) const {
  const AttributeProto* found = attribute(name);
  if (found != nullptr and not fits(*found, type)) fail(Code::kBadAttribute, fmt::format("attribute {} must be {}", name, describe(type)));
  return found;
}

std::int64_t ImportNode::integer(std::string_view name, std::int64_t absent) const {
  if (const auto set = integers_.find(name); set != integers_.end()) return set->second;
  const AttributeProto* attribute = find(name, AttributeProto::INT);
  return attribute == nullptr ? absent : attribute->i();
}

double ImportNode::real(std::string_view name, double absent) const {
  const AttributeProto* attribute = find(name, AttributeProto::FLOAT);
  return attribute == nullptr ? absent : static_cast<double>(attribute->f());
}

std::string ImportNode::metadata(std::string_view key) const { return metadata_of(proto_, key); }

std::string ImportNode::text(std::string_view name, std::string_view absent) const {
  const AttributeProto* attribute = find(name, AttributeProto::STRING);
  return attribute == nullptr ? std::string(absent) : attribute->s();
}

std::optional<Ints> ImportNode::integers(std::string_view name) const {
  const AttributeProto* attribute = find(name, AttributeProto::INTS);
  return attribute == nullptr ? std::nullopt : std::optional(Ints(attribute->ints().begin(), attribute->ints().end()));
}

std::optional<std::vector<double>> ImportNode::reals(std::string_view name) const {
  const AttributeProto* attribute = find(name, AttributeProto::FLOATS);
  return attribute == nullptr ? std::nullopt : std::optional(std::vector<double>(attribute->floats().begin(), attribute->floats().end()));
}

std::optional<Tensor> ImportNode::tensor(std::string_view name) const {
  const AttributeProto* attribute = find(name, AttributeProto::TENSOR);
  return attribute == nullptr ? std::nullopt : std::optional(tensor_of(attribute->t(), folder_, loc_));
}

DType ImportNode::dtype(std::string_view name) const {
  const std::int64_t number = integer(name, 0);
  const auto dtype = number < 0 or number > 1000 ? std::nullopt : dtype_of_onnx(static_cast<std::int32_t>(number));
  if (not dtype) fail(Code::kType, fmt::format("attribute {} asks for {}, which Hone does not have", name, onnx_type_name(static_cast<std::int32_t>(number))));
  return *dtype;
}

void ImportNode::fail(Code code, std::string_view message, std::vector<std::string> notes) const {
  std::string call = proto_.op_type() + "(";
  for (std::size_t i = 0; i < operands_.size(); ++i) {
    call += i == 0 ? "" : ", ";
    if (operands_[i].literal) call += fmt::format("[{}]", to_string(shape_of(*operands_[i].literal)));
    else if (not has(i)) call += "-";
    else if (static_cast<int>(i) >= proto_.input_size()) call += to_string(operands_[i].item);
    else call += fmt::format("{}: {}", printable(proto_.input(static_cast<int>(i))), to_string(operands_[i].item));
  }
  notes.insert(notes.begin(), call + ")");
  throw Error(code, fmt::format("{}: {}", printable(proto_.op_type()), message), loc_, std::move(notes));
}

void ImportNode::require(bool condition, Code code, std::string_view message) const {
  if (not condition) fail(code, message);
}

std::size_t ImportNode::axis(std::int64_t axis, std::size_t rank) const {
  const auto extent = static_cast<std::int64_t>(rank);
  if (axis < -extent or axis >= extent) fail(Code::kBadAttribute, fmt::format("axis {} of a tensor of {} axes", axis, rank));
  return static_cast<std::size_t>(axis < 0 ? axis + extent : axis);
}

Ints ImportNode::axes(const Ints& axes, std::size_t rank) const {
  Ints resolved;
  for (const std::int64_t one : axes) resolved.push_back(static_cast<std::int64_t>(axis(one, rank)));
  std::sort(resolved.begin(), resolved.end());
  require(std::adjacent_find(resolved.begin(), resolved.end()) == resolved.end(), Code::kBadAttribute, "an axis is named twice");
  return resolved;
}

void ImportNode::set_operand(std::size_t i, Val val) {
  if (operands_.size() <= i) operands_.resize(i + 1, {Item::left_out(), std::nullopt});
  operands_[i] = {val, std::nullopt};
}

void ImportNode::set_operand(std::size_t i, Ints contents) {
  if (operands_.size() <= i) operands_.resize(i + 1, {Item::left_out(), std::nullopt});
  operands_[i] = {Item::left_out(), std::move(contents)};
}

}  // namespace hone::onnx
