// Orders of axes, and which axes of different values are the same.
#pragma once

#include <vector>

#include "ir/graph.h"

namespace hone {

/// Axis i of the ordered tensor is axis order[i] of the tensor: transpose's `perm`.
using AxisOrder = Ints;

AxisOrder identity_order(std::size_t rank);
bool is_identity(const AxisOrder& order);
AxisOrder inverse(const AxisOrder& order);
/// transpose(transpose(x, first), second) = transpose(x, then(first, second)).
AxisOrder then(const AxisOrder& first, const AxisOrder& second);
Shape in_order(const Shape& shape, const AxisOrder& order);
/// Does the order move elements of a tensor of this shape? Where only axes of extent 1 change places it is a reshape.
bool moves_elements(const Shape& shape, const AxisOrder& order);

/// Values whose axes correspond, as those of x and y in y = relu(transpose(x)).
class AxisGroups {
 public:
  explicit AxisGroups(std::size_t value_count);
  /// Axis i of b is axis order[i] of a. What contradicts earlier calls is left out.
  void join(ValueId a, ValueId b, const AxisOrder& order);
  std::size_t group(ValueId value) { return find(value.index).root; }
  /// Axis i of `value` (of rank `rank`) is axis axes(value)[i] of its group.
  AxisOrder axes(ValueId value, std::size_t rank);

 private:
  struct Place {
    std::size_t root;
    AxisOrder axes;  ///< {}: the root itself
  };
  Place find(std::size_t value);
  std::vector<Place> parents_;
};

}  // namespace hone
