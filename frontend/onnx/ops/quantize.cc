// Conversion between element types, and quantization: y = saturate(round(x / scale) + zero_point), x = (y - zero_point) * scale.
#include <fmt/format.h>

#include "frontend/onnx/ops.h"
#include "frontend/onnx/ops/conv.h"
#include "frontend/onnx/ops/matmul.h"
#include "ir/ops/ops.h"

namespace hone::onnx {

namespace {

// --- Cast ---

/// `x` as `to`, with the node's attributes saturate and round_mode, which matter to floats of 8 bits only.
Val converted(const ImportNode& node, Val x, DType to) {
  Attrs attrs = {kTo = to};
  if (is_float(to) and info(to).bits == 8) {
    if (node.flag("saturate", true)) attrs.set(kSaturate = true);
    if (to == DType::kF8E8M0) attrs.set(kRounding = node.text("round_mode", "up"));
  }
  return x.dtype() == to ? x : op::cast(x, attrs);
}

std::vector<Val> import_cast(const ImportNode& node) { return {converted(node, node.x(0), node.dtype("to"))}; }
std::vector<Val> import_cast_like(const ImportNode& node) { return {converted(node, node.x(0), node.x(1).dtype())}; }

// --- Scales and zero points ---

/// What `x` is computed with: at least f32.
DType wide(DType dtype) { return dtype == DType::kF64 ? DType::kF64 : DType::kF32; }

/// A scale or zero point of one element a position along `axis`, or of one a block there, so that it broadcasts to `shape`.
Val spread(const ImportNode& node, Val parameter, const Shape& shape, std::string_view name) {
  const std::int64_t block = node.integer("block_size", 0);
  const std::size_t rank = shape.size();
  if (parameter.rank() == 0) return parameter;
  if (block == 0) {
    node.require(parameter.rank() == 1, Code::kShape, fmt::format("the {} must be a number or a vector without block_size", name));
    if (parameter.shape()[0].is_constant(1)) return reshape(parameter, {});
    Shape along(rank, Dim(1));
    along[node.axis(node.integer("axis", 1), rank)] = parameter.shape()[0];
    return reshape(parameter, along);
  }
  node.require(block > 0, Code::kBadAttribute, fmt::format("block_size = {}", block));
  node.require(parameter.rank() == rank, Code::kShape, fmt::format("with block_size the {} must have as many axes as the operand", name));
  const std::size_t axis = node.axis(node.integer("axis", 1), rank);
  const Dim blocks = parameter.shape()[axis], needed = floordiv(shape[axis] + (block - 1), block);
  if (blocks.is_constant() and needed.is_constant() and blocks != needed)
    node.fail(Code::kShape, fmt::format("the {} has {} blocks along axis {}, and {} elements in blocks of {} are {}", name, blocks.text(), axis, shape[axis].text(), block, needed.text()));
  Shape split = parameter.shape();  // [.., blocks, 1, ..], broadcast to [.., blocks, block, ..]
  split.insert(split.begin() + static_cast<std::ptrdiff_t>(axis) + 1, Dim(1));
  const Val apart = reshape(parameter, split);
  split[axis + 1] = block;
  Shape joined = parameter.shape();
  joined[axis] = blocks * Dim(block);
  const Val repeated = reshape(broadcast_to(apart, split), joined);
  joined[axis] = shape[axis];
  return op::slice(repeated, {kStarts = Shape(rank, Dim(0)), kSizes = joined, kSteps = Ints(rank, 1)});
}

/// The float `x` as integers or small floats of zero_point's type.
Val quantized(const ImportNode& node, Val x, Val zero_point) {
  if (is_integer(zero_point.dtype())) return op::quantize(x, zero_point);
  return converted(node, x + cast(zero_point, x.dtype()), zero_point.dtype());
}

/// x / scale, rounded to the floats of `precision`.
Val quotient(Val x, Val scale, DType precision) {
  const DType computed = wide(precision);
  return cast(cast(cast(x, computed) / cast(scale, computed), precision), computed);
}

// --- QuantizeLinear, DequantizeLinear ---

DType output_type(const ImportNode& node, std::optional<DType> of_zero_point) {
  const bool stated = node.integer("output_dtype", 0) != 0;
  if (not stated) return of_zero_point.value_or(DType::kU8);
  const DType dtype = node.dtype("output_dtype");
  node.require(not of_zero_point or *of_zero_point == dtype, Code::kType, "output_dtype is another type than the zero point's");
  return dtype;
}

/// The type that the division is rounded to: a scale that is no float of 16 bits or more leaves it at f32.
DType division_type(const ImportNode& node, Val scale) {
  if (node.integer("precision", 0) != 0) {
    const DType precision = node.dtype("precision");
    node.require(is_float(precision) and info(precision).bits >= 16, Code::kBadAttribute, "the precision must be a float of 16 bits or more");
    return precision;
  }
  return is_float(scale.dtype()) and info(scale.dtype()).bits >= 16 ? scale.dtype() : DType::kF32;
}

std::vector<Val> import_quantize_linear(const ImportNode& node) {
  const Val x = node.x(0), scale = node.x(1);
  const DType to = output_type(node, node.has(2) ? std::optional(node.x(2).dtype()) : std::nullopt);
  const Val zero_point = node.has(2) ? spread(node, node.x(2), x.shape(), "zero point") : node.builder().scalar(0, to);
  return {quantized(node, quotient(x, spread(node, scale, x.shape(), "scale"), division_type(node, scale)), zero_point)};
}

/// x - zero_point: integers exactly as i32, floats as they are.
Val centered(Val x, const std::optional<Val>& zero_point, DType computed) {
  const DType type = is_float(x.dtype()) ? computed : DType::kI32;
  const Val wide_x = cast(x, type);
  return zero_point ? wide_x - cast(*zero_point, type) : wide_x;
}

std::vector<Val> import_dequantize_linear(const ImportNode& node) {
  const Val x = node.x(0), scale = node.x(1);
  const DType to = node.integer("output_dtype", 0) != 0 ? node.dtype("output_dtype") : scale.dtype(), computed = wide(to);
  node.require(is_float(to) and info(to).bits >= 16, Code::kType, fmt::format("the result cannot be {}", to_string(to)));
  std::optional<Val> zero_point;
  if (node.has(2)) {
    node.require(node.x(2).dtype() == x.dtype(), Code::kType, "the operand and the zero point have different element types");
    zero_point = spread(node, node.x(2), x.shape(), "zero point");
  }
  const Val offset = cast(centered(x, zero_point, computed), computed);
  return {cast(offset * cast(spread(node, scale, x.shape(), "scale"), computed), to)};
}

/// The range takes in 0; where all elements are 0, the scale is 1.
std::vector<Val> import_dynamic_quantize_linear(const ImportNode& node) {
  const Val x = node.x(0);
  constexpr double kLargest = 255;
  const Val zero = node.builder().scalar(0, x.dtype());
  const auto reduced = [](Val values) {
    Ints axes;
    for (std::size_t i = 0; i < values.rank(); ++i) axes.push_back(static_cast<std::int64_t>(i));
    return op::reduce_max(values, {kAxes = axes});
  };
  const Val high = op::maximum(reduced(x), zero), low = op::minimum(-reduced(-x), zero);
  const Val range = (high - low) / kLargest;
  const Val scale = op::where(op::equal(range, zero), node.builder().scalar(1, x.dtype()), range);
  const Val zero_point = op::quantize(-low / scale, node.builder().scalar(0, DType::kU8));
  return {op::quantize(x / scale, zero_point), scale, zero_point};
}

// --- Integer products ---

/// Operand `x` less its zero point, operand `zero_point` of the node (none: 0), as i32.
Val product_operand(const ImportNode& node, std::size_t x, std::size_t zero_point, auto&& broadcast) {
  if (not node.has(zero_point)) return cast(node.x(x), DType::kI32);
  node.require(node.x(zero_point).dtype() == node.x(x).dtype(), Code::kType, fmt::format("input {} and its zero point have different element types", x));
  return centered(node.x(x), broadcast(node.x(zero_point)), DType::kF32);
}

/// A vector of one number a row of the left operand, as a column. Others broadcast as they are.
Val by_row(Val parameter) { return parameter.rank() == 1 and not parameter.shape()[0].is_constant(1) ? reshape(parameter, {parameter.shape()[0], 1}) : parameter; }
Val as_is(Val parameter) { return parameter; }

/// One number for the whole operand.
Val single(const ImportNode& node, Val parameter) {
  node.require(element_count(parameter.shape()).is_constant(1), Code::kShape, "scale and zero point of the input and of the result must be one number each");
  return reshape(parameter, {});
}

/// One number, or a vector of one for each channel, that broadcasts along axis `axis` of `rank`.
Val by_channel(const ImportNode& node, Val parameter, std::size_t rank, std::size_t axis) {
  if (element_count(parameter.shape()).is_constant(1)) return reshape(parameter, {});
  node.require(parameter.rank() == 1, Code::kShape, "scale, zero point and bias of the weight must be a number or a vector");
  Shape along(rank, Dim(1));
  along[axis] = parameter.shape()[0];
  return reshape(parameter, along);
}

/// Where a convolution's operands stand.
struct IntegerOperands {
  std::size_t x, x_zero_point, w, w_zero_point;
};
Val integer_convolution(const ImportNode& node, const IntegerOperands& at) {
  const std::size_t rank = node.x(at.w).rank();
  const Val x = product_operand(node, at.x, at.x_zero_point, [&](Val zero_point) { return single(node, zero_point); });
  return convolution(node, x, product_operand(node, at.w, at.w_zero_point, [&](Val zero_point) { return by_channel(node, zero_point, rank, 0); }));
}

std::vector<Val> import_matmul_integer(const ImportNode& node) {
  return {matrix_product(node, product_operand(node, 0, 2, by_row), product_operand(node, 1, 3, as_is))};
}

std::vector<Val> import_conv_integer(const ImportNode& node) { return {integer_convolution(node, {.x = 0, .x_zero_point = 2, .w = 1, .w_zero_point = 3})}; }

/// An i32 sum of products times the scales of its operands, over the result's scale.
Val requantized(const ImportNode& node, Val sum, Val scale, Val result_scale, Val zero_point) {
  return quantized(node, cast(sum, DType::kF32) * (cast(scale, DType::kF32) / cast(result_scale, DType::kF32)), zero_point);
}

std::vector<Val> import_qlinear_matmul(const ImportNode& node) {
  const Val sum = matrix_product(node, product_operand(node, 0, 2, by_row), product_operand(node, 3, 5, as_is));
  const Val scale = cast(by_row(node.x(1)), DType::kF32) * cast(node.x(4), DType::kF32);
  return {requantized(node, sum, scale, by_row(node.x(6)), by_row(node.x(7)))};
}

std::vector<Val> import_qlinear_conv(const ImportNode& node) {
  const std::size_t rank = node.x(3).rank();
  Val sum = integer_convolution(node, {.x = 0, .x_zero_point = 2, .w = 3, .w_zero_point = 5});
  if (node.has(8)) sum = sum + by_channel(node, node.x(8), rank, 1);
  const Val scale = single(node, node.x(1)) * by_channel(node, node.x(4), rank, 1);
  return {requantized(node, sum, scale, single(node, node.x(6)), single(node, node.x(7)))};
}

constinit const Importer kQuantizeOps[] = {
    {"Cast", import_cast},
    {"CastLike", import_cast_like},
    {"QuantizeLinear", import_quantize_linear},
    {"DequantizeLinear", import_dequantize_linear},
    {"DynamicQuantizeLinear", import_dynamic_quantize_linear},
    {"MatMulInteger", import_matmul_integer},
    {"ConvInteger", import_conv_integer},
    {"QLinearMatMul", import_qlinear_matmul},
    {"QLinearConv", import_qlinear_conv},
};

}  // namespace

std::span<const Importer> quantize_importers() { return kQuantizeOps; }

}  // namespace hone::onnx
