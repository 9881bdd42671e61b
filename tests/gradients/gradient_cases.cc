#include "tests/gradients/gradient_cases.h"

#include <algorithm>

#include "tests/support/case_data.h"

namespace hone::test {

using Kind = GradientInput::Kind;

GradientInput x(std::vector<Extent> shape, double low, double high) { return {.shape = std::move(shape), .low = low, .high = high}; }
GradientInput x_of(std::vector<Extent> shape, std::vector<double> values) { return {.shape = std::move(shape), .values = std::move(values)}; }
GradientInput of_type(DType dtype, GradientInput input) {
  input.dtype = dtype;
  return input;
}
GradientInput whole(std::vector<Extent> shape, double low, double high, DType dtype) {
  return {.kind = Kind::kFed, .dtype = dtype, .shape = std::move(shape), .low = low, .high = high};
}
GradientInput given(DType dtype, std::vector<Extent> shape, std::vector<double> values) {
  return {.kind = Kind::kFed, .dtype = dtype, .shape = std::move(shape), .values = std::move(values)};
}
GradientInput constant(GradientInput input) {
  input.kind = Kind::kConstant;
  return input;
}
GradientInput fed(GradientInput input) {
  input.kind = Kind::kFed;
  return input;
}
GradientInput numbers(std::vector<std::int64_t> values) {
  return constant(given(DType::kI64, {static_cast<std::int64_t>(values.size())}, {values.begin(), values.end()}));
}
GradientInput absent() { return {.kind = Kind::kAbsent}; }

GradientCases& GradientCases::add(std::string op, std::string says, std::vector<GradientInput> inputs, std::vector<GradientAttribute> attributes) {
  cases_.push_back({.op = std::move(op), .says = std::move(says), .inputs = std::move(inputs), .attributes = std::move(attributes)});
  return *this;
}

std::span<const GradientCase> gradient_cases() {
  static const std::vector<GradientCase> kCases = [] {
    GradientCases cases;
    for (const auto add :
         {add_arithmetic_cases,    add_activation_cases, add_function_cases, add_cast_cases,   add_reduce_cases,    add_cumulative_cases,  add_shape_cases,
          add_slice_cases,         add_index_cases,      add_select_cases,      add_matmul_cases,   add_einsum_cases, add_conv_cases,      add_pool_cases,        add_spatial_cases,
          add_normalization_cases, add_attention_cases,  add_loss_cases,     add_signal_cases, add_recurrent_cases, add_control_flow_cases})
      add(cases);
    return std::move(cases).take();
  }();
  return kCases;
}

namespace {

std::vector<std::int64_t> extents_of(const GradientInput& input) {
  std::vector<std::int64_t> extents;
  for (const Extent& extent : input.shape)
    if (const auto* number = std::get_if<std::int64_t>(&extent)) extents.push_back(*number);
    else extents.push_back(std::get<std::string>(extent) == "N" ? 3 : 2);
  return extents;
}

Tensor tensor_of(const GradientInput& input, std::size_t position) {
  const std::vector<std::int64_t> shape = extents_of(input);
  const auto make = is_float(input.dtype) ? distinct_values : whole_values;
  const std::vector<double> values = input.values.empty() ? make(checked_element_count(shape), input.low, input.high, position) : input.values;
  if (not is_integer(input.dtype)) return Tensor::of<double>(shape, std::span<const double>(values)).cast(input.dtype);
  const std::vector<std::int64_t> integers(values.begin(), values.end());
  return Tensor::of<std::int64_t>(shape, std::span<const std::int64_t>(integers)).cast(input.dtype);
}

std::string name_of(const GradientInput& input, std::size_t position) {
  if (input.kind == Kind::kAbsent) return "";
  return (input.kind == Kind::kVariable ? "x" : "c") + std::to_string(position);
}

void set(TestNode node, const GradientAttribute& attribute) {
  std::visit(
      [&](const auto& value) {
        if constexpr (std::is_same_v<std::decay_t<decltype(value)>, std::string>) node.set(attribute.name, value.c_str());
        else node.set(attribute.name, value);
      },
      attribute.value);
}

}  // namespace

TestModel model_of(const GradientCase& one) {
  TestModel model(one.opset);
  std::vector<std::string> inputs, outputs;
  for (std::size_t i = 0; i < one.inputs.size(); ++i) {
    const GradientInput& input = one.inputs[i];
    inputs.push_back(name_of(input, i));
    if (input.kind == Kind::kConstant) model.initializer(inputs.back(), tensor_of(input, i));
    else if (input.kind != Kind::kAbsent) model.input(inputs.back(), input.shape, input.dtype);
  }
  for (std::size_t i = 0; i < one.outputs; ++i) {
    const bool is_left_out = std::find(one.left_out.begin(), one.left_out.end(), i) != one.left_out.end();
    outputs.push_back(is_left_out ? "" : "y" + std::to_string(i));
    if (not is_left_out) model.output(outputs.back());
  }
  if (one.nodes) return one.nodes(model), model;
  const TestNode node = model.node(one.op, inputs, outputs);
  for (const GradientAttribute& attribute : one.attributes) set(node, attribute);
  return model;
}

Feeds feeds_of(const GradientCase& one) {
  Feeds feeds;
  for (std::size_t i = 0; i < one.inputs.size(); ++i)
    if (const GradientInput& input = one.inputs[i]; input.kind == Kind::kVariable or input.kind == Kind::kFed)
      feeds.emplace(name_of(input, i), tensor_of(input, i));
  return feeds;
}

}  // namespace hone::test
