// Activations, sums and what is worked out element by element.
#include <fmt/format.h>

#include <algorithm>

#include "frontend/builder_layer.h"
#include "ir/ops/ops.h"

namespace hone::nn {

namespace {

Value element_by_element(Value x, const char* kind, Val (*formula)(Val)) {
  const Layer layer(x, kind);
  return layer.done(formula(x.val()));
}

Value element_by_element(Value a, Value b, const char* kind, Val (*formula)(Val, Val)) {
  const Layer layer(a, kind);
  return layer.done(formula(a.val(), layer.operand(b)));
}

Value with_number(Value x, double number, const char* kind, Val (*formula)(Val, Val)) {
  const Layer layer(x, kind);
  return layer.done(formula(x.val(), layer.model.builder().scalar(number, x.val().dtype())));
}

Value over_last(Value x, const OpDef& op, const char* kind) {
  const Layer layer(x, kind);
  return layer.done(op(x.val(), {kAxis = static_cast<std::int64_t>(x.shape().size()) - 1}));
}

Value reduced(Value x, const std::vector<std::int64_t>& axes, bool keep_dims, const OpDef& op, const char* kind) {
  const Layer layer(x, kind);
  Ints sorted;
  for (const std::int64_t axis : axes) sorted.push_back(layer.axis_of(x, axis));
  std::ranges::sort(sorted);
  if (sorted.empty() or std::ranges::adjacent_find(sorted) != sorted.end()) layer.fail(fmt::format("its axes are {}", fmt::join(axes, ", ")), "one or more, each once");
  return layer.done(op(x.val(), {kAxes = sorted, kKeepDims = keep_dims}));
}

Value of_samples(Value x, const OpDef& op, const char* kind) {
  const Layer layer(x, kind);
  Ints axes;
  for (std::size_t i = 1; i < x.shape().size(); ++i) axes.push_back(static_cast<std::int64_t>(i));
  if (axes.empty()) layer.fail(fmt::format("its input [{}] has one element a sample", to_string(x.shape())));
  return layer.done(op(x.val(), {kAxes = axes, kKeepDims = false}));
}

/// `otherwise` where x is not more than 0.
Val where_positive(Val x, Val otherwise) { return op::where(op::greater(x, full(x.builder(), 0, x.dtype(), {})), x, otherwise); }

}  // namespace

Value relu(Value x) { return element_by_element(x, "relu", [](Val v) { return op::relu(v); }); }
Value sigmoid(Value x) { return element_by_element(x, "sigmoid", [](Val v) { return op::sigmoid(v); }); }
Value tanh(Value x) { return element_by_element(x, "tanh", [](Val v) { return op::tanh(v); }); }
Value gelu(Value x) { return element_by_element(x, "gelu", [](Val v) { return op::gelu(v); }); }
Value silu(Value x) { return element_by_element(x, "silu", [](Val v) { return v * op::sigmoid(v); }); }
Value softplus(Value x) { return element_by_element(x, "softplus", [](Val v) { return op::softplus(v); }); }
Value exp(Value x) { return element_by_element(x, "exp", [](Val v) { return op::exp(v); }); }
Value log(Value x) { return element_by_element(x, "log", [](Val v) { return op::log(v); }); }
Value sqrt(Value x) { return element_by_element(x, "sqrt", [](Val v) { return op::sqrt(v); }); }
Value abs(Value x) { return element_by_element(x, "abs", [](Val v) { return op::abs(v); }); }
Value leaky_relu(Value x, double slope) { return with_number(x, slope, "leaky_relu", [](Val v, Val number) { return where_positive(v, v * number); }); }
/// The exponential is of nothing above 0, where it could be infinite.
Value elu(Value x, double alpha) {
  return with_number(x, alpha, "elu", [](Val v, Val number) { return where_positive(v, number * (op::exp(op::minimum(v, full(v.builder(), 0, v.dtype(), {}))) - 1.0)); });
}

Value softmax(Value x) { return over_last(x, op::softmax, "softmax"); }
Value log_softmax(Value x) { return over_last(x, op::log_softmax, "log_softmax"); }

Value sum(Value x) { return of_samples(x, op::reduce_sum, "sum"); }
Value mean(Value x) { return of_samples(x, op::reduce_mean, "mean"); }
Value sum(Value x, const std::vector<std::int64_t>& axes, bool keep_dims) { return reduced(x, axes, keep_dims, op::reduce_sum, "sum"); }
Value mean(Value x, const std::vector<std::int64_t>& axes, bool keep_dims) { return reduced(x, axes, keep_dims, op::reduce_mean, "mean"); }
Value max(Value x, const std::vector<std::int64_t>& axes, bool keep_dims) { return reduced(x, axes, keep_dims, op::reduce_max, "max"); }

Value operator+(Value a, Value b) { return element_by_element(a, b, "add", [](Val x, Val y) { return x + y; }); }
Value operator-(Value a, Value b) { return element_by_element(a, b, "subtract", [](Val x, Val y) { return x - y; }); }
Value operator*(Value a, Value b) { return element_by_element(a, b, "multiply", [](Val x, Val y) { return x * y; }); }
Value operator/(Value a, Value b) { return element_by_element(a, b, "divide", [](Val x, Val y) { return x / y; }); }
Value maximum(Value a, Value b) { return element_by_element(a, b, "maximum", [](Val x, Val y) { return op::maximum(x, y); }); }
Value minimum(Value a, Value b) { return element_by_element(a, b, "minimum", [](Val x, Val y) { return op::minimum(x, y); }); }
Value not_equal(Value x, double number) { return with_number(x, number, "not_equal", [](Val a, Val b) { return op::logical_not(op::equal(a, b)); }); }
Value operator-(Value x) { return element_by_element(x, "negative", [](Val v) { return -v; }); }
Value operator+(Value x, double number) { return with_number(x, number, "add", [](Val v, Val n) { return v + n; }); }
Value operator-(Value x, double number) { return with_number(x, number, "subtract", [](Val v, Val n) { return v - n; }); }
Value operator*(Value x, double number) { return with_number(x, number, "multiply", [](Val v, Val n) { return v * n; }); }
Value operator/(Value x, double number) { return with_number(x, number, "divide", [](Val v, Val n) { return v / n; }); }
Value operator+(double number, Value x) { return x + number; }
Value operator-(double number, Value x) { return with_number(x, number, "subtract", [](Val v, Val n) { return n - v; }); }
Value operator*(double number, Value x) { return x * number; }
Value operator/(double number, Value x) { return with_number(x, number, "divide", [](Val v, Val n) { return n / v; }); }

}  // namespace hone::nn
