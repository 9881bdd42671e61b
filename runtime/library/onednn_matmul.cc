#include <fmt/format.h>

#include <algorithm>

#include "base/check.h"
#include "runtime/library/onednn.h"

namespace hone::onednn {
namespace {

using Dims = dnnl::memory::dims;

/// The product with all its axes, batch axes first: a[..,m,k], b[..,k,n] and y[..,m,n], each batch axis of a and b as y's or 1.
struct MatmulProblem {
  Dims a, b, y;
  bool transposed_a = false, transposed_b = false;
};

/// With ones in front, up to `rank` axes.
Dims padded(const std::vector<std::int64_t>& shape, std::size_t rank) {
  HONE_CHECK(shape.size() <= rank, "an operand of more axes than the result");
  Dims dims(rank - shape.size(), 1);
  dims.insert(dims.end(), shape.begin(), shape.end());
  return dims;
}

MatmulProblem problem_of(const LibrarySpec& spec) {
  const std::size_t rank = spec.results[0].shape.size();
  HONE_CHECK(rank >= 2 and spec.operands[0]->shape.size() >= 2 and spec.operands[1]->shape.size() >= 2, "a matrix product of vectors");
  MatmulProblem problem{.a = padded(spec.operands[0]->shape, rank), .b = padded(spec.operands[1]->shape, rank), .y = spec.results[0].shape};
  problem.transposed_a = attribute_or(spec, "ta", 0) != 0;
  problem.transposed_b = attribute_or(spec, "tb", 0) != 0;
  if (problem.transposed_a) std::swap(problem.a[rank - 2], problem.a[rank - 1]);
  if (problem.transposed_b) std::swap(problem.b[rank - 2], problem.b[rank - 1]);
  return problem;
}

std::int64_t product(const Dims& dims, std::size_t begin, std::size_t end) {
  std::int64_t count = 1;
  for (std::size_t axis = begin; axis < end; ++axis) count *= dims[axis];
  return count;
}

/// Replaces the axes begin..end-1 by their product.
Dims merged(const Dims& dims, std::size_t begin, std::size_t end) {
  Dims result(dims.begin(), dims.begin() + static_cast<std::ptrdiff_t>(begin));
  result.push_back(product(dims, begin, end));
  result.insert(result.end(), dims.begin() + static_cast<std::ptrdiff_t>(end), dims.end());
  return result;
}

/// Fewer axes for the same product: oneDNN is fastest with two, and slow where an operand is broadcast over batch axes.
void merge_batches(MatmulProblem& problem) {
  const std::size_t rank = problem.y.size(), batches = rank - 2;
  if (batches == 0) return;
  const bool one_b = product(problem.b, 0, batches) == 1;
  const bool whole_a = std::equal(problem.a.begin(), problem.a.begin() + static_cast<std::ptrdiff_t>(batches), problem.y.begin());
  if (one_b and whole_a and not problem.transposed_a) {  // rows of all batches are rows of one matrix
    problem.a = merged(problem.a, 0, rank - 1);
    problem.y = merged(problem.y, 0, rank - 1);
    problem.b = {problem.b[rank - 2], problem.b[rank - 1]};
    return;
  }
  const auto like_y_or_one = [&](const Dims& dims) {
    return product(dims, 0, batches) == 1 or std::equal(dims.begin(), dims.begin() + static_cast<std::ptrdiff_t>(batches), problem.y.begin());
  };
  if (not like_y_or_one(problem.a) or not like_y_or_one(problem.b)) return;
  for (Dims* dims : {&problem.a, &problem.b, &problem.y}) *dims = merged(*dims, 0, batches);
}

/// Of logical extents `dims` whose last two axes may lie swapped in memory.
dnnl::memory::desc operand_desc(const Dims& dims, DType dtype, bool transposed) {
  if (not transposed) return plain(dims, dtype);
  Dims stored = dims;
  std::swap(stored[dims.size() - 2], stored[dims.size() - 1]);
  const dnnl::memory::desc desc = plain(stored, dtype);
  std::vector<int> permutation(dims.size());
  for (std::size_t axis = 0; axis < dims.size(); ++axis) permutation[axis] = static_cast<int>(axis);
  std::swap(permutation[dims.size() - 2], permutation[dims.size() - 1]);
  return desc.permute_axes(permutation);
}

/// Is it worth repacking b? oneDNN packs it by itself where its rows are a power of two apart; where they are another multiple of 2 KiB it does not,
/// and they get into each other's way in the cache: [2048,768] x [768,3072] takes 140 ms, or 67 ms with b repacked each time.
bool should_pack_b(const MatmulProblem& problem, std::size_t element_bytes) {
  const std::int64_t m = problem.y[0], row_bytes = problem.b.back() * static_cast<std::int64_t>(element_bytes);
  return problem.y.size() == 2 and not problem.transposed_b and m >= 32 and row_bytes % 2048 == 0 and (row_bytes & (row_bytes - 1)) != 0;
}

}  // namespace

std::unique_ptr<LibraryCall> create_matmul(const LibrarySpec& spec) {
  MatmulProblem problem = problem_of(spec);
  merge_batches(problem);
  const DType a_type = spec.operands[0]->dtype, b_type = spec.operands[1]->dtype, y_type = spec.results[0].dtype;
  const auto operand_a = [&](DType dtype) { return operand_desc(problem.a, dtype, problem.transposed_a); };
  const auto operand_b = [&](DType dtype) { return operand_desc(problem.b, dtype, problem.transposed_b); };
  const dnnl::memory::desc a = operand_a(computed_type(a_type)), b = operand_b(computed_type(b_type)), y = plain(problem.y, computed_type(y_type));
  const dnnl::memory::desc packed_b = should_pack_b(problem, size_of(b_type)) ? any(problem.b, computed_type(b_type)) : b;
  const dnnl::matmul::primitive_desc primitive_desc(dnnl::matmul::desc(a, packed_b, y), attributes(), engine());
  auto chain = std::make_unique<Chain>(1);
  const std::pair<int, MemoryId> arguments[] = {{DNNL_ARG_SRC, chain->operand(0, operand_a(a_type), a)},
                                                {DNNL_ARG_WEIGHTS, chain->operand(1, operand_b(b_type), primitive_desc.weights_desc())},
                                                {DNNL_ARG_DST, chain->result(0, plain(problem.y, y_type), y)}};
  chain->add(dnnl::matmul(primitive_desc), arguments, primitive_desc.scratchpad_desc());
  return chain;
}

}  // namespace hone::onednn
