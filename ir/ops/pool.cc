// Pooling over spatial windows. Position along a spatial axis: s = o * stride + k * dilation - pad_begin; `spatial` is the result's spatial extents
// (they follow from the pads and ONNX's ceil_mode, which import resolves).
#include <fmt/format.h>

#include <limits>

#include "ir/kernel/scalar_math.h"
#include "ir/ops/infer.h"
#include "ir/ops/ops.h"
#include "ir/ops/window.h"

namespace hone::op {

namespace {

constexpr FixedList<AttrRef, 12> kPoolAttrs = {kKernel, kStrides, kDilations, kPadsBegin, kPadsEnd, kSpatial, kCountPads};

Shape pooled_shape(Infer& infer) {
  const std::size_t n = infer.attrs[kKernel].size();
  infer.require(infer.rank(0) == n + 2, Code::kShape, fmt::format("the operand needs {} axes: {} of them spatial", n + 2, n));
  infer.require(infer.attrs[kStrides].size() == n and infer.attrs[kDilations].size() == n and infer.attrs[kPadsBegin].size() == n and infer.attrs[kPadsEnd].size() == n and
                    infer.attrs[kSpatial].size() == n,
                Code::kBadAttribute, "strides, dilations, pads and spatial need one entry a spatial axis");
  for (const Dim& extent : infer.attrs[kSpatial]) infer.require(not extent.is_constant() or extent.value() > 0, Code::kShape, "the window is larger than the padded input");
  Shape shape = {infer.shape(0)[0], infer.shape(0)[1]};
  shape.insert(shape.end(), infer.attrs[kSpatial].begin(), infer.attrs[kSpatial].end());
  return shape;
}

std::vector<Type> infer_pool(Infer& infer) {
  infer.require(is_float(infer.dtype(0)), Code::kType, "needs floats");
  return {{infer.dtype(0), pooled_shape(infer)}};
}

Shape window_of(const Compute& c) { return shape_of(c.attrs[kKernel]); }

Indices joined(const Indices& outer, const Indices& spatial) {
  Indices index = {outer[0], outer[1]};
  index.insert(index.end(), spatial.begin(), spatial.end());
  return index;
}

/// Row-major number of window position k.
Scalar window_number(Compute& c, const Indices& k) {
  Scalar number = c.index_constant(0);
  for (std::size_t i = 0; i < k.size(); ++i) number = number * static_cast<double>(c.attrs[kKernel][i]) + k[i];
  return number;
}

/// Window position number `number`, one index a spatial axis.
Indices window_index(Compute& c, Scalar number) {
  Indices k(c.attrs[kKernel].size());
  for (std::size_t i = k.size(); i-- > 0;) {
    const Scalar extent = c.index_constant(c.attrs[kKernel][i]);
    k[i] = i == 0 ? number : expr::mod(number, extent);
    number = expr::floordiv(number, extent);
  }
  return k;
}

/// `number`, or the first window position of output o inside of x where that lies before it: all are as small as can be then, and a pad is no element.
Scalar without_pads(Compute& c, Scalar number, const Scalar* o) {
  Indices k = window_index(c, number);
  for (std::size_t i = 0; i < k.size(); ++i) {
    if (c.attrs[kPadsBegin][i].is_constant(0)) continue;
    const Scalar missing = c.size(c.attrs[kPadsBegin][i]) - o[i] * static_cast<double>(c.attrs[kStrides][i]), dilation = c.index_constant(c.attrs[kDilations][i]);
    const Scalar first = expr::floordiv(missing + dilation - 1.0, dilation);
    k[i] = expr::min(expr::max(k[i], first), c.index_constant(c.attrs[kKernel][i] - 1));
  }
  return window_number(c, k);
}

/// What no element is smaller than.
Scalar smallest(Compute& c, DType dtype) {
  const DType type = arithmetic_type(dtype);
  if (is_float(type)) return c.number(type, -std::numeric_limits<double>::infinity());
  return expr::constant_int(c.pool(), type, scalar_math::lowest(type));
}

/// How many window positions of output o count in an average: those inside of x, or of the padded x.
Scalar counted(Compute& c, const Shape& x, const Scalar* o) {
  Scalar count = c.index_constant(1);
  for (std::size_t i = 0; i < c.attrs[kKernel].size(); ++i) {
    const bool pads = c.attrs[kCountPads];
    const Scalar start = o[i] * static_cast<double>(c.attrs[kStrides][i]) - c.size(c.attrs[kPadsBegin][i]);
    const Scalar low = c.size(pads ? Dim(0) - c.attrs[kPadsBegin][i] : Dim(0)), high = c.size(pads ? x[i + 2] + c.attrs[kPadsEnd][i] : x[i + 2]);
    const Scalar dilation = c.index_constant(c.attrs[kDilations][i]);
    const Scalar first = expr::max(c.index_constant(0), expr::floordiv(low - start + dilation - 1.0, dilation));
    const Scalar last = expr::min(c.index_constant(c.attrs[kKernel][i] - 1), expr::floordiv(high - 1.0 - start, dilation));
    count = count * (last - first + 1.0);
  }
  return count;
}

}  // namespace

constinit const OpDef max_pool = {
    .name = "max_pool",
    .doc = "y = largest of each window, NaN if any is; window (i32): number of the first largest position in the window, row-major, pads left out. Integers, too",
    .inputs = {"x"},
    .results = {"y", "window"},
    .attrs = kPoolAttrs,
    .infer =
        [](Infer& infer) {
          infer.require(infer.dtype(0) != DType::kBool, Code::kType, "needs numbers");
          const Shape shape = pooled_shape(infer);
          return std::vector<Type>{{infer.dtype(0), shape}, {DType::kI32, shape}};
        },
    .grad = [](Grad& g) { g.flow(0, op::max_pool_grad(g.dy(), g.y(1), with_spatial(g.attrs, g.x(0).shape()))); },
    .compute =
        [](Compute& c) {
          const Indices y = c.outer(c.result_shape());
          const Indices k = c.inner(window_of(c));
          const Window window = window_at(c, spatial(c.shape(0)), &y[2], k.data());
          const Scalar x = c.load_if(window.inside, 0, joined(y, window.at));
          const Scalar value = expr::select(window.inside, x, smallest(c, c.type(0).dtype));
          const Scalar largest = c.reduce(ReduceKind::kMax, value), position = c.reduce(ReduceKind::kArgMax, value);
          c.store(0, y, largest);
          c.store(1, y, without_pads(c, position, &y[2]));
        },
};

constinit const OpDef max_pool_grad = {
    .name = "max_pool_grad",
    .doc = "dx of spatial extents `spatial`: each dy goes to the element that max_pool's window result names",
    .inputs = {"dy", "window"},
    .results = {"dx"},
    .attrs = kPoolAttrs,
    .infer = infer_pool,
    .grad = [](Grad& g) { g.flow(0, op::max_pool_pick(g.dy(), g.x(1), with_spatial(g.attrs, g.x(0).shape()))); },
    .compute =
        [](Compute& c) {
          const Indices x = c.outer(c.result_shape());
          const Indices k = c.inner(window_of(c));
          const Window from = output_at(c, spatial(c.shape(0)), &x[2], k.data());
          const Scalar taken = expr::equal(expr::cast(c.load_if(from.inside, 1, joined(x, from.at)), DType::kI64), window_number(c, k));
          c.store(0, x, c.sum(c.load_if(expr::logical_and(from.inside, taken), 0, joined(x, from.at))));
        },
};

constinit const OpDef max_pool_pick = {
    .name = "max_pool_pick",
    .doc = "y[o] = x at the position that max_pool's window result names: the gradient of max_pool_grad",
    .inputs = {"x", "window"},
    .attrs = kPoolAttrs,
    .infer = infer_pool,
    .grad = [](Grad& g) { g.flow(0, op::max_pool_grad(g.dy(), g.x(1), with_spatial(g.attrs, g.x(0).shape()))); },
    .compute =
        [](Compute& c) {
          const Indices y = c.outer(c.result_shape());
          const Indices k = c.inner(window_of(c));
          const Window window = window_at(c, spatial(c.shape(0)), &y[2], k.data());
          const Scalar taken = expr::equal(expr::cast(c.load(1, y), DType::kI64), window_number(c, k));
          c.store(0, y, c.sum(c.load_if(expr::logical_and(window.inside, taken), 0, joined(y, window.at))));
        },
};

constinit const OpDef window_position = {
    .name = "window_position",
    .doc = "where in x, flattened, lies the element that max_pool's window result names (i64); sizes are x's spatial extents. column_major flattens the spatial "
           "axes the other way round, the first one running fastest",
    .inputs = {"window"},
    .attrs = {kKernel, kStrides, kDilations, kPadsBegin, kPadsEnd, kSpatial, kCountPads, kSizes, kColumnMajor},
    .infer =
        [](Infer& infer) {
          infer.require(is_integer(infer.dtype(0)), Code::kType, "window positions are integers");
          infer.require(infer.attrs[kSizes].size() == infer.attrs[kKernel].size(), Code::kBadAttribute, "sizes need one entry a spatial axis");
          return std::vector<Type>{{DType::kI64, pooled_shape(infer)}};
        },
    .grad = no_gradient("positions are integers"),
    .compute =
        [](Compute& c) {
          const Shape& sizes = c.attrs[kSizes];
          const Indices y = c.outer(c.result_shape());
          const Indices k = window_index(c, expr::cast(c.load(0, y), DType::kI64));
          const Indices at = window_at(c, sizes, &y[2], k.data()).at;
          Scalar within = c.index_constant(0);
          for (std::size_t i = 0; i < at.size(); ++i) {
            const std::size_t axis = c.attrs[kColumnMajor] ? at.size() - 1 - i : i;
            within = within * c.size(sizes[axis]) + at[axis];
          }
          c.store(0, y, (y[0] * c.size(c.shape(0)[1]) + y[1]) * c.size(element_count(sizes)) + within);
        },
};

constinit const OpDef avg_pool = {
    .name = "avg_pool",
    .doc = "y = mean of each window over the elements inside of x (count_pads: over those inside of the padded x, pads being 0)",
    .inputs = {"x"},
    .attrs = kPoolAttrs,
    .infer = infer_pool,
    .grad = [](Grad& g) { g.flow(0, op::avg_pool_grad(g.dy(), with_spatial(g.attrs, g.x(0).shape()))); },
    .compute =
        [](Compute& c) {
          const Indices y = c.outer(c.result_shape());
          const Indices k = c.inner(window_of(c));
          const Window window = window_at(c, spatial(c.shape(0)), &y[2], k.data());
          const Scalar total = c.sum(c.load_if(window.inside, 0, joined(y, window.at)));
          c.store(0, y, total / expr::cast(counted(c, c.shape(0), &y[2]), total.dtype()));
        },
};

constinit const OpDef avg_pool_grad = {
    .name = "avg_pool_grad",
    .doc = "dx of spatial extents `spatial`: each dy is spread evenly over its window",
    .inputs = {"dy"},
    .results = {"dx"},
    .attrs = kPoolAttrs,
    .infer = infer_pool,
    .grad = [](Grad& g) { g.flow(0, op::avg_pool(g.dy(), with_spatial(g.attrs, g.x(0).shape()))); },
    .compute =
        [](Compute& c) {
          const Indices x = c.outer(c.result_shape());
          const Indices k = c.inner(window_of(c));
          const Window from = output_at(c, spatial(c.shape(0)), &x[2], k.data());
          const Scalar dy = c.load_if(from.inside, 0, joined(x, from.at));
          const Scalar share = dy / expr::cast(counted(c, c.result_shape(), from.at.data()), dy.dtype());
          c.store(0, x, c.sum(expr::select(from.inside, share, expr::like(dy, 0))));  // no window there: its count may be 0
        },
};

}  // namespace hone::op
