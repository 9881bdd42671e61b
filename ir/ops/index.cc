// Ops whose index is data: gather, scatter, one-hot.
#include <fmt/format.h>

#include "ir/ops/infer.h"
#include "ir/ops/ops.h"

namespace hone::op {

namespace {

/// Negative indices count from the end.
Scalar resolved(Compute& c, Scalar index, Dim extent) {
  const Scalar at = expr::cast(index, DType::kI64);
  return expr::select(expr::less(at, c.index_constant(0)), at + c.size(extent), at);
}

Scalar within(Compute& c, Scalar at, Dim extent) {
  return expr::logical_and(expr::greater_equal(at, c.index_constant(0)), expr::less(at, c.size(extent)));
}

}  // namespace

constinit const OpDef gather = {
    .name = "gather",
    .doc = "y = x with its axis replaced by the axes of index: y[a.., i.., b..] = x[a.., index[i..], b..]. Negative indices count from the end; one out of range "
           "gives NaN (0 for integers): what is fed is checked before",
    .inputs = {"x", "index"},
    .attrs = {kAxis},
    .infer =
        [](Infer& infer) {
          infer.require(is_integer(infer.dtype(1)), Code::kType, "the index must be integers");
          infer.require(infer.attrs[kAxis] >= 0 and infer.attrs[kAxis] < static_cast<std::int64_t>(infer.rank(0)), Code::kBadAttribute, "axis out of range");
          Type type = infer.type(0);
          const auto axis = type.shape.erase(type.shape.begin() + infer.attrs[kAxis]);
          type.shape.insert(axis, infer.shape(1).begin(), infer.shape(1).end());
          return std::vector<Type>{type};
        },
    .grad = [](Grad& g) { g.flow(0, op::scatter_add(g.dy(), g.x(1), {kAxis = g.attrs[kAxis], kShape = g.x(0).shape()})); },
    .compute =
        [](Compute& c) {
          const auto axis = static_cast<std::size_t>(c.attrs[kAxis]), index_rank = c.shape(1).size();
          const Dim extent = c.shape(0)[axis];
          const Indices at = c.outer(c.result_shape());
          const auto first = at.begin() + static_cast<std::ptrdiff_t>(axis), last = first + static_cast<std::ptrdiff_t>(index_rank);
          const Scalar position = resolved(c, c.load(1, Indices(first, last)), extent), inside = within(c, position, extent);
          Indices from(at.begin(), first);
          from.push_back(position);
          from.insert(from.end(), last, at.end());
          const Scalar value = c.load_if(inside, 0, from);
          c.store(0, at, is_float(value.dtype()) ? expr::select(inside, value, expr::like(value, __builtin_nan(""))) : value);
        },
    .onnx = "Gather",
};

constinit const OpDef scatter_add = {
    .name = "scatter_add",
    .doc = "the gradient of gather: y of the given shape is 0, then y[a.., index[i..], b..] += x[a.., i.., b..], in index order. An index out of range adds nothing",
    .inputs = {"x", "index"},
    .attrs = {kAxis, kShape},
    .infer =
        [](Infer& infer) {
          infer.require(is_integer(infer.dtype(1)), Code::kType, "the index must be integers");
          infer.require(infer.rank(0) + 1 == infer.rank(1) + infer.attrs[kShape].size(), Code::kShape, "ranks of operand, index and result do not fit");
          return std::vector<Type>{{infer.dtype(0), infer.attrs[kShape]}};
        },
    .grad = [](Grad& g) { g.flow(0, op::gather(g.dy(), g.x(1), {kAxis = g.attrs[kAxis]})); },
    .compute =
        [](Compute& c) {
          const auto axis = static_cast<std::size_t>(c.attrs[kAxis]), index_rank = c.shape(1).size();
          const Shape& shape = c.result_shape();
          const Dim extent = shape[axis];
          const Indices row = c.outer({shape[0]});
          Indices zeroed = c.inner(Shape(shape.begin() + 1, shape.end()));
          zeroed.insert(zeroed.begin(), row[0]);
          c.store(0, zeroed, c.number(c.result_type().dtype, 0));
          const Indices at = c.scatter(c.shape(0));
          const auto first = at.begin() + static_cast<std::ptrdiff_t>(axis), last = first + static_cast<std::ptrdiff_t>(index_rank);
          const Scalar position = resolved(c, c.load(1, Indices(first, last)), extent);
          Indices to(at.begin(), first);
          to.push_back(position);
          to.insert(to.end(), last, at.end());
          c.store_add(0, to, c.load(0, at), within(c, position, extent));
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

}  // namespace hone::op
