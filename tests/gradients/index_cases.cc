// Gathering, scattering, choosing by position.
#include "tests/gradients/gradient_cases.h"

namespace hone::test {

namespace {

GradientInput positions(std::vector<Extent> shape, std::vector<double> values) { return given(DType::kI64, std::move(shape), std::move(values)); }

void add_gather(GradientCases& cases) {
  const char* const op = "Gather";
  cases.add(op, "rows", {x({5, 3}), positions({4}, {0, 4, 2, 0})});
  cases.add(op, "axis 1", {x({3, 5}), positions({2}, {4, 1})}, {{"axis", 1}});
  cases.add(op, "the last axis", {x({2, 2, 4}), positions({3}, {3, 3, 0})}, {{"axis", -1}});
  cases.add(op, "positions of two axes", {x({4, 2}), positions({2, 3}, {0, 1, 3, 3, 2, 0})});
  cases.add(op, "one position", {x({4, 3}), positions({}, {2})});
  cases.add(op, "one position of a vector", {x({4}), positions({}, {1})});
  cases.add(op, "positions from the end", {x({4, 2}), positions({3}, {-1, -4, 2})});
  cases.add(op, "the same row many times", {x({3, 2}), positions({5}, {1, 1, 1, 1, 1})});
  cases.add(op, "constant positions", {x({5, 2}), numbers({3, 0, 3})});
  cases.add(op, "a symbolic batch", {x({6, 2}), whole({"N"}, 0, 5)});
  cases.add(op, "from a symbolic axis", {x({"N", 2}), positions({2}, {0, 2})});
  cases.add(op, "no positions", {x({4, 2}), positions({0}, {})});
  cases.add(op, "i32 positions of two axes along the middle", {x({2, 4, 2}), whole({2, 2}, 0, 3, DType::kI32)}, {{"axis", 1}});
}

void add_where(GradientCases& cases) {
  const char* const op = "Where";
  const auto choice = [](std::vector<Extent> shape) { return whole(std::move(shape), 0, 1, DType::kBool); };
  cases.add(op, "equal shapes", {choice({3, 4}), x({3, 4}), x({3, 4})});
  cases.add(op, "the condition broadcasts", {choice({3, 1}), x({3, 4}), x({3, 4})});
  cases.add(op, "the first broadcasts", {choice({3, 4}), x({4}), x({3, 4})});
  cases.add(op, "the second broadcasts", {choice({3, 4}), x({3, 4}), x({3, 1})});
  cases.add(op, "all broadcast", {choice({2, 1, 1}), x({3, 1}), x({4})});
  cases.add(op, "scalars", {choice({5}), x({}), x({})});
  cases.add(op, "a constant on one side", {choice({2, 3}), x({2, 3}), constant(x({}))});
  cases.add(op, "a constant condition", {constant(choice({2, 3})), x({2, 3}), x({3})});
  cases.add(op, "a symbolic batch", {choice({"N", 1}), x({"N", 4}), x({4})});
  cases.add(op, "rank 5", {choice({2, 1, 1, 2, 1}), x({2, 1, 2, 2, 2}), x({2, 2})});
  cases.add(op, "no elements", {choice({0, 2}), x({0, 2}), x({2})});
}

}  // namespace

void add_index_cases(GradientCases& cases) {
  add_gather(cases);
  add_where(cases);
}

}  // namespace hone::test
