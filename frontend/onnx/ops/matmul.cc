// Matrix products.
#include "frontend/onnx/ops/matmul.h"

#include <fmt/format.h>

#include "frontend/onnx/ops.h"
#include "ir/ops/ops.h"

namespace hone::onnx {

namespace {

std::vector<Val> import_gemm(const ImportNode& node) { return {gemm(node)}; }
std::vector<Val> import_matmul(const ImportNode& node) { return {matrix_product(node, node.x(0), node.x(1))}; }

constinit const Importer kMatmulOps[] = {
    {"Gemm", import_gemm, {1, 2}},
    {"MatMul", import_matmul, {1}},
};

}  // namespace

Val gemm(const ImportNode& node) {
  const Val a = node.x(0), b = node.x(1);
  node.require(a.rank() == 2 and b.rank() == 2, Code::kShape, "A and B must be matrices");
  Attrs attrs;
  if (node.flag("transA", false)) attrs.set(kTransA = true);
  if (node.flag("transB", false)) attrs.set(kTransB = true);
  const double alpha = node.real("alpha", 1), beta = node.real("beta", 1);
  Val y = op::matmul(a, b, attrs);
  if (alpha != 1) y = y * alpha;
  if (not node.has(2) or beta == 0) return y;
  const Val c = node.x(2);
  node.require(c.rank() <= 2, Code::kShape, "C must broadcast to the product");
  return y + (beta == 1 ? c : c * beta);
}

Val matrix_product(const ImportNode& node, Val a, Val b) {
  node.require(a.rank() > 0 and b.rank() > 0, Code::kShape, "needs operands of one axis or more");
  const bool row = a.rank() == 1, column = b.rank() == 1;
  if (row) a = reshape(a, {1, a.shape()[0]});
  if (column) b = reshape(b, {b.shape()[0], 1});
  const Val y = op::matmul(a, b);
  Shape shape = y.shape();
  if (column) shape.pop_back();
  if (row) shape.erase(shape.end() - (column ? 1 : 2));
  return reshape(y, shape);
}

std::span<const Importer> matmul_importers() { return kMatmulOps; }

}  // namespace hone::onnx
