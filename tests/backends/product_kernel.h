// Products as kernels, in every form.
#pragma once

#include <utility>
#include <vector>

#include "tests/backends/kernel_case.h"

namespace hone {

struct ProductForm {
  bool ta, tb;
};
constexpr ProductForm kForms[] = {{false, false}, {true, false}, {false, true}, {true, true}};

/// The sum over k of a[row, k] * b[k, column], as a phase; what is stored is the caller's.
struct Product {
  Product(const Dim& rows, const Dim& depth, const Dim& columns, ProductForm form) : writer("product") {
    const auto a = writer.operand(DType::kF32, form.ta ? Shape{depth, rows} : Shape{rows, depth}),
               b = writer.operand(DType::kF32, form.tb ? Shape{columns, depth} : Shape{depth, columns});
    result = writer.result(DType::kF32, {rows, columns});
    row = writer.outer(rows), column = writer.outer(columns);
    writer.phase();
    const Scalar k = writer.inner(depth);
    sum = writer.reduce(ReduceKind::kSum, writer.load(a, form.ta ? std::vector{k, row} : std::vector{row, k}) *
                                              writer.load(b, form.tb ? std::vector{column, k} : std::vector{k, column}));
    writer.phase();
  }

  KernelWriter writer;
  Scalar row, column, sum;
  std::uint32_t result = 0;
};

inline Kernel matmul(const Dim& rows, const Dim& depth, const Dim& columns, ProductForm form) {
  Product p(rows, depth, columns, form);
  p.writer.store(p.result, {p.row, p.column}, p.sum);
  return std::move(p.writer.kernel);
}

}  // namespace hone
