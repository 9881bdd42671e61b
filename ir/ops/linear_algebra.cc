// Determinants.
#include <fmt/format.h>

#include "host/functions.h"
#include "ir/ops/infer.h"
#include "ir/ops/ops.h"

namespace hone::op {

namespace {

void require_square(Infer& infer) {
  const std::size_t rank = infer.rank(0);
  infer.require(rank >= 2, Code::kShape, "needs matrices: two axes or more");
  infer.require(infer.dtype(0) == DType::kF32 or infer.dtype(0) == DType::kF64, Code::kType, "needs f32 or f64");
  infer.unify(infer.shape(0)[rank - 2], infer.shape(0)[rank - 1], "rows and columns");
}

}  // namespace

constinit const OpDef det = {
    .name = "det",
    .doc = "y[...] = determinant of x[..., n, n]; 1 where n is 0. The gradient is right for singular matrices, too: dx = dy times the cofactors",
    .inputs = {"x"},
    .infer =
        [](Infer& infer) {
          require_square(infer);
          return std::vector<Type>{{infer.dtype(0), Shape(infer.shape(0).begin(), infer.shape(0).end() - 2)}};
        },
    .grad =
        [](Grad& g) {
          Shape shape = g.y().shape();
          shape.insert(shape.end(), 2, Dim(1));
          g.flow(0, hone::reshape(g.dy(), shape) * op::cofactors(g.x(0)));
        },
    .host = &host::det,
    .onnx = "Det",
};

constinit const OpDef cofactors = {
    .name = "cofactors",
    .doc = "y[..., i, j] = (-1)^(i+j) times the determinant of x[..., n, n] without row i and column j: the derivative of det, det(x) times the transposed inverse "
           "where there is one",
    .inputs = {"x"},
    .infer =
        [](Infer& infer) {
          require_square(infer);
          return std::vector<Type>{infer.type(0)};
        },
    .grad = no_gradient("it is there for det's gradient; det has no second derivative here"),
    .host = &host::cofactors,
};

}  // namespace hone::op
