#include "passes/axis_order.h"

#include <algorithm>
#include <numeric>

namespace hone {

AxisOrder identity_order(std::size_t rank) {
  AxisOrder order(rank);
  std::iota(order.begin(), order.end(), 0);
  return order;
}

bool is_identity(const AxisOrder& order) { return std::is_sorted(order.begin(), order.end()); }

AxisOrder inverse(const AxisOrder& order) {
  AxisOrder result(order.size());
  for (std::size_t i = 0; i < order.size(); ++i) result[static_cast<std::size_t>(order[i])] = static_cast<std::int64_t>(i);
  return result;
}

AxisOrder then(const AxisOrder& first, const AxisOrder& second) {
  AxisOrder order;
  for (const std::int64_t axis : second) order.push_back(first[static_cast<std::size_t>(axis)]);
  return order;
}

Shape in_order(const Shape& shape, const AxisOrder& order) {
  Shape result;
  for (const std::int64_t axis : order) result.push_back(shape[static_cast<std::size_t>(axis)]);
  return result;
}

bool moves_elements(const Shape& shape, const AxisOrder& order) {
  AxisOrder long_axes;
  for (const std::int64_t axis : order)
    if (not shape[static_cast<std::size_t>(axis)].is_constant(1)) long_axes.push_back(axis);
  return not is_identity(long_axes);
}

AxisGroups::AxisGroups(std::size_t value_count) {
  for (std::size_t i = 0; i < value_count; ++i) parents_.push_back({i, {}});
}

AxisGroups::Place AxisGroups::find(std::size_t value) {
  Place place = {value, {}};
  while (parents_[place.root].root != place.root) {
    const Place& parent = parents_[place.root];
    place = {parent.root, place.axes.empty() ? parent.axes : then(parent.axes, place.axes)};
  }
  parents_[value] = place;
  return place;
}

AxisOrder AxisGroups::axes(ValueId value, std::size_t rank) {
  Place place = find(value.index);
  return place.axes.empty() ? identity_order(rank) : std::move(place.axes);
}

void AxisGroups::join(ValueId a, ValueId b, const AxisOrder& order) {
  const std::size_t from = group(b), to = group(a);
  if (from == to) return;
  const AxisOrder wanted = then(axes(a, order.size()), order);  // axis i of b is this axis of a's group
  parents_[from] = {to, then(wanted, inverse(axes(b, order.size())))};
}

}  // namespace hone
