// Quantization, and casts to types that are storage only.
#include <limits>

#include "tests/ops/op_cases.h"

namespace hone::test {

namespace {

constexpr std::string_view kDrown = "differences drown in the rounding";

void add_quantize(Cases& cases) {
  cases.add(op::quantize, "a row of zero points", {f32({kN, 4}, -150, 150), whole(DType::kU8, {4}, 0, 9)}).gives({kN, 4});
  cases.add(op::quantize, "a column of zero points", {f32({2, kM}, -20, 20), whole(DType::kI16, {2, 1}, -5, 5)}).gives({2, kM});
  cases.add(op::quantize, "ties go to even", {given({4}, {0.5, 1.5, 2.5, -0.5}), given(DType::kI8, {}, {0})}).equals({0, 2, 2, 0});
  cases.add(op::quantize, "saturates to i8", {given({5}, {300, -300, kInf, -kInf, kNan}), given(DType::kI8, {}, {10})}).equals({127, -128, 127, -128, 0});
  cases.add(op::quantize, "saturates to u16", {given({3}, {65535, -1, 65000.5}), given(DType::kU16, {}, {1})}).equals({65535, 0, 65001});
  cases.add(op::quantize, "saturates to i4", {given({4}, {-9, 8, 7, -8}), given(DType::kI4, {}, {0})}).equals({-8, 7, 7, -8});
  cases.add(op::quantize, "saturates to u4", {given({3}, {-9, 14.6, 3}), given(DType::kU4, {}, {2})}).equals({0, 15, 5});
  cases.add(op::quantize, "saturates to i2 and u2", {given({3}, {-9, 1.6, 0}), given(DType::kI2, {}, {-1})}).equals({-2, 1, -1});
  cases.add(op::quantize, "u2", {given({3}, {-9, 1.6, 9}), given(DType::kU2, {}, {0})}).equals({0, 2, 3});
  cases.add(op::quantize, "f64, exactly", {given(DType::kF64, {1}, {2147483646.4}), given(DType::kI32, {}, {0})}).equals({2147483646});
  cases.add(op::quantize, "no elements", {f32({kEmpty, 2}), given(DType::kU8, {}, {0})}).gives({kEmpty, 2});
  cases.add(op::quantize, "half floats", {given(DType::kF16, {2}, {1.5, -2.5}), given(DType::kI8, {}, {1})}).equals({3, -1});
}

void add_narrow_casts(Cases& cases) {
  const auto to = [&](DType dtype, std::string says, Operand x, Attrs attrs = {}) -> Cases& {
    attrs.set(kTo = dtype);
    return cases.add(op::cast, "to " + std::string(to_string(dtype)) + ", " + says, {std::move(x)}, std::move(attrs));
  };
  const Operand extremes = given({6}, {0.3, 1e6, -kInf, kNan, -0.001, 17});
  to(DType::kF8E4M3FN, "beyond it is NaN", extremes).equals({0.3125, kNan, kNan, kNan, -0.001953125, 16}).not_differentiated(kDrown);
  to(DType::kF8E4M3FN, "saturating", extremes, {kSaturate = true}).equals({0.3125, 448, -448, kNan, -0.001953125, 16}).not_differentiated(kDrown);
  to(DType::kF8E4M3FNUZ, "beyond it is NaN", extremes).equals({0.3125, kNan, kNan, kNan, -0.0009765625, 16}).not_differentiated(kDrown);
  to(DType::kF8E5M2, "beyond it is infinity", extremes).equals({0.3125, kInf, -kInf, kNan, -0.0009765625, 16}).not_differentiated(kDrown);
  to(DType::kF8E5M2FNUZ, "saturating", extremes, {kSaturate = true}).equals({0.3125, 57344, -57344, kNan, -0.0009765625, 16}).not_differentiated(kDrown);
  to(DType::kF4E2M1, "NaN is -0", given({5}, {0.7, 100, -kInf, kNan, 2.5})).equals({0.5, 6, -6, 0, 2}).not_differentiated(kDrown);
  const Operand powers = given({4}, {1.4, 1.5, 6, 0.25});
  to(DType::kF8E8M0, "nearest", powers).equals({1, 2, 8, 0.25}).not_differentiated(kDrown);
  to(DType::kF8E8M0, "up", powers, {kRounding = std::string("up")}).equals({2, 2, 8, 0.25}).not_differentiated(kDrown);
  to(DType::kF8E8M0, "down", powers, {kRounding = std::string("down")}).equals({1, 1, 4, 0.25}).not_differentiated(kDrown);
  to(DType::kF8E8M0, "what has no power of two", given({3}, {-1, 0, kInf})).equals({kNan, kNan, kNan}).not_differentiated(kDrown);
  to(DType::kI4, "low bits of integers", given(DType::kI32, {4}, {7, 8, -9, 300})).equals({7, -8, 7, -4});
  to(DType::kU4, "low bits of floats, truncated", given({3}, {15.9, 17, -1})).equals({15, 1, 15});
  to(DType::kI2, "low bits", given(DType::kI64, {4}, {1, 2, 3, 4})).equals({1, -2, -1, 0});
  to(DType::kU2, "a symbolic batch", whole(DType::kU8, {kN, 2}, 0, 3)).gives({kN, 2});
  to(DType::kF16, "rounded once from f64", given(DType::kF64, {2}, {1 + 0x1p-11 + 0x1p-40, 1 + 0x1p-11})).equals({1 + 0x1p-10, 1}).not_differentiated(kDrown);
  to(DType::kBF16, "rounded once from f64", given(DType::kF64, {1}, {1 + 0x1p-8 + 0x1p-40})).equals({1 + 0x1p-7}).not_differentiated(kDrown);
  for (const DType from : {DType::kF8E4M3FN, DType::kF8E4M3FNUZ, DType::kF8E5M2, DType::kF8E5M2FNUZ, DType::kF4E2M1})
    cases.add(op::cast, "from " + std::string(to_string(from)), {given(from, {4}, {0.5, -1.5, 6, -0.0})}, {kTo = DType::kF32}).equals({0.5, -1.5, 6, 0}).not_differentiated(kDrown);
  cases.add(op::cast, "from f8e8m0 to f64", {given(DType::kF8E8M0, {2}, {0.125, 64})}, {kTo = DType::kF64}).equals({0.125, 64}).not_differentiated(kDrown);
  cases.add(op::cast, "from i4 to i8", {given(DType::kI4, {3}, {-8, 7, -1})}, {kTo = DType::kI8}).equals({-8, 7, -1});
  cases.add(op::cast, "from u2 to f16", {given(DType::kU2, {2}, {3, 0})}, {kTo = DType::kF16}).equals({3, 0});
}

}  // namespace

void add_quantize_cases(Cases& cases) {
  add_quantize(cases);
  add_narrow_casts(cases);
}

}  // namespace hone::test
