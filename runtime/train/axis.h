// An axis of a picture: which numbers it spans, on which scale, and where its ticks are.
#pragma once

#include <span>
#include <string>
#include <vector>

namespace hone {

struct Tick {
  double place = 0;  ///< 0 at the low end of the axis, 1 at its high end
  std::string label;
};

class Axis {
 public:
  /// For values: with some air at both ends, or even ends where that costs little. Logarithmic where all are positive and span more than two powers of ten. What is
  /// not finite counts for nothing; without any finite value it goes from 0 to 1.
  static Axis of_values(std::span<const double> values);
  /// For numbers of epochs or steps, first <= last: from the first to the last, ticks at whole numbers.
  static Axis of_counts(double first, double last);

  /// Between 0 and 1 for what the axis spans. `value` is finite, and positive on a logarithmic axis.
  double place(double value) const;
  /// Two to eleven, ascending; of a single epoch one: multiples of 1, 2 or 5 times a power of ten.
  std::vector<Tick> ticks() const;
  bool is_logarithmic() const { return logarithmic_; }

 private:
  Axis(double low, double high, bool logarithmic, bool whole) : low_(low), high_(high), logarithmic_(logarithmic), whole_(whole) {}
  std::vector<double> linear_ticks() const;
  std::vector<double> logarithmic_ticks() const;

  double low_, high_;  // low < high
  bool logarithmic_, whole_;
};

}  // namespace hone
