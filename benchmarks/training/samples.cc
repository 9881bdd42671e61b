#include "benchmarks/training/samples.h"

#include <cmath>
#include <numbers>
#include <numeric>
#include <utility>

#include "base/philox.h"

namespace hone::benchmarks {

namespace {

/// One sequence of random numbers.
class Draws {
 public:
  explicit Draws(std::uint64_t stream) : stream_(stream) {}
  /// In [0, 1).
  double uniform() {
    if (is_second_ = not is_second_; not is_second_) return pair_.second;
    pair_ = philox_uniform(0, stream_, count_++);
    return pair_.first;
  }
  std::int64_t below(std::int64_t end) { return static_cast<std::int64_t>(uniform() * static_cast<double>(end)); }
  double normal() {
    const double radius = std::sqrt(-2 * std::log(1 - uniform()));
    return radius * std::cos(2 * std::numbers::pi * uniform());
  }

 private:
  std::uint64_t stream_, count_ = 0;
  std::pair<double, double> pair_;
  bool is_second_ = false;
};

template <typename T>
Tensor tensor(std::vector<std::int64_t> shape, const std::vector<T>& values) {
  return Tensor::of<T>(std::move(shape), std::span<const T>(values));
}

}  // namespace

Samples draw_images(std::int64_t count, const std::vector<std::int64_t>& shape, std::int64_t classes) {
  const std::int64_t size = std::accumulate(shape.begin(), shape.end(), std::int64_t{1}, std::multiplies<>());
  Draws draws(0);
  std::vector<float> prototypes(static_cast<std::size_t>(classes * size)), images(static_cast<std::size_t>(count * size));
  for (float& value : prototypes) value = static_cast<float>(draws.uniform());
  std::vector<std::int64_t> labels(static_cast<std::size_t>(count));
  for (std::int64_t i = 0; i < count; ++i) {
    const std::int64_t label = labels[static_cast<std::size_t>(i)] = draws.below(classes);
    for (std::int64_t k = 0; k < size; ++k)
      images[static_cast<std::size_t>(i * size + k)] = 0.5F * prototypes[static_cast<std::size_t>(label * size + k)] + 0.5F * static_cast<float>(draws.uniform());
  }
  std::vector<std::int64_t> all = {count};
  all.insert(all.end(), shape.begin(), shape.end());
  return {tensor(all, images), tensor({count}, labels)};
}

Samples draw_texts(std::int64_t count, std::int64_t length, std::int64_t vocabulary, std::int64_t classes) {
  Draws draws(1);
  std::vector<std::int32_t> words;
  std::vector<std::int64_t> labels;
  for (std::int64_t i = 0; i < count; ++i) {
    labels.push_back(draws.below(classes));
    const std::int64_t padding = length - (length / 5 + draws.below(length - length / 5 + 1));
    for (std::int64_t k = 0; k < length; ++k) {
      const auto rank = static_cast<std::int64_t>(std::exp(draws.uniform() * std::log(static_cast<double>(vocabulary - 200))));
      const std::int64_t shift = draws.uniform() < 0.3 ? 3 * labels.back() : 0;
      words.push_back(k < padding ? 0 : static_cast<std::int32_t>(3 + (rank + shift) % (vocabulary - 3)));
    }
  }
  return {tensor({count, length}, words), tensor({count}, labels)};
}

Samples draw_chains(std::int64_t count, std::int64_t length, std::int64_t vocabulary) {
  constexpr std::int64_t kLength = 200'000;
  Draws draws(2);
  std::vector<std::int64_t> next(static_cast<std::size_t>(vocabulary)), chain = {0};
  std::iota(next.begin(), next.end(), 0);
  for (std::size_t i = next.size(); i-- > 1;) std::swap(next[i], next[static_cast<std::size_t>(draws.below(static_cast<std::int64_t>(i) + 1))]);
  while (static_cast<std::int64_t>(chain.size()) < kLength)
    chain.push_back(draws.uniform() < 0.75 ? next[static_cast<std::size_t>(chain.back())] : draws.below(vocabulary));
  std::vector<std::int32_t> x;
  std::vector<std::int64_t> y;
  for (std::int64_t i = 0; i < count; ++i) {
    const auto at = chain.begin() + draws.below(kLength - length - 1);
    x.insert(x.end(), at, at + length);
    y.insert(y.end(), at + 1, at + 1 + length);
  }
  return {tensor({count, length}, x), tensor({count, length}, y)};
}

Samples draw_sums(std::int64_t count, std::int64_t size) {
  Draws draws(3);
  std::vector<float> x, y;
  for (std::int64_t i = 0; i < count; ++i) {
    double sum = 0;
    for (std::int64_t k = 0; k < size; ++k) {
      x.push_back(static_cast<float>(draws.normal()));
      sum += x.back();
    }
    y.push_back(static_cast<float>(std::sin(sum) + 0.5 * x[static_cast<std::size_t>(i * size)]));
  }
  return {tensor({count, size}, x), tensor({count, 1}, y)};
}

}  // namespace hone::benchmarks
