// The windows of an image as axes of their own, and their sum back into an image: each is the other's gradient.
#include <fmt/format.h>

#include "ir/ops/infer.h"
#include "ir/ops/ops.h"
#include "ir/ops/window.h"

namespace hone::op {

namespace {

constexpr FixedList<AttrRef, 12> kFoldAttrs = {kKernel, kStrides, kDilations, kPadsBegin, kSpatial};

std::size_t window_rank(const Attrs& attrs) { return attrs[kKernel].size(); }

void require_attributes(const Infer& infer, std::size_t rank) {
  const std::size_t n = window_rank(infer.attrs);
  infer.require(infer.rank(0) == rank, Code::kShape, fmt::format("the operand needs {} axes", rank));
  infer.require(
      infer.attrs[kStrides].size() == n and infer.attrs[kDilations].size() == n and infer.attrs[kPadsBegin].size() == n and infer.attrs[kSpatial].size() == n,
      Code::kBadAttribute, "strides, dilations, pads and spatial need one entry a spatial axis");
  for (std::size_t i = 0; i < n; ++i)
    infer.require(infer.attrs[kKernel][i] >= 1 and infer.attrs[kStrides][i] >= 1 and infer.attrs[kDilations][i] >= 1, Code::kBadAttribute,
                  "kernel, strides and dilations must be at least 1");
}

Shape blocks_of(const Compute& c, const Shape& columns) { return Shape(columns.end() - static_cast<std::ptrdiff_t>(window_rank(c.attrs)), columns.end()); }

Indices joined(const Indices& outer, const Indices& middle, const Indices& last = {}) {
  Indices index = {outer[0], outer[1]};
  index.insert(index.end(), middle.begin(), middle.end());
  index.insert(index.end(), last.begin(), last.end());
  return index;
}

}  // namespace

constinit const OpDef im2col = {
    .name = "im2col",
    .doc = "y[n,c,k..,o..] = x[n,c, o * stride + k * dilation - pad ..], 0 outside of x; `spatial` are the extents of o",
    .inputs = {"x"},
    .attrs = kFoldAttrs,
    .infer =
        [](Infer& infer) {
          require_attributes(infer, window_rank(infer.attrs) + 2);
          Type type{infer.dtype(0), {infer.shape(0)[0], infer.shape(0)[1]}};
          for (const std::int64_t extent : infer.attrs[kKernel]) type.shape.push_back(extent);
          type.shape.insert(type.shape.end(), infer.attrs[kSpatial].begin(), infer.attrs[kSpatial].end());
          return std::vector<Type>{type};
        },
    .grad = [](Grad& g) { g.flow(0, op::col2im(g.dy(), with_spatial(g.attrs, g.x(0).shape()))); },
    .compute =
        [](Compute& c) {
          const Indices at = c.outer(c.result_shape());
          const Window window =
              window_at(c, spatial(c.attrs, c.shape(0)), c.attrs[kSpatial], shape_of(c.attrs[kKernel]), &at[2 + window_rank(c.attrs)], &at[2]);
          c.store(0, at, c.load_if(window.inside, 0, joined(at, window.at)));
        },
};

constinit const OpDef col2im = {
    .name = "col2im",
    .doc = "the gradient of im2col: y[n,c,s..] = sum of x[n,c,k..,o..] over the windows o and their positions k that lie at s; `spatial` are the extents of s",
    .inputs = {"x"},
    .attrs = kFoldAttrs,
    .infer =
        [](Infer& infer) {
          const std::size_t n = window_rank(infer.attrs);
          require_attributes(infer, 2 * n + 2);
          for (std::size_t i = 0; i < n; ++i) infer.unify(infer.shape(0)[i + 2], infer.attrs[kKernel][i], "extents of the window");
          Type type{infer.dtype(0), {infer.shape(0)[0], infer.shape(0)[1]}};
          type.shape.insert(type.shape.end(), infer.attrs[kSpatial].begin(), infer.attrs[kSpatial].end());
          return std::vector<Type>{type};
        },
    .grad =
        [](Grad& g) {
          Attrs attrs = g.attrs;
          const Shape& columns = g.x(0).shape();
          attrs.set(kSpatial = Shape(columns.end() - static_cast<std::ptrdiff_t>(window_rank(g.attrs)), columns.end()));
          g.flow(0, op::im2col(g.dy(), attrs));
        },
    .compute =
        [](Compute& c) {
          const Indices at = c.outer(c.result_shape());
          const Indices j = c.inner(shape_of(covers(c.attrs)));
          const Shape blocks = blocks_of(c, c.shape(0));
          const Cover from = cover_at(c, spatial(c.attrs, c.result_shape()), blocks, &at[2], j.data());
          c.store(0, at, c.sum(c.load_if(from.inside, 0, joined(at, from.window, from.output))));
        },
};

}  // namespace hone::op
