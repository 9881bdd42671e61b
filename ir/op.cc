#include "ir/op.h"

#include <fmt/format.h>

#include <algorithm>

#include "ir/ops/ops.h"

namespace hone {

namespace {
constexpr const OpDef* kAllOps[] = {
#define HONE_OP_POINTER(name) &op::name,
    HONE_OPS(HONE_OP_POINTER)
#undef HONE_OP_POINTER
};
}  // namespace

std::span<const OpDef* const> all_ops() { return kAllOps; }

const OpDef* find_op(std::string_view name) {
  for (const OpDef* op : kAllOps)
    if (op->name == name) return op;
  return nullptr;
}

std::size_t OpDef::required_operands() const {
  std::size_t required = 0;
  for (const std::string_view input : inputs) required += not input.ends_with("?") and not input.ends_with("...");
  return required;
}

Val OpDef::build(std::vector<Val> operands, Attrs attributes) const { return build_all(std::move(operands), std::move(attributes))[0]; }

std::vector<Val> OpDef::build_all(std::vector<Val> operands, Attrs attributes) const {
  const auto some = std::find_if(operands.begin(), operands.end(), [](const Val& val) { return val.valid(); });
  HONE_CHECK(some != operands.end(), fmt::format("{} built without operands: use Builder::add", name));
  return some->builder().add(*this, operands, std::move(attributes));
}

const std::vector<Dim>* Infer::known(std::size_t i) const {
  if (not has(i)) return nullptr;
  const auto& known = graph_.value(operands_[i]).known;
  return known ? &*known : nullptr;
}

void Infer::know(std::size_t result, std::vector<Dim> contents) {
  if (known_results_.size() <= result) known_results_.resize(result + 1);
  known_results_[result] = std::move(contents);
}

void Infer::require(bool condition, Code code, std::string_view message) const {
  if (not condition) fail(code, message);
}

void Infer::fail(Code code, std::string_view message) const {
  std::vector<std::string> notes;
  std::string call = std::string(op_.name) + "(";
  for (std::size_t i = 0; i < operands_.size(); ++i) {
    if (i > 0) call += ", ";
    if (not has(i)) {
      call += "-";
      continue;
    }
    const std::string& value_name = graph_.value(operands_[i]).name;
    call += (value_name.empty() ? "" : value_name + ": ") + to_string(type(i));
    if (const Input* input = graph_.input_of(operands_[i]); input != nullptr and input->role == Role::kWeight)
      notes.push_back(fmt::format("\"{}\" is a weight of the model: does it have its axes in another order?", input->name));
  }
  const std::string attributes = attrs.text();
  notes.insert(notes.begin(), call + ")" + (attributes.empty() ? "" : " " + attributes));
  throw Error(code, fmt::format("{}: {}", op_.name, message), loc_, std::move(notes));
}

Dim Infer::unify(Dim a, Dim b, std::string_view what) {
  if (a == b) return a;
  if (a.is_constant() and b.is_constant()) fail(Code::kShape, fmt::format("{} differ: {} and {}", what, a.text(), b.text()));
  graph_.equations_.emplace_back(a, b);
  return b.is_constant() or (b.is_symbol() and not a.is_constant() and not a.is_symbol()) ? b : a;
}

void Infer::at_most(Dim a, Dim b, std::string_view what) {
  const auto equation = hone::at_most(a, b);
  if (not equation) return;
  if (a.is_constant() and b.is_constant()) fail(Code::kShape, fmt::format("{}: {} are more than {}", what, a.text(), b.text()));
  graph_.equations_.push_back(*equation);
}

Shape Infer::broadcast(const Shape& a, const Shape& b) {
  const std::size_t result_rank = std::max(a.size(), b.size());
  Shape shape;
  for (std::size_t i = 0; i < result_rank; ++i) {
    const Dim x = i + a.size() < result_rank ? Dim(1) : a[i + a.size() - result_rank];
    const Dim y = i + b.size() < result_rank ? Dim(1) : b[i + b.size() - result_rank];
    shape.push_back(x.is_constant(1) ? y : y.is_constant(1) ? x : unify(x, y, "shapes do not broadcast: extents"));
  }
  return shape;
}

Val Grad::dy(std::size_t i) {
  if (dys_[i].valid()) return dys_[i];
  const Type& type = y(i).type();
  return full(builder_, 0, type.dtype, type.shape);
}

void Grad::flow(std::size_t i, Val gradient) {
  if (not has(i) or not is_float(x(i).dtype())) return;
  flows_[i].push_back(cast(sum_to(gradient, x(i).shape()), x(i).dtype()));
}

}  // namespace hone
