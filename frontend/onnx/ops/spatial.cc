// Grids and regions of interest.
#include <fmt/format.h>

#include <limits>

#include "frontend/onnx/constant_value.h"
#include "frontend/onnx/ops.h"
#include "frontend/onnx/ops/resize.h"
#include "frontend/onnx/versions.h"
#include "ir/ops/ops.h"

namespace hone::onnx {

namespace {

std::string interpolation_mode(const ImportNode& node) {
  const std::string mode = node.text("mode", "linear");
  if (mode == "bilinear") return "linear";  // as opset 16 calls them
  if (mode == "bicubic") return "cubic";
  node.require(mode == "linear" or mode == "nearest" or mode == "cubic", Code::kBadAttribute, fmt::format("mode = \"{}\"", mode));
  return mode;
}

std::vector<Val> import_grid_sample(const ImportNode& node) {
  const Val x = node.x(0), grid = node.x(1);
  const std::string padding = node.text("padding_mode", "zeros");
  node.require(padding == "zeros" or padding == "border" or padding == "reflection", Code::kBadAttribute, fmt::format("padding_mode = \"{}\"", padding));
  const DType dtype = grid.dtype() == DType::kF64 ? DType::kF64 : working_type(x.dtype());
  const Attrs attrs = {kMode = interpolation_mode(node), kPadding = padding, kAlignCorners = node.flag("align_corners", false)};
  return {cast(op::grid_sample(cast(x, dtype), cast(grid, dtype), attrs), x.dtype())};
}

/// Positions along an axis of `extent` elements from -1 to 1, the ends being the outermost elements' centers or their outer edges.
Val unit_positions(Val numbers, const Dim& extent, bool align_corners) {
  const auto size = [&](const Dim& dim) { return size_value(numbers.builder(), dim, numbers.dtype()); };
  if (align_corners) return (numbers * 2.0 - size(extent - 1)) / size(max(extent - 1, 1));  // 0 for one element
  return (numbers * 2.0 + 1.0 - size(extent)) / size(extent);
}

/// grid = [positions, 1] times theta transposed; the last axis' coordinate comes first.
std::vector<Val> import_affine_grid(const ImportNode& node) {
  const Val theta = node.x(0);
  const std::vector<Dim> size = node.contents(1, "size");
  const std::size_t spatial = size.size() - 2;
  node.require(size.size() == 4 or size.size() == 5, Code::kShape, fmt::format("size has {} entries, and needs N, C and two or three extents", size.size()));
  node.require(theta.rank() == 3 and is_float(theta.dtype()), Code::kShape, "theta must be floats [N, axes, axes + 1]");
  const Shape extents(size.begin() + 2, size.end());
  const Dim positions = element_count(extents);
  std::vector<Val> columns;
  for (std::size_t i = spatial; i-- > 0;) {
    const Val numbers = node.builder().add(op::iota, {}, {kShape = extents, kAxis = static_cast<std::int64_t>(i)})[0];
    columns.push_back(reshape(unit_positions(cast(numbers, theta.dtype()), extents[i], node.flag("align_corners", false)), {positions, 1}));
  }
  columns.push_back(full(node.builder(), 1, theta.dtype(), {positions, 1}));
  const Val grid = op::matmul(op::concat.build(columns, {kAxis = 1}), theta, {kTransB = true});
  Shape shape = {theta.shape()[0]};
  shape.insert(shape.end(), extents.begin(), extents.end());
  shape.emplace_back(static_cast<std::int64_t>(spatial));
  return {reshape(grid, shape)};
}

/// The extents [regions, 2] of the regions, rows first, in elements of the image.
Val region_extents(Val rois, double scale, bool half_pixel) {
  const Dim count = rois.shape()[0];
  const auto corners = [&](std::int64_t first) {
    return op::slice(rois, {kStarts = Shape{0, first}, kSizes = Shape{count, 2}, kSteps = Ints{1, 1}}) * scale;
  };
  const Val extents = corners(2) - corners(0);  // wide, high
  const Val turned = op::slice(extents, {kStarts = Shape{0, 1}, kSizes = Shape{count, 2}, kSteps = Ints{1, -1}});
  return half_pixel ? turned : op::maximum(turned, rois.builder().scalar(1, rois.dtype()));
}

/// The most samples that any region needs in its bins, in both directions: ceil(extent of a bin), one at least.
Shape most_samples(const ImportNode& node, Val extents, const Ints& bins) {
  Builder& builder = node.builder();
  const Val sizes = extents / cast(builder.ints(bins), extents.dtype());
  const Val most = op::maximum(cast(-op::floor(-op::reduce_max(sizes, {kAxes = Ints{0}})), DType::kI64), builder.scalar(1, DType::kI64));
  const auto known = constant_value(builder.graph(), most.id());
  if (not known)
    node.fail(Code::kDynamic, "sampling_ratio = 0 takes as many samples as the regions are large, and they are not known when compiling",
              {"give sampling_ratio a number, as torchvision recommends with 2"});
  return {known->int_at(0), known->int_at(1)};
}

/// y[r,c,i,j]: the mean, or the largest, of what the taps of bin i,j of region r take from x.
Val pooled(Val x, Val index, Val weight, bool is_max) {
  const Shape &shape = x.shape(), &taps = index.shape();
  const Dim pixels = shape[0] * shape[2] * shape[3], bins = taps[0] * taps[1] * taps[2], count = taps[3] * taps[4] * taps[5];
  const Val images = reshape(transpose(x, {1, 0, 2, 3}), {shape[1], pixels});
  Val y;
  if (is_max) {
    const Val flat = reshape(index, {bins, count}), zero = x.builder().scalar(0, DType::kI64);
    const Val shares = op::gather(images, op::maximum(flat, zero), {kAxis = 1}) * reshape(weight, {bins, count});
    y = op::reduce_max(op::where(op::less(flat, zero), x.builder().scalar(-std::numeric_limits<double>::infinity(), x.dtype()), shares), {kAxes = Ints{2}});
  } else {
    y = op::gather_sum(reshape(images, {1, shape[1], pixels, 1}), reshape(index, {1, bins, count}), reshape(weight, {1, bins, count}));
  }
  return transpose(reshape(y, {shape[1], taps[0], taps[1], taps[2]}), {1, 0, 2, 3});
}

std::vector<Val> import_roi_align(const ImportNode& node) {
  const Val x = node.x(0);
  const DType dtype = working_type(x.dtype());
  const Val rois = cast(fixed(node, 1), dtype);
  node.require(x.rank() == 4 and rois.rank() == 2, Code::kShape, "needs images [N,C,H,W] and regions [R,4]");
  const std::string mode = node.text("mode", "avg"), coordinates = node.text("coordinate_transformation_mode", "half_pixel");
  node.require(mode == "avg" or mode == "max", Code::kBadAttribute, fmt::format("mode = \"{}\"", mode));
  node.require(coordinates == "half_pixel" or coordinates == "output_half_pixel", Code::kBadAttribute,
               fmt::format("coordinate_transformation_mode = \"{}\"", coordinates));
  const bool half_pixel = coordinates == "half_pixel" and not node.flag(kOutputHalfPixel, false);
  const Ints bins = {node.integer("output_height", 1), node.integer("output_width", 1)};
  const std::int64_t ratio = node.integer("sampling_ratio", 0);
  const double scale = node.real("spatial_scale", 1);
  node.require(bins[0] >= 1 and bins[1] >= 1 and ratio >= 0, Code::kBadAttribute, "output_height, output_width and sampling_ratio must not be negative");
  const Shape samples = ratio > 0 ? Shape{ratio, ratio} : most_samples(node, region_extents(rois, scale, half_pixel), bins);
  const std::vector<Val> taps = op::roi_taps.build_all(
      {rois, node.x(2)}, {kSizes = Shape{x.shape()[2], x.shape()[3], bins[0], bins[1], samples[0], samples[1]}, kScale = scale, kHalfPixel = half_pixel,
                          kAdaptive = ratio == 0, kMode = mode});
  return {cast(pooled(cast(x, dtype), taps[0], taps[1], mode == "max"), x.dtype())};
}

std::vector<Val> import_max_roi_pool(const ImportNode& node) {
  const auto bins = node.integers("pooled_shape");
  node.require(bins and bins->size() == 2 and (*bins)[0] >= 1 and (*bins)[1] >= 1, Code::kBadAttribute, "pooled_shape must be two positive numbers");
  return {op::max_roi_pool(node.x(0), fixed(node, 1), {kSizes = shape_of(*bins), kScale = node.real("spatial_scale", 1)})};
}

constinit const Importer kSpatialOps[] = {
    {"GridSample", import_grid_sample}, {"AffineGrid", import_affine_grid}, {"RoiAlign", import_roi_align},
    {"MaxRoiPool", import_max_roi_pool}, {"Resize", import_resize}, {"Upsample", import_resize},
};

}  // namespace

std::span<const Importer> spatial_importers() { return kSpatialOps; }

}  // namespace hone::onnx
