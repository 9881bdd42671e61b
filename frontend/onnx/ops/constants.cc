// Operators whose results are constants, or the operand itself.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "frontend/onnx/constant_value.h"
#include "frontend/onnx/ops.h"
#include "ir/ops/ops.h"

namespace hone::onnx {

namespace {

template <typename T>
Tensor vector_of(const std::vector<T>& values) {
  return Tensor::of<T>({static_cast<std::int64_t>(values.size())}, std::span(values));
}

Tensor constant_of(const ImportNode& node) {
  if (auto tensor = node.tensor("value")) return *std::move(tensor);
  if (node.has_attribute("value_float")) return Tensor::scalar(static_cast<float>(node.real("value_float", 0)));
  if (node.has_attribute("value_int")) return Tensor::scalar(node.integer("value_int", 0));
  if (const auto values = node.reals("value_floats")) return vector_of(std::vector<float>(values->begin(), values->end()));
  if (const auto values = node.integers("value_ints")) return vector_of(*values);
  if (node.has_attribute("sparse_value")) node.fail(Code::kType, "sparse constants are not supported", {"export the constant as a dense tensor"});
  if (node.has_attribute("value_string") or node.has_attribute("value_strings")) node.fail(Code::kType, "strings are not supported");
  node.fail(Code::kBadAttribute, "has no value");
}

std::vector<Val> import_constant(const ImportNode& node) { return {node.builder().constant(constant_of(node))}; }

std::vector<Val> import_constant_of_shape(const ImportNode& node) {
  const Shape shape = node.contents(0, "shape");
  for (const Dim& extent : shape) node.require(not extent.is_constant() or extent.value() >= 0, Code::kShape, fmt::format("an extent of {}", extent.text()));
  const Tensor value = node.tensor("value").value_or(Tensor::scalar(0.0F));
  node.require(value.element_count() == 1, Code::kBadAttribute, "the value must have one element");
  return {broadcast_to(node.builder().constant(value.reshaped({})), shape)};
}

/// Numbers from start towards limit; the element count is max(0, ceil((limit - start) / delta)).
Tensor range_of(const ImportNode& node, double count, const Tensor& start, const Tensor& delta) {
  constexpr double kMostElements = 1 << 26;
  node.require(count <= kMostElements, Code::kTooLarge, fmt::format("{} elements", count));
  const auto n = static_cast<std::int64_t>(count);
  if (is_float(start.dtype())) {
    std::vector<double> values;
    for (std::int64_t i = 0; i < n; ++i) values.push_back(start.at(0) + static_cast<double>(i) * delta.at(0));
    return vector_of(values).cast(start.dtype());
  }
  Ints values;
  for (std::int64_t i = 0, value = start.int_at(0); i < n; ++i) {
    values.push_back(value);
    if (__builtin_add_overflow(value, delta.int_at(0), &value)) break;  // behind the last one
  }
  return vector_of(values).cast(start.dtype());
}

/// The number in operand `i`: computed from constants, or a size that follows from fixed ones.
Tensor number(const ImportNode& node, std::size_t i, std::string_view name) {
  const Val val = node.x(i);
  node.require(element_count(val.shape()).is_constant(1), Code::kShape, fmt::format("input {} ({}) must have one element", i, name));
  if (const auto constant = constant_value(node.builder().graph(), val.id())) return constant->reshaped({});
  return Tensor::scalar(node.numbers(i, name)[0]).cast(val.dtype());
}

std::vector<Val> import_range(const ImportNode& node) {
  const Tensor start = number(node, 0, "start"), limit = number(node, 1, "limit"), delta = number(node, 2, "delta");
  node.require(start.dtype() == limit.dtype() and start.dtype() == delta.dtype(), Code::kType, "start, limit and delta have different element types");
  node.require(delta.at(0) != 0, Code::kBadAttribute, "delta is 0");
  const double steps = std::ceil((limit.at(0) - start.at(0)) / delta.at(0));
  node.require(std::isfinite(steps), Code::kBadAttribute, "start, limit and delta must be finite");
  const double count = std::max(0.0, steps);
  return {node.builder().constant(range_of(node, count, start, delta))};
}

/// As in inference: nothing is dropped. Training puts dropout back on request.
std::vector<Val> import_dropout(const ImportNode& node) {
  const Val x = node.x(0);
  if (not node.wants(1)) return {x};
  return {x, full(node.builder(), 1, DType::kBool, x.shape())};
}

constinit const Importer kRows[] = {
    {"Constant", import_constant}, {"ConstantOfShape", import_constant_of_shape}, {"Range", import_range}, {"Dropout", import_dropout},
};

}  // namespace

std::span<const Importer> constant_importers() { return kRows; }

}  // namespace hone::onnx
