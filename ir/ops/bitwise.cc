// Integers as bits.
#include <fmt/format.h>

#include "host/functions.h"
#include "ir/ops/infer.h"
#include "ir/ops/ops.h"

namespace hone::op {

namespace {

constexpr std::string_view kResultIsBits = "its result is bits";

std::vector<Type> infer_bits(Infer& infer) {
  infer.require(is_integer(infer.dtype(0)), Code::kType, "needs integers");
  return infer_elementwise(infer);
}

}  // namespace

constinit const OpDef bit_and = {
    .name = "bit_and",
    .doc = "y = a & b",
    .inputs = {"a", "b"},
    .infer = infer_bits,
    .grad = no_gradient(kResultIsBits),
    .scalar = [](const Args& x) { return expr::bit_and(x[0], x[1]); },
    .onnx = "BitwiseAnd",
};

constinit const OpDef bit_or = {
    .name = "bit_or",
    .doc = "y = a | b",
    .inputs = {"a", "b"},
    .infer = infer_bits,
    .grad = no_gradient(kResultIsBits),
    .scalar = [](const Args& x) { return expr::bit_or(x[0], x[1]); },
    .onnx = "BitwiseOr",
};

constinit const OpDef bit_xor = {
    .name = "bit_xor",
    .doc = "y = a ^ b",
    .inputs = {"a", "b"},
    .infer = infer_bits,
    .grad = no_gradient(kResultIsBits),
    .scalar = [](const Args& x) { return expr::bit_xor(x[0], x[1]); },
    .onnx = "BitwiseXor",
};

constinit const OpDef bit_not = {
    .name = "bit_not",
    .doc = "y = ~x",
    .inputs = {"x"},
    .infer = infer_bits,
    .grad = no_gradient(kResultIsBits),
    .scalar = [](const Args& x) { return expr::bit_not(x[0]); },
    .onnx = "BitwiseNot",
};

constinit const OpDef shift_left = {
    .name = "shift_left",
    .doc = "y = x << by; 0 where `by` is negative or not below the width",
    .inputs = {"x", "by"},
    .infer = infer_bits,
    .grad = no_gradient(kResultIsBits),
    .scalar = [](const Args& x) { return expr::shift_left(x[0], x[1]); },
};

constinit const OpDef shift_right = {
    .name = "shift_right",
    .doc = "y = x >> by, with the sign drawn in; 0 where `by` is negative or not below the width",
    .inputs = {"x", "by"},
    .infer = infer_bits,
    .grad = no_gradient(kResultIsBits),
    .scalar = [](const Args& x) { return expr::shift_right(x[0], x[1]); },
};

constinit const OpDef bit_cast = {
    .name = "bit_cast",
    .doc = "y = the bits of x as another element type of the same width. Bits that become bool must be 0 or 1",
    .inputs = {"x"},
    .attrs = {kTo},
    .infer =
        [](Infer& infer) {
          infer.require(size_of(infer.attrs[kTo]) == size_of(infer.dtype(0)), Code::kType,
                        fmt::format("{} and {} have different widths", to_string(infer.dtype(0)), to_string(infer.attrs[kTo])));
          return std::vector<Type>{{infer.attrs[kTo], infer.shape(0)}};
        },
    .grad = no_gradient(kResultIsBits),
    .host = &host::bit_cast,
};

}  // namespace hone::op
