// Reductions over a set of axes.
#include <fmt/format.h>

#include <algorithm>

#include "ir/kernel/scalar_math.h"
#include "ir/ops/infer.h"
#include "ir/ops/ops.h"

namespace hone::op {

namespace {

bool is_reduced(const Attrs& attrs, std::size_t axis) {
  const Ints& axes = attrs[kAxes];
  return std::find(axes.begin(), axes.end(), static_cast<std::int64_t>(axis)) != axes.end();
}

std::vector<Type> infer_reduce(Infer& infer) {
  const Ints& axes = infer.attrs[kAxes];
  for (std::size_t i = 0; i < axes.size(); ++i)
    infer.require(axes[i] >= 0 and axes[i] < static_cast<std::int64_t>(infer.rank(0)) and (i == 0 or axes[i] > axes[i - 1]), Code::kBadAttribute,
                  "axes must be sorted, different and within the rank");
  Type type{infer.dtype(0), {}};
  for (std::size_t i = 0; i < infer.rank(0); ++i) {
    if (not is_reduced(infer.attrs, i)) type.shape.push_back(infer.shape(0)[i]);
    else if (infer.attrs[kKeepDims]) type.shape.push_back(1);
  }
  return {type};
}

/// y at an outer index = the reduction of x over the reduced axes.
template <ReduceKind kKind>
void compute_reduce(Compute& c) {
  const Indices at = c.outer(c.result_shape());
  Shape extents;
  for (std::size_t i = 0; i < c.shape(0).size(); ++i)
    if (is_reduced(c.attrs, i)) extents.push_back(c.shape(0)[i]);
  const Indices inner = c.inner(extents);
  Indices from;
  std::size_t outer_axis = 0, inner_axis = 0;
  for (std::size_t i = 0; i < c.shape(0).size(); ++i) {
    const bool reduced = is_reduced(c.attrs, i);
    from.push_back(reduced ? inner[inner_axis++] : at[outer_axis]);
    outer_axis += not reduced or c.attrs[kKeepDims];
  }
  c.store(0, at, c.reduce(kKind, c.load(0, from)));
}

/// `reduced` with the axes that the reduction dropped put back with extent 1.
Val with_reduced_axes(Grad& g, Val reduced) {
  Shape shape = g.x(0).shape();
  for (const std::int64_t axis : g.attrs[kAxes]) shape[static_cast<std::size_t>(axis)] = 1;
  return hone::reshape(reduced, shape);
}

Dim reduced_count(const Shape& shape, const Attrs& attrs) {
  Dim count = 1;
  for (const std::int64_t axis : attrs[kAxes]) count *= shape[static_cast<std::size_t>(axis)];
  return count;
}

/// The elements that are the extremum share its gradient.
void grad_extremum(Grad& g) {
  const Val zero = g.builder().scalar(0, g.dy().dtype()), one = g.builder().scalar(1, g.dy().dtype());
  const Val taken = op::where(op::equal(g.x(0), with_reduced_axes(g, g.y())), one, zero);
  g.flow(0, taken * (with_reduced_axes(g, g.dy()) / hone::sum(taken, g.attrs[kAxes], true)));
}

std::vector<Type> infer_position(Infer& infer) {
  infer.require(infer.attrs[kAxis] >= 0 and infer.attrs[kAxis] < static_cast<std::int64_t>(infer.rank(0)), Code::kBadAttribute, "axis out of range");
  Type type{DType::kI64, infer.shape(0)};
  type.shape.erase(type.shape.begin() + infer.attrs[kAxis]);
  return {type};
}

template <ReduceKind kKind>
void compute_position(Compute& c) {
  const Indices at = c.outer(c.result_shape());
  Indices from = at;
  const Indices inner = c.inner({c.shape(0)[static_cast<std::size_t>(c.attrs[kAxis])]});
  from.insert(from.begin() + c.attrs[kAxis], inner[0]);
  c.store(0, at, c.reduce(kKind, c.load(0, from)));
}

}  // namespace

constinit const OpDef reduce_sum = {
    .name = "reduce_sum",
    .doc = "y = sum of x over axes; 0 over no elements",
    .inputs = {"x"},
    .attrs = {kAxes, kKeepDims},
    .infer = infer_reduce,
    .grad = [](Grad& g) { g.flow(0, hone::broadcast_to(with_reduced_axes(g, g.dy()), g.x(0).shape())); },
    .compute = compute_reduce<ReduceKind::kSum>,
};

constinit const OpDef reduce_prod = {
    .name = "reduce_prod",
    .doc = "y = product of x over axes; 1 over no elements. The gradient of an element is the product of the others, also where some are 0",
    .inputs = {"x"},
    .attrs = {kAxes, kKeepDims},
    .infer = infer_reduce,
    .grad =
        [](Grad& g) {
          const Val zero = g.builder().scalar(0, g.dy().dtype()), one = g.builder().scalar(1, g.dy().dtype());
          const Val is_zero = op::equal(g.x(0), zero), nonzero = op::where(is_zero, one, g.x(0));
          const Val zeros = hone::sum(op::where(is_zero, one, zero), g.attrs[kAxes], true);
          const Val product = op::reduce_prod(nonzero, {kAxes = g.attrs[kAxes], kKeepDims = true});
          const Val others = op::where(op::equal(zeros, op::where(is_zero, one, zero)), product / nonzero, zero);  // no 0 but perhaps the element itself
          g.flow(0, others * with_reduced_axes(g, g.dy()));
        },
    .compute = compute_reduce<ReduceKind::kProd>,
};

constinit const OpDef reduce_max = {
    .name = "reduce_max",
    .doc = "y = largest of x over axes; NaN if any is, -inf (the lowest integer) over no elements. Equal largest elements share the gradient evenly (as torch.amax)",
    .inputs = {"x"},
    .attrs = {kAxes, kKeepDims},
    .infer = infer_reduce,
    .grad = grad_extremum,
    .compute = compute_reduce<ReduceKind::kMax>,
};

constinit const OpDef reduce_min = {
    .name = "reduce_min",
    .doc = "y = smallest of x over axes; NaN if any is, +inf (the highest integer) over no elements. Equal smallest elements share the gradient evenly (as torch.amin)",
    .inputs = {"x"},
    .attrs = {kAxes, kKeepDims},
    .infer = infer_reduce,
    .grad = grad_extremum,
    .compute = compute_reduce<ReduceKind::kMin>,
};

constinit const OpDef reduce_mean = {
    .name = "reduce_mean",
    .doc = "y = mean of x over axes",
    .inputs = {"x"},
    .attrs = {kAxes, kKeepDims},
    .infer = infer_reduce,
    .lower =
        [](const Lower& l) {
          const DType dtype = l.x(0).dtype(), wide = arithmetic_type(dtype);  // neither the sum nor the number of elements may fit the narrow one
          const Val total = hone::sum(hone::cast(l.x(0), wide), l.attrs[kAxes], l.attrs[kKeepDims]);
          return std::vector<Val>{hone::cast(total / size_value(l.builder, reduced_count(l.x(0).shape(), l.attrs), wide), dtype)};
        },
};

constinit const OpDef argmax = {
    .name = "argmax",
    .doc = "y = position (i64) of the first largest element along axis; the first NaN, if there is one. The axis is dropped",
    .inputs = {"x"},
    .attrs = {kAxis},
    .infer = infer_position,
    .grad = no_gradient("its result is a position"),
    .compute = compute_position<ReduceKind::kArgMax>,
};

constinit const OpDef argmin = {
    .name = "argmin",
    .doc = "y = position (i64) of the first smallest element along axis; the first NaN, if there is one. The axis is dropped",
    .inputs = {"x"},
    .attrs = {kAxis},
    .infer = infer_position,
    .grad = no_gradient("its result is a position"),
    .compute = compute_position<ReduceKind::kArgMin>,
};

}  // namespace hone::op
