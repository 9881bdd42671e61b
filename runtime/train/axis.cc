#include "runtime/train/axis.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace hone {

namespace {

constexpr double kLargest = 1e150;        // of what is drawn, and one over it the least but zero: sums and quotients stay finite
constexpr double kLogarithmicFrom = 100;  // largest value over least
constexpr double kAir = 0.05;             // of the span, at both ends
constexpr double kMostTicks = 6;

/// The least of 1, 2, 5 times a power of ten that is not less than `step`.
double even_step(double step) {
  const double power = std::pow(10.0, std::floor(std::log10(step)));
  for (const double factor : {1.0, 2.0, 5.0})
    if (factor * power >= step * (1 - 1e-9)) return factor * power;
  return 10 * power;
}

}  // namespace

Axis Axis::of_values(std::span<const double> values) {
  double low = kLargest, high = -kLargest;
  for (const double value : values) {
    if (not std::isfinite(value)) continue;
    const double drawn = std::abs(value) < 1 / kLargest ? 0 : std::clamp(value, -kLargest, kLargest);
    low = std::min(low, drawn);
    high = std::max(high, drawn);
  }
  if (low > high) return {0, 1, false, false};
  if (low > 0 and high / low > kLogarithmicFrom) {
    const double air = std::pow(high / low, kAir);
    return {low / air, high * air, true, false};
  }
  if (high - low <= std::abs(high) * 1e-9) {  // one value, or as good as one
    const double around = high == 0 ? 1 : std::abs(high) * 0.1;
    return {low - around, high + around, false, false};
  }
  const double air = kAir * (high - low);
  const double below = low >= 0 and low < 2 * air ? 0 : low - air;  // zero, where it is close
  return {below, high + air, false, false};
}

Axis Axis::of_counts(double first, double last) { return first < last ? Axis(first, last, false, true) : Axis(first - 0.5, first + 0.5, false, true); }

double Axis::place(double value) const {
  const double within = std::clamp(value, low_, high_);
  return logarithmic_ ? (std::log(within) - std::log(low_)) / (std::log(high_) - std::log(low_)) : (within - low_) / (high_ - low_);
}

std::vector<double> Axis::linear_ticks() const {
  double step = even_step((high_ - low_) / kMostTicks);
  if (whole_) step = std::max(1.0, step);
  std::vector<double> values;
  const double first = std::ceil(low_ / step - 1e-9), last = std::floor(high_ / step + 1e-9);
  for (double i = first; i <= last; ++i) values.push_back(i == 0 ? 0 : i * step);
  return values;
}

/// Powers of ten, every nth of them if there are many; twice and five times these, too, if there are few.
std::vector<double> Axis::logarithmic_ticks() const {
  const double first = std::log10(low_), last = std::log10(high_);
  const bool few = std::floor(last) - std::ceil(first) < 3;
  const double every = std::max(1.0, std::ceil((last - first) / kMostTicks));
  std::vector<double> values;
  for (double power = std::floor(first / every) * every; power <= last; power += every)
    for (const double factor : {1.0, 2.0, 5.0})
      if (const double value = factor * std::pow(10.0, power); (factor == 1 or few) and value >= low_ and value <= high_) values.push_back(value);
  return values;
}

std::vector<Tick> Axis::ticks() const {
  std::vector<Tick> ticks;
  for (const double value : logarithmic_ ? logarithmic_ticks() : linear_ticks()) ticks.push_back({place(value), fmt::format("{:.6g}", value)});
  return ticks;
}

}  // namespace hone
