// Quantization: floats as small integers. Scales are divided by, and results dequantized, in ordinary arithmetic.
#include "ir/kernel/scalar_math.h"
#include "ir/ops/infer.h"
#include "ir/ops/ops.h"

namespace hone::op {

constinit const OpDef quantize = {
    .name = "quantize",
    .doc =
        "y = x rounded to the nearest integer, ties to even, plus zero_point, as zero_point's integer type: what is beyond its range becomes its smallest or largest "
        "number, NaN becomes 0",
    .inputs = {"x", "zero_point"},
    .infer =
        [](Infer& infer) {
          infer.require(is_float(infer.dtype(0)) and is_integer(infer.dtype(1)), Code::kType, "needs floats and a zero point of integers");
          return std::vector<Type>{{infer.dtype(1), infer.broadcast(infer.shape(0), infer.shape(1))}};
        },
    .grad = no_gradient("rounding to an integer has the derivative 0 wherever it has one"),
    .scalar =
        [](const Args& x) {
          const Scalar shifted = expr::cast(expr::round(x[0]), DType::kF64) + expr::cast(x[1], DType::kF64);
          const auto bound = [&](std::int64_t number) { return expr::like(shifted, scalar_math::to_float(x.result, number)); };
          return expr::cast(expr::min(expr::max(shifted, bound(scalar_math::lowest(x.result))), bound(scalar_math::highest(x.result))), x.result);
        },
};

}  // namespace hone::op
