// Matrix products.
#include "tests/gradients/gradient_cases.h"

namespace hone::test {

namespace {

void add_matmul(GradientCases& cases) {
  const char* const op = "MatMul";
  cases.add(op, "matrices", {x({3, 4}), x({4, 2})});
  cases.add(op, "two vectors", {x({4}), x({4})});
  cases.add(op, "a vector on the left", {x({3}), x({3, 4})});
  cases.add(op, "a vector on the right", {x({3, 4}), x({4})});
  cases.add(op, "a batch", {x({2, 3, 4}), x({2, 4, 2})});
  cases.add(op, "one right matrix for the batch", {x({2, 3, 4}), x({4, 2})});
  cases.add(op, "one left matrix for the batch", {x({3, 4}), x({2, 4, 2})});
  cases.add(op, "batches broadcast both ways", {x({2, 1, 2, 3}), x({3, 3, 2})});
  cases.add(op, "a batch and a vector on the right", {x({2, 3, 4}), x({4})});
  cases.add(op, "a vector on the left and a batch", {x({3}), x({2, 3, 2})});
  cases.add(op, "a symbolic batch", {x({"N", 4}), x({4, 3})});
  cases.add(op, "a symbolic inner extent", {x({2, "N"}), x({"N", 3})});
  cases.add(op, "a constant right matrix", {x({3, 4}), constant(x({4, 2}))});
  cases.add(op, "extents of 1", {x({1, 3, 1}), x({1, 1, 2})});
  cases.add(op, "nothing to sum", {x({2, 0}), x({0, 3})});
}

void add_gemm(GradientCases& cases) {
  const char* const op = "Gemm";
  cases.add(op, "a row of biases", {x({3, 4}), x({4, 2}), x({2})});
  cases.add(op, "without biases", {x({3, 4}), x({4, 2})});
  cases.add(op, "a full matrix of biases", {x({3, 4}), x({4, 2}), x({3, 2})});
  cases.add(op, "a column of biases", {x({3, 4}), x({4, 2}), x({3, 1})});
  cases.add(op, "one bias", {x({3, 4}), x({4, 2}), x({})});
  cases.add(op, "transA", {x({4, 3}), x({4, 2}), x({2})}, {{"transA", 1}});
  cases.add(op, "transB", {x({3, 4}), x({2, 4}), x({2})}, {{"transB", 1}});
  cases.add(op, "both transposed", {x({4, 3}), x({2, 4}), x({1, 2})}, {{"transA", 1}, {"transB", 1}});
  cases.add(op, "alpha", {x({3, 4}), x({4, 2}), x({2})}, {{"alpha", 0.5}});
  cases.add(op, "beta", {x({3, 4}), x({4, 2}), x({2})}, {{"beta", -1.5}});
  cases.add(op, "beta of 0", {x({3, 4}), x({4, 2}), fed(x({2}))}, {{"beta", 0.0}});
  cases.add(op, "alpha and beta, both transposed", {x({2, 3}), x({4, 2}), x({3, 4})}, {{"alpha", 2.0}, {"beta", 0.25}, {"transA", 1}, {"transB", 1}});
  cases.add(op, "a symbolic batch", {x({"N", 4}), x({3, 4}), x({3})}, {{"transB", 1}});
  cases.add(op, "constant weights", {x({3, 4}), constant(x({4, 2})), constant(x({2}))});
}

void add_det(GradientCases& cases) {
  cases.add("Det", "2 by 2", {x({2, 2})});
  cases.add("Det", "3 by 3", {x({3, 3})});
  cases.add("Det", "5 by 5", {x({5, 5})});
  cases.add("Det", "1 by 1", {x({1, 1})});
  cases.add("Det", "a batch", {x({4, 2, 2})});
  cases.add("Det", "two batch axes", {x({2, 3, 3, 3})});
  cases.add("Det", "a symbolic batch", {x({"N", 3, 3})});
  cases.add("Det", "symbolic extents", {x({2, "N", "N"})});
  cases.add("Det", "no matrices", {x({0, 2, 2})});
  cases.add("Det", "a singular matrix", {x_of({2, 2}, {1, 2, 2, 4})});
  cases.add("Det", "rank 2 of 3", {x_of({3, 3}, {1, 2, 3, 4, 5, 6, 7, 8, 9})});
  cases.add("Det", "rank 1 of 3", {x_of({3, 3}, {1, 2, 3, 2, 4, 6, 3, 6, 9})});
  cases.add("Det", "zeros on the diagonal", {x_of({3, 3}, {0, 2, 1, 3, 0, 1, 1, 4, 0})});
  cases.add("Det", "f64", {of_type(DType::kF64, x({4, 4}))});
}

}  // namespace

void add_matmul_cases(GradientCases& cases) {
  add_matmul(cases);
  add_gemm(cases);
  add_det(cases);
}

}  // namespace hone::test
