// Values that run along an axis.
#include "ir/ops/cumulative.h"

#include "host/functions.h"
#include "ir/ops/infer.h"
#include "ir/ops/ops.h"

namespace hone {

Val moved(Val x, std::size_t axis, Move move) {
  Shape starts(x.rank(), Dim(0));
  starts[axis] = move == Move::kBack ? -1 : 1;
  return op::pad(x, {kStarts = starts, kSizes = x.shape(), kSteps = Ints(x.rank(), 1)});
}

namespace op {

constinit const OpDef linear_recurrence = {
    .name = "linear_recurrence",
    .doc = "y[0] = x[0], y[i] = y[i-1] * factor[i] + x[i] along the axis (reverse: from its end); factor is 1 where absent, and factor[0] is not read. Running "
           "sums: no factor; running products: the factors, and an x that is 0 behind its first element. Floats are accumulated in f64, integers wrap",
    .inputs = {"x", "factor?"},
    .attrs = {kAxis, kReverse},
    .infer =
        [](Infer& infer) {
          infer.require(infer.attrs[kAxis] >= 0 and infer.attrs[kAxis] < static_cast<std::int64_t>(infer.rank(0)), Code::kBadAttribute, "axis out of range");
          if (infer.has(1)) {
            infer.require(infer.dtype(1) == infer.dtype(0), Code::kType, "x and factor have different element types");
            infer.require(infer.rank(1) == infer.rank(0), Code::kShape, "x and factor have different shapes");
            for (std::size_t i = 0; i < infer.rank(0); ++i) infer.unify(infer.shape(0)[i], infer.shape(1)[i], "extents");
          }
          return std::vector<Type>{infer.type(0)};
        },
    .grad =
        [](Grad& g) {  // dx[i] = dy[i] + factor[i+1] * dx[i+1]: a recurrence the other way round
          const auto axis = static_cast<std::size_t>(g.attrs[kAxis]);
          const bool reverse = g.attrs[kReverse];
          const Val factor = g.has(1) ? moved(g.x(1), axis, reverse ? Move::kForward : Move::kBack) : Val();
          const Val dx = op::linear_recurrence(g.dy(), factor, {kAxis = g.attrs[kAxis], kReverse = not reverse});
          g.flow(0, dx);
          if (g.has(1)) g.flow(1, dx * moved(g.y(), axis, reverse ? Move::kBack : Move::kForward));
        },
    .host = &host::linear_recurrence,
};

}  // namespace op
}  // namespace hone
