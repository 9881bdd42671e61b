// Gathering, scattering, and what is computed from positions.
#include <fmt/format.h>

#include <algorithm>

#include "frontend/onnx/constant_value.h"
#include "frontend/onnx/exported_program.h"
#include "frontend/onnx/ops.h"
#include "frontend/onnx/ops/fed_axes.h"
#include "ir/kernel/scalar_math.h"
#include "ir/ops/ops.h"

namespace hone::onnx {

namespace {

/// Where the index is fed as it is, what is fed must lie in the axis: the data are checked when they are loaded.
void bound_input(Builder& builder, ValueId index, const Dim& extent) {
  const Graph& graph = builder.graph();
  const OpDef* const moving[] = {&op::reshape, &op::transpose, &op::broadcast_to, &op::cast};
  while (graph.input_of(index) == nullptr) {
    const Node& node = graph.producer(index);
    if (std::find(std::begin(moving), std::end(moving), node.op) == std::end(moving)) return;
    index = node.operands[0];
  }
  if (graph.input_of(index)->role == Role::kInput and is_integer(graph.type(index).dtype)) builder.set_bounds(index, Dim(0) - extent, extent);
}

/// What operand 1 indexes must have what it names, where both are known: kernels read and write nothing there, and say nothing. Of a position's numbers each is of one of `axes`.
void require_positions(const ImportNode& node, std::span<const Dim> axes) {
  const Graph& graph = node.builder().graph();
  const ValueId id = node.x(1).id();
  const Tensor* const given = graph.constant_of(id);
  const std::optional<Tensor> found = given != nullptr ? *given : constant_value(graph, id);
  if (not found or not is_integer(found->dtype()) or axes.empty()) return;
  for (std::int64_t i = 0; i < found->element_count(); ++i) {
    const Dim& extent = axes[static_cast<std::size_t>(i) % axes.size()];
    const std::int64_t at = found->int_at(i);
    if (extent.is_constant() and (at < -extent.value() or at >= extent.value()))
      node.fail(Code::kBadWeight, fmt::format("its index has {}, and what it indexes has an extent of {}", at, extent.text()));
  }
}

/// Those axes of x which the last axis of operand 1 indexes.
void require_nd_positions(const ImportNode& node, std::size_t batch_dims) {
  const Shape &x = node.x(0).shape(), &index = node.x(1).shape();
  if (index.empty() or not index.back().is_constant()) return;
  const auto count = static_cast<std::size_t>(index.back().value());
  if (batch_dims <= x.size() and count <= x.size() - batch_dims) require_positions(node, std::span(x).subspan(batch_dims, count));
}

/// The attribute axis of x, which operand 1 indexes.
std::int64_t indexed_axis(const ImportNode& node) {
  const Val x = node.x(0);
  const std::size_t axis = node.axis(node.integer("axis", 0), x.rank());
  require_positions(node, std::span(x.shape()).subspan(axis, 1));
  bound_input(node.builder(), node.x(1).id(), x.shape()[axis]);
  return static_cast<std::int64_t>(axis);
}

/// An embedding's padding row is looked up like others and gets no gradient.
std::vector<Val> import_gather(const ImportNode& node) {
  const Val index = node.x(1);
  const std::int64_t axis = indexed_axis(node);
  const Val rows = op::gather(node.x(0), index, {kAxis = axis});
  const std::optional<std::int64_t> padding = padding_row_of(node.metadata(kProgramCall));
  if (not padding or axis != 0 or not is_float(rows.dtype())) return {rows};
  Shape beside = index.shape();
  beside.resize(rows.rank(), 1);
  const Val is_padding = op::equal(index, node.builder().scalar(static_cast<double>(*padding), index.dtype()));
  return {op::where(reshape(is_padding, std::move(beside)), op::stop_gradient(rows), rows)};
}

std::vector<Val> import_gather_elements(const ImportNode& node) { return {op::gather_elements(node.x(0), node.x(1), {kAxis = indexed_axis(node)})}; }
std::vector<Val> import_gather_nd(const ImportNode& node) {
  const std::int64_t batch_dims = node.integer("batch_dims", 0);
  if (batch_dims >= 0) require_nd_positions(node, static_cast<std::size_t>(batch_dims));
  return {op::gather_nd(node.x(0), node.x(1), {kBatchDims = batch_dims})};
}

std::string reduction_of(const ImportNode& node) {
  const std::string reduction = node.text("reduction", "none");
  return reduction == "none" ? "" : reduction;
}

std::vector<Val> import_scatter_elements(const ImportNode& node) {
  const Val x = node.x(0);
  return {op::scatter_elements(node.x(2), node.x(1), x, {kAxis = indexed_axis(node), kShape = x.shape(), kReduction = reduction_of(node)})};
}

std::vector<Val> import_scatter_nd(const ImportNode& node) {
  const Val x = node.x(0);
  require_nd_positions(node, 0);
  return {op::scatter_nd(node.x(2), node.x(1), x, {kShape = x.shape(), kReduction = reduction_of(node)})};
}

/// The update's elements along the axis go to the positions from the sample's write index on.
std::vector<Val> import_tensor_scatter(const ImportNode& node) {
  const Val x = node.x(0), update = node.x(1);
  Builder& builder = node.builder();
  const std::string mode = node.text("mode", "linear");
  node.require(mode == "linear" or mode == "circular", Code::kBadAttribute, fmt::format("mode \"{}\" is none of linear and circular", mode));
  node.require(update.rank() == x.rank(), Code::kShape, "the cache and its update differ in rank");
  const std::size_t axis = node.axis(node.integer("axis", -2), x.rank());
  node.require(axis != 0, Code::kBadAttribute, "the axis is the batch axis");
  const auto along = static_cast<std::int64_t>(axis);
  Val position = builder.add(op::iota, {}, {kAxis = along, kShape = update.shape()})[0];
  if (node.has(2)) {
    Shape column(x.rank(), Dim(1));
    column[0] = x.shape()[0];
    position = position + reshape(cast(node.x(2), DType::kI64), column);
  }
  if (mode == "circular") {
    const Val extent = size_value(builder, x.shape()[axis], DType::kI64);
    position = position - position / extent * extent;
  }
  return {op::scatter_elements(update, position, x, {kAxis = along, kShape = x.shape()})};
}

std::vector<Val> import_reverse_sequence(const ImportNode& node) {
  const Val x = node.x(0);
  const auto axis = [&](std::string_view name, std::int64_t absent) { return static_cast<std::int64_t>(node.axis(node.integer(name, absent), x.rank())); };
  return {op::reverse_sequence(x, node.x(1), {kAxis = axis("time_axis", 0), kBatchAxis = axis("batch_axis", 1)})};
}

/// OneHot's depth may be given as a float.
Dim depth_of(const ImportNode& node) {
  if (is_float(node.x(1).dtype()))
    if (const auto constant = constant_value(node.builder().graph(), node.x(1).id()); constant and constant->element_count() == 1)
      return scalar_math::to_integer(DType::kI64, constant->at(0));
  if (node.is_fed(1)) return read_sizes(node, node.x(1), "depth").at(0);
  return node.content(1, "depth");
}

/// Element `i` of a vector as a scalar.
Val element(Val vector, std::int64_t i) { return reshape(op::slice(vector, {kStarts = Shape{i}, kSizes = Shape{1}, kSteps = Ints{1}}), {}); }

std::vector<Val> import_one_hot(const ImportNode& node) {
  const Dim depth = depth_of(node);
  const Val given = cast(node.x(0), DType::kI64), values = node.x(2);
  node.require(values.rank() == 1 and values.shape()[0].is_constant(2), Code::kShape, "values must be a vector of two: off and on");
  Builder& builder = node.builder();
  const Val index = op::where(op::less(given, builder.scalar(0, DType::kI64)), given + size_value(builder, depth, DType::kI64), given);
  Shape shape = given.shape();
  shape.push_back(depth);
  const Val hot = op::where(op::one_hot(index, {kShape = shape}), element(values, 1), element(values, 0));
  const std::size_t axis = node.axis(node.integer("axis", -1), shape.size());
  Ints perm;
  for (std::size_t i = 0; i + 1 < shape.size(); ++i) perm.push_back(static_cast<std::int64_t>(i));
  perm.insert(perm.begin() + static_cast<std::ptrdiff_t>(axis), static_cast<std::int64_t>(shape.size() - 1));
  return {transpose(hot, perm)};
}

constinit const Importer kIndexOps[] = {
    {"Gather", import_gather},
    {"GatherElements", import_gather_elements},
    {"GatherND", import_gather_nd},
    {"Scatter", import_scatter_elements},
    {"ScatterElements", import_scatter_elements},
    {"ScatterND", import_scatter_nd},
    {"TensorScatter", import_tensor_scatter},
    {"ReverseSequence", import_reverse_sequence},
    {"OneHot", import_one_hot},
};

}  // namespace

std::span<const Importer> index_importers() { return kIndexOps; }

}  // namespace hone::onnx
