#include "frontend/onnx/ops/window.h"

#include <fmt/format.h>

#include <algorithm>

namespace hone::onnx {

namespace {

/// Beyond it products of window sizes could overflow; no real window comes near.
constexpr std::int64_t kLargest = std::int64_t{1} << 24;

Ints positive_list(const ImportNode& node, std::string_view name, std::size_t rank) {
  const Ints values = node.integers(name).value_or(Ints(rank, 1));
  node.require(values.size() == rank, Code::kBadAttribute, fmt::format("{} has {} entries for {} spatial axes", name, values.size(), rank));
  for (const std::int64_t value : values) node.require(value >= 1 and value <= kLargest, Code::kBadAttribute, fmt::format("{} of {}", name, value));
  return values;
}

}  // namespace

Window window_of(const ImportNode& node, std::optional<Ints> kernel) {
  Window window;
  const std::optional<Ints> stated = node.integers("kernel_shape");
  node.require(kernel or stated, Code::kBadAttribute, "kernel_shape is missing");
  node.require(
      not kernel or not stated or *kernel == *stated, Code::kShape,
      kernel and stated ? fmt::format("kernel_shape is [{}], and the weight has [{}]", to_string(shape_of(*stated)), to_string(shape_of(*kernel))) : "");
  window.kernel = kernel ? *kernel : *stated;
  const std::size_t rank = window.rank();
  for (const std::int64_t extent : window.kernel)
    node.require(extent >= 1 and extent <= kLargest, Code::kBadAttribute, fmt::format("a window extent of {}", extent));
  window.strides = positive_list(node, "strides", rank);
  window.dilations = positive_list(node, "dilations", rank);
  const Ints pads = node.integers("pads").value_or(Ints(2 * rank, 0));
  node.require(pads.size() == 2 * rank, Code::kBadAttribute, fmt::format("pads has {} entries for {} spatial axes", pads.size(), rank));
  for (std::size_t i = 0; i < pads.size(); ++i) {
    node.require(pads[i] >= 0 and pads[i] <= kLargest, Code::kBadAttribute, fmt::format("pads of {}", pads[i]));
    (i < rank ? window.pads_begin : window.pads_end).emplace_back(pads[i]);
  }
  return window;
}

void split_padding(Window& window, std::size_t axis, const Dim& total, Odd odd) {
  const Dim half = floordiv(total, 2);
  window.pads_begin[axis] = odd == Odd::kBehind ? half : total - half;
  window.pads_end[axis] = odd == Odd::kBehind ? total - half : half;
}

bool apply_auto_pad(const ImportNode& node, Window& window, const Shape& spatial) {
  const std::string mode = node.text("auto_pad", "NOTSET");
  if (mode == "NOTSET" or mode.empty()) return false;
  node.require(mode == "VALID" or mode == "SAME_UPPER" or mode == "SAME_LOWER", Code::kBadAttribute, fmt::format("auto_pad = \"{}\"", mode));
  for (std::size_t i = 0; i < window.rank(); ++i) {
    Dim total = 0;
    if (mode != "VALID") total = max((ceildiv(spatial[i], window.strides[i]) - 1) * Dim(window.strides[i]) + window.span(i) - spatial[i], 0);
    split_padding(window, i, total, mode == "SAME_LOWER" ? Odd::kBefore : Odd::kBehind);
  }
  return true;
}

Shape spatial_extents(const ImportNode& node, const Shape& shape, std::size_t rank) {
  node.require(shape.size() == rank + 2, Code::kShape, fmt::format("the input has {} axes, and needs batch, channels and {} spatial ones", shape.size(), rank));
  return Shape(shape.begin() + 2, shape.end());
}

}  // namespace hone::onnx
