// Fourier transforms, as products with the matrix of the transform, and windows.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numbers>

#include "frontend/onnx/ops.h"
#include "frontend/onnx/ops/fed_axes.h"
#include "ir/ops/ops.h"

namespace hone::onnx {

namespace {

Val positions(Builder& builder, std::size_t rank, std::size_t axis, Dim extent, DType dtype) {
  Shape shape(rank, Dim(1));
  shape[axis] = extent;
  return cast(builder.add(op::iota, {}, {kShape = shape, kAxis = static_cast<std::int64_t>(axis)})[0], dtype);
}

/// One transform of `length` numbers: `taken` of them are there, `given` and `made` say how many parts (real, imaginary) a number has.
struct Transform {
  Dim length, taken, results;
  std::int64_t given, made;
  bool inverse, half;  ///< half: of the spectrum's symmetric halves, one is there
};

/// The matrix [taken * given, results * made]. With the angle t = 2 pi j k / length it turns (re, im) into (re cos t + im sin t, im cos t - re sin t), or
/// with -t for the inverse: each entry is the cosine of the angle and of as many quarter turns as the parts differ.
Val matrix_of(Builder& builder, const Transform& t, DType dtype) {
  const auto at = [&](std::size_t axis, Dim extent) { return positions(builder, 4, axis, extent, DType::kI64); };
  const Val j = at(0, t.taken), k = at(2, t.results), length = size_value(builder, t.length, DType::kI64);
  const Val turns = cast(op::floor_mod(j * k, length), DType::kF64) / cast(length, DType::kF64);
  const Val quarters = cast(at(3, t.made) - at(1, t.given), DType::kF64) * 0.25;
  Val entries = op::cos(((t.inverse ? -turns : turns) + quarters) * (2 * std::numbers::pi));
  if (t.inverse) entries = entries / cast(length, DType::kF64);
  if (t.inverse and t.half) {  // what is not there is the mirror image of what is, but for the first and, of an even length, the last
    const Val zero = builder.constant(Tensor::scalar(std::int64_t{0}));
    const Val alone = op::logical_or(op::equal(j, zero), op::equal(j + j, length));
    entries = entries * op::where(alone, builder.scalar(1, DType::kF64), builder.scalar(2, DType::kF64));
  }
  return cast(reshape(entries, {t.taken * Dim(t.given), t.results * Dim(t.made)}), dtype);
}

/// x[.., parts] transformed along `axis`.
Val transformed(const ImportNode& node, Val x, std::size_t axis, const Dim& length, bool inverse, bool onesided) {
  const std::int64_t given = x.shape().back().value();
  Transform t{.length = length, .given = given, .made = onesided and inverse ? 1 : 2, .inverse = inverse, .half = onesided};
  const Dim half = floordiv(length, 2) + 1, extent = x.shape()[axis];
  t.results = onesided and not inverse ? half : length;
  t.taken = min(extent, onesided and inverse ? half : length);
  if (t.taken != extent) {
    Shape part = x.shape();
    part[axis] = t.taken;
    x = op::slice(x, {kStarts = Shape(x.rank(), Dim(0)), kSizes = part, kSteps = Ints(x.rank(), 1)});
  }
  Ints perm;  // the axis stands before the parts
  for (std::size_t i = 0; i + 1 < x.rank(); ++i)
    if (i != axis) perm.push_back(static_cast<std::int64_t>(i));
  perm.push_back(static_cast<std::int64_t>(axis));
  perm.push_back(static_cast<std::int64_t>(x.rank() - 1));
  Shape shape, rest;
  Ints back(x.rank());
  for (std::size_t i = 0; i < perm.size(); ++i) back[static_cast<std::size_t>(perm[i])] = static_cast<std::int64_t>(i);
  for (std::size_t i = 0; i + 2 < perm.size(); ++i) rest.push_back(x.shape()[static_cast<std::size_t>(perm[i])]);
  const Val rows = reshape(transpose(x, perm), {element_count(rest), t.taken * Dim(t.given)});
  const Val results = op::matmul(rows, matrix_of(node.builder(), t, x.dtype()));
  shape = rest;
  shape.push_back(t.results);
  shape.push_back(t.made);
  return transpose(reshape(results, shape), back);
}

/// The signal, as f32 if it is half as wide; with a last axis of 1 (real) or 2 (complex).
Val signal_of(const ImportNode& node) {
  const Val x = node.x(0);
  node.require(is_float(x.dtype()), Code::kType, "needs floats");
  node.require(x.rank() >= 2 and (x.shape().back().is_constant(1) or x.shape().back().is_constant(2)), Code::kShape,
               "the last axis must have 1 element (real numbers) or 2 (complex ones)");
  return x.dtype() == DType::kF64 ? x : cast(x, DType::kF32);
}

std::vector<Val> import_dft(const ImportNode& node) {
  const Val given = signal_of(node);
  const bool inverse = node.flag("inverse", false), onesided = node.flag("onesided", false);
  std::optional<FedAxes> fed;
  Val x = given;
  if (node.is_fed(2)) {  // as [before the axis, it, behind it, parts]
    const Dim parts = x.shape().back();
    fed.emplace(node, node.x(2), x.rank());
    const Shape around = fed->around(x.shape());
    x = reshape(x, {around[0], around[1], floordiv(around[2], parts), parts});
  }
  const std::size_t axis = fed ? 1 : node.axis(node.has(2) ? node.numbers(2, "axis").at(0) : -2, x.rank());
  node.require(axis + 1 < x.rank(), Code::kBadAttribute, "the last axis holds the parts of complex numbers: it cannot be transformed");
  node.require(not onesided or x.shape().back().is_constant(inverse ? 2 : 1), Code::kShape,
               inverse ? "a one-sided spectrum must be complex" : "a one-sided spectrum is one of real numbers");
  const Dim extent = x.shape()[axis], whole = onesided and inverse ? (extent - 1) * Dim(2) : extent;
  const Dim length = node.has(1) ? node.content(1, "dft_length") : whole;
  node.require(not length.is_constant() or length.value() > 0, Code::kShape, fmt::format("a transform of length {}", length.text()));
  Val result = transformed(node, x, axis, length, inverse, onesided);
  if (fed) {
    Shape shape = given.shape();
    shape.back() = result.shape().back();
    const Val extent = node.builder().add(op::sizes, {}, {kSizes = Shape{result.shape()[1]}})[0];
    result = reshape(result, read_sizes(node, fed->spread(extent, node.builder().add(op::sizes, {}, {kSizes = shape})[0]), "transformed"));
  }
  return {cast(result, node.x(0).dtype())};
}

std::vector<Val> import_stft(const ImportNode& node) {
  const Val x = signal_of(node);
  node.require(x.rank() == 3, Code::kShape, "needs [batch, length, 1 or 2]");
  const Dim step = node.content(1, "frame_step");
  node.require(not step.is_constant() or step.value() > 0, Code::kBadAttribute, fmt::format("frame_step = {}", step.text()));
  const Dim frame = node.has(3) ? node.content(3, "frame_length") : node.has(2) ? node.x(2).shape().at(0) : x.shape()[1];
  const Dim room = x.shape()[1] - frame;
  node.require(not room.is_constant() or room.value() >= 0, Code::kShape, fmt::format("a frame of {} in a signal of {}", frame.text(), x.shape()[1].text()));
  Builder& builder = node.builder();
  const Val starts = positions(builder, 2, 0, floordiv(room, step) + 1, DType::kI64) * size_value(builder, step, DType::kI64);
  Val frames = op::gather(x, starts + positions(builder, 2, 1, frame, DType::kI64), {kAxis = 1});  // [batch, frames, frame, parts]
  if (node.has(2)) frames = frames * reshape(cast(node.x(2), x.dtype()), {frame, 1});
  const bool onesided = node.flag("onesided", true) and x.shape().back().is_constant(1);
  return {cast(transformed(node, frames, 2, frame, false, onesided), node.x(0).dtype())};
}

/// sum of (-1)^i terms[i] cos(2 pi i n / m), m being the size, or one less for a symmetric window.
std::vector<Val> import_window(const ImportNode& node, std::initializer_list<double> terms) {
  const Dim size = node.content(0, "size");
  const DType dtype = node.has_attribute("output_datatype") ? node.dtype("output_datatype") : DType::kF32;
  const Dim period = node.flag("periodic", true) ? size : max(size - 1, 1);
  Builder& builder = node.builder();
  const Val turns = positions(builder, 1, 0, size, DType::kF64) / size_value(builder, period, DType::kF64);
  Val window;
  double multiple = 0;
  for (const double term : terms) {
    const double signed_term = static_cast<int>(multiple) % 2 == 0 ? term : -term;
    window = window.valid() ? window + op::cos(turns * (2 * std::numbers::pi * multiple)) * signed_term : full(builder, term, DType::kF64, {size});
    ++multiple;
  }
  return {cast(window, dtype)};
}

double number(const ImportNode& node, std::size_t i, std::string_view name) {
  const Tensor* constant = node.builder().graph().constant_of(node.x(i).id());
  if (constant != nullptr and constant->element_count() == 1) return constant->at(0);
  const Dim known = node.content(i, name);
  node.require(known.is_constant(), Code::kDynamic, fmt::format("input {} ({}) must be a number", i, name));
  return static_cast<double>(known.value());
}

/// Triangles over the spectrum's frequencies, each from the edge of the one before it to that of the one after it; edges stand evenly on the mel scale.
std::vector<Val> import_mel_weight_matrix(const ImportNode& node) {
  const double bins = number(node, 0, "num_mel_bins"), length = number(node, 1, "dft_length"), rate = number(node, 2, "sample_rate");
  node.require(bins >= 1 and bins <= 1 << 20 and length >= 1 and length <= 1 << 24 and rate > 0, Code::kBadAttribute, "sizes out of range");
  const auto mel = [](double hertz) { return 2595 * std::log10(1 + hertz / 700); };
  const double low = mel(number(node, 3, "lower_edge_hertz")), high = mel(number(node, 4, "upper_edge_hertz"));
  const auto columns = static_cast<std::int64_t>(bins), rows = static_cast<std::int64_t>(length) / 2 + 1;
  node.require(columns * rows <= 1 << 26, Code::kTooLarge, fmt::format("a matrix of {} by {}", rows, columns));
  const auto edge = [&](std::int64_t i) {
    const double hertz = 700 * (std::pow(10, (low + static_cast<double>(i) * (high - low) / (bins + 2)) / 2595) - 1);
    const double at = std::floor((length + 1) * hertz / rate);
    node.require(at >= 0 and at < static_cast<double>(rows), Code::kBadAttribute, "an edge lies outside of the spectrum");
    return static_cast<std::int64_t>(at);
  };
  std::vector<double> weights(static_cast<std::size_t>(rows * columns));
  for (std::int64_t i = 0; i < columns; ++i) {
    const std::int64_t left = edge(i), middle = edge(i + 1), right = edge(i + 2);
    const auto weight = [&](std::int64_t row) -> double& { return weights[static_cast<std::size_t>(row * columns + i)]; };
    weight(middle) = 1;
    for (std::int64_t row = left; row < middle; ++row) weight(row) = static_cast<double>(row - left) / static_cast<double>(middle - left);
    for (std::int64_t row = middle; row < right; ++row) weight(row) = static_cast<double>(right - row) / static_cast<double>(right - middle);
  }
  const DType dtype = node.has_attribute("output_datatype") ? node.dtype("output_datatype") : DType::kF32;
  return {node.builder().constant(Tensor::of<double>({rows, columns}, std::span<const double>(weights)).cast(dtype))};
}

constinit const Importer kSignalOps[] = {
    {"DFT", import_dft},
    {"STFT", import_stft},
    {"HannWindow", [](const ImportNode& node) { return import_window(node, {0.5, 0.5}); }},
    {"HammingWindow", [](const ImportNode& node) { return import_window(node, {25.0 / 46, 21.0 / 46}); }},
    {"BlackmanWindow", [](const ImportNode& node) { return import_window(node, {0.42, 0.5, 0.08}); }},
    {"MelWeightMatrix", import_mel_weight_matrix},
};

}  // namespace

std::span<const Importer> signal_importers() { return kSignalOps; }

}  // namespace hone::onnx
