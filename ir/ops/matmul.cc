// Matrix multiplication.
#include <fmt/format.h>

#include "ir/ops/infer.h"
#include "ir/ops/ops.h"
#include "ir/ops/products.h"

namespace hone::op {

namespace {

std::size_t row_axis(const Shape& shape, bool transposed) { return shape.size() - (transposed ? 1 : 2); }
std::size_t column_axis(const Shape& shape, bool transposed) { return shape.size() - (transposed ? 2 : 1); }

std::vector<Type> infer_matmul(Infer& infer) {
  infer.require(infer.rank(0) >= 2 and infer.rank(1) >= 2, Code::kShape, "both operands need two axes or more");
  infer.require(infer.dtype(0) == infer.dtype(1), Code::kType, "element types differ");
  const Shape &a = infer.shape(0), &b = infer.shape(1);
  const bool ta = infer.attrs[kTransA], tb = infer.attrs[kTransB];
  infer.unify(a[column_axis(a, ta)], b[row_axis(b, tb)], "inner dimensions");
  Shape shape = infer.broadcast(Shape(a.begin(), a.end() - 2), Shape(b.begin(), b.end() - 2));
  shape.push_back(a[row_axis(a, ta)]);
  shape.push_back(b[column_axis(b, tb)]);
  return {{product_type(infer), shape}};
}

void compute_matmul(Compute& c) {
  const Indices at = c.outer(c.result_shape());
  const bool ta = c.attrs[kTransA], tb = c.attrs[kTransB];
  const Indices k = c.inner({c.shape(0)[column_axis(c.shape(0), ta)]});
  const auto operand = [&](std::size_t i, Scalar row, Scalar column, bool transposed) {
    const Shape& shape = c.shape(i);
    Indices from(shape.size());
    for (std::size_t d = 0; d + 2 < shape.size(); ++d) from[d] = shape[d].is_constant(1) ? c.index_constant(0) : at[d + at.size() - shape.size()];
    from[row_axis(shape, transposed)] = row;
    from[column_axis(shape, transposed)] = column;
    return c.load(i, from);
  };
  c.store(0, at, c.sum(operand(0, at[at.size() - 2], k[0], ta) * operand(1, k[0], at[at.size() - 1], tb)));
}

}  // namespace

constinit const OpDef matmul = {
    .name = "matmul",
    .doc = "y[..,m,n] = sum over k of a[..,m,k] * b[..,k,n]; ta and tb read an operand transposed; leading axes broadcast. Operands of a storage type are widened; `to`: what y is then stored as",
    .inputs = {"a", "b"},
    .attrs = {kTransA, kTransB, kTo, kTf32},
    .infer = infer_matmul,
    .grad =
        [](Grad& g) {  // flow() sums over broadcast batch axes. With A = ta ? a^T : a and B likewise: dA = dy B^T, dB = A^T dy
          const bool ta = g.attrs[kTransA], tb = g.attrs[kTransB];
          const Val a = g.x(0), b = g.x(1), dy = hone::cast(g.dy(), a.dtype());
          g.flow(0, ta ? op::matmul(b, dy, {kTransA = tb, kTransB = true}) : op::matmul(dy, b, {kTransB = not tb}));
          g.flow(1, tb ? op::matmul(dy, a, {kTransA = true, kTransB = ta}) : op::matmul(a, dy, {kTransA = not ta}));
        },
    .compute = compute_matmul,  // three loops: what every library row must agree with
};

}  // namespace hone::op
