// Operators that give the same elements another shape or order, and those that ask for a shape.
#include <fmt/format.h>

#include <algorithm>

#include "frontend/onnx/ops.h"
#include "frontend/onnx/ops/fed_axes.h"
#include "ir/ops/ops.h"

namespace hone::onnx {

namespace {

/// Is it a number that is read when running?
bool is_read(const Dim& dim) { return not dim.is_constant() and dim.may_be_negative(); }

/// 1 where `number`, which is read when running, is negative; else 0.
Dim is_negative(const Dim& number) { return Dim(0) - max(min(number, 0), -1); }

/// The same rules for numbers that are read when running: each is a case distinction.
Shape shape_when_running(const ImportNode& node, const Shape& asked) {
  const Val x = node.x(0);
  Shape shape;
  Dim others = 1;
  for (std::size_t i = 0; i < asked.size(); ++i) {
    Dim extent = asked[i].is_constant(-1) ? 0 : asked[i].may_be_negative() ? max(asked[i], 0) : asked[i];
    if (not node.flag("allowzero", false) and i < x.rank() and (asked[i].is_constant(0) or asked[i].may_be_negative()) and not asked[i].is_constant(-1)) {
      const Dim is_zero = Dim(1) - min(extent, 1) - is_negative(asked[i]);
      extent = max(extent, is_zero * x.shape()[i]);
    }
    shape.push_back(extent);
    others *= max(extent, is_negative(asked[i]));  // 1 for the open one
  }
  const Dim open = floordiv(element_count(x.shape()), max(others, 1));
  for (std::size_t i = 0; i < asked.size(); ++i)
    if (asked[i].is_constant(-1)) shape[i] = open;
    else if (asked[i].may_be_negative()) shape[i] = max(shape[i], is_negative(asked[i]) * open);
  return shape;
}

/// The shape that Reshape asks for: 0 copies an extent (unless allowzero), one -1 takes what is left.
std::vector<Val> import_reshape(const ImportNode& node) {
  const Val x = node.x(0);
  Shape shape = node.contents(1, "shape");
  if (std::any_of(shape.begin(), shape.end(), is_read)) return {reshape(x, shape_when_running(node, shape))};
  std::optional<std::size_t> open;
  Dim others = 1;
  for (std::size_t i = 0; i < shape.size(); ++i) {
    if (shape[i].is_constant(-1)) {
      node.require(not open, Code::kShape, fmt::format("the shape [{}] has more than one -1", to_string(shape)));
      open = i;
      continue;
    }
    if (shape[i].is_constant(0) and not node.flag("allowzero", false)) {
      node.require(i < x.rank(), Code::kShape, fmt::format("the shape [{}] copies axis {} of a tensor of {} axes", to_string(shape), i, x.rank()));
      shape[i] = x.shape()[i];
    }
    node.require(not shape[i].is_constant() or shape[i].value() >= 0, Code::kShape, fmt::format("an extent of {}", shape[i].text()));
    others *= shape[i];
  }
  if (open) {
    node.require(not others.is_constant(0), Code::kShape,
                 fmt::format("the -1 of the shape [{}] is not determined, because another extent is 0", to_string(shape)));
    shape[*open] = floordiv(element_count(x.shape()), others);
  }
  return {reshape(x, shape)};
}

std::vector<Val> import_flatten(const ImportNode& node) {
  const Val x = node.x(0);
  const std::int64_t given = node.integer("axis", 1);
  const auto axis = given == static_cast<std::int64_t>(x.rank()) ? x.rank() : node.axis(given, std::max<std::size_t>(x.rank(), 1));
  const auto middle = x.shape().begin() + static_cast<std::ptrdiff_t>(axis);
  return {reshape(x, {element_count(Shape(x.shape().begin(), middle)), element_count(Shape(middle, x.shape().end()))})};
}

std::vector<Val> import_transpose(const ImportNode& node) {
  const Val x = node.x(0);
  Ints reversed(x.rank());
  for (std::size_t i = 0; i < reversed.size(); ++i) reversed[i] = static_cast<std::int64_t>(x.rank() - 1 - i);
  return {transpose(x, node.integers("perm").value_or(reversed))};
}

/// Without axes, those that are known to have extent 1.
std::vector<Val> import_squeeze(const ImportNode& node) {
  const Val x = node.x(0);
  if (node.is_fed(1)) return {reshape(x, FedAxes(node, node.x(1), x.rank()).without(x.shape()))};
  Ints axes;
  if (node.has(1)) {
    axes = node.axes(node.numbers(1, "axes"), x.rank());
  } else {
    for (std::size_t i = 0; i < x.rank(); ++i)
      if (x.shape()[i].is_constant(1)) axes.push_back(static_cast<std::int64_t>(i));
  }
  Shape shape;
  for (std::size_t i = 0; i < x.rank(); ++i) {
    if (std::find(axes.begin(), axes.end(), static_cast<std::int64_t>(i)) == axes.end()) {
      shape.push_back(x.shape()[i]);
      continue;
    }
    node.require(not x.shape()[i].is_constant() or x.shape()[i].is_constant(1), Code::kShape,
                 fmt::format("axis {} has extent {}, not 1", i, x.shape()[i].text()));
    if (not x.shape()[i].is_constant()) node.builder().equate(x.shape()[i], 1);
  }
  return {reshape(x, shape)};
}

std::vector<Val> import_unsqueeze(const ImportNode& node) {
  const Val x = node.x(0);
  if (node.is_fed(1) and element_count(node.x(1).shape()).is_constant())
    return {reshape(x, FedAxes(node, node.x(1), x.rank() + static_cast<std::size_t>(element_count(node.x(1).shape()).value())).with_ones(x.shape()))};
  const Ints given = node.numbers(1, "axes");
  const Ints axes = node.axes(given, x.rank() + given.size());
  Shape shape = x.shape();
  for (const std::int64_t axis : axes) shape.insert(shape.begin() + axis, Dim(1));
  return {reshape(x, shape)};
}

std::vector<Val> import_concat(const ImportNode& node) {
  node.require(node.count() > 0, Code::kBadGraph, "needs at least one input");
  const auto axis = static_cast<std::int64_t>(node.axis(node.integer("axis", 0), node.x(0).rank()));
  if (node.count() == 1) return {node.x(0)};
  return {op::concat.build(node.rest(0), {kAxis = axis})};
}

/// numpy broadcasting of x's shape and the target; an extent of 1 on either side takes the other's.
std::vector<Val> import_expand(const ImportNode& node) {
  const Val x = node.x(0);
  Shape target = node.contents(1, "shape");
  while (target.size() < x.rank()) target.insert(target.begin(), Dim(1));
  const std::size_t extra = target.size() - x.rank();
  for (std::size_t i = extra; i < target.size(); ++i) {
    const Dim& own = x.shape()[i - extra];
    const bool is_single_row = not target[i].is_constant() and target[i].is_at_most_one() and not own.is_at_most_one();
    if (is_single_row) node.builder().equate(target[i], 1);  // of x[:1]: nothing else would broadcast
    if (is_single_row or target[i].is_constant(1) or (is_read(target[i]) and not own.is_constant(1))) target[i] = own;
  }
  return {broadcast_to(x, target)};
}

/// Repeats by broadcasting along an axis of its own in front of each repeated one.
std::vector<Val> import_tile(const ImportNode& node) {
  const Val x = node.x(0);
  const std::vector<Dim> repeats = node.contents(1, "repeats");
  node.require(repeats.size() == x.rank(), Code::kShape, fmt::format("{} repeats for {} axes", repeats.size(), x.rank()));
  Shape apart, repeated, joined;
  for (std::size_t i = 0; i < repeats.size(); ++i) {
    node.require(not repeats[i].is_constant() or repeats[i].value() >= 0, Code::kBadAttribute, fmt::format("{} repeats", repeats[i].text()));
    if (not repeats[i].is_constant(1)) {
      apart.emplace_back(1);
      repeated.push_back(repeats[i]);
    }
    apart.push_back(x.shape()[i]);
    repeated.push_back(x.shape()[i]);
    joined.push_back(repeats[i] * x.shape()[i]);
  }
  return {reshape(broadcast_to(reshape(x, apart), repeated), joined)};
}

/// Channels and the positions of blocks exchanged: the two factors of the channels, and of each extent.
struct Blocks {
  Val x;
  Dim size, channels, height, width;
};
Blocks blocks_of(const ImportNode& node) {
  const Val x = node.x(0);
  const std::int64_t size = node.integer("blocksize", 0);
  node.require(x.rank() == 4, Code::kShape, "needs batch, channels, height and width");
  node.require(size >= 1, Code::kBadAttribute, fmt::format("a blocksize of {}", size));
  const auto divided = [&](const Dim& extent, const Dim& by, std::string_view what) {
    node.require(not extent.is_constant() or extent.value() % by.value() == 0, Code::kShape, fmt::format("{} {} are no multiple of {}", extent.text(), what, by.text()));
    return floordiv(extent, by);
  };
  if (node.op_type() == "DepthToSpace") return {x, size, divided(x.shape()[1], Dim(size) * size, "channels"), x.shape()[2], x.shape()[3]};
  return {x, size, x.shape()[1], divided(x.shape()[2], size, "rows"), divided(x.shape()[3], size, "columns")};
}

std::vector<Val> import_depth_to_space(const ImportNode& node) {
  const Blocks b = blocks_of(node);
  const Dim batch = b.x.shape()[0];
  const std::string mode = node.text("mode", "DCR");
  node.require(mode == "DCR" or mode == "CRD", Code::kBadAttribute, fmt::format("mode \"{}\" is none of DCR and CRD", mode));
  const Val apart = mode == "DCR" ? transpose(reshape(b.x, {batch, b.size, b.size, b.channels, b.height, b.width}), {0, 3, 4, 1, 5, 2})
                                  : transpose(reshape(b.x, {batch, b.channels, b.size, b.size, b.height, b.width}), {0, 1, 4, 2, 5, 3});
  return {reshape(apart, {batch, b.channels, b.height * b.size, b.width * b.size})};
}

std::vector<Val> import_space_to_depth(const ImportNode& node) {
  const Blocks b = blocks_of(node);
  const Dim batch = b.x.shape()[0];
  const Val apart = transpose(reshape(b.x, {batch, b.channels, b.height, b.size, b.width, b.size}), {0, 3, 5, 1, 2, 4});
  return {reshape(apart, {batch, b.size * b.size * b.channels, b.height, b.width})};
}

std::vector<Val> import_shape(const ImportNode& node) {
  const Shape& shape = node.x(0).shape();
  const auto rank = static_cast<std::int64_t>(shape.size());
  const auto position = [rank](std::int64_t at) { return std::clamp<std::int64_t>(at < 0 ? at + rank : at, 0, rank); };
  const std::int64_t start = position(node.integer("start", 0)), end = std::max(start, position(node.integer("end", rank)));
  return {node.builder().add(op::sizes, {}, {kSizes = Shape(shape.begin() + start, shape.begin() + end)})[0]};
}

std::vector<Val> import_size(const ImportNode& node) {
  return {reshape(node.builder().add(op::sizes, {}, {kSizes = Shape{element_count(node.x(0).shape())}})[0], {})};
}

constinit const Importer kShapeOps[] = {
    {"Reshape", import_reshape}, {"Flatten", import_flatten}, {"Transpose", import_transpose}, {"Squeeze", import_squeeze}, {"Unsqueeze", import_unsqueeze},
    {"Concat", import_concat},   {"Expand", import_expand},   {"Tile", import_tile},           {"Shape", import_shape},     {"Size", import_size},
    {"DepthToSpace", import_depth_to_space}, {"SpaceToDepth", import_space_to_depth},
};

}  // namespace

std::span<const Importer> shape_importers() { return kShapeOps; }

}  // namespace hone::onnx
