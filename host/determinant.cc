// Determinants and cofactors of square matrices, by Gaussian elimination with full pivoting in double.
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <numeric>
#include <utility>

#include "base/by_dtype.h"
#include "host/rules.h"

namespace hone::host {

namespace {

/// A row-major n x n matrix in memory that others keep.
struct Matrix {
  std::size_t n;
  std::span<double> elements;
  Matrix(std::size_t extent, HostScratch& scratch) : n(extent), elements(scratch.take<double>(extent * extent)) {}
  double& operator()(std::size_t i, std::size_t j) const { return elements[i * n + j]; }
};

/// a with row i taken from rows[i] and column j from columns[j] is L U: U on and above the diagonal, L (ones on it) below.
struct Factors {
  Matrix lu;
  std::span<std::size_t> rows, columns;
  double sign = 1;  ///< of both permutations together
  Factors(std::size_t n, HostScratch& scratch) : lu(n, scratch), rows(scratch.take<std::size_t>(n)), columns(scratch.take<std::size_t>(n)) {}
};

/// Of the matrix that lies in f.lu.
void factorize(Factors& f) {
  const Matrix& lu = f.lu;
  const std::size_t n = lu.n;
  f.sign = 1;
  for (const std::span<std::size_t> order : {f.rows, f.columns}) std::iota(order.begin(), order.end(), 0);
  for (std::size_t k = 0; k < n; ++k) {
    std::size_t row = k, column = k;
    for (std::size_t i = k; i < n; ++i)
      for (std::size_t j = k; j < n; ++j)
        if (std::fabs(lu(i, j)) > std::fabs(lu(row, column)) or std::isnan(lu(i, j))) row = i, column = j;  // NaN is taken, and spreads
    if (row != k) {
      for (std::size_t j = 0; j < n; ++j) std::swap(lu(row, j), lu(k, j));
      std::swap(f.rows[row], f.rows[k]);
      f.sign = -f.sign;
    }
    if (column != k) {
      for (std::size_t i = 0; i < n; ++i) std::swap(lu(i, column), lu(i, k));
      std::swap(f.columns[column], f.columns[k]);
      f.sign = -f.sign;
    }
    if (lu(k, k) == 0) break;  // so is all that is left
    for (std::size_t i = k + 1; i < n; ++i) {
      lu(i, k) /= lu(k, k);
      for (std::size_t j = k + 1; j < n; ++j) lu(i, j) -= lu(i, k) * lu(k, j);
    }
  }
}

double determinant(const Factors& f) {
  double product = f.sign;
  for (std::size_t k = 0; k < f.lu.n; ++k) product *= f.lu(k, k);
  return product;
}

/// The adjugate of U: with U = [V u; 0 m], it is [m adj(V), -adj(V) u; 0, det(V)], and adj(V) = det(V) V^-1: no division by m, which is 0 for a
/// singular matrix. V has no inverse either when the rank is below n - 1: then all is 0.
void adjugate_of_upper(const Matrix& lu, const Matrix& adjugate) {
  const std::size_t n = lu.n, last = n - 1;
  double det_v = 1;
  for (std::size_t k = 0; k < last; ++k) det_v *= lu(k, k);
  std::ranges::fill(adjugate.elements, 0);
  if (det_v == 0) return;
  for (std::size_t j = 0; j < n; ++j) {  // column j of V^-1, by substitution; of -V^-1 u for the last
    for (std::size_t i = last; i-- > 0;) {
      double rest = j == last ? -lu(i, last) : i == j ? 1 : 0;
      for (std::size_t k = i + 1; k < last; ++k) rest -= lu(i, k) * adjugate(k, j);
      adjugate(i, j) = rest / lu(i, i);
    }
  }
  for (std::size_t i = 0; i < last; ++i)
    for (std::size_t j = 0; j < n; ++j) adjugate(i, j) *= j == last ? det_v : det_v * lu(last, last);
  adjugate(last, last) = det_v;
}

/// With A = P^T L U Q^T: adj(A) = adj(Q^T) adj(U) adj(L) adj(P^T) = sign Q adj(U) L^-1 P; the cofactors are its transpose. `right` is room for work.
void cofactors_of(const Factors& f, const Matrix& right, const Matrix& cofactor) {
  const std::size_t n = f.lu.n;
  adjugate_of_upper(f.lu, right);
  for (std::size_t j = n; j-- > 0;)  // right L^-1: from the last column to the first
    for (std::size_t i = 0; i < n; ++i)
      for (std::size_t k = j + 1; k < n; ++k) right(i, j) -= right(i, k) * f.lu(k, j);
  for (std::size_t i = 0; i < n; ++i)
    for (std::size_t j = 0; j < n; ++j) cofactor(f.rows[j], f.columns[i]) = f.sign * right(i, j);
}

/// Calls `use(number of the matrix, its factors)` for each matrix of `x`.
template <typename T, typename Use>
void for_each_matrix(const HostTensor& x, HostScratch& scratch, Use use) {
  const auto n = static_cast<std::size_t>(x.shape.back()), size = n * n;
  std::size_t count = 1;
  for (std::size_t i = 0; i + 2 < x.shape.size(); ++i) count *= static_cast<std::size_t>(x.shape[i]);
  const T* from = x.elements<T>().data();
  Factors f(n, scratch);
  for (std::size_t i = 0; i < count; ++i) {
    for (std::size_t k = 0; k < size; ++k) f.lu.elements[k] = static_cast<double>(from[i * size + k]);
    factorize(f);
    use(i, f);
  }
}

void run_det(const HostAttributes&, std::span<const HostTensor> operands, std::span<const HostTensor> results, HostScratch& scratch) {
  by_dtype(operands[0].dtype, [&]<typename T>() {
    T* y = results[0].elements<T>().data();
    for_each_matrix<T>(operands[0], scratch, [&](std::size_t i, const Factors& f) { y[i] = static_cast<T>(determinant(f)); });
  });
}

void run_cofactors(const HostAttributes&, std::span<const HostTensor> operands, std::span<const HostTensor> results, HostScratch& scratch) {
  const auto n = static_cast<std::size_t>(operands[0].shape.back());
  const Matrix right(n, scratch), cofactor(n, scratch);
  by_dtype(operands[0].dtype, [&]<typename T>() {
    T* y = results[0].elements<T>().data();
    for_each_matrix<T>(operands[0], scratch, [&](std::size_t i, const Factors& f) {
      if (f.lu.n == 0) return;
      cofactors_of(f, right, cofactor);
      for (std::size_t k = 0; k < cofactor.elements.size(); ++k) y[i * cofactor.elements.size() + k] = static_cast<T>(cofactor.elements[k]);
    });
  });
}

std::string why_not_square(const HostTensor& x) { return x.shape.back() == x.shape[x.shape.size() - 2] ? "" : "matrices that are not square"; }

std::string fits_det(const HostAttributes&, HostTypes operands, HostTypes results) {
  const HostTensor& x = *operands[0];
  std::int64_t matrices = 1;
  for (std::size_t i = 0; i + 2 < x.shape.size(); ++i) matrices *= x.shape[i];
  return first_of({why_not_square(x), why_no_count("y", results[0], matrices)});
}

constexpr TensorRule kMatrices = {.name = "x", .types = kHeldTypes, .least_rank = 2};

}  // namespace

constinit const HostRules det_rules = {.call = {.operands = {kMatrices}, .results = {{.name = "y", .like = 0}}}, .fits = fits_det};
constinit const HostRules cofactors_rules = {
    .call = {.operands = {kMatrices}, .results = {{.name = "y", .like = 0}}},
    .fits = [](const HostAttributes&, HostTypes operands, HostTypes results) { return first_of({why_not_square(*operands[0]), why_no_same_shape("y", results[0], *operands[0])}); }};

constinit const HostFunction det = {.name = "det", .doc = "determinants of the matrices in the last two axes", .run = run_det};
constinit const HostFunction cofactors = {.name = "cofactors", .doc = "cofactors of the matrices in the last two axes", .run = run_cofactors};

}  // namespace hone::host
