#include "frontend/onnx/values.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/limits.h"
#include "base/text.h"
#include "formats/onnx_file.h"
#include "frontend/onnx/ops.h"

namespace hone::onnx {

namespace {

/// Names of values that stand where models keep what they learn: operands that an importer calls parameters, and what is added to a product.
std::set<std::string_view> learned_places(const GraphProto& graph) {
  std::set<std::string_view> places, products;
  for (const NodeProto& node : graph.node()) {
    for (int i = 0; i < node.input_size(); ++i)
      if (is_parameter(node.op_type(), i)) places.insert(node.input(i));
    if (node.op_type() == "MatMul" or node.op_type() == "Conv" or node.op_type() == "ConvTranspose")
      for (const std::string& product : node.output()) products.insert(product);
  }
  for (const NodeProto& node : graph.node()) {
    if (node.op_type() != "Add" or node.input_size() != 2) continue;
    if (products.contains(node.input(0))) places.insert(node.input(1));
    if (products.contains(node.input(1))) places.insert(node.input(0));
  }
  return places;
}

Role role_of(const Tensor& tensor, bool in_learned_place) {
  const bool may_learn = is_float(tensor.dtype()) and not tensor.shape().empty();
  return may_learn and (tensor.element_count() != 1 or in_learned_place) ? Role::kWeight : Role::kConstant;
}

bool fits(const Type& declared, const Tensor& tensor) {
  if (declared.dtype != tensor.dtype() or declared.shape.size() != tensor.shape().size()) return false;
  for (std::size_t i = 0; i < declared.shape.size(); ++i)
    if (declared.shape[i].is_constant() and not declared.shape[i].is_constant(tensor.shape()[i])) return false;
  return true;
}

/// Calls `action`; what it throws is reported.
template <typename Action>
void collect(Diags& diags, Action&& action) {
  try {
    action();
  } catch (const Error& error) { diags.append(error); }
}

}  // namespace

void check_size(const Type& type, const std::string& what, const Loc& loc) {
  if (type.shape.size() > limits::kRank)
    throw Error(Code::kTooLarge, fmt::format("{} has {} axes; the limit is {}", what, type.shape.size(), limits::kRank), loc);
  std::int64_t count = 1;
  for (const Dim& extent : type.shape) {
    if (not extent.is_constant()) continue;
    if (extent.value() < 0) throw Error(Code::kShape, fmt::format("{} would have the shape [{}]", what, to_string(type.shape)), loc);
    if (__builtin_mul_overflow(count, std::max<std::int64_t>(extent.value(), 1), &count) or count > limits::kTensorElements)
      throw Error(Code::kTooLarge, fmt::format("{} has the shape [{}]; the limit is 2^40 elements", what, to_string(type.shape)), loc);
  }
}

Type declared_type(const ValueInfoProto& info, const std::string& what, Symbols& symbols, const Loc& loc) {
  const std::string name = fmt::format("{} {}", what, quoted(info.name()));
  if (not info.type().has_tensor_type()) throw Error(Code::kType, name + " is no tensor; sequences, maps and optional values are not supported", loc);
  const auto& tensor = info.type().tensor_type();
  const auto dtype = dtype_of_onnx(tensor.elem_type());
  if (not dtype) throw Error(Code::kType, fmt::format("{} has element type {}, which Hone does not have", name, onnx_type_name(tensor.elem_type())), loc);
  if (not tensor.has_shape())
    throw Error(Code::kDynamic, name + " has no shape: the number of its axes must be known when compiling", loc,
                {"export it with a shape; its extents may have names instead of numbers"});
  Type type{*dtype, symbols.declared(info.name(), tensor.shape())};
  check_size(type, name, loc);
  return type;
}

std::vector<std::optional<Tensor>> read_initializers(const GraphProto& graph, const std::string& folder, const Loc& file, Diags& diags) {
  std::vector<std::optional<Tensor>> tensors;
  for (const TensorProto& proto : graph.initializer()) {
    auto& tensor = tensors.emplace_back();
    collect(diags, [&] { tensor = tensor_of(proto, folder, file); });
  }
  for (const SparseTensorProto& sparse : graph.sparse_initializer())
    diags.error(Code::kBadWeight, fmt::format("initializer {} is sparse, which is not supported", quoted(sparse.values().name())), file,
                {"export it as a dense tensor"});
  return tensors;
}

Values add_inputs(Builder& builder, const GraphProto& graph, const std::vector<std::optional<Tensor>>& initializers, Symbols& symbols,
                  const Locations& locations, Diags& diags) {
  Values values;
  const Loc file = locations.file();
  std::unordered_map<std::string_view, const Tensor*> by_name;
  for (int i = 0; i < graph.initializer_size(); ++i)
    by_name.emplace(graph.initializer(i).name(), initializers[static_cast<std::size_t>(i)] ? &*initializers[static_cast<std::size_t>(i)] : nullptr);

  for (const ValueInfoProto& input : graph.input()) {
    collect(diags, [&] {
      const auto initializer = by_name.find(input.name());
      if (initializer == by_name.end()) {
        Val& val = values[input.name()];
        val = builder.input(Role::kInput, input.name(), declared_type(input, "input", symbols, file));
      } else if (initializer->second != nullptr and input.type().tensor_type().has_shape()) {
        const Tensor& tensor = *initializer->second;
        const Type declared = declared_type(input, "input", symbols, file);
        if (not fits(declared, tensor))
          throw Error(Code::kBadWeight,
                      fmt::format("initializer {} is {}, and is declared as {}", quoted(input.name()),
                                  to_string(Type{tensor.dtype(), shape_of(tensor.shape())}), to_string(declared)),
                      file);
      }
    });
  }
  const std::set<std::string_view> learned = learned_places(graph);
  for (int i = 0; i < graph.initializer_size(); ++i) {
    const std::string& name = graph.initializer(i).name();
    const std::optional<Tensor>& tensor = initializers[static_cast<std::size_t>(i)];
    const auto [val, is_new] = values.emplace(name, Val());
    if (is_new and tensor) val->second = builder.input(role_of(*tensor, learned.contains(name)), name, {tensor->dtype(), shape_of(tensor->shape())}, *tensor);
  }
  for (const SparseTensorProto& sparse : graph.sparse_initializer()) values.emplace(sparse.values().name(), Val());
  return values;
}

}  // namespace hone::onnx
