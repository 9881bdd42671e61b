#include "ir/builder.h"

#include <fmt/format.h>

#include <algorithm>

#include "ir/known.h"
#include "ir/op.h"
#include "ir/ops/ops.h"

namespace hone {

Val Builder::input(Role role, std::string name, Type type, std::optional<Tensor> data) {
  const ValueId id(graph_.values_.size());
  graph_.values_.push_back({std::move(type), NodeId{}, 0, name, std::nullopt});
  graph_.input_index_.resize(graph_.values_.size());
  graph_.input_index_[id.index] = static_cast<std::uint32_t>(graph_.inputs_.size()) + 1;
  graph_.inputs_.push_back({id, role, std::move(name), std::move(data), std::nullopt});
  if (const Tensor* tensor = graph_.constant_of(id)) graph_.values_.back().known = known_contents(*tensor);
  return {*this, id};
}

namespace {
/// Equal for equal rank-0 tensors.
std::string scalar_key(const Tensor& tensor) {
  return fmt::format("{} {}", to_string(tensor.dtype()), is_float(tensor.dtype()) ? fmt::format("{}", tensor.at(0)) : fmt::format("{}", tensor.int_at(0)));
}
/// Operands that broadcast. x[:1], of N rows, has min(1, N): beside another extent that is one row, as nothing would broadcast without it.
std::vector<Val> with_single_rows(Builder& builder, std::span<const Val> operands) {
  std::vector<Val> result(operands.begin(), operands.end());
  const auto may_be_single = [](const Dim& extent) { return not extent.is_constant() and extent.is_at_most_one(); };
  for (Val& operand : result) {
    if (not operand.valid() or std::ranges::none_of(operand.shape(), may_be_single)) continue;
    Shape shape = operand.shape();
    for (std::size_t from_last = 1; from_last <= shape.size(); ++from_last) {
      Dim& extent = shape[shape.size() - from_last];
      if (not may_be_single(extent)) continue;
      const auto has_more = [&](const Val& other) { return other.valid() and from_last <= other.rank() and not other.shape()[other.rank() - from_last].is_at_most_one(); };
      if (std::none_of(operands.begin(), operands.end(), has_more)) continue;
      builder.equate(extent, 1);
      extent = 1;
    }
    operand = reshape(operand, std::move(shape));
  }
  return result;
}

}  // namespace

Val Builder::constant(Tensor tensor, std::string name) {
  Type type{tensor.dtype(), shape_of(tensor.shape())};
  if (tensor.element_count() != 1 or not tensor.shape().empty()) return input(Role::kConstant, std::move(name), std::move(type), std::move(tensor));
  if (const auto found = scalars_.find(scalar_key(tensor)); found != scalars_.end()) return {*this, found->second};
  const Val made = input(Role::kConstant, std::move(name), std::move(type), std::move(tensor));
  remember_scalar(made.id());
  return made;
}

void Builder::remember_scalar(ValueId input) {
  const Tensor* tensor = graph_.constant_of(input);
  if (tensor != nullptr and tensor->shape().empty()) scalars_.emplace(scalar_key(*tensor), input);
}

Val Builder::scalar(double value, DType dtype) { return constant(Tensor::scalar(value).cast(dtype)); }

Val Builder::ints(const Ints& values) {
  return constant(Tensor::of<std::int64_t>({static_cast<std::int64_t>(values.size())}, std::span(values)));
}

void Builder::output(std::string name, Val value) { graph_.outputs_.push_back({value.id(), std::move(name)}); }
void Builder::clear_outputs() { graph_.outputs_.clear(); }
void Builder::clear_aliases() { graph_.aliases_.clear(); }
void Builder::equate(Dim a, Dim b) { graph_.equations_.emplace_back(a, b); }
void Builder::set_name(Val value, std::string name) { graph_.values_[value.id().index].name = std::move(name); }

void Builder::alias(Val state, Val value) {
  HONE_CHECK(graph_.input_of(state.id()) != nullptr, "an alias replaces an input");
  HONE_CHECK(state.type() == value.type(), fmt::format("alias of {} replaces {}: {} and {}", graph_.value(state.id()).name, graph_.value(value.id()).name, to_string(state.type()), to_string(value.type())));
  graph_.aliases_.push_back({state.id(), value.id()});
}

void Builder::set_bounds(ValueId input, Dim low, Dim high) {
  Input& entry = graph_.inputs_.at(graph_.input_index_.at(input.index) - 1);
  if (entry.bounds) {
    low = max(low, entry.bounds->first);
    high = min(high, entry.bounds->second);
  }
  entry.bounds = {low, high};
}

void Builder::set_role(ValueId input, Role role) { graph_.inputs_.at(graph_.input_index_.at(input.index) - 1).role = role; }
void Builder::redirect_alias(std::size_t i, Val value) { graph_.aliases_.at(i).value = value.id(); }
void Builder::set_input_data(ValueId input, Tensor data) { graph_.inputs_.at(graph_.input_index_.at(input.index) - 1).data = std::move(data); }

std::vector<Val> Builder::add(const OpDef& op, std::span<const Val> operands, Attrs attrs, std::vector<std::unique_ptr<Graph>> bodies) {
  std::vector<Val> broadcast;
  if (op.scalar != nullptr) operands = broadcast = with_single_rows(*this, operands);
  Node node;
  node.op = &op;
  for (const Val& operand : operands) node.operands.push_back(operand.id());
  while (not node.operands.empty() and not node.operands.back().valid()) node.operands.pop_back();  // absent optional operands at the end
  node.attrs = std::move(attrs);
  node.loc = loc_;
  node.part = part_;
  for (const ValueId operand : node.operands)  // no earlier part than what it reads
    if (operand.valid() and graph_.input_of(operand) == nullptr) node.part = std::max(node.part, graph_.producer(operand).part);
  HONE_CHECK(node.operands.size() >= op.required_operands() and (op.is_variadic() or node.operands.size() <= op.inputs.size()),
             fmt::format("{} built with {} operands", op.name, node.operands.size()));
  node.bodies = std::move(bodies);
  Infer infer(graph_, op, node.operands, node.attrs, loc_, node.bodies);
  std::vector<Type> types = op.infer(infer);
  const NodeId id(graph_.nodes_.size());
  std::vector<Val> results;
  for (std::size_t i = 0; i < types.size(); ++i) {
    const ValueId value(graph_.values_.size());
    graph_.values_.push_back({std::move(types[i]), id, static_cast<std::uint32_t>(i), "", std::nullopt});
    if (i < infer.known_results().size()) graph_.values_.back().known = infer.known_results()[i];
    node.results.push_back(value);
    results.emplace_back(*this, value);
  }
  graph_.nodes_.push_back(std::move(node));
  if (auto known = fold_known(graph_, id)) graph_.values_[results[0].id().index].known = std::move(known);
  return results;
}

std::vector<Dim> Builder::materialize(Val value, std::string_view name, Sign sign) {
  if (const auto& known = graph_.value(value.id()).known) return *known;
  HONE_CHECK(can_be_known(value.type()), fmt::format("\"{}\" of type {} cannot be read as sizes", name, to_string(value.type())));
  std::vector<Dim> symbols;
  const std::int64_t count = element_count(value.shape()).value();
  for (std::int64_t i = 0; i < count; ++i) {
    const std::string symbol = count == 1 ? std::string(name) : fmt::format("{}.{}", name, i);
    symbols.push_back(sign == Sign::kAny ? Dim::value_symbol(symbol) : Dim::symbol(symbol));
  }
  add(op::read_sizes, std::span(&value, 1), {kSizes = symbols});
  graph_.values_[value.id().index].known = symbols;  // all nodes from here on come after read_sizes
  return symbols;
}

std::vector<Val> append_graph(Builder& builder, const Graph& body, std::span<const Val> inputs) {
  std::vector<Val> made(body.value_count());
  std::size_t next = 0;
  for (const Input& input : body.inputs()) made[input.value.index] = input.role == Role::kInput ? inputs[next++] : builder.constant(input.data.value(), input.name);
  HONE_CHECK(next == inputs.size(), fmt::format("{} takes {} inputs, and was given {}", body.name, next, inputs.size()));
  for (const Node& node : body.nodes()) {
    const Builder::Scope scope(builder, node.loc, builder.part());
    std::vector<Val> operands;
    for (const ValueId operand : node.operands) operands.push_back(operand.valid() ? made[operand.index] : Val{});
    std::vector<std::unique_ptr<Graph>> bodies;
    for (const auto& inner : node.bodies) bodies.push_back(std::make_unique<Graph>(inner->clone()));
    const std::vector<Val> results = builder.add(*node.op, operands, node.attrs, std::move(bodies));
    for (std::size_t i = 0; i < results.size(); ++i) made[node.results[i].index] = results[i];
  }
  for (const auto& [a, b] : body.equations()) builder.equate(a, b);
  std::vector<Val> outputs;
  for (const Output& output : body.outputs()) outputs.push_back(made[output.value.index]);
  return outputs;
}

namespace {
Val number(Val like, double value) { return like.builder().scalar(value, like.dtype()); }
}  // namespace

Val operator+(Val a, Val b) { return op::add(a, b); }
Val operator-(Val a, Val b) { return op::sub(a, b); }
Val operator*(Val a, Val b) { return op::mul(a, b); }
Val operator/(Val a, Val b) { return op::div(a, b); }
Val operator-(Val a) { return op::neg(a); }
Val operator+(Val a, double b) { return a + number(a, b); }
Val operator-(Val a, double b) { return a - number(a, b); }
Val operator*(Val a, double b) { return a * number(a, b); }
Val operator/(Val a, double b) { return a / number(a, b); }
Val operator+(double a, Val b) { return number(b, a) + b; }
Val operator-(double a, Val b) { return number(b, a) - b; }
Val operator*(double a, Val b) { return number(b, a) * b; }
Val operator/(double a, Val b) { return number(b, a) / b; }
Val square(Val x) { return x * x; }

Val sum(Val x, Ints axes, bool keep_dims) {
  if (axes.empty()) return x;
  return op::reduce_sum(x, {kAxes = std::move(axes), kKeepDims = keep_dims});
}

Val sum_all(Val x) {
  Ints axes;
  for (std::size_t i = 0; i < x.rank(); ++i) axes.push_back(static_cast<std::int64_t>(i));
  return sum(x, std::move(axes), false);
}

Val sum_to(Val x, const Shape& shape) {
  if (x.shape() == shape) return x;
  const std::size_t extra = x.rank() - shape.size();
  Ints axes;
  for (std::size_t i = 0; i < x.rank(); ++i)
    if (i < extra or (shape[i - extra].is_constant(1) and not x.shape()[i].is_constant(1))) axes.push_back(static_cast<std::int64_t>(i));
  return reshape(sum(x, std::move(axes), true), shape);
}

Val reshape(Val x, Shape shape) { return x.shape() == shape ? x : op::reshape(x, {kShape = std::move(shape)}); }
Val broadcast_to(Val x, Shape shape) { return x.shape() == shape ? x : op::broadcast_to(x, {kShape = std::move(shape)}); }
Val cast(Val x, DType dtype) { return x.dtype() == dtype ? x : op::cast(x, {kTo = dtype}); }
Val transpose(Val x, Ints perm) { return op::transpose(x, {kPerm = std::move(perm)}); }

Val transpose_last(Val x) {
  Ints perm;
  for (std::size_t i = 0; i < x.rank(); ++i) perm.push_back(static_cast<std::int64_t>(i));
  std::swap(perm.at(perm.size() - 1), perm.at(perm.size() - 2));
  return transpose(x, std::move(perm));
}

Val part_of(Val x, std::size_t axis, Dim first, Dim count, std::int64_t step) {
  Shape starts(x.rank(), Dim(0)), sizes = x.shape();
  Ints steps(x.rank(), 1);
  starts[axis] = std::move(first);
  sizes[axis] = std::move(count);
  steps[axis] = step;
  return op::slice(x, {kStarts = std::move(starts), kSizes = std::move(sizes), kSteps = std::move(steps)});
}

Val full(Builder& builder, double value, DType dtype, Shape shape) { return broadcast_to(builder.scalar(value, dtype), std::move(shape)); }

Val size_value(Builder& builder, Dim size, DType dtype) {
  if (size.is_constant()) return builder.scalar(static_cast<double>(size.value()), dtype);
  return cast(reshape(builder.add(op::sizes, {}, {kSizes = Shape{size}})[0], {}), dtype);
}

}  // namespace hone
