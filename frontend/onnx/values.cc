#include "frontend/onnx/values.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/limits.h"
#include "base/text.h"
#include "formats/onnx_file.h"
#include "frontend/onnx/ops.h"
#include "frontend/onnx/order.h"
#include "ir/ops/ops.h"

namespace hone::onnx {

namespace {

constexpr const char* kMadeUp = "no machine holds that: look at the sizes that the model computes, or export it again";

Role role_of(const Tensor& tensor, bool in_learned_place) {
  const bool may_learn = is_float(tensor.dtype()) and info(tensor.dtype()).bits >= 16 and not tensor.shape().empty();  // smaller floats are quantized: steps would drown
  return may_learn and (tensor.element_count() != 1 or in_learned_place) ? Role::kWeight : Role::kConstant;
}

bool fits(const Type& declared, const Tensor& tensor) {
  if (declared.dtype != tensor.dtype() or declared.shape.size() != tensor.shape().size()) return false;
  for (std::size_t i = 0; i < declared.shape.size(); ++i)
    if (declared.shape[i].is_constant() and not declared.shape[i].is_constant(tensor.shape()[i])) return false;
  return true;
}

/// The type of a tensor that the file declares: of an element type that Hone has, and of known rank. `what`: "input "x"". Throws Error.
Type declared_type(const TypeProto::Tensor& tensor, const std::string& what, const std::string& name, Symbols& symbols, const Loc& loc) {
  const auto dtype = dtype_of_onnx(tensor.elem_type());
  if (not dtype) throw Error(Code::kType, fmt::format("{} has an element type that Hone does not have: {}", what, onnx_type_name(tensor.elem_type())), loc,
                {"export the model with float32 inputs, or int64 ones for what indexes"});
  if (not tensor.has_shape())
    throw Error(Code::kDynamic, what + " has no shape: the number of its axes must be known when compiling", loc,
                {"export it with a shape; its extents may have names instead of numbers"});
  for (const auto& extent : tensor.shape().dim())
    if (extent.dim_value() < -1)  // -1 stands for an unknown extent in files of old exporters
      throw Error(Code::kShape, fmt::format("{} has an extent of {}", what, extent.dim_value()), loc, {"an extent is a number from 0 on, or a name"});
  Type type{*dtype, symbols.declared(name, tensor.shape())};
  check_size(type, what, loc);
  return type;
}

/// Makes the graph's inputs that hold tensors: one, some or none.
class FedInputs {
 public:
  FedInputs(Builder& builder, Symbols& symbols, const Loc& file) : builder_(builder), symbols_(symbols), file_(file) {}

  Item add(const ValueInfoProto& input) {
    const std::string& name = input.name();
    const TypeProto& type = input.type();
    if (type.has_tensor_type()) return tensor(type.tensor_type(), name);
    if (type.has_sequence_type()) return sequence(type.sequence_type(), name, symbols_.count_of(name));
    if (not type.has_optional_type()) refuse(name);
    const auto count = symbols_.count_of(name);
    const TypeProto& content = type.optional_type().elem_type();
    if (count == 0) return Item::absent();
    if (content.has_tensor_type()) return tensor(content.tensor_type(), name);
    if (not content.has_sequence_type()) refuse(name);
    return sequence(content.sequence_type(), name, count);
  }

 private:
  [[noreturn]] void refuse(const std::string& name) const {
    throw Error(Code::kType, fmt::format("input {} is no tensor, and no sequence or optional of tensors", quoted(name)), file_,
                {"Hone takes tensors, and sequences and optionals of them; a file that states no type for an input is damaged: export it again"});
  }

  Item tensor(const TypeProto::Tensor& type, const std::string& name) {
    const Type declared = declared_type(type, "input " + quoted(name), name, symbols_, file_);
    if (not names_.insert(name).second) throw Error(Code::kBadGraph, fmt::format("there are two inputs named {}", quoted(name)), file_, {kRenameValues});
    return builder_.input(Role::kInput, name, declared);
  }

  Item sequence(const TypeProto::Sequence& type, const std::string& name, std::optional<std::int64_t> count) {
    constexpr std::int64_t kMostTensors = 4096;
    if (not type.elem_type().has_tensor_type()) refuse(name);
    if (not count)
      throw Error(Code::kDynamic, fmt::format("input {} is a sequence: how many tensors it holds must be known when compiling", quoted(name)), file_,
                  {fmt::format("say so with --dim {}=N; the tensors become the inputs {}.0, {}.1, ...", name, name, name)});
    if (*count > kMostTensors)
      throw Error(Code::kTooLarge, fmt::format("input {} would be a sequence of {} tensors; the limit is {}", quoted(name), *count, kMostTensors), file_);
    TypeProto::Tensor element = type.elem_type().tensor_type();
    for (auto& extent : *element.mutable_shape()->mutable_dim()) extent.clear_dim_param();  // each tensor may have its own
    if (not type.elem_type().tensor_type().has_shape()) element.clear_shape();
    std::vector<Val> elements;
    for (std::int64_t i = 0; i < *count; ++i) elements.push_back(tensor(element, fmt::format("{}.{}", name, i)).tensor);
    return Item::sequence(std::move(elements));
  }

  Builder& builder_;
  Symbols& symbols_;
  const Loc& file_;
  std::set<std::string> names_;
};

/// `weight`, of which no gradient reaches more than the first `columns`.
Val learned_in_front(Val weight, std::int64_t columns) {
  const std::size_t axis = weight.rank() - 1;
  const Dim all = weight.shape()[axis], first = columns;
  return op::concat.build({part_of(weight, axis, 0, first), op::stop_gradient(part_of(weight, axis, first, all - first))}, {kAxis = static_cast<std::int64_t>(axis)});
}

/// Calls `action`; what it throws is reported.
template <typename Action>
void collect(Diags& diags, Action&& action) {
  try {
    action();
  } catch (const Error& error) { diags.append(error); }
}

}  // namespace

std::set<std::string_view> learned_places(const GraphProto& graph) {
  constexpr std::string_view kProducts[] = {"MatMul", "Conv", "ConvTranspose"}, kPassed[] = {"Cast", "Transpose"};
  const auto is_one_of = [](const auto& names, const std::string& name) { return std::find(std::begin(names), std::end(names), name) != std::end(names); };
  std::set<std::string_view> places, products;
  for (const NodeProto& node : graph.node()) {
    for (int i = 0; i < node.input_size(); ++i)
      if (is_parameter(node.op_type(), i)) places.insert(node.input(i));
    if (is_one_of(kProducts, node.op_type()) or (is_one_of(kPassed, node.op_type()) and node.input_size() == 1 and products.contains(node.input(0))))
      for (const std::string& product : node.output()) products.insert(product);
  }
  for (const NodeProto& node : graph.node()) {
    if (node.op_type() != "Add" or node.input_size() != 2) continue;
    if (products.contains(node.input(0))) places.insert(node.input(1));
    if (products.contains(node.input(1))) places.insert(node.input(0));
  }
  return places;
}

void check_size(const Type& type, const std::string& what, const Loc& loc) {
  if (type.shape.size() > limits::kRank)
    throw Error(Code::kTooLarge, fmt::format("{} has {} axes; the limit is {}", what, type.shape.size(), limits::kRank), loc, {kMadeUp});
  std::int64_t count = 1;
  for (const Dim& extent : type.shape) {
    if (not extent.is_constant()) continue;
    if (extent.value() < 0) throw Error(Code::kShape, fmt::format("{} would have the shape [{}]", what, to_string(type.shape)), loc, {kMadeUp});
    if (__builtin_mul_overflow(count, std::max<std::int64_t>(extent.value(), 1), &count) or count > limits::kTensorElements)
      throw Error(Code::kTooLarge, fmt::format("{} has the shape [{}]; the limit is 2^40 elements", what, to_string(type.shape)), loc, {kMadeUp});
  }
}

std::vector<std::optional<Tensor>> read_initializers(const GraphProto& graph, const std::string& folder, const Loc& file, Diags& diags) {
  std::vector<std::optional<Tensor>> tensors;
  for (const TensorProto& proto : graph.initializer()) {
    auto& tensor = tensors.emplace_back();
    collect(diags, [&] { tensor = tensor_of(proto, folder, file); });
  }
  return tensors;
}

Items add_inputs(Builder& builder, const GraphProto& graph, const std::vector<std::optional<Tensor>>& initializers, const Roles& roles, Symbols& symbols,
                  const Locations& locations, const std::unordered_set<std::string_view>* wanted, Diags& diags) {
  Items values;
  const Loc file = locations.file();
  FedInputs fed(builder, symbols, file);
  std::unordered_map<std::string_view, const Tensor*> by_name;
  for (int i = 0; i < graph.initializer_size(); ++i)
    by_name.emplace(graph.initializer(i).name(), initializers[static_cast<std::size_t>(i)] ? &*initializers[static_cast<std::size_t>(i)] : nullptr);

  for (const ValueInfoProto& input : graph.input()) {
    collect(diags, [&] {
      const auto initializer = by_name.find(input.name());
      if (wanted != nullptr and not wanted->contains(input.name())) return;
      if (initializer == by_name.end()) {
        Item& item = values[input.name()];
        item = fed.add(input);
      } else if (initializer->second != nullptr and input.type().tensor_type().has_shape()) {
        const Tensor& tensor = *initializer->second;
        const Type declared = declared_type(input.type().tensor_type(), "input " + quoted(input.name()), input.name(), symbols, file);
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
    const auto [val, is_new] = values.emplace(name, Item());
    if (not is_new or not tensor) continue;
    const auto role = roles.of.find(name);
    const Val made = builder.input(role != roles.of.end() ? role->second : role_of(*tensor, learned.contains(name)), name, {tensor->dtype(), shape_of(tensor->shape())}, *tensor);
    const auto columns = roles.learned_columns.find(name);
    val->second = columns == roles.learned_columns.end() ? made : learned_in_front(made, columns->second);
  }
  // What is still sparse could not be made dense, as was reported.
  for (const SparseTensorProto& sparse : graph.sparse_initializer()) values.emplace(sparse.values().name(), Item());
  return values;
}

Val add_inner_initializer(Builder& builder, const TensorProto& proto, const std::string& folder, const Loc& file) {
  const Tensor tensor = tensor_of(proto, folder, file);
  // Only what has a name of its own can be written back, and so be trained.
  const bool has_name = not proto.name().empty() and builder.graph().find_input(proto.name()) == nullptr;
  if (not has_name) return builder.constant(tensor);
  return builder.input(role_of(tensor, false), proto.name(), {tensor.dtype(), shape_of(tensor.shape())}, tensor);
}

}  // namespace hone::onnx
