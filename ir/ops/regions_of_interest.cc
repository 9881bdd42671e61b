// Pooling of regions of an image whose corners are data.
#include <fmt/format.h>

#include <limits>

#include "ir/kernel/scalar_math.h"
#include "ir/ops/infer.h"
#include "ir/ops/ops.h"

namespace hone::op {

namespace {

/// What roi_taps's sizes say, in their order.
enum Size : std::size_t { kHeight, kWidth, kPooledHeight, kPooledWidth, kSamplesHigh, kSamplesWide, kSizeCount };

/// One axis of a region: the elements around a sample, and how much of the upper one it takes.
struct Sample {
  Scalar low, high, share, inside, counts, count;
};

/// Sample `sample` in bin `bin` of a region from `start` to `end`.
Sample sample_along(Compute& c, Scalar start, Scalar end, const Dim& extent, const Dim& bins, const Dim& samples, Scalar bin, Scalar sample) {
  const auto real = [&](Scalar x) { return expr::cast(x, start.dtype()); };
  const Scalar one = expr::like(start, 1), zero = expr::like(start, 0), last = c.size(extent - 1);
  const Scalar span = c.attrs[kHalfPixel] ? end - start : expr::max(end - start, one), size = span / real(c.size(bins));
  const Scalar count = c.attrs[kAdaptive] ? expr::ceil(size) : real(c.size(samples));
  const Scalar at = start + real(bin) * size + (real(sample) + 0.5) * size / count;
  const Scalar inside = expr::logical_and(expr::greater_equal(at, -one), expr::less_equal(at, real(c.size(extent))));
  const Scalar low = expr::min(expr::cast(expr::floor(expr::max(at, zero)), DType::kI64), last);
  const Scalar share = expr::min(expr::max(at, zero), real(last)) - real(low);
  return {low, expr::min(low + 1.0, last), share, inside, expr::less(real(sample), count), count};
}

void compute_roi_taps(Compute& c) {
  const Shape& sizes = c.attrs[kSizes];
  const Indices at = c.outer(c.result_shape());  // region, bin row, bin column, sample row, sample column, corner
  const auto corner_of = [&](std::int64_t column) {
    const Scalar value = c.load(0, {at[0], c.index_constant(column)}) * c.attrs[kScale];
    return c.attrs[kHalfPixel] ? value - 0.5 : value;
  };
  const Sample y = sample_along(c, corner_of(1), corner_of(3), sizes[kHeight], sizes[kPooledHeight], sizes[kSamplesHigh], at[1], at[3]);
  const Sample x = sample_along(c, corner_of(0), corner_of(2), sizes[kWidth], sizes[kPooledWidth], sizes[kSamplesWide], at[2], at[4]);
  const Scalar zero = c.index_constant(0), one = expr::like(y.share, 1);
  const Scalar is_lower = expr::greater_equal(at[5], c.index_constant(2)), is_right = expr::equal(expr::mod(at[5], c.index_constant(2)), c.index_constant(1));
  const Scalar row = expr::select(is_lower, y.high, y.low), column = expr::select(is_right, x.high, x.low);
  Scalar weight = expr::select(is_lower, y.share, one - y.share) * expr::select(is_right, x.share, one - x.share);
  if (c.attrs[kMode] == "avg") weight = weight / expr::max(y.count * x.count, one);
  const Scalar inside = expr::logical_and(y.inside, x.inside);
  const Scalar is_first = expr::logical_and(expr::equal(at[3], zero), expr::equal(at[4], zero));  // stands for a region without samples
  const Scalar counts = expr::logical_or(expr::logical_and(y.counts, x.counts), is_first);
  const Scalar batch = expr::cast(c.load(1, {at[0]}), DType::kI64);
  const Scalar index = (batch * c.size(sizes[kHeight]) + row) * c.size(sizes[kWidth]) + column;
  c.store(0, at, expr::select(counts, expr::select(inside, index, zero), c.index_constant(-1)));
  c.store(1, at, expr::select(expr::logical_and(inside, counts), weight, expr::like(weight, 0)));
}

/// One axis of a bin of max_roi_pool: first element and the one behind the last.
struct Bin {
  Scalar begin, end;
};

Scalar rounded_away(Scalar x) { return expr::cast(expr::sign(x) * expr::floor(expr::abs(x) + 0.5), DType::kI64); }

Bin bin_along(Compute& c, Scalar start, Scalar end, const Dim& extent, const Dim& bins, Scalar bin) {
  const DType dtype = start.dtype();
  const Scalar zero = c.index_constant(0), one = c.index_constant(1), limit = c.size(extent);
  const Scalar first = rounded_away(start * c.attrs[kScale]), last = rounded_away(end * c.attrs[kScale]);
  const Scalar size = expr::cast(expr::max(last - first + 1.0, one), dtype) / expr::cast(c.size(bins), dtype);
  const auto clamped = [&](Scalar at) { return expr::min(expr::max(expr::cast(at, DType::kI64) + first, zero), limit); };
  return {clamped(expr::floor(expr::cast(bin, dtype) * size)), clamped(expr::ceil(expr::cast(bin + 1.0, dtype) * size))};
}

Scalar in_bin(const Bin& bin, Scalar at) { return expr::logical_and(expr::greater_equal(at, bin.begin), expr::less(at, bin.end)); }

void compute_max_roi_pool(Compute& c) {
  const Shape &x = c.shape(0), &sizes = c.attrs[kSizes];
  const Indices at = c.outer(c.result_shape());
  const Indices k = c.inner({x[2], x[3]});
  const auto corner = [&](std::int64_t column) { return c.load(1, {at[0], c.index_constant(column)}); };
  const Bin rows = bin_along(c, corner(2), corner(4), x[2], sizes[0], at[2]), columns = bin_along(c, corner(1), corner(3), x[3], sizes[1], at[3]);
  const Scalar image = expr::cast(corner(0), DType::kI64), zero = c.index_constant(0);
  const Scalar is_image = expr::logical_and(expr::greater_equal(image, zero), expr::less(image, c.size(x[0])));
  const Scalar inside = expr::logical_and(is_image, expr::logical_and(in_bin(rows, k[0]), in_bin(columns, k[1])));
  const Scalar element = c.load_if(inside, 0, {image, at[1], k[0], k[1]});
  const Scalar value = expr::select(inside, element, expr::like(element, -std::numeric_limits<double>::infinity()));
  const Scalar largest = c.reduce(ReduceKind::kMax, value), position = c.reduce(ReduceKind::kArgMax, value);
  const Scalar is_any = expr::logical_and(is_image, expr::logical_and(expr::less(rows.begin, rows.end), expr::less(columns.begin, columns.end)));
  // Where all are -inf the first of them counts: it need not be the first position of the image.
  const Scalar row = expr::max(expr::floordiv(position, c.size(x[3])), rows.begin), column = expr::max(expr::mod(position, c.size(x[3])), columns.begin);
  const Scalar index = ((image * c.size(x[1]) + at[1]) * c.size(x[2]) + row) * c.size(x[3]) + column;
  c.store(0, at, expr::select(is_any, largest, expr::like(largest, 0)));
  c.store(1, at, expr::select(is_any, index, c.size(element_count(x))));
}

}  // namespace

constinit const OpDef roi_taps = {
    .name = "roi_taps",
    .doc = "the elements that RoiAlign takes from images of one channel, flattened, and their weights: [region, bin row, bin column, sample row, sample column, "
           "corner]. rois[R,4] are x1, y1, x2, y2, batch[R] the image; sizes: height, width, bins in both, samples a bin in both. adaptive: each region has "
           "ceil(its size / bins) samples, up to those; those beyond have index -1, but for the first one, of weight 0. Samples beyond the image by more than 1 "
           "have weight 0. mode avg divides the weights by the number of samples",
    .inputs = {"rois", "batch"},
    .results = {"index", "weight"},
    .attrs = {kSizes, kScale, kHalfPixel, kAdaptive, kMode},
    .infer =
        [](Infer& infer) {
          infer.require(infer.attrs[kSizes].size() == kSizeCount, Code::kBadAttribute, "sizes must be six numbers");
          infer.require(infer.rank(0) == 2 and infer.rank(1) == 1, Code::kShape, "regions are a matrix, their images a vector");
          infer.require(is_float(infer.dtype(0)) and is_integer(infer.dtype(1)), Code::kType, "regions are floats, their images integers");
          infer.unify(infer.shape(0)[1], 4, "columns of the regions");
          Shape shape = {infer.unify(infer.shape(0)[0], infer.shape(1)[0], "numbers of regions")};
          shape.insert(shape.end(), infer.attrs[kSizes].begin() + kPooledHeight, infer.attrs[kSizes].end());
          shape.push_back(4);
          return std::vector<Type>{{DType::kI64, shape}, {arithmetic_type(infer.dtype(0)), shape}};
        },
    .grad = no_gradient("regions of interest are taken as given: no gradient flows into their corners"),
    .compute = compute_roi_taps,
};

constinit const OpDef max_roi_pool = {
    .name = "max_roi_pool",
    .doc = "y[r,c,i,j] = largest element of bin i,j of region r, NaN if any is, 0 of an empty bin; rois[R,5] are image, x1, y1, x2, y2, rounded half away from 0 "
           "once scaled; sizes: bins in both directions. position (i64): where in x, flattened, the first largest lies, and x's element count for an empty bin",
    .inputs = {"x", "rois"},
    .results = {"y", "position"},
    .attrs = {kSizes, kScale},
    .infer =
        [](Infer& infer) {
          infer.require(infer.attrs[kSizes].size() == 2, Code::kBadAttribute, "sizes must be two numbers");
          infer.require(infer.rank(0) == 4 and infer.rank(1) == 2, Code::kShape, "needs images [N,C,H,W] and regions [R,5]");
          infer.require(is_float(infer.dtype(0)) and is_float(infer.dtype(1)), Code::kType, "needs floats");
          infer.unify(infer.shape(1)[1], 5, "columns of the regions");
          const Shape shape = {infer.shape(1)[0], infer.shape(0)[1], infer.attrs[kSizes][0], infer.attrs[kSizes][1]};
          return std::vector<Type>{{infer.dtype(0), shape}, {DType::kI64, shape}};
        },
    .grad =
        [](Grad& g) {
          const Dim count = element_count(g.dy().shape()), total = element_count(g.x(0).shape());
          const Val flat = op::scatter_add(hone::reshape(g.dy(), {count}), hone::reshape(g.y(1), {count}), {kAxis = 0, kShape = Shape{total}});
          g.flow(0, hone::reshape(flat, g.x(0).shape()));  // none into the regions: they are rounded
        },
    .compute = compute_max_roi_pool,
};

}  // namespace hone::op
