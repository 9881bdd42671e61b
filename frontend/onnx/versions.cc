#include "frontend/onnx/versions.h"

#include <fmt/format.h>

#include <cmath>

#include "base/text.h"
#include "frontend/onnx/constant_value.h"
#include "ir/kernel/scalar_math.h"

namespace hone::onnx {

namespace {

/// What operators knew as an attribute before they took it as an input. Their rows come in the order in which the versions did.
struct AttributeToInput {
  std::string_view op_type;
  std::int64_t since;  ///< the first opset with the input
  std::string_view attribute;
  std::size_t input;
};
constexpr AttributeToInput kListsToInputs[] = {
    {"Pad", 2, "paddings", 1},          {"Reshape", 5, "shape", 1},
    {"Slice", 10, "starts", 1},         {"Slice", 10, "ends", 2},     {"Slice", 10, "axes", 3},     {"Pad", 11, "pads", 1},
    {"Squeeze", 13, "axes", 1},         {"Unsqueeze", 13, "axes", 1}, {"Split", 13, "split", 1},    {"ReduceSum", 13, "axes", 1},
    {"ReduceMean", 18, "axes", 1},      {"ReduceMax", 18, "axes", 1}, {"ReduceMin", 18, "axes", 1}, {"ReduceProd", 18, "axes", 1},
    {"ReduceSumSquare", 18, "axes", 1}, {"ReduceL1", 18, "axes", 1},  {"ReduceL2", 18, "axes", 1},  {"ReduceLogSum", 18, "axes", 1},
    {"ReduceLogSumExp", 18, "axes", 1},
};
constexpr AttributeToInput kNumbersToInputs[] = {
    {"Pad", 11, "value", 2},
    {"Clip", 11, "min", 1},
    {"Clip", 11, "max", 2},
};

/// The second operand of arithmetic was fitted to the first when `broadcast` was set: its axes began at `axis` of the first, or were its last ones.
void align_second(ImportNode& node) {
  const Val a = node.x(0), b = node.x(1);
  if (not node.flag("broadcast", false) or not node.has_attribute("axis") or b.rank() == 0) return;
  Shape shape = b.shape();
  const std::size_t first = node.axis(node.integer("axis", 0), a.rank());
  node.require(first + shape.size() <= a.rank(), Code::kShape, "the second operand has more axes than the first has from `axis` on");
  shape.resize(a.rank() - first, 1);
  node.set_operand(1, reshape(b, shape));
}

/// A list of slopes was one for each channel.
void slope_of_channels(ImportNode& node) {
  const Val slope = node.x(1);
  if (slope.rank() != 1 or node.x(0).rank() < 2) return;
  Shape shape(node.x(0).rank() - 1, 1);
  shape[0] = slope.shape()[0];
  node.set_operand(1, reshape(slope, shape));
}

/// The type was a name.
void number_the_type(ImportNode& node) {
  TensorProto::DataType type{};
  const std::string name = node.text("to", "");
  if (not TensorProto::DataType_Parse(name, &type)) node.fail(Code::kType, fmt::format("attribute to asks for {}, which is no type of ONNX", quoted(name)));
  node.set_integer("to", type);
}

/// (x, tiles, axis): along one axis only. Both are of x's type, mostly a float.
void tiles_of_all_axes(ImportNode& node) {
  const std::size_t rank = node.x(0).rank();
  for (const std::size_t i : {1U, 2U})
    if (const auto given = is_float(node.x(i).dtype()) ? constant_value(node.builder().graph(), node.x(i).id()) : std::nullopt; given and given->element_count() == 1)
      node.set_operand(i, Ints{scalar_math::to_integer(DType::kI64, given->at(0))});
  const Ints tiles = node.numbers(1, "tiles"), axis = node.numbers(2, "axis");
  node.require(tiles.size() == 1 and axis.size() == 1, Code::kShape, "tiles and axis must have one element each");
  Ints repeats(rank, 1);
  repeats[node.axis(axis[0], rank)] = tiles[0];
  node.set_operand(1, std::move(repeats));
}

/// Heights and widths only.
void scales_of_all_axes(ImportNode& node) {
  const double scales[] = {1, 1, node.real("height_scale", 0), node.real("width_scale", 0)};
  node.set_operand(1, node.builder().constant(Tensor::of<double>({4}, scales).cast(DType::kF32)));
}

/// The exponent of the norm was a real number.
void whole_exponent(ImportNode& node) {
  const double p = node.real("p", 2);
  node.require(p >= 1 and p <= 1e6 and p == std::floor(p), Code::kBadAttribute, fmt::format("p = {} is no whole number from 1", p));
  node.set_integer("p", static_cast<std::int64_t>(p));
}

/// Softmax worked on a matrix: the axes before `axis` (1 unless said otherwise) and those from it on.
void mark_softmax(ImportNode& node) {
  node.set_integer("axis", node.integer("axis", 1));
  node.set_integer(kOverAllAxesFrom, 1);
}

/// The axis was an attribute, and another one by default.
void axis_to_input(ImportNode& node) { node.set_operand(2, Ints{node.integer("axis", 1)}); }

void refuse_activation_statistics(ImportNode& node) {
  if (not node.flag("spatial", true))
    node.fail(Code::kBadAttribute, "spatial = 0 is not supported: statistics of each single activation instead of each channel",
              {"later opsets have no such form; convert the model with onnx.version_converter"});
}

/// The mode was said by the number of results.
void mark_training_mode(ImportNode& node) { node.set_integer("training_mode", node.result_count() > 1); }

/// Scale and bias had an element a group, and have one a channel.
void repeat_for_each_channel(ImportNode& node) {
  const std::int64_t groups = node.integer("num_groups", 0);
  if (groups < 1 or node.x(0).rank() < 2) return;  // refused by the importer
  for (const std::size_t i : {1, 2}) {
    const Val of_groups = node.x(i);
    if (of_groups.rank() != 1) continue;
    const Dim channels = floordiv(node.x(0).shape()[1], groups);
    node.set_operand(i, reshape(broadcast_to(reshape(of_groups, {of_groups.shape()[0], 1}), {of_groups.shape()[0], channels}), {channels * groups}));
  }
}

/// The number of elements was an attribute.
void give_count(ImportNode& node) { node.set_operand(1, Ints{node.integer("k", 0)}); }

/// (x, scales), or scales as an attribute, before there were regions and sizes.
void move_scales(ImportNode& node) {
  const auto scales = node.reals("scales");
  const auto count = scales ? static_cast<std::int64_t>(scales->size()) : 0;
  node.set_operand(2, scales ? node.builder().constant(Tensor::of<double>({count}, std::span(*scales)).cast(DType::kF32)) : node.x(1));
  node.set_operand(1, Val());
  node.set_integer(kSimpleResize, 1);
}

/// Everything else: what a form before `since` becomes.
struct Change {
  std::string_view op_type;
  std::int64_t since;
  void (*apply)(ImportNode&);
};
constexpr Change kChanges[] = {
    {"Add", 7, align_second},
    {"Sub", 7, align_second},
    {"Mul", 7, align_second},
    {"Div", 7, align_second},
    {"Pow", 7, align_second},
    {"And", 7, align_second},
    {"Or", 7, align_second},
    {"Xor", 7, align_second},
    {"Equal", 7, align_second},
    {"Greater", 7, align_second},
    {"Less", 7, align_second},
    {"PRelu", 7, slope_of_channels},
    {"Cast", 6, number_the_type},
    {"Tile", 6, tiles_of_all_axes},
    {"Concat", 4, [](ImportNode& node) { node.set_integer("axis", node.integer("axis", 1)); }},
    {"LpPool", 2, whole_exponent},
    {"GlobalLpPool", 2, whole_exponent},
    {"Upsample", 7, scales_of_all_axes},
    {"BatchNormalization", 9, refuse_activation_statistics},
    {"BatchNormalization", 14, mark_training_mode},
    {"GroupNormalization", 21, repeat_for_each_channel},
    {"TopK", 10, give_count},
    {"Upsample", kNewestOpset + 1, move_scales},
    {"Resize", 11, move_scales},
    {"RoiAlign", 16, [](ImportNode& node) { node.set_integer(kOutputHalfPixel, 1); }},
    {"Softmax", 13, mark_softmax},
    {"LogSoftmax", 13, mark_softmax},
    {"Hardmax", 13, mark_softmax},
    {"DFT", 20, axis_to_input},
};

}  // namespace

void to_newest_form(ImportNode& node, std::int64_t opset) {
  if (not node.domain().empty() and node.domain() != "ai.onnx") return;
  const auto concerns = [&](const auto& row) { return row.op_type == node.op_type() and opset < row.since; };
  for (const AttributeToInput& row : kListsToInputs)
    if (concerns(row))
      if (auto list = node.integers(row.attribute)) node.set_operand(row.input, *std::move(list));
  for (const AttributeToInput& row : kNumbersToInputs)
    if (concerns(row) and node.has_attribute(row.attribute)) node.set_operand(row.input, node.builder().scalar(node.real(row.attribute, 0), node.x(0).dtype()));
  for (const Change& row : kChanges)
    if (concerns(row)) row.apply(node);
}

}  // namespace hone::onnx
