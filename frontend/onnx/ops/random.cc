// Random tensors: drawn by Philox from the node's seed and stream. The numbers are Hone's own, not those of another runtime.
#include "ir/ops/random.h"

#include <bit>

#include "frontend/onnx/constant_value.h"
#include "frontend/onnx/ops.h"
#include "ir/ops/ops.h"

namespace hone::onnx {

namespace {

/// The seed is a number in the file: its bits count. Nodes without one draw from the same seed, by streams of their own.
std::int64_t seed_of(const ImportNode& node) { return std::bit_cast<std::int64_t>(node.real("seed", 0)); }

DType dtype_or(const ImportNode& node, DType absent) { return node.has_attribute("dtype") ? node.dtype("dtype") : absent; }

struct Wanted {
  Shape shape;
  DType dtype;
};
Wanted by_attributes(const ImportNode& node) {
  const auto shape = node.integers("shape");
  node.require(shape.has_value(), Code::kBadAttribute, "shape is missing");
  for (const std::int64_t extent : *shape) node.require(extent >= 0, Code::kShape, "an extent below 0");
  return {shape_of(*shape), dtype_or(node, DType::kF32)};
}
Wanted like_operand(const ImportNode& node) { return {node.x(0).shape(), dtype_or(node, node.x(0).dtype())}; }

DType drawn_as(DType dtype) { return dtype == DType::kF64 ? DType::kF64 : DType::kF32; }

template <Wanted (*kWanted)(const ImportNode&)>
std::vector<Val> import_normal(const ImportNode& node) {
  const auto [shape, dtype] = kWanted(node);
  const Val drawn = random_normal(node.builder(), shape, drawn_as(dtype), seed_of(node));
  return {cast(drawn * node.real("scale", 1) + node.real("mean", 0), dtype)};
}

template <Wanted (*kWanted)(const ImportNode&)>
std::vector<Val> import_uniform(const ImportNode& node) {
  const auto [shape, dtype] = kWanted(node);
  const double low = node.real("low", 0), high = node.real("high", 1);
  const Val drawn = random_uniform(node.builder(), shape, drawn_as(dtype), seed_of(node));
  return {cast(drawn * (high - low) + low, dtype)};
}

std::vector<Val> import_bernoulli(const ImportNode& node) {
  const Val x = node.x(0);
  const DType drawn = drawn_as(x.dtype());
  return {cast(op::less(random_uniform(node.builder(), x.shape(), drawn, seed_of(node)), cast(x, drawn)), dtype_or(node, x.dtype()))};
}

/// A class is taken where the running sum of the probabilities first exceeds a uniform number; rounding may leave the whole sum below it.
std::vector<Val> import_multinomial(const ImportNode& node) {
  const Val x = node.x(0);
  node.require(x.rank() == 2, Code::kShape, "needs [batch, classes]");
  const Dim batch = x.shape()[0], classes = x.shape()[1], samples = node.integer("sample_size", 1);
  const Val odds = op::softmax(cast(x, drawn_as(x.dtype())), {kAxis = 1});
  const Val running = reshape(op::linear_recurrence(odds, {kAxis = 1}), {batch, 1, classes});
  const Val drawn = random_uniform(node.builder(), {batch, samples, 1}, odds.dtype(), seed_of(node));
  const Val below = sum(cast(op::less_equal(running, drawn), DType::kI64), {2}, false);
  const Val last = size_value(node.builder(), classes - 1, DType::kI64);
  return {cast(op::minimum(below, last), dtype_or(node, DType::kI32))};
}

/// What training_mode says, if it is known.
std::optional<bool> known_mode(const ImportNode& node) {
  if (not node.has(2)) return false;
  const auto mode = constant_value(node.builder().graph(), node.x(2).id());
  return mode and mode->element_count() == 1 ? std::optional(mode->int_at(0) != 0) : std::nullopt;
}

std::vector<Val> import_dropout(const ImportNode& node) {
  const Val x = node.x(0), all = node.wants(1) ? full(node.builder(), 1, DType::kBool, x.shape()) : Val();
  const std::optional<bool> training = known_mode(node);
  if (training == false) return {x, all};
  const Val rate = node.has(1) ? cast(reshape(node.x(1), {}), x.dtype()) : node.builder().scalar(0.5, x.dtype());
  const std::vector<Val> dropped = op::dropout.build_all({x, rate}, {kSeed = node.integer("seed", 0), kStream = next_stream(node.builder().graph())});
  if (training == true) return dropped;
  const Val mode = reshape(node.x(2), {});
  return {op::where(mode, dropped[0], x), all.valid() ? op::where(mode, dropped[1], all) : Val()};
}

constinit const Importer kRandomOps[] = {
    {"RandomNormal", import_normal<by_attributes>},
    {"RandomNormalLike", import_normal<like_operand>},
    {"RandomUniform", import_uniform<by_attributes>},
    {"RandomUniformLike", import_uniform<like_operand>},
    {"Bernoulli", import_bernoulli},
    {"Multinomial", import_multinomial},
    {"Dropout", import_dropout},
};

}  // namespace

std::span<const Importer> random_importers() { return kRandomOps; }

}  // namespace hone::onnx
