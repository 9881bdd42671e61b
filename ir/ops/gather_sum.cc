// Weighted sums of gathered elements: what interpolation comes to, along an axis or at positions that are data. gather_sum is bilinear in (x, weight), so
// the three ops are each other's gradients, as the convolutions are.
// Layouts: x[B,C,S,D], index[B or 1,P,T], weight as index, y[B,C,P,D]: T taps for each of P positions; C and D share them, and all of B if theirs is 1.
#include "ir/ops/infer.h"
#include "ir/ops/ops.h"
#include "ir/ops/window.h"

namespace hone::op {

namespace {

/// Checks ranks and types; operand 0 and, if `data` is 2, operand 1 are data, the next one is the index.
void require_operands(const Infer& infer, std::size_t data) {
  for (std::size_t i = 0; i < data; ++i) infer.require(infer.rank(i) == 4, Code::kShape, "data need four axes");
  infer.require(infer.rank(data) == 3 and is_integer(infer.dtype(data)), Code::kShape, "the index must be integers over three axes");
  for (std::size_t i = 0; i < infer.count(); ++i)
    infer.require(i == data or (is_float(infer.dtype(i)) and infer.dtype(i) == infer.dtype(0)), Code::kType, "needs floats of one type");
}

/// The batch size: that of the data, or of an index that has one of its own.
Dim batch_of(Infer& infer, const Shape& data, const Shape& index) {
  return index[0].is_constant(1) ? data[0] : infer.unify(data[0], index[0], "batch sizes");
}

void require_weight_like_index(Infer& infer) {
  infer.require(infer.rank(2) == 3, Code::kShape, "the weight has the shape of the index");
  for (std::size_t i = 0; i < 3; ++i) infer.unify(infer.shape(1)[i], infer.shape(2)[i], "extents of index and weight");
}

/// Where the taps of batch element `b`, position `p` are.
Indices tap(Compute& c, const Shape& index, Scalar b, Scalar p, Scalar t) { return {index[0].is_constant(1) ? c.index_constant(0) : b, p, t}; }

void compute_gather_sum(Compute& c) {
  const Indices y = c.outer(c.result_shape());
  const Indices t = c.inner({c.shape(1)[2]});
  const Indices at = tap(c, c.shape(1), y[0], y[2], t[0]);
  const Scalar position = expr::cast(c.load(1, at), DType::kI64), inside = within(c, position, c.shape(0)[2]);
  const Scalar share = c.load_if(inside, 0, {y[0], y[1], position, y[3]}) * c.load(2, at);
  c.store(0, y, c.sum(expr::select(inside, share, expr::like(share, 0))));  // a tap outside counts nothing, whatever its weight
}

void compute_input_grad(Compute& c) {
  const Shape& shape = c.result_shape();
  const Indices row = c.outer({shape[0]});
  Indices zeroed = c.inner({shape[1], shape[2], shape[3]});
  zeroed.insert(zeroed.begin(), row[0]);
  c.store(0, zeroed, c.number(c.result_type().dtype, 0));
  const Shape& dy = c.shape(0);
  const Indices at = c.scatter({dy[0], dy[1], dy[2], c.shape(1)[2], dy[3]});  // b, c, p, t, d
  const Indices from = tap(c, c.shape(1), at[0], at[2], at[3]);
  const Scalar position = expr::cast(c.load(1, from), DType::kI64);
  c.scatter_store(Combine::kAdd, 0, {at[0], at[1], position, at[4]}, c.load(0, {at[0], at[1], at[2], at[4]}) * c.load(2, from), within(c, position, shape[2]));
}

void compute_weight_grad(Compute& c) {
  const Shape &x = c.shape(0), &index = c.shape(2);
  const Indices at = c.outer(c.result_shape());
  const bool shared = index[0].is_constant(1);
  const Indices inner = c.inner({shared ? x[0] : Dim(1), x[1], x[3]});
  const Scalar b = shared ? inner[0] : at[0], position = expr::cast(c.load(2, at), DType::kI64), inside = within(c, position, x[2]);
  const Scalar product = c.load_if(inside, 0, {b, inner[1], position, inner[2]}) * c.load(1, {b, inner[1], at[1], inner[2]});
  c.store(0, at, c.sum(expr::select(inside, product, expr::like(product, 0))));
}

}  // namespace

constinit const OpDef gather_sum = {
    .name = "gather_sum",
    .doc = "y[b,c,p,d] = sum over t of weight[b,p,t] * x[b, c, index[b,p,t], d]; index and weight may have a batch of 1 for all b. An index out of range adds 0, "
           "whatever its weight; no taps give 0",
    .inputs = {"x", "index", "weight"},
    .infer =
        [](Infer& infer) {
          require_operands(infer, 1);
          require_weight_like_index(infer);
          const Shape &x = infer.shape(0), &index = infer.shape(1);
          return std::vector<Type>{{infer.dtype(0), {batch_of(infer, x, index), x[1], index[1], x[3]}}};
        },
    .grad =
        [](Grad& g) {
          g.flow(0, op::gather_sum_input_grad(g.dy(), g.x(1), g.x(2), {kSizes = Shape{g.x(0).shape()[2]}}));
          g.flow(2, op::gather_sum_weight_grad(g.x(0), g.dy(), g.x(1)));
        },
    .compute = compute_gather_sum,
};

constinit const OpDef gather_sum_input_grad = {
    .name = "gather_sum_input_grad",
    .doc = "the gradient of gather_sum's x, with `sizes` elements along the gathered axis: dx is 0, then dx[b, c, index[b,p,t], d] += dy[b,c,p,d] * weight[b,p,t]",
    .inputs = {"dy", "index", "weight"},
    .results = {"dx"},
    .attrs = {kSizes},
    .infer =
        [](Infer& infer) {
          require_operands(infer, 1);
          require_weight_like_index(infer);
          infer.require(infer.attrs[kSizes].size() == 1, Code::kBadAttribute, "sizes must be one number");
          const Shape& dy = infer.shape(0);
          infer.unify(dy[2], infer.shape(1)[1], "positions");
          return std::vector<Type>{{infer.dtype(0), {batch_of(infer, dy, infer.shape(1)), dy[1], infer.attrs[kSizes][0], dy[3]}}};
        },
    .grad =
        [](Grad& g) {
          g.flow(0, op::gather_sum(g.dy(), g.x(1), g.x(2)));
          g.flow(2, op::gather_sum_weight_grad(g.dy(), g.x(0), g.x(1)));
        },
    .compute = compute_input_grad,
};

constinit const OpDef gather_sum_weight_grad = {
    .name = "gather_sum_weight_grad",
    .doc = "the gradient of gather_sum's weight: dweight[b,p,t] = sum over c and d (and b, where the index has a batch of 1) of x[b, c, index[b,p,t], d] * dy[b,c,p,d]",
    .inputs = {"x", "dy", "index"},
    .results = {"dweight"},
    .infer =
        [](Infer& infer) {
          require_operands(infer, 2);
          batch_of(infer, infer.shape(0), infer.shape(2));
          infer.unify(infer.shape(1)[2], infer.shape(2)[1], "positions");
          return std::vector<Type>{{infer.dtype(0), infer.shape(2)}};
        },
    .grad =
        [](Grad& g) {
          g.flow(0, op::gather_sum_input_grad(g.x(1), g.x(2), g.dy(), {kSizes = Shape{g.x(0).shape()[2]}}));
          g.flow(1, op::gather_sum(g.x(0), g.x(2), g.dy()));
        },
    .compute = compute_weight_grad,
};

}  // namespace hone::op
