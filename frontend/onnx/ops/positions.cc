// Tensors that follow from positions: ranges, diagonals, triangles.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "frontend/onnx/constant_value.h"
#include "frontend/onnx/ops.h"
#include "frontend/onnx/ops/fed_axes.h"
#include "ir/ops/ops.h"

namespace hone::onnx {

namespace {

Val positions(Builder& builder, Shape shape, std::int64_t axis, DType dtype) {
  return cast(builder.add(op::iota, {}, {kShape = std::move(shape), kAxis = axis})[0], dtype);
}

/// Whole numbers beyond 2^53 are none of a double's, their distance may be.
double whole_steps(const ImportNode& node, std::int64_t start, std::int64_t limit, std::int64_t delta) {
  node.require(delta != 0, Code::kBadAttribute, "delta is 0");
  const __int128 way = static_cast<__int128>(limit) - start, by = delta;
  return static_cast<double>(way / by + (way % by != 0 and (way < 0) == (by < 0) ? 1 : 0));
}

/// Numbers from start towards limit, all of them known; the element count is max(0, ceil((limit - start) / delta)).
Tensor range_of(const ImportNode& node, const Tensor& start, const Tensor& limit, const Tensor& delta) {
  constexpr double kMostElements = 1 << 26;
  const double steps = is_float(start.dtype()) ? std::ceil((limit.at(0) - start.at(0)) / delta.at(0)) : whole_steps(node, start.int_at(0), limit.int_at(0), delta.int_at(0));
  node.require(std::isfinite(steps), Code::kBadAttribute, "start, limit and delta must be finite");
  node.require(steps <= kMostElements, Code::kTooLarge, fmt::format("{} elements", steps));
  const auto count = static_cast<std::int64_t>(std::max(0.0, steps));
  if (is_float(start.dtype())) {
    std::vector<double> values;
    for (std::int64_t i = 0; i < count; ++i) values.push_back(start.at(0) + static_cast<double>(i) * delta.at(0));
    return vector_of(values).cast(start.dtype());
  }
  Ints values;
  for (std::int64_t i = 0, value = start.int_at(0); i < count; ++i) {
    values.push_back(value);
    if (__builtin_add_overflow(value, delta.int_at(0), &value)) break;  // behind the last one
  }
  return vector_of(values).cast(start.dtype());
}

/// The same for floats that are fed.
Val range_of_fed(const ImportNode& node) {
  const Val start = reshape(node.x(0), {}), limit = reshape(node.x(1), {}), delta = reshape(node.x(2), {});
  const Val steps = -op::floor((cast(start, DType::kF64) - cast(limit, DType::kF64)) / cast(delta, DType::kF64));
  const Dim count = read_sizes(node, op::maximum(steps, node.builder().scalar(0, DType::kF64)), "count").at(0);
  return start + positions(node.builder(), {count}, 0, start.dtype()) * delta;
}

/// The number in `val`, where it is one: computed from constants, or a size that follows from fixed ones.
std::optional<Tensor> number(const Val& val) {
  const auto constant = constant_value(val.builder().graph(), val.id());
  return constant ? std::optional(constant->reshaped({})) : std::nullopt;
}

/// The whole number in operand `i` as a size; a size that was cast to float, too. No floats that are fed.
std::optional<Dim> whole_number(const ImportNode& node, std::size_t i, std::string_view name) {
  const Graph& graph = node.builder().graph();
  if (const auto constant = number(node.x(i)); constant and constant->at(0) == std::trunc(constant->at(0)) and std::fabs(constant->at(0)) < 0x1p53)
    return static_cast<std::int64_t>(constant->at(0));
  for (ValueId id = node.x(i).id(); graph.value(id).producer.valid();) {
    const Node& producer = graph.producer(id);
    if (*producer.op != op::cast and *producer.op != op::reshape) break;
    id = producer.operands[0];
    if (graph.value(id).known) return graph.value(id).known->at(0);
  }
  return is_float(node.x(i).dtype()) ? std::nullopt : std::optional(node.content(i, name));
}

std::vector<Val> import_range(const ImportNode& node) {
  constexpr std::string_view kNames[] = {"start", "limit", "delta"};
  std::optional<Tensor> numbers[3];
  for (std::size_t i = 0; i < 3; ++i) {
    node.require(element_count(node.x(i).shape()).is_constant(1), Code::kShape, fmt::format("input {} ({}) must have one element", i, kNames[i]));
    node.require(node.x(i).dtype() == node.x(0).dtype(), Code::kType, "start, limit and delta have different element types");
    numbers[i] = number(node.x(i));
  }
  node.require(not numbers[2] or numbers[2]->at(0) != 0, Code::kBadAttribute, "delta is 0");
  if (numbers[0] and numbers[1] and numbers[2]) return {node.builder().constant(range_of(node, *numbers[0], *numbers[1], *numbers[2]))};
  std::optional<Dim> whole[3];
  for (std::size_t i = 0; i < 3; ++i) whole[i] = whole_number(node, i, kNames[i]);
  if (not whole[0] or not whole[1] or not whole[2]) return {range_of_fed(node)};
  const Dim start = *whole[0], limit = *whole[1], delta = *whole[2];
  if (not delta.is_constant()) node.fail(Code::kDynamic, fmt::format("delta must be a number, and is {}", delta.text()));
  const Dim steps = delta.value() > 0 ? ceildiv(limit - start, delta) : ceildiv(start - limit, Dim(0) - delta);
  const Val from = reshape(node.x(0), {}), by = reshape(node.x(2), {});
  return {from + positions(node.builder(), {steps.may_be_negative() ? max(steps, 0) : steps}, 0, from.dtype()) * by};
}

/// Row and column numbers (i64) that broadcast to [.., n, m].
struct Matrix {
  Val row, column;
  Matrix(Builder& builder, const Dim& n, const Dim& m) : row(positions(builder, {n, 1}, 0, DType::kI64)), column(positions(builder, {m}, 0, DType::kI64)) {}
};

std::vector<Val> import_eye_like(const ImportNode& node) {
  const Val x = node.x(0);
  node.require(x.rank() == 2, Code::kShape, "needs a matrix");
  const Matrix at(node.builder(), x.shape()[0], x.shape()[1]);
  const Val on = op::equal(at.row + node.builder().constant(Tensor::scalar(node.integer("k", 0))), at.column);
  return {cast(on, node.has_attribute("dtype") ? node.dtype("dtype") : x.dtype())};
}

std::vector<Val> import_trilu(const ImportNode& node) {
  const Val x = node.x(0);
  node.require(x.rank() >= 2, Code::kShape, "needs matrices: two axes or more");
  const Matrix at(node.builder(), x.shape()[x.rank() - 2], x.shape()[x.rank() - 1]);
  const Val diagonal = node.has(1) ? at.row + cast(reshape(node.x(1), {}), DType::kI64) : at.row;
  const Val kept = node.flag("upper", true) ? op::greater_equal(at.column, diagonal) : op::less_equal(at.column, diagonal);
  return {op::where(kept, x, node.builder().scalar(0, x.dtype()))};
}

constinit const Importer kPositionsOps[] = {
    {"Range", import_range},
    {"EyeLike", import_eye_like},
    {"Trilu", import_trilu},
};

}  // namespace

std::span<const Importer> position_importers() { return kPositionsOps; }

}  // namespace hone::onnx
