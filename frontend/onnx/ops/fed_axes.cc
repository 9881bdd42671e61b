#include "frontend/onnx/ops/fed_axes.h"

#include <fmt/format.h>

#include "ir/ops/ops.h"

namespace hone::onnx {

namespace {

Val iota(Builder& builder, Shape shape, std::int64_t axis) { return builder.add(op::iota, {}, {kShape = std::move(shape), kAxis = axis})[0]; }

}  // namespace

std::vector<Dim> read_sizes(const ImportNode& node, Val values, std::string_view name, Builder::Sign sign) {
  const Val whole = cast(values, DType::kI64);
  return node.builder().materialize(whole, fmt::format("{}.{}.{}", node.loc().node, name, whole.id().index), sign);
}

FedAxes::FedAxes(const ImportNode& node, Val axes, std::size_t rank) : node_(node), rank_(rank) {
  const Val given = cast(axes, DType::kI64);
  const Dim count = element_count(given.shape());
  if (not count.is_constant() or given.rank() > 1)
    node.fail(Code::kDynamic, fmt::format("the axes must be a vector of a known length, and are {}", to_string(axes.type())), {"fix their number when exporting, or give them with --bind NAME=FILE"});
  count_ = count.value();
  const Val zero = node.builder().scalar(0, DType::kI64);
  const Val from_front = op::where(op::less(given, zero), given + static_cast<double>(rank), given);
  matches_ = op::equal(iota(node.builder(), {static_cast<std::int64_t>(rank), 1}, 0), reshape(from_front, {1, count_}));
  is_named_ = op::greater(op::reduce_sum(cast(matches_, DType::kI64), {kAxes = Ints{1}, kKeepDims = false}), zero);
}

Val FedAxes::positions() const { return iota(node_.builder(), {static_cast<std::int64_t>(rank_)}, 0); }

Val FedAxes::extents(const Shape& shape) const { return node_.builder().add(op::sizes, {}, {kSizes = shape})[0]; }

Val FedAxes::spread(Val values, Val absent) const {
  const Val chosen = op::where(matches_, reshape(values, {1, count_}), node_.builder().scalar(0, DType::kI64));
  return op::where(is_named_, op::reduce_sum(chosen, {kAxes = Ints{1}, kKeepDims = false}), absent);
}

Shape FedAxes::split(const Shape& shape) const {
  const Val all = extents(shape), one = node_.builder().scalar(1, DType::kI64), column[] = {op::where(is_named_, one, all), op::where(is_named_, all, one)};
  const auto rank = static_cast<std::int64_t>(rank_);
  return read_sizes(node_, reshape(op::concat.build({reshape(column[0], {rank, 1}), reshape(column[1], {rank, 1})}, {kAxis = std::int64_t{1}}), {2 * rank}), "split");
}

Shape FedAxes::without(const Shape& shape) const {
  if (rank_ == static_cast<std::size_t>(count_)) return {};
  // Row i holds the extent of the i-th axis that is not named, and else zeros.
  const auto rank = static_cast<std::int64_t>(rank_);
  const Val zero = node_.builder().scalar(0, DType::kI64), is_left = op::logical_not(is_named_);
  const Val number = op::linear_recurrence(cast(is_left, DType::kI64), {kAxis = std::int64_t{0}, kReverse = false}) - 1.0;
  const Val row = iota(node_.builder(), {rank - count_, 1}, 0);
  const Val is_ith = op::logical_and(op::equal(reshape(number, {1, rank}), row), reshape(is_left, {1, rank}));
  return read_sizes(node_, op::reduce_sum(op::where(is_ith, reshape(extents(shape), {1, rank}), zero), {kAxes = Ints{1}, kKeepDims = false}), "without");
}

Shape FedAxes::with_ones(const Shape& shape) const {
  if (shape.empty()) return Shape(rank_, Dim(1));
  const Val number = op::linear_recurrence(cast(op::logical_not(is_named_), DType::kI64), {kAxis = std::int64_t{0}, kReverse = false}) - 1.0;
  const Val zero = node_.builder().scalar(0, DType::kI64), one = node_.builder().scalar(1, DType::kI64);
  const Val own = op::gather(extents(shape), op::maximum(number, zero), {kAxis = std::int64_t{0}});
  return read_sizes(node_, op::where(is_named_, one, own), "with_ones");
}

Shape FedAxes::around(const Shape& shape) const {
  const Val all = extents(shape), one = node_.builder().scalar(1, DType::kI64);
  const Val at = op::reduce_sum(op::where(is_named_, positions(), node_.builder().scalar(0, DType::kI64)), {kAxes = Ints{0}, kKeepDims = true});
  const auto product = [&](Val is_in) { return op::reduce_prod(op::where(is_in, all, one), {kAxes = Ints{0}, kKeepDims = true}); };
  return read_sizes(node_, op::concat.build({product(op::less(positions(), at)), product(is_named_), product(op::greater(positions(), at))}, {kAxis = std::int64_t{0}}), "around");
}

}  // namespace hone::onnx
