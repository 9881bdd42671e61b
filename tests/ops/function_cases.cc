// Functions of one number, remainders, gelu, and integers as bits.
#include <cmath>
#include <limits>

#include "tests/ops/op_cases.h"

namespace hone::test {

namespace {

struct Function {
  const OpDef& op;
  double low, high;
  std::vector<double> at, gives;  ///< elements outside of what is differentiated
};

void add_functions(Cases& cases) {
  const double half_pi = std::acos(0.0);
  const Function functions[] = {{op::sin, -6, 6, {0, kInf, kNan, 1e4}, {0, kNan, kNan, std::sin(1e4)}},
                                {op::cos, -6, 6, {0, -kInf, kNan, 1e4}, {1, kNan, kNan, std::cos(1e4)}},
                                {op::tan, -1.3, 1.3, {0, kInf, kNan}, {0, kNan, kNan}},
                                {op::asin, -0.9, 0.9, {1, -1, 1.5, kNan}, {half_pi, -half_pi, kNan, kNan}},
                                {op::acos, -0.9, 0.9, {1, -1, -1.5, kNan}, {0, 2 * half_pi, kNan, kNan}},
                                {op::atan, -4, 4, {kInf, -kInf, kNan}, {half_pi, -half_pi, kNan}},
                                {op::sinh, -3, 3, {0, 200, -200, kNan}, {0, kInf, -kInf, kNan}},
                                {op::cosh, -3, 3, {0, 200, -200, kNan}, {1, kInf, kInf, kNan}},
                                {op::asinh, -4, 4, {0, kInf, -kInf, kNan}, {0, kInf, -kInf, kNan}},
                                {op::acosh, 1.1, 5, {1, 0.5, kInf, kNan}, {0, kNan, kInf, kNan}},
                                {op::atanh, -0.9, 0.9, {1, -1, 2, kNan}, {kInf, -kInf, kNan, kNan}}};
  for (const auto& [op, low, high, at, gives] : functions) {
    cases.add(op, "symbolic batch", {f32({kN, 5}, low, high)});
    cases.add(op, "a scalar", {f32({}, low, high)});
    cases.add(op, "no elements", {f32({2, kEmpty}, low, high)});
    cases.add(op, "a longer vector", {f32({67}, low, high)});
    cases.add(op, "f64", {f64({kN}, low, high)});
    cases.add(op, "extreme values", {given({static_cast<std::int64_t>(at.size())}, at)}).equals(gives).not_differentiated(kAboutNan);
  }
  cases.add(op::round, "halves go to the even neighbour", {given({9}, {0.5, 1.5, 2.5, -0.5, -1.5, -2.5, 2.4, -2.6, 7})}).equals({0, 2, 2, 0, -2, -2, 2, -3, 7});
  cases.add(op::round, "NaN and infinity", {given({3}, {kNan, kInf, -kInf})}).equals({kNan, kInf, -kInf});
  cases.add(op::round, "symbolic batch, f64", {f64({kN, 3}, -9, 9)});
}

void add_remainders(Cases& cases) {
  const Operand a = given({6}, {-4.3, 7.2, 5.0, 4.3, -7.2, 8.0}), b = given({6}, {2.1, -3.4, 8.0, -2.1, 3.4, 5.0});
  cases.add(op::floor_mod, "signs as the divisor's", {a, b}).equals({2.0, -3.0, 5.0, -2.0, 3.0, 3.0});
  cases.add(op::trunc_mod, "signs as the dividend's", {a, b}).equals({-0.1, 0.4, 5.0, 0.1, -0.4, 3.0});
  for (const OpDef* op : {&op::floor_mod, &op::trunc_mod}) {
    cases.add(*op, "a constant divisor that broadcasts", {f32({kN, 3}, -5, 5), constant(given({3}, {1.3, -2.2, 0.7}))});
    cases.add(*op, "both broadcast", {given({2, 1}, {5.3, -4.1}), given({3}, {1.3, -2.2, 3.7})}).gives({2, 3});
    cases.add(*op, "no elements", {f32({kEmpty, 2}), f32({2}, 1, 2)});
    cases.add(*op, "f64", {f64({kN}, 3.1, 3.9), f64({kN}, 1.6, 1.9)});
    cases.add(*op, "by 0 and infinity", {given({3}, {1, kInf, 3}), given({3}, {0, 2, kInf})}).equals({kNan, kNan, 3}).not_differentiated(kAboutNan);
    for (const DType dtype : {DType::kI8, DType::kI32, DType::kI64, DType::kU8, DType::kU64})
      cases.add(*op, "integers: " + std::string(to_string(dtype)), {whole(dtype, {kN, 4}, dtype == DType::kU8 or dtype == DType::kU64 ? 0 : -9, 9), whole(dtype, {4}, 1, 5)});
  }
  cases.add(op::floor_mod, "integers of all signs", {given(DType::kI32, {5}, {7, -7, 7, -7, 5}), given(DType::kI32, {5}, {3, 3, -3, -3, 0})}).equals({1, 2, -2, -1, 0});
  cases.add(op::trunc_mod, "integers of all signs", {given(DType::kI32, {5}, {7, -7, 7, -7, 5}), given(DType::kI32, {5}, {3, 3, -3, -3, 0})}).equals({1, -1, 1, -1, 0});
}

void add_gelu(Cases& cases) {
  cases.add(op::gelu, "by erf", {f32({kN, 5}, -4, 4)});
  cases.add(op::gelu, "by tanh", {f32({kN, 5}, -4, 4)}, {kTanhForm = true});
  cases.add(op::gelu, "values", {given({3}, {-1, 0, 1})}).equals({-0.15865526, 0, 0.84134474});
  cases.add(op::gelu, "values by tanh", {given({3}, {-1, 0, 1})}, {kTanhForm = true}).equals({-0.15880801, 0, 0.84119199});
  cases.add(op::gelu, "f64, a scalar", {f64({})});
  cases.add(op::gelu, "no elements", {f32({kEmpty})});
}

void add_bits(Cases& cases) {
  for (const OpDef* op : {&op::bit_and, &op::bit_or, &op::bit_xor})
    for (const DType dtype : {DType::kI16, DType::kI32, DType::kI64, DType::kU8, DType::kU64})
      cases.add(*op, std::string(to_string(dtype)), {whole(dtype, {kN, 3}, 0, 120), whole(dtype, {3}, 0, 120)});
  const Operand a = given(DType::kI32, {3}, {12, -1, 5}), b = given(DType::kI32, {3}, {10, 7, -8});
  cases.add(op::bit_and, "values", {a, b}).equals({8, 7, 0});
  cases.add(op::bit_or, "values", {a, b}).equals({14, -1, -3});
  cases.add(op::bit_xor, "values", {a, b}).equals({6, -8, -3});
  cases.add(op::bit_not, "values", {a}).equals({-13, 0, -6});
  cases.add(op::bit_not, "unsigned", {given(DType::kU8, {3}, {0, 255, 7})}).equals({255, 0, 248});
  cases.add(op::bit_not, "symbolic batch", {whole(DType::kI64, {kN, 2}, -9, 9)});
  cases.add(op::shift_left, "up to the width and beyond", {given(DType::kU8, {4}, {3, 3, 3, 3}), given(DType::kU8, {4}, {1, 7, 8, 200})}).equals({6, 128, 0, 0});
  cases.add(op::shift_right, "up to the width and beyond", {given(DType::kU8, {4}, {200, 200, 200, 200}), given(DType::kU8, {4}, {1, 7, 8, 200})}).equals({100, 1, 0, 0});
  cases.add(op::shift_right, "the sign is drawn in", {given(DType::kI32, {2}, {-8, 8}), given(DType::kI32, {}, {1})}).equals({-4, 4});
  for (const OpDef* op : {&op::shift_left, &op::shift_right})
    for (const DType dtype : {DType::kU16, DType::kU32, DType::kU64})
      cases.add(*op, std::string(to_string(dtype)), {whole(dtype, {kN, 3}, 0, 999), whole(dtype, {3}, 0, 9)});
  cases.add(op::bit_cast, "f32 as i32", {given({3}, {1, -2, 0})}, {kTo = DType::kI32}).equals({0x3f800000, -0x40000000LL, 0});
  cases.add(op::bit_cast, "i32 as f32", {given(DType::kI32, {2}, {0x3f800000, 0x40490fdb})}, {kTo = DType::kF32}).equals({1, 3.14159274});
  cases.add(op::bit_cast, "i64 as f64", {given(DType::kI64, {kM}, {0, 4607182418800017408.0})}, {kTo = DType::kF64}).equals({0, 1});
  cases.add(op::bit_cast, "i8 as u8", {given(DType::kI8, {kN}, {-1, 5, -128})}, {kTo = DType::kU8}).equals({255, 5, 128});
  cases.add(op::bit_cast, "no elements", {whole(DType::kI16, {kEmpty}, 0, 1)}, {kTo = DType::kF16});
}

}  // namespace

void add_function_cases(Cases& cases) {
  add_functions(cases);
  add_remainders(cases);
  add_gelu(cases);
  add_bits(cases);
}

}  // namespace hone::test
