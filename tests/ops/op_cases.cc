#include "tests/ops/op_cases.h"

#include "tests/support/case_data.h"

namespace hone::test {

const DimBindings& case_sizes() {
  static const DimBindings kSizes = {{"N", 3}, {"M", 2}, {"Empty", 0}};
  return kSizes;
}

Operand f32(Shape shape, double low, double high) { return {.type = {DType::kF32, std::move(shape)}, .low = low, .high = high}; }
Operand f64(Shape shape, double low, double high) { return {.type = {DType::kF64, std::move(shape)}, .low = low, .high = high}; }
Operand whole(DType dtype, Shape shape, double low, double high) { return {.type = {dtype, std::move(shape)}, .low = low, .high = high}; }
Operand bools(Shape shape) { return whole(DType::kBool, std::move(shape), 0, 1); }

Operand given(DType dtype, Shape shape, std::vector<double> values) {
  Operand operand{.type = {dtype, std::move(shape)}};
  operand.values = std::move(values);
  return operand;
}

Operand constant(Operand operand) {
  operand.is_constant = true;
  return operand;
}

Operand absent() {
  Operand operand;
  operand.is_absent = true;
  return operand;
}

Cases& Cases::add(const OpDef& op, std::string says, std::vector<Operand> operands, Attrs attrs) {
  cases_.push_back({.op = &op, .says = std::move(says), .operands = std::move(operands), .attrs = std::move(attrs)});
  return *this;
}

std::span<const OpCase> op_cases() {
  static const std::vector<OpCase> kCases = [] {
    Cases cases;
    for (const auto add : {add_elementwise_cases, add_function_cases, add_compare_cases, add_generate_cases, add_shape_cases, add_reduce_cases,
                           add_index_cases, add_matmul_cases, add_conv_cases, add_pool_cases, add_normalization_cases, add_attention_cases, add_recurrent_cases,
                           add_loss_cases, add_optimizer_cases, add_collective_cases, add_sort_cases, add_region_cases, add_spatial_cases,
                           add_quantize_cases})
      add(cases);
    return std::move(cases).take();
  }();
  return kCases;
}

bool is_differentiable(const OpDef& op) { return op.grad.formula != nullptr or (op.lower != nullptr and op.grad.reason.empty()); }

namespace {

std::vector<double> elements_of(const Operand& operand, std::size_t position, const DimBindings& sizes) {
  if (not operand.values.empty()) return operand.values;
  const std::int64_t count = element_count(operand.type.shape).evaluate(sizes);
  const auto make = is_float(operand.type.dtype) ? distinct_values : whole_values;
  return make(count, operand.low, operand.high, position);
}

std::string input_name(std::size_t position) { return "x" + std::to_string(position); }

}  // namespace

Tensor tensor_of(const Operand& operand, std::size_t position, const DimBindings& sizes) {
  const std::vector<double> values = elements_of(operand, position, sizes);
  const std::vector<std::int64_t> shape = evaluate(operand.type.shape, sizes);
  if (not is_integer(operand.type.dtype)) return Tensor::of<double>(shape, std::span<const double>(values)).cast(operand.type.dtype);
  std::vector<std::int64_t> integers;
  for (const double value : values) integers.push_back(static_cast<std::int64_t>(value));
  return Tensor::of<std::int64_t>(shape, std::span<const std::int64_t>(integers)).cast(operand.type.dtype);
}

Graph graph_of(const OpCase& op_case) {
  Graph graph;
  graph.name = op_case.name();
  Builder builder(graph);
  std::vector<Val> operands;
  for (std::size_t i = 0; i < op_case.operands.size(); ++i) {
    const Operand& operand = op_case.operands[i];
    if (operand.is_absent) operands.emplace_back();
    else if (operand.is_constant) operands.push_back(builder.constant(tensor_of(operand, i)));
    else operands.push_back(builder.input(Role::kInput, input_name(i), operand.type));
  }
  std::vector<std::unique_ptr<Graph>> bodies;
  for (const auto& body : op_case.bodies) bodies.push_back(std::make_unique<Graph>(body->clone()));
  const std::vector<Val> results = builder.add(*op_case.op, operands, op_case.attrs, std::move(bodies));
  for (std::size_t i = 0; i < results.size(); ++i) builder.output("y" + std::to_string(i), results[i]);
  return graph;
}

std::map<std::string, Tensor, std::less<>> feeds_of(const OpCase& op_case) {
  std::map<std::string, Tensor, std::less<>> feeds;
  for (std::size_t i = 0; i < op_case.operands.size(); ++i)
    if (const Operand& operand = op_case.operands[i]; not operand.is_absent and not operand.is_constant) feeds.emplace(input_name(i), tensor_of(operand, i));
  return feeds;
}

}  // namespace hone::test
