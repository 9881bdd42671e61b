// Random numbers, running values, determinants.
#include <limits>

#include "base/philox.h"
#include "tests/ops/op_cases.h"

namespace hone::test {

namespace {

/// What random_uniform makes of the first `count` elements.
std::vector<double> uniform(std::uint64_t seed, std::uint64_t stream, std::uint64_t step, int count) {
  std::vector<double> numbers;
  for (int i = 0; i < count; ++i) numbers.push_back(philox(seed, (stream << 40) + step, static_cast<std::uint64_t>(i))[0] >> 8);
  for (double& number : numbers) number *= 0x1p-24;
  return numbers;
}

void add_random(Cases& cases) {
  const auto stream = [](Shape shape, DType dtype, std::int64_t seed, std::int64_t number) {
    return Attrs{kShape = std::move(shape), kTo = dtype, kSeed = seed, kStream = number};
  };
  cases.add(op::random_uniform, "the bits are Philox's", {absent()}, stream({8}, DType::kF32, 7, 1)).equals(uniform(7, 1, 0, 8));
  cases.add(op::random_uniform, "of another step, stream and seed", {given(DType::kI64, {}, {5})}, stream({kN, 2}, DType::kF32, -9, 3))
      .equals(uniform(static_cast<std::uint64_t>(-9), 3, 5, 6));
  cases.add(op::random_uniform, "the step as a float", {given(DType::kF64, {}, {5})}, stream({6}, DType::kF32, 1, 3)).equals(uniform(1, 3, 5, 6));
  for (const OpDef* op : {&op::random_uniform, &op::random_normal}) {
    for (const DType dtype : {DType::kF32, DType::kF64, DType::kF16, DType::kBF16})
      cases.add(*op, std::string(to_string(dtype)) + ", symbolic extents", {given(DType::kI64, {}, {3})}, stream({kN, 37}, dtype, 5, 2)).gives({kN, 37});
    cases.add(*op, "a scalar", {absent()}, stream({}, DType::kF32, 1, 1));
    cases.add(*op, "no elements", {absent()}, stream({kEmpty, 3}, DType::kF32, 1, 1));
  }
  const std::vector<double> whole = uniform(7, 1, 0, 24);  // [6,4] of a batch of 6
  const Operand from_second = given(DType::kI64, {}, {2});
  cases.add(op::random_uniform, "a part of a batch", {absent(), from_second}, stream({kN, 4}, DType::kF32, 7, 1)).equals({whole.begin() + 8, whole.begin() + 20});
  std::vector<double> second_axis;
  for (int i = 0; i < 2; ++i)
    for (int n = 2; n < 5; ++n) second_axis.push_back(whole[static_cast<std::size_t>(2 * n + i)]);
  Attrs along_second = stream({2, kN}, DType::kF32, 7, 1);
  along_second.set(kBatchAxis = 1);
  cases.add(op::random_uniform, "a part of a batch along the second axis", {absent(), from_second}, along_second).equals(second_axis);
  cases.add(op::random_event, "of step and run", {given(DType::kI64, {}, {5}), given(DType::kI64, {}, {-3})}, {kStream = 2}).gives({});
  cases.add(op::random_event, "of an iteration alone", {absent(), given(DType::kI64, {}, {7})}).gives({});
  const Operand rate = constant(given({}, {0.4}));
  cases.add(op::dropout, "symbolic batch", {f32({kN, 7}), rate}, {kSeed = 3, kStream = 1}).varies_in(1);
  cases.add(op::dropout, "a later step", {f32({kN, 7}), rate, given(DType::kI64, {}, {12})}, {kSeed = 3, kStream = 1}).varies_in(1);
  cases.add(op::dropout, "a part of a batch", {f32({kN, 7}), rate, absent(), from_second}, {kSeed = 3, kStream = 1}).varies_in(1);
  cases.add(op::dropout, "f64", {f64({5}), constant(given(DType::kF64, {}, {0.2}))}, {kSeed = 1, kStream = 2}).varies_in(1);
  cases.add(op::dropout, "a rate of 0 keeps all", {given({3}, {1, 2, 3}), constant(given({}, {0}))}, {kStream = 1}).equals({1, 2, 3}).slopes({1, 1, 1});
  cases.add(op::dropout, "a rate of 1 keeps nothing", {given({3}, {1, 2, 3}), constant(given({}, {1}))}, {kStream = 1}).equals({0, 0, 0}).slopes({0, 0, 0});
  cases.add(op::dropout, "no elements", {f32({kEmpty}), rate}, {kStream = 1}).varies_in(1);
}

void add_recurrences(Cases& cases) {
  cases.add(op::linear_recurrence, "running sums", {given({2, 3}, {1, 2, 3, 4, 5, 6}), absent()}, {kAxis = 1}).equals({1, 3, 6, 4, 9, 15});
  cases.add(op::linear_recurrence, "running sums from the end", {given({2, 3}, {1, 2, 3, 4, 5, 6}), absent()}, {kAxis = 0, kReverse = true}).equals({5, 7, 9, 4, 5, 6});
  cases.add(op::linear_recurrence, "with factors", {f32({kN, 4}), f32({kN, 4})}, {kAxis = 1});
  cases.add(op::linear_recurrence, "with factors, from the end", {f32({2, kN, 3}), f32({2, kN, 3})}, {kAxis = 1, kReverse = true});
  cases.add(op::linear_recurrence, "along a symbolic axis", {f32({kN, 2}), f32({kN, 2})}, {kAxis = 0});
  cases.add(op::linear_recurrence, "a running product through 0", {constant(given({4}, {2, 0, 0, 0})), given({4}, {2, 0, 3, 0})}, {kAxis = 0}).equals({2, 0, 0, 0});
  cases.add(op::linear_recurrence, "integers wrap", {given(DType::kI32, {3}, {2147483647.0, 1, 5})}, {kAxis = 0}).equals({2147483647.0, -2147483648.0, -2147483643.0});
  cases.add(op::linear_recurrence, "f64, no factors", {f64({kN, 2})}, {kAxis = 0});
  cases.add(op::linear_recurrence, "no elements", {f32({kEmpty, 2}), f32({kEmpty, 2})}, {kAxis = 0});
  cases.add(op::linear_recurrence, "one element", {f32({1, 3}), f32({1, 3})}, {kAxis = 0});
  cases.add(op::linear_recurrence, "NaN and infinity stay", {given({3}, {kInf, 1, -kInf})}, {kAxis = 0}).equals({kInf, kInf, kNan}).not_differentiated("it is about NaN");
}

void add_determinants(Cases& cases) {
  cases.add(op::det, "one matrix", {given({2, 2}, {1, 2, 3, 4})}).equals({-2});
  cases.add(op::det, "a batch", {f32({kN, 3, 3})}).gives({kN});
  cases.add(op::det, "two batch axes", {f32({2, kN, 2, 2})}).gives({2, kN});
  cases.add(op::det, "4 by 4, f64", {f64({4, 4})});
  cases.add(op::det, "1 by 1", {f32({kN, 1, 1})});
  cases.add(op::det, "symbolic extents", {f32({2, kN, kN})}).gives({2});
  cases.add(op::det, "rows that must be exchanged", {given({3, 3}, {0, 2, 0, 0, 0, 3, 4, 0, 0})}).equals({24});
  cases.add(op::det, "a singular matrix has a gradient", {given({2, 2}, {1, 2, 2, 4})}).equals({0}).slopes({4, -2, -2, 1});
  cases.add(op::det, "rank 2 of 3", {given({3, 3}, {1, 2, 3, 4, 5, 6, 7, 8, 9})}).equals({0}).slopes({-3, 6, -3, 6, -12, 6, -3, 6, -3});
  cases.add(op::det, "rank 1 of 3", {given({3, 3}, {1, 2, 3, 2, 4, 6, 3, 6, 9})}).equals({0}).slopes({0, 0, 0, 0, 0, 0, 0, 0, 0});
  cases.add(op::det, "no rows", {f32({2, kEmpty, kEmpty})}).equals({1, 1});
  cases.add(op::det, "no matrices", {f32({kEmpty, 2, 2})});
  cases.add(op::cofactors, "2 by 2", {given({2, 2}, {1, 2, 3, 4})}).equals({4, -3, -2, 1});
  cases.add(op::cofactors, "3 by 3", {given({3, 3}, {2, 0, 1, 1, 3, 2, 1, 1, 4})}).equals({10, -2, -2, 1, 7, -2, -3, -3, 6});
  cases.add(op::cofactors, "a batch", {f32({kN, 4, 4})}).gives({kN, 4, 4});
}

}  // namespace

void add_generate_cases(Cases& cases) {
  add_random(cases);
  add_recurrences(cases);
  add_determinants(cases);
}

}  // namespace hone::test
