#include "tests/support/case_data.h"

#include <algorithm>
#include <cmath>

#include "base/philox.h"

namespace hone::test {

namespace {

/// 0..count-1 in an order that depends on `seed`.
std::vector<std::int64_t> shuffled(std::int64_t count, std::uint64_t seed) {
  std::vector<std::pair<std::pair<double, double>, std::int64_t>> keyed;
  for (std::int64_t i = 0; i < count; ++i) keyed.emplace_back(philox_uniform(seed, 0, static_cast<std::uint64_t>(i)), i);
  std::sort(keyed.begin(), keyed.end());
  std::vector<std::int64_t> order;
  for (const auto& [key, i] : keyed) order.push_back(i);
  return order;
}

}  // namespace

std::vector<double> distinct_values(std::int64_t count, double low, double high, std::size_t position) {
  const double offset = std::fmod(0.31 + 0.137 * static_cast<double>(position), 1.0), width = high - low;  // a grid in random order
  std::vector<double> values;
  for (const std::int64_t place : shuffled(count, position + 1))
    values.push_back(low + width * (static_cast<double>(place) + offset) / static_cast<double>(count));
  return values;
}

std::vector<double> whole_values(std::int64_t count, double low, double high, std::size_t position) {
  std::vector<double> values;
  for (std::int64_t i = 0; i < count; ++i)
    values.push_back(low + std::floor((high - low + 1) * philox_uniform(position + 1, 1, static_cast<std::uint64_t>(i)).first));
  return values;
}

}  // namespace hone::test
