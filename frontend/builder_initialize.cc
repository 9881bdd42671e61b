#include "frontend/builder_initialize.h"

#include <fmt/format.h>

#include <cmath>
#include <span>

#include "base/philox.h"

namespace hone::nn {

namespace {

double glorot_limit(const std::vector<std::int64_t>& shape) {
  double in = 1, out = 1, window = 1;
  if (shape.size() == 2) in = static_cast<double>(shape[0]), out = static_cast<double>(shape[1]);
  for (std::size_t i = 2; i < shape.size(); ++i) window *= static_cast<double>(shape[i]);
  if (shape.size() > 2) in = static_cast<double>(shape[1]) * window, out = static_cast<double>(shape[0]) * window;
  return std::sqrt(6 / (in + out));
}

/// Normal vectors made orthonormal one after another (Gram & Schmidt), the shorter axis of the matrix counting them.
std::vector<double> orthonormal(std::size_t count, std::size_t length, std::uint64_t seed, std::uint64_t stream) {
  std::vector<double> vectors(count * length);
  for (std::size_t i = 0; i < vectors.size(); ++i) vectors[i] = philox_normal(seed, stream, i);
  for (std::size_t i = 0; i < count; ++i) {
    double* v = &vectors[i * length];
    for (std::size_t k = 0; k < i; ++k) {
      const double* u = &vectors[k * length];
      double along = 0;
      for (std::size_t j = 0; j < length; ++j) along += u[j] * v[j];
      for (std::size_t j = 0; j < length; ++j) v[j] -= along * u[j];
    }
    double square = 0;
    for (std::size_t j = 0; j < length; ++j) square += v[j] * v[j];
    for (std::size_t j = 0; j < length; ++j) v[j] /= std::sqrt(square);
  }
  return vectors;
}

void fill_orthogonal(std::span<float> values, const std::vector<std::int64_t>& shape, std::uint64_t seed, std::uint64_t stream) {
  if (shape.size() != 2) throw Error(Code::kShape, fmt::format("an orthogonal weight is a matrix, not one of {} axes", shape.size()), {}, {"draw it by another initializer"});
  const auto rows = static_cast<std::size_t>(shape[0]), columns = static_cast<std::size_t>(shape[1]);
  const bool by_row = rows <= columns;
  const std::vector<double> vectors = orthonormal(by_row ? rows : columns, by_row ? columns : rows, seed, stream);
  for (std::size_t i = 0; i < values.size(); ++i)
    values[i] = static_cast<float>(vectors[by_row ? i : i % columns * rows + i / columns]);
}

void check_scale(const Initializer& initializer) {
  const bool is_constant = initializer.kind == Initializer::Kind::kConstant;
  if (is_constant ? not std::isnan(initializer.scale) : std::isfinite(initializer.scale) and initializer.scale >= 0) return;
  throw Error(Code::kUsage, fmt::format("an initializer draws by {}", initializer.scale), {}, {is_constant ? "the elements of a weight are numbers" : "a limit and a deviation are finite, and 0 or more"});
}

}  // namespace

Tensor draw(const Initializer& initializer, std::vector<std::int64_t> shape, std::uint64_t seed, std::uint64_t stream) {
  using Kind = Initializer::Kind;
  check_scale(initializer);
  const double limit = initializer.kind == Kind::kGlorotUniform ? glorot_limit(shape) : initializer.scale;
  return Tensor::make(DType::kF32, shape, [&](std::span<std::byte> bytes) {
    const std::span<float> values(reinterpret_cast<float*>(bytes.data()), bytes.size() / sizeof(float));
    if (initializer.kind == Kind::kOrthogonal) return fill_orthogonal(values, shape, seed, stream);
    for (std::size_t i = 0; i < values.size(); ++i) {
      double value = limit;
      if (initializer.kind == Kind::kNormal) value *= philox_normal(seed, stream, i);
      else if (initializer.kind != Kind::kConstant) value *= 2 * philox_uniform(seed, stream, i).first - 1;
      values[i] = static_cast<float>(value);
    }
  });
}

}  // namespace hone::nn
