// The ONNX forms of our ops.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

#include "frontend/onnx/export_kernel.h"
#include "frontend/onnx/export_rows.h"
#include "ir/ops/ops.h"

namespace hone::onnx {

namespace {

/// One op of ours as ONNX nodes; false if these attributes have no ONNX form.
using Write = bool (*)(Exporter&, const Node&);

std::vector<std::string> operands(const Exporter& e, const Node& node) {
  std::vector<std::string> names;
  for (const ValueId operand : node.operands) names.push_back(operand.valid() ? e.name(operand) : "");
  return names;
}

NodeProto& plain(Exporter& e, const Node& node, std::string_view type) { return e.node(type, operands(e, node), {e.name(node.results[0])}, node); }

bool write_matmul(Exporter& e, const Node& node) {
  std::vector<std::string> inputs = operands(e, node);
  for (std::size_t i = 0; i < 2; ++i) {
    if (not node.attrs[i == 0 ? kTransA : kTransB]) continue;
    Ints perm;
    for (std::size_t axis = 0; axis < e.graph.type(node.operands[i]).shape.size(); ++axis) perm.push_back(static_cast<std::int64_t>(axis));
    std::swap(perm[perm.size() - 1], perm[perm.size() - 2]);
    const std::string transposed = e.fresh(inputs[i] + "_transposed");
    set(e.node("Transpose", {inputs[i]}, {transposed}, node), "perm", perm);
    inputs[i] = transposed;
  }
  e.node("MatMul", inputs, {e.name(node.results[0])}, node);
  return true;
}

bool write_reshape(Exporter& e, const Node& node) {
  Ints shape;
  int symbols = 0;
  for (const Dim& dim : node.attrs[kShape]) {
    shape.push_back(dim.is_constant() ? dim.value() : -1);
    symbols += not dim.is_constant();
  }
  const std::string hint = e.name(node.results[0]) + "_shape", sizes = symbols > 1 ? e.sizes(node.attrs[kShape], hint, node) : e.ints(shape, hint);
  if (sizes.empty()) return false;
  e.node("Reshape", {e.name(node.operands[0]), sizes}, {e.name(node.results[0])}, node);
  return true;
}

bool write_broadcast(Exporter& e, const Node& node) {
  const std::string shape = e.sizes(node.attrs[kShape], e.name(node.results[0]) + "_shape", node);
  if (not shape.empty()) e.node("Expand", {e.name(node.operands[0]), shape}, {e.name(node.results[0])}, node);
  return not shape.empty();
}

bool write_sizes(Exporter& e, const Node& node) {
  const std::string sizes = e.sizes(node.attrs[kSizes], e.name(node.results[0]) + "_sizes", node);
  if (not sizes.empty()) e.node("Identity", {sizes}, {e.name(node.results[0])}, node);
  return not sizes.empty();
}

/// index[..., none] == [0, 1, ...]: nothing where the index is out of range, other than OneHot.
bool write_one_hot(Exporter& e, const Node& node) {
  const Dim& depth = node.attrs[kShape].back();
  if (not depth.is_constant()) return false;
  Ints classes;
  for (std::int64_t i = 0; i < depth.value(); ++i) classes.push_back(i);
  const std::string y = e.name(node.results[0]);
  const std::string wide = e.fresh(y + "_index");
  set(e.node("Cast", {e.name(node.operands[0])}, {wide}, node), "to", static_cast<std::int64_t>(onnx_of_dtype(DType::kI64)));
  e.node("Equal", {e.value("Unsqueeze", {wide, e.ints({-1}, y + "_axes")}, y + "_column", node), e.ints(classes, y + "_classes")}, {y}, node);
  return true;
}

bool write_batch_norm(Exporter& e, const Node& node) {
  NodeProto& proto = plain(e, node, "BatchNormalization");
  set(proto, "epsilon", node.attrs[kEpsilon]);
  set(proto, "momentum", node.attrs[kMomentum]);
  return true;
}

/// Where the axes are an attribute until opset `last_with_attribute`.
bool write_reduce(Exporter& e, const Node& node, std::string_view type, std::int64_t last_with_attribute) {
  if (node.attrs[kAxes].empty()) return plain(e, node, "Identity"), true;  // to ONNX no axes are all axes
  const bool axes_are_input = e.opset > last_with_attribute;
  std::vector<std::string> inputs = operands(e, node);
  if (axes_are_input) inputs.push_back(e.ints(node.attrs[kAxes], e.name(node.results[0]) + "_axes"));
  NodeProto& proto = e.node(type, inputs, {e.name(node.results[0])}, node);
  if (not axes_are_input) set(proto, "axes", node.attrs[kAxes]);
  set(proto, "keepdims", static_cast<std::int64_t>(node.attrs[kKeepDims]));
  return true;
}

bool write_layer_norm(Exporter& e, const Node& node) {
  constexpr std::int64_t kFirstOpset = 17;
  if (e.opset < kFirstOpset or node.operands.size() < 2 or not node.operands[1].valid()) return false;  // ONNX's has a scale
  std::vector<std::string> inputs = operands(e, node);
  while (inputs.back().empty()) inputs.pop_back();
  NodeProto& proto = e.node("LayerNormalization", inputs, {e.name(node.results[0])}, node);
  set(proto, "axis", node.attrs[kAxis]);
  set(proto, "epsilon", node.attrs[kEpsilon]);
  return true;
}

/// In training mode; what is drawn is the importer's affair.
bool write_dropout(Exporter& e, const Node& node) {
  const std::string y = e.name(node.results[0]);
  e.node("Dropout", {e.name(node.operands[0]), e.name(node.operands[1]), e.constant(Tensor::scalar(true), y + "_training")}, {y, e.name(node.results[1])}, node);
  return true;
}

bool with_axis(Exporter& e, const Node& node, std::string_view type) {
  set(plain(e, node, type), "axis", node.attrs[kAxis]);
  return true;
}

/// Axes that are kept whole may have any extent.
bool write_slice(Exporter& e, const Node& node) {
  const Shape &extents = e.graph.type(node.operands[0]).shape, &starts = node.attrs[kStarts], &counts = node.attrs[kSizes];
  Ints from, to, axes, steps;
  for (std::size_t i = 0; i < extents.size(); ++i) {
    const std::int64_t step = node.attrs[kSteps][i];
    if (starts[i].is_constant(0) and step == 1 and counts[i] == extents[i]) continue;
    if (not starts[i].is_constant() or not counts[i].is_constant()) return false;
    const std::int64_t end = starts[i].value() + counts[i].value() * step;
    from.push_back(starts[i].value());
    to.push_back(end < 0 ? std::numeric_limits<std::int64_t>::min() : end);
    axes.push_back(static_cast<std::int64_t>(i));
    steps.push_back(step);
  }
  std::vector<std::string> inputs = {e.name(node.operands[0])};
  if (not axes.empty())
    for (const auto& [list, hint] : {std::pair(&from, "_starts"), std::pair(&to, "_ends"), std::pair(&axes, "_axes"), std::pair(&steps, "_steps")})
      inputs.push_back(e.ints(*list, e.name(node.results[0]) + hint));
  e.node(axes.empty() ? "Identity" : "Slice", inputs, {e.name(node.results[0])}, node);
  return true;
}

/// x (1 + erf(x / sqrt 2)) / 2: Gelu itself came with opset 20.
bool write_gelu(Exporter& e, const Node& node) {
  if (node.attrs[kTanhForm]) return false;
  const DType dtype = info(e.graph.type(node.results[0]).dtype).arithmetic;
  const std::string x = e.name(node.operands[0]), hint = e.name(node.results[0]);
  const auto number = [&](double value) { return e.constant(Tensor::scalar(value).cast(dtype), hint + "_constant"); };
  const auto of = [&](std::string_view type, const std::vector<std::string>& inputs) { return e.value(type, inputs, fmt::format("{}_{}", hint, type), node); };
  const std::string erf = of("Erf", {of("Mul", {x, number(std::sqrt(0.5))})});
  e.node("Mul", {of("Mul", {x, of("Add", {erf, number(1)})}), number(0.5)}, {hint}, node);
  return true;
}

/// Padding with zeros; nothing is dropped, and no zeros go between the elements.
bool write_pad(Exporter& e, const Node& node) {
  const Shape &x = e.graph.type(node.operands[0]).shape, &starts = node.attrs[kStarts], &extents = node.attrs[kSizes];
  Ints pads, ends;
  for (std::size_t i = 0; i < x.size(); ++i) {
    const Dim end = extents[i] - starts[i] - x[i];
    if (node.attrs[kSteps][i] != 1 or not starts[i].is_constant() or not end.is_constant() or starts[i].value() < 0 or end.value() < 0) return false;
    pads.push_back(starts[i].value());
    ends.push_back(end.value());
  }
  pads.insert(pads.end(), ends.begin(), ends.end());
  const std::string y = e.name(node.results[0]);
  e.node("Pad", {e.name(node.operands[0]), e.ints(pads, y + "_pads")}, {y}, node);
  return true;
}

/// A running sum; other recurrences have no operator.
bool write_linear_recurrence(Exporter& e, const Node& node) {
  if (node.operands.size() > 1 and node.operands[1].valid()) return false;
  const std::string y = e.name(node.results[0]);
  NodeProto& proto = e.node("CumSum", {e.name(node.operands[0]), e.constant(Tensor::scalar(node.attrs[kAxis]), y + "_axis")}, {y}, node);
  if (node.attrs[kReverse]) set(proto, "reverse", std::int64_t{1});
  return true;
}

bool write_arg_top_k(Exporter& e, const Node& node) {
  const std::string y = e.name(node.results[0]), count = e.sizes(node.attrs[kSizes], y + "_count", node);
  if (count.empty()) return false;
  NodeProto& proto = e.node("TopK", {e.name(node.operands[0]), count}, {e.fresh(y + "_values"), y}, node);
  set(proto, "axis", node.attrs[kAxis]);
  set(proto, "largest", static_cast<std::int64_t>(not node.attrs[kSmallest]));
  return true;
}

/// What replicas exchange is there already; elements that become sizes stay what they are.
bool write_identities(Exporter& e, const Node& node) {
  for (std::size_t i = 0; i < node.results.size(); ++i) e.node("Identity", {e.name(node.operands[i])}, {e.name(node.results[i])}, node);
  return true;
}

/// ONNX's bounds are scalars.
bool write_clip(Exporter& e, const Node& node) {
  for (std::size_t i = 1; i < node.operands.size(); ++i)
    if (node.operands[i].valid() and not e.graph.type(node.operands[i]).shape.empty()) return false;
  plain(e, node, "Clip");
  return true;
}

bool write_gather(Exporter& e, const Node& node) {
  const DType index = e.graph.type(node.operands[1]).dtype;
  if (e.formulas == Formulas::kWritten and index != DType::kI64 and index != DType::kI32) return false;
  set(plain(e, node, "Gather"), "axis", node.attrs[kAxis]);
  return true;
}

/// What an operator of ONNX asks of element types.
enum class Types : std::uint8_t {
  kAny,      ///< it moves elements, or looks after their types itself
  kNumbers,  ///< common runtimes have it for f32, f64, i32 and i64; storage types are widened before it
};

struct Row {
  const OpDef* op;
  Write write;
  Types types = Types::kNumbers;
};
constexpr Row kRows[] = {
    {&op::matmul, write_matmul},
    {&op::reshape, write_reshape, Types::kAny},
    {&op::conv, write_conv},
    {&op::conv_input_grad, write_conv_input_grad},
    {&op::conv_weight_grad, write_conv_weight_grad},
    {&op::conv_weight_grad_parts, write_conv_weight_grad_parts},
    {&op::max_pool, write_max_pool},
    {&op::avg_pool, write_avg_pool},
    {&op::batch_norm, write_batch_norm},
    {&op::layer_norm, write_layer_norm},
    {&op::dropout, write_dropout},
    {&op::transpose, [](Exporter& e, const Node& node) { return set(plain(e, node, "Transpose"), "perm", node.attrs[kPerm]), true; }, Types::kAny},
    {&op::concat, [](Exporter& e, const Node& node) { return with_axis(e, node, "Concat"); }, Types::kAny},
    {&op::gather, write_gather, Types::kAny},
    {&op::softmax, [](Exporter& e, const Node& node) { return with_axis(e, node, "Softmax"); }},
    {&op::log_softmax, [](Exporter& e, const Node& node) { return with_axis(e, node, "LogSoftmax"); }},
    {&op::reduce_mean, [](Exporter& e, const Node& node) { return write_reduce(e, node, "ReduceMean", 17); }},
    {&op::reduce_max, [](Exporter& e, const Node& node) { return write_reduce(e, node, "ReduceMax", 17); }},
    {&op::reduce_min, [](Exporter& e, const Node& node) { return write_reduce(e, node, "ReduceMin", 17); }},
    {&op::reduce_prod, [](Exporter& e, const Node& node) { return write_reduce(e, node, "ReduceProd", 17); }},
    {&op::reduce_sum, [](Exporter& e, const Node& node) { return write_reduce(e, node, "ReduceSum", 12); }},
    {&op::cast,
     [](Exporter& e, const Node& node) { return set(plain(e, node, "Cast"), "to", static_cast<std::int64_t>(onnx_of_dtype(node.attrs[kTo]))), true; }, Types::kAny},
    {&op::argmax,
     [](Exporter& e, const Node& node) {
       NodeProto& proto = plain(e, node, "ArgMax");
       set(proto, "axis", node.attrs[kAxis]);
       set(proto, "keepdims", std::int64_t{0});
       return true;
     }},
    {&op::broadcast_to, write_broadcast},
    {&op::slice, write_slice, Types::kAny},
    {&op::pad, write_pad},
    {&op::gelu, write_gelu},
    {&op::scan, write_scan, Types::kAny},
    {&op::while_trips, write_while, Types::kAny},
    {&op::branch, write_branch, Types::kAny},
    {&op::all_reduce, write_identities, Types::kAny},
    {&op::read_sizes, write_identities, Types::kAny},
    {&op::sizes, write_sizes, Types::kAny},
    {&op::one_hot, write_one_hot, Types::kAny},
    {&op::linear_recurrence, write_linear_recurrence},
    {&op::arg_top_k, write_arg_top_k},
    {&op::clip, write_clip},
    {&op::pow, [](Exporter& e, const Node& node) { return plain(e, node, "Pow"), true; }},
    {&op::maximum, [](Exporter& e, const Node& node) { return plain(e, node, "Max"), true; }},
    {&op::minimum, [](Exporter& e, const Node& node) { return plain(e, node, "Min"), true; }},
};

}  // namespace

namespace {

bool is_number(DType dtype) { return dtype == DType::kF32 or dtype == DType::kF64 or dtype == DType::kI32 or dtype == DType::kI64; }

/// Writes the row's operators between casts from and to what is only stored.
bool write_widened(Exporter& e, const Node& node, Write write) {
  std::map<ValueId, std::string> names;
  const auto stand_in = [&](ValueId value, const std::string& name) {
    if (names.try_emplace(value, e.name(value)).second) e.rename(value, name);
  };
  for (const ValueId operand : node.operands)
    if (operand.valid() and is_storage_only(e.graph.type(operand).dtype) and not names.contains(operand))
      stand_in(operand, e.cast(e.name(operand), info(e.graph.type(operand).dtype).arithmetic, e.name(operand) + "_wide", node));
  for (const ValueId result : node.results)
    if (is_storage_only(e.graph.type(result).dtype)) stand_in(result, e.fresh(e.name(result) + "_wide"));
  const bool done = write(e, node);
  for (auto& [value, name] : names) {
    const std::string wide = e.name(value);
    e.rename(value, name);
    if (done and std::ranges::find(node.results, value) != node.results.end())
      set(e.node("Cast", {wide}, {name}, node), "to", static_cast<std::int64_t>(onnx_of_dtype(e.graph.type(value).dtype)));
  }
  return done;
}

/// By the op's row, or the operator of its entry.
bool write_operator(Exporter& e, const Node& node) {
  const auto all = [&](const auto& is_good) {
    const auto good = [&](ValueId value) { return not value.valid() or is_good(e.graph.type(value).dtype); };
    return std::ranges::all_of(node.operands, good) and std::ranges::all_of(node.results, good);
  };
  const bool any = e.formulas == Formulas::kRefused;
  for (const Row& row : kRows) {
    if (*row.op != *node.op) continue;
    if (any or row.types == Types::kAny) return row.write(e, node);
    return all([](DType dtype) { return is_number(info(dtype).arithmetic); }) and write_widened(e, node, row.write);
  }
  if (node.op->onnx.empty() or not node.op->attrs.empty()) return false;
  if (not any and not all([](DType dtype) { return dtype == DType::kF32 or dtype == DType::kI32 or dtype == DType::kI64 or dtype == DType::kBool; })) return false;
  if (not any and *node.op == op::where and e.graph.type(node.results[0]).dtype == DType::kBool) return false;
  plain(e, node, node.op->onnx);
  return true;
}

}  // namespace

bool write_node(Exporter& e, const Node& node) { return write_operator(e, node) or (e.formulas == Formulas::kWritten and write_formula(e, node)); }

}  // namespace hone::onnx
