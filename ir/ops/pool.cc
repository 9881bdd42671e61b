// Pooling over spatial windows of x[N,C,s...], or x[N,s...,C] with channels_last. Position along a spatial axis: s = o * stride + k * dilation - pad_begin;
// `spatial` is the result's spatial extents (they follow from the pads and ONNX's ceil_mode, which import resolves).
#include <fmt/format.h>

#include <limits>

#include "ir/kernel/scalar_math.h"
#include "ir/ops/infer.h"
#include "ir/ops/ops.h"
#include "ir/ops/window.h"

namespace hone::op {

namespace {

constexpr FixedList<AttrRef, 12> kPoolAttrs = {kKernel, kStrides, kDilations, kPadsBegin, kPadsEnd, kSpatial, kCountPads, kChannelsLast};

Shape pooled_shape(Infer& infer) {
  const std::size_t n = infer.attrs[kKernel].size();
  infer.require(infer.rank(0) == n + 2, Code::kShape, fmt::format("the operand needs {} axes: {} of them spatial", n + 2, n));
  infer.require(infer.attrs[kStrides].size() == n and infer.attrs[kDilations].size() == n and infer.attrs[kPadsBegin].size() == n and
                    infer.attrs[kPadsEnd].size() == n and infer.attrs[kSpatial].size() == n,
                Code::kBadAttribute, "strides, dilations, pads and spatial need one entry a spatial axis");
  for (const Dim& extent : infer.attrs[kSpatial])
    infer.require(not extent.is_constant() or extent.value() > 0, Code::kShape, "the window is larger than the padded input");
  const Shape& x = infer.shape(0);
  return activation<Dim>(infer.attrs, x[0], x[channel_axis(infer.attrs, x.size())], infer.attrs[kSpatial]);
}

std::vector<Type> infer_pool(Infer& infer) {
  infer.require(is_float(infer.dtype(0)), Code::kType, "needs floats");
  return {{infer.dtype(0), pooled_shape(infer)}};
}

/// The samples and channel of `outer`, at other spatial positions.
Indices moved(const Compute& c, const Indices& outer, const Indices& spatial) {
  return activation<Scalar>(c.attrs, outer[0], outer[channel_axis(c.attrs, outer.size())], spatial);
}

/// Where window position k of output y reads x.
Window read_at(Compute& c, const Shape& x, const Indices& y, const Indices& k) {
  return window_at(c, spatial(c.attrs, x), c.attrs[kSpatial], shape_of(c.attrs[kKernel]), &y[first_spatial_axis(c.attrs)], k.data());
}

/// Window number j over position x of the input: one of covers().
Cover over(Compute& c, const Indices& x, const Indices& j) {
  return cover_at(c, c.attrs[kSpatial], spatial(c.attrs, c.shape(0)), &x[first_spatial_axis(c.attrs)], j.data());
}

/// So few terms are written out: without an inner loop a kernel runs along its last axis, over many elements at a time.
constexpr std::int64_t kMostWrittenOut = 16;

/// Calls visit(k) for all positions below `extents` if they are few; else says so.
template <typename Visit>
bool write_out(Compute& c, const Ints& extents, Visit visit) {
  std::int64_t count = 1;
  for (const std::int64_t extent : extents) count *= extent;
  if (count > kMostWrittenOut) return false;
  for (std::int64_t number = 0; number < count; ++number) {
    Indices k(extents.size());
    std::int64_t rest = number;
    for (std::size_t i = extents.size(); i-- > 0; rest /= extents[i]) k[i] = c.index_constant(rest % extents[i]);
    visit(k);
  }
  return true;
}

/// Sum of term(k) over all positions k below `extents`.
template <typename Term>
Scalar sum_over(Compute& c, const Ints& extents, Term term) {
  Scalar total;
  const auto add = [&](const Indices& k) { total = total.valid() ? total + term(k) : term(k); };
  return write_out(c, extents, add) ? total : c.sum(term(c.inner(shape_of(extents))));
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
    const Scalar missing = c.size(c.attrs[kPadsBegin][i]) - o[i] * static_cast<double>(c.attrs[kStrides][i]),
                 dilation = c.index_constant(c.attrs[kDilations][i]);
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
Scalar counted(Compute& c, std::span<const Dim> inputs, const Scalar* o) {
  Scalar count = c.index_constant(1);
  for (std::size_t i = 0; i < c.attrs[kKernel].size(); ++i) {
    const bool pads = c.attrs[kCountPads];
    const Scalar start = o[i] * static_cast<double>(c.attrs[kStrides][i]) - c.size(c.attrs[kPadsBegin][i]);
    const Scalar low = c.size(pads ? Dim(0) - c.attrs[kPadsBegin][i] : Dim(0)), high = c.size(pads ? inputs[i] + c.attrs[kPadsEnd][i] : inputs[i]);
    const Scalar dilation = c.index_constant(c.attrs[kDilations][i]);
    const Scalar first = expr::max(c.index_constant(0), expr::floordiv(low - start + dilation - 1.0, dilation));
    const Scalar last = expr::min(c.index_constant(c.attrs[kKernel][i] - 1), expr::floordiv(high - 1.0 - start, dilation));
    count = count * (last - first + 1.0);
  }
  return count;
}

/// An element of a window: where it is outside of x (a pad, where `inside` is false), the smallest number that there is.
struct Element {
  Scalar value, inside;
};

/// The largest of a window, NaN if any is, and the number of its first position.
struct Largest {
  Scalar value, position;
};

/// The first largest of elements in the order in which they are given. Pads are no elements, though all elements may be as small.
class Search {
 public:
  explicit Search(Compute& c) : c_(c) {}
  void take(const Element& element) {
    const Scalar position = expr::constant_int(c_.pool(), DType::kI32, number_++);
    if (not largest_.value.valid()) {
      largest_ = {element.value, position};
    } else {
      const Scalar better = is_better(element);
      largest_ = {expr::select(better, element.value, largest_.value), expr::select(better, position, largest_.position)};
    }
    if (element.inside.valid()) only_pads_ = both(only_pads_, expr::logical_not(element.inside));
    else sure_of_one_ = true;
  }
  const Largest& largest() const { return largest_; }

 private:
  Scalar is_better(const Element& element) const {
    Scalar better = expr::greater(element.value, largest_.value);
    if (is_float(element.value.dtype()))
      better = expr::logical_or(better, expr::logical_and(expr::is_nan(element.value), expr::logical_not(expr::is_nan(largest_.value))));
    if (sure_of_one_ or not only_pads_.valid()) return better;
    return expr::logical_or(better, both(element.inside, only_pads_));
  }

  Compute& c_;
  std::int64_t number_ = 0;
  Largest largest_;
  bool sure_of_one_ = false;
  Scalar only_pads_;  ///< so far, unless sure_of_one_
};

/// Of the window of output y (`o`: its spatial index).
template <typename ElementAt>
Largest largest_of(Compute& c, const Scalar* o, ElementAt element_at) {
  Search search(c);
  if (write_out(c, c.attrs[kKernel], [&](const Indices& k) { search.take(element_at(k)); })) return search.largest();
  const Scalar value = element_at(c.inner(shape_of(c.attrs[kKernel]))).value;
  const Scalar largest = c.reduce(ReduceKind::kMax, value), position = c.reduce(ReduceKind::kArgMax, value);
  return {largest, without_pads(c, position, o)};
}

}  // namespace

constinit const OpDef max_pool = {
    .name = "max_pool",
    .doc =
        "y = largest of each window, NaN if any is; window (i32): number of the first largest position in the window, row-major, pads left out. Integers, too",
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
          const Largest largest = largest_of(c, &y[first_spatial_axis(c.attrs)], [&](const Indices& k) -> Element {
            const Window window = read_at(c, c.shape(0), y, k);
            const Scalar x = c.load_if(window.inside, 0, moved(c, y, window.at));
            return {window.inside.valid() ? expr::select(window.inside, x, smallest(c, c.type(0).dtype)) : x, window.inside};
          });
          c.store(0, y, largest.value);
          c.store(1, y, largest.position);
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
          c.store(0, x, sum_over(c, covers(c.attrs), [&](const Indices& j) {
                    const Cover from = over(c, x, j);
                    const Indices at = moved(c, x, from.output);
                    const Scalar dy = c.load_if(from.inside, 0, at);
                    const Scalar taken = expr::equal(c.load_if(from.inside, 1, at), expr::cast(window_number(c, from.window), DType::kI32));
                    return expr::select(both(from.inside, taken), dy, expr::like(dy, 0));
                  }));
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
          c.store(0, y, sum_over(c, c.attrs[kKernel], [&](const Indices& k) {
                    const Window window = read_at(c, c.shape(0), y, k);
                    const Scalar taken = expr::equal(expr::cast(c.load(1, y), DType::kI64), window_number(c, k));
                    return c.load_if(both(window.inside, taken), 0, moved(c, y, window.at));
                  }));
        },
};

constinit const OpDef window_position = {
    .name = "window_position",
    .doc =
        "where in x, flattened, lies the element that max_pool's window result names (i64); sizes are x's spatial extents. column_major flattens the spatial "
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
          const Indices at = window_at(c, sizes, c.attrs[kSpatial], shape_of(c.attrs[kKernel]), &y[2], k.data()).at;
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
          const Scalar total = sum_over(c, c.attrs[kKernel], [&](const Indices& k) {
            const Window window = read_at(c, c.shape(0), y, k);
            return c.load_if(window.inside, 0, moved(c, y, window.at));
          });
          c.store(0, y, total / expr::cast(counted(c, spatial(c.attrs, c.shape(0)), &y[first_spatial_axis(c.attrs)]), total.dtype()));
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
          c.store(0, x, sum_over(c, covers(c.attrs), [&](const Indices& j) {
                    const Cover from = over(c, x, j);
                    const Scalar dy = c.load_if(from.inside, 0, moved(c, x, from.output));
                    const Scalar share = dy / expr::cast(counted(c, c.attrs[kSpatial], from.output.data()), dy.dtype());
                    return from.inside.valid() ? expr::select(from.inside, share, expr::like(dy, 0)) : share;  // no window there: its count may be 0
                  }));
        },
};

}  // namespace hone::op
