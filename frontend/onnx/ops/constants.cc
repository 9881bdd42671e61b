// Operators whose results are constants, or the operand itself.
#include <fmt/format.h>

#include "frontend/onnx/constant_value.h"
#include "frontend/onnx/ops.h"
#include "ir/ops/ops.h"

namespace hone::onnx {

namespace {

Tensor constant_of(const ImportNode& node) {
  if (auto tensor = node.tensor("value")) return *std::move(tensor);
  if (node.has_attribute("value_float")) return Tensor::scalar(static_cast<float>(node.real("value_float", 0)));
  if (node.has_attribute("value_int")) return Tensor::scalar(node.integer("value_int", 0));
  if (const auto values = node.reals("value_floats")) return vector_of(std::vector<float>(values->begin(), values->end()));
  if (const auto values = node.integers("value_ints")) return vector_of(*values);
  if (node.has_attribute("sparse_value")) node.fail(Code::kBadWeight, "its sparse value could not be made dense");
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

constinit const Importer kConstantsOps[] = {
    {"Constant", import_constant},
    {"ConstantOfShape", import_constant_of_shape},
};

}  // namespace

std::span<const Importer> constant_importers() { return kConstantsOps; }

}  // namespace hone::onnx
