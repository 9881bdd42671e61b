// Axes that are fed: what depends on them is computed when running, by ordinary ops, and read as sizes (Builder::materialize).
#pragma once

#include "frontend/onnx/node.h"

namespace hone::onnx {

/// Elements of `values`, whole numbers of any type, as sizes that are read when running; `name` for their symbols.
std::vector<Dim> read_sizes(const ImportNode& node, Val values, std::string_view name, Builder::Sign sign = Builder::Sign::kNotNegative);

/// Axes of a tensor of `rank`: a vector of integers; negative ones count from the end. Wrong axes name none: the sizes that follow do not fit then.
class FedAxes {
 public:
  FedAxes(const ImportNode& node, Val axes, std::size_t rank);

  /// For each axis of the tensor the element of `values` that belongs to it, or else of `absent`. values: i64[number of named axes], absent: i64[rank]
  Val spread(Val values, Val absent) const;
  /// `shape` with each axis as two, [others, named]: (extent, 1), or (1, extent) for a named one.
  Shape split(const Shape& shape) const;
  /// `shape`, of which the named axes are left out.
  Shape without(const Shape& shape) const;
  /// `shape`, into which the named axes are put with extent 1.
  Shape with_ones(const Shape& shape) const;
  /// The extents before the (one) named axis, its own, and those behind it, multiplied.
  Shape around(const Shape& shape) const;

 private:
  Val positions() const;
  Val extents(const Shape& shape) const;

  const ImportNode& node_;
  std::size_t rank_;
  std::int64_t count_ = 0;
  Val matches_;  ///< bool[rank, number of named axes]
  Val is_named_;  ///< bool[rank]
};

}  // namespace hone::onnx
