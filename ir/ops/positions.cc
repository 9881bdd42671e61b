// Positions: numbers of elements along an axis, and what is done with them directly.
#include <algorithm>
#include <array>

#include "ir/ops/infer.h"
#include "ir/ops/ops.h"

namespace hone::op {

namespace {

constexpr std::array<std::string_view, 3> kPadModes = {"edge", "reflect", "wrap"};

}  // namespace

constinit const OpDef iota = {
    .name = "iota",
    .doc = "y[i...] = the position along the axis, as i64 of the given shape",
    .inputs = {},
    .attrs = {kAxis, kShape},
    .infer =
        [](Infer& infer) {
          infer.require(infer.attrs[kAxis] >= 0 and infer.attrs[kAxis] < static_cast<std::int64_t>(infer.attrs[kShape].size()), Code::kBadAttribute, "axis out of range");
          return std::vector<Type>{{DType::kI64, infer.attrs[kShape]}};
        },
    .grad = no_gradient("its result is a position"),
    .compute =
        [](Compute& c) {
          const Indices at = c.outer(c.result_shape());
          c.store(0, at, at[static_cast<std::size_t>(c.attrs[kAxis])]);
        },
};

constinit const OpDef pad_positions = {
    .name = "pad_positions",
    .doc = "where a padded axis of `sizes` elements reads in one of `shape` elements that begins at its element `starts`: i64. Beyond the ends by mode: edge (the end itself), "
           "reflect (mirrored at the end, which comes once, as often as it takes) or wrap (from the other end on)",
    .inputs = {},
    .attrs = {kStarts, kSizes, kShape, kMode},
    .infer =
        [](Infer& infer) {
          infer.require(infer.attrs[kStarts].size() == 1 and infer.attrs[kSizes].size() == 1 and infer.attrs[kShape].size() == 1, Code::kBadAttribute,
                        "starts, sizes and shape must be one number each");
          infer.require(std::ranges::find(kPadModes, infer.attrs[kMode]) != kPadModes.end(), Code::kBadAttribute, "the mode is none of edge, reflect and wrap");
          return std::vector<Type>{{DType::kI64, infer.attrs[kSizes]}};
        },
    .grad = no_gradient("its result is a position"),
    .compute =
        [](Compute& c) {
          const Indices at = c.outer(c.result_shape());
          const Scalar zero = c.index_constant(0), extent = c.size(c.attrs[kShape][0]), last = c.size(c.attrs[kShape][0] - 1);
          const Scalar position = at[0] - c.size(c.attrs[kStarts][0]);
          if (c.attrs[kMode] == "edge") return c.store(0, at, expr::max(zero, expr::min(position, last)));
          if (c.attrs[kMode] == "wrap") return c.store(0, at, expr::mod(position, extent));
          const Scalar period = expr::max(c.index_constant(1), last * 2.0);  // 1: of a single element
          c.store(0, at, last - expr::abs(last - expr::mod(position, period)));
        },
};

constinit const OpDef one_hot = {
    .name = "one_hot",
    .doc = "y[..., k] = index[...] == k, as bool, for k below the last extent of the given shape; all false for an index out of range",
    .inputs = {"index"},
    .attrs = {kShape},
    .infer =
        [](Infer& infer) {
          infer.require(is_integer(infer.dtype(0)), Code::kType, "the index must be integers");
          const Shape& shape = infer.attrs[kShape];
          infer.require(shape.size() == infer.rank(0) + 1, Code::kShape, "the shape has one axis more than the index");
          for (std::size_t i = 0; i < infer.rank(0); ++i) infer.unify(infer.shape(0)[i], shape[i], "extents");
          return std::vector<Type>{{DType::kBool, shape}};
        },
    .grad = no_gradient("its operand is an index"),
    .compute =
        [](Compute& c) {
          const Indices at = c.outer(c.result_shape());
          const Scalar index = expr::cast(c.load(0, Indices(at.begin(), at.end() - 1)), DType::kI64);
          c.store(0, at, expr::equal(index, at.back()));
        },
};

constinit const OpDef reverse_sequence = {
    .name = "reverse_sequence",
    .doc = "y = x with the first lengths[b] elements along the axis in reverse order, for each position b along batch_axis; a length is cut to 0..the extent",
    .inputs = {"x", "lengths"},
    .attrs = {kAxis, kBatchAxis},
    .infer =
        [](Infer& infer) {
          const auto rank = static_cast<std::int64_t>(infer.rank(0)), axis = infer.attrs[kAxis], batch = infer.attrs[kBatchAxis];
          infer.require(axis >= 0 and axis < rank and batch >= 0 and batch < rank and axis != batch, Code::kBadAttribute, "axes out of range, or one and the same");
          infer.require(is_integer(infer.dtype(1)) and infer.rank(1) == 1, Code::kType, "lengths must be a vector of integers");
          infer.unify(infer.shape(0)[static_cast<std::size_t>(batch)], infer.shape(1)[0], "batch extents");
          return std::vector<Type>{infer.type(0)};
        },
    .grad = [](Grad& g) { g.flow(0, op::reverse_sequence(g.dy(), g.x(1), g.attrs)); },
    .compute =
        [](Compute& c) {
          const auto axis = static_cast<std::size_t>(c.attrs[kAxis]);
          const Indices at = c.outer(c.result_shape());
          const Scalar length = expr::min(expr::cast(c.load(1, {at[static_cast<std::size_t>(c.attrs[kBatchAxis])]}), DType::kI64), c.size(c.shape(0)[axis]));
          Indices from = at;
          from[axis] = expr::select(expr::less(at[axis], length), length - 1.0 - at[axis], at[axis]);
          c.store(0, at, c.load(0, from));
        },
};

}  // namespace hone::op
