// Ops that move elements to or from places that are data: three ways of naming the places, each as a gather and as the scatter that is its adjoint.
#include "ir/kernel/scalar_math.h"
#include "ir/ops/infer.h"
#include "ir/ops/ops.h"
#include "ir/ops/window.h"

namespace hone::op {

namespace {

/// Where an element of y lies in x, and whether that is inside; invalid where it always is.
struct Place {
  Indices at;
  Scalar inside;
};
/// The place in a tensor of shape `x` that the index operand 1 names for the element `at` of the moved tensor.
using PlaceFn = Place (*)(Compute& c, const Shape& x, const Indices& at);

/// Negative indices count from the end.
Scalar resolved(Compute& c, Scalar index, Dim extent) {
  const Scalar at = expr::cast(index, DType::kI64);
  return expr::select(expr::less(at, c.index_constant(0)), at + c.size(extent), at);
}

std::ptrdiff_t axis_of(const Attrs& attrs) { return static_cast<std::ptrdiff_t>(attrs[kAxis]); }

/// x's axis stands for the axes of the index: x[a.., index[i..], b..] at [a.., i.., b..].
Place along_axis(Compute& c, const Shape& x, const Indices& at) {
  const Dim extent = x[static_cast<std::size_t>(c.attrs[kAxis])];
  const auto first = at.begin() + axis_of(c.attrs), last = first + static_cast<std::ptrdiff_t>(c.shape(1).size());
  Place place{Indices(at.begin(), first), {}};
  place.at.push_back(resolved(c, c.load(1, Indices(first, last)), extent));
  place.inside = within(c, place.at.back(), extent);
  place.at.insert(place.at.end(), last, at.end());
  return place;
}

/// An index for each element: x[a.., index[a.., i, b..], b..] at [a.., i, b..].
Place by_element(Compute& c, const Shape& x, const Indices& at) {
  const auto axis = static_cast<std::size_t>(c.attrs[kAxis]);
  Place place{at, {}};
  place.at[axis] = resolved(c, c.load(1, at), x[axis]);
  place.inside = within(c, place.at[axis], x[axis]);
  for (std::size_t i = 0; i < x.size(); ++i)  // what depends on numbers that are read when running nobody checks before
    if (i != axis and at_most(c.shape(1)[i], x[i])) place.inside = both(place.inside, within(c, at[i], x[i]));
  return place;
}

/// A tuple for each slice: x[b.., index[b.., i.., :].., s..] at [b.., i.., s..].
Place by_tuple(Compute& c, const Shape& x, const Indices& at) {
  const auto batch = static_cast<std::size_t>(c.attrs[kBatchDims]), leading = c.shape(1).size() - 1;
  const auto count = static_cast<std::size_t>(c.shape(1).back().value());
  Place place{Indices(at.begin(), at.begin() + static_cast<std::ptrdiff_t>(batch)), {}};
  Indices from(at.begin(), at.begin() + static_cast<std::ptrdiff_t>(leading));
  from.emplace_back();
  for (std::size_t i = 0; i < count; ++i) {
    from.back() = c.index_constant(static_cast<std::int64_t>(i));
    place.at.push_back(resolved(c, c.load(1, from), x[batch + i]));
    place.inside = both(place.inside, within(c, place.at.back(), x[batch + i]));
  }
  place.at.insert(place.at.end(), at.begin() + static_cast<std::ptrdiff_t>(leading), at.end());
  return place;
}

template <PlaceFn kPlace>
void compute_gather(Compute& c) {
  const Indices at = c.outer(c.result_shape());
  const Place from = kPlace(c, c.shape(0), at);
  const Scalar value = c.load_if(from.inside, 0, from.at);
  const bool marks = is_float(value.dtype()) and from.inside.valid();
  c.store(0, at, marks ? expr::select(from.inside, value, expr::like(value, __builtin_nan(""))) : value);
}

template <PlaceFn kPlace>
void compute_scatter(Compute& c, Combine combine) {
  const Shape& shape = c.result_shape();
  const Indices row = c.outer({shape[0]});
  Indices kept = c.inner(Shape(shape.begin() + 1, shape.end()));
  kept.insert(kept.begin(), row[0]);
  c.store(0, kept, c.has(2) ? c.load(2, kept) : c.number(arithmetic_type(c.result_type().dtype), 0));
  const Indices at = c.scatter(c.shape(0));
  const Place to = kPlace(c, shape, at);
  c.scatter_store(combine, 0, to.at, c.load(0, at), to.inside);
}

Combine combine_of(const Attrs& attrs) {
  const std::string& reduction = attrs[kReduction];
  return reduction == "add" ? Combine::kAdd : reduction == "mul" ? Combine::kMul : reduction == "max" ? Combine::kMax : reduction == "min" ? Combine::kMin : Combine::kReplace;
}

void require_index(const Infer& infer) {
  infer.require(is_integer(infer.dtype(1)), Code::kType, "the index must be integers");
}

void require_axis(const Infer& infer, std::size_t rank) {
  infer.require(infer.attrs[kAxis] >= 0 and infer.attrs[kAxis] < static_cast<std::int64_t>(rank), Code::kBadAttribute, "axis out of range");
}

/// How many axes one tuple of operand 1 names.
std::size_t tuple_size(const Infer& infer, std::size_t x_rank) {
  const std::int64_t batch = infer.attrs[kBatchDims];
  infer.require(infer.rank(1) > 0 and infer.shape(1).back().is_constant(), Code::kDynamic, "the last extent of the index must be a number");
  const std::int64_t count = infer.shape(1).back().value();
  infer.require(batch >= 0 and batch < static_cast<std::int64_t>(infer.rank(1)), Code::kBadAttribute, "batch_dims out of range");
  infer.require(batch + count <= static_cast<std::int64_t>(x_rank), Code::kShape, "the tuples of the index name more axes than there are");
  return static_cast<std::size_t>(count);
}

/// The result of a scatter: of the given shape, and what operand 2 is.
std::vector<Type> scattered_type(Infer& infer) {
  const Shape& shape = infer.attrs[kShape];
  const std::string& reduction = infer.attrs[kReduction];
  infer.require(not shape.empty(), Code::kShape, "there is no axis to scatter along");
  infer.require(reduction.empty() or combine_of(infer.attrs) != Combine::kReplace, Code::kBadAttribute, "the reduction is none of add, mul, max and min");
  infer.require(infer.has(2) or reduction.empty() or reduction == "add", Code::kBadAttribute, "the reduction needs x");
  infer.require(infer.dtype(0) != DType::kBool or (reduction != "add" and reduction != "mul"), Code::kType, "bools cannot be added or multiplied");
  if (infer.has(2)) {
    infer.require(infer.dtype(2) == infer.dtype(0) and infer.rank(2) == shape.size(), Code::kType, "x and the updates differ in type or rank");
    for (std::size_t i = 0; i < shape.size(); ++i) infer.unify(infer.shape(2)[i], shape[i], "extents");
  }
  return {{infer.dtype(0), shape}};
}

/// What the gradients of a scatter and of its gather are made of: both with the same index.
struct Pair {
  Val index;
  const OpDef &gather, &scatter;
  Attrs place;  ///< what names the places, without shape and reduction
  Shape shape;  ///< of x

  Val gathered(Val x) const { return gather(x, index, place); }
  Val scattered(Val updates, std::string reduction, Val x = {}) const {
    Attrs attrs = place;
    attrs.set(kShape = shape);
    attrs.set(kReduction = std::move(reduction));
    return scatter.build({updates, index, x}, attrs);
  }
};

Val ones_like(Val x) { return full(x.builder(), 1, x.dtype(), x.shape()); }
Val flags(Val condition, DType dtype) { return hone::cast(condition, dtype); }

/// Of updates that meet, the last one stays: each carries its number, and the one that is found again was the last.
Val is_last(const Pair& pair, Val updates) {
  Builder& builder = updates.builder();
  const Val numbers = hone::reshape(builder.add(op::iota, {}, {kShape = Shape{element_count(updates.shape())}})[0], updates.shape()) + 1.0;
  return op::equal(pair.gathered(pair.scattered(numbers, "")), numbers);
}

void flow_replaced(Grad& g, const Pair& pair) {
  const Val updates = g.x(0), dy = g.dy();
  g.flow(0, op::where(is_last(pair, updates), pair.gathered(dy), g.builder().scalar(0, dy.dtype())));
  if (g.has(2)) g.flow(2, pair.scattered(full(g.builder(), 0, dy.dtype(), updates.shape()), "", dy));
}

/// y = x * product of the updates. The product of all others is that of all without zeros, unless there are zeros among the others.
void flow_multiplied(Grad& g, const Pair& pair) {
  const Val updates = g.x(0), x = g.x(2), one = g.builder().scalar(1, x.dtype()), zero = g.builder().scalar(0, x.dtype());
  const Val is_zero = op::equal(updates, zero), without_zeros = op::where(is_zero, one, updates), ones = flags(is_zero, x.dtype());
  const Val product = pair.scattered(without_zeros, "mul", ones_like(x)), zeros = pair.scattered(ones, "add");
  const Val others = pair.gathered(g.dy() * x * product) / without_zeros;
  g.flow(0, op::where(op::equal(pair.gathered(zeros), ones), others, zero));
  g.flow(2, op::where(op::equal(zeros, zero), g.dy() * product, zero));
}

/// y = the largest or smallest of x and the updates: those that reach it share the gradient.
void flow_extreme(Grad& g, const Pair& pair) {
  const DType dtype = g.y().dtype();
  const Val update_wins = flags(op::equal(g.x(0), pair.gathered(g.y())), dtype), x_wins = flags(op::equal(g.x(2), g.y()), dtype);
  const Val share = g.dy() / (x_wins + pair.scattered(update_wins, "add"));
  g.flow(0, update_wins * pair.gathered(share));
  g.flow(2, x_wins * share);
}

void flow_scattered(Grad& g, const Pair& pair) {
  switch (combine_of(g.attrs)) {
    case Combine::kReplace: return flow_replaced(g, pair);
    case Combine::kMul: return flow_multiplied(g, pair);
    case Combine::kMax:
    case Combine::kMin: return flow_extreme(g, pair);
    case Combine::kAdd: break;
  }
  g.flow(0, pair.gathered(g.dy()));
  if (g.has(2)) g.flow(2, g.dy());
}

}  // namespace

constinit const OpDef gather = {
    .name = "gather",
    .doc = "y = x with its axis replaced by the axes of index: y[a.., i.., b..] = x[a.., index[i..], b..]. Negative indices count from the end; one out of range "
           "gives NaN (0 for integers): what is fed is checked before",
    .inputs = {"x", "index"},
    .attrs = {kAxis},
    .infer =
        [](Infer& infer) {
          require_index(infer);
          require_axis(infer, infer.rank(0));
          Type type = infer.type(0);
          const auto axis = type.shape.erase(type.shape.begin() + axis_of(infer.attrs));
          type.shape.insert(axis, infer.shape(1).begin(), infer.shape(1).end());
          return std::vector<Type>{type};
        },
    .grad = [](Grad& g) { g.flow(0, op::scatter_add(g.dy(), g.x(1), {kAxis = g.attrs[kAxis], kShape = g.x(0).shape()})); },
    .compute = compute_gather<along_axis>,
    .onnx = "Gather",
};

constinit const OpDef scatter_add = {
    .name = "scatter_add",
    .doc = "the gradient of gather: y of the given shape is 0, then y[a.., index[i..], b..] += x[a.., i.., b..], in index order. An index out of range adds nothing",
    .inputs = {"x", "index"},
    .attrs = {kAxis, kShape},
    .infer =
        [](Infer& infer) {
          require_index(infer);
          infer.require(infer.rank(0) + 1 == infer.rank(1) + infer.attrs[kShape].size(), Code::kShape, "ranks of operand, index and result do not fit");
          return std::vector<Type>{{infer.dtype(0), infer.attrs[kShape]}};
        },
    .grad = [](Grad& g) { g.flow(0, op::gather(g.dy(), g.x(1), {kAxis = g.attrs[kAxis]})); },
    .compute = [](Compute& c) { compute_scatter<along_axis>(c, Combine::kAdd); },
};

constinit const OpDef gather_elements = {
    .name = "gather_elements",
    .doc = "an index for each element of y: y[a.., i, b..] = x[a.., index[a.., i, b..], b..], of index's shape. Other axes of the index may be shorter than x's, not longer. Negative "
           "indices count from the end; one out of range gives NaN (0 for integers)",
    .inputs = {"x", "index"},
    .attrs = {kAxis},
    .infer =
        [](Infer& infer) {
          require_index(infer);
          require_axis(infer, infer.rank(0));
          infer.require(infer.rank(0) == infer.rank(1), Code::kShape, "operand and index differ in rank");
          for (std::size_t i = 0; i < infer.rank(0); ++i)
            if (i != static_cast<std::size_t>(infer.attrs[kAxis])) infer.at_most(infer.shape(1)[i], infer.shape(0)[i], "the index is longer than the operand");
          return std::vector<Type>{{infer.dtype(0), infer.shape(1)}};
        },
    .grad =
        [](Grad& g) {
          g.flow(0, op::scatter_elements(g.dy(), g.x(1), {kAxis = g.attrs[kAxis], kShape = g.x(0).shape(), kReduction = std::string("add")}));
        },
    .compute = compute_gather<by_element>,
};

constinit const OpDef scatter_elements = {
    .name = "scatter_elements",
    .doc = "an index for each update: y is x, or 0s of the given shape without x; then, in index order, y[a.., index[a.., i, b..], b..] = updates[a.., i, b..], or, by the "
           "reduction, that added, multiplied, or the larger or smaller of both (NaN if either is). An index out of range changes nothing. Updates that tie for the largest "
           "share the gradient",
    .inputs = {"updates", "index", "x?"},
    .attrs = {kAxis, kShape, kReduction},
    .infer =
        [](Infer& infer) {
          require_index(infer);
          require_axis(infer, infer.attrs[kShape].size());
          infer.require(infer.rank(0) == infer.rank(1) and infer.rank(0) == infer.attrs[kShape].size(), Code::kShape, "updates, index and result differ in rank");
          for (std::size_t i = 0; i < infer.rank(0); ++i) {
            infer.unify(infer.shape(0)[i], infer.shape(1)[i], "extents of updates and index");
            if (i != static_cast<std::size_t>(infer.attrs[kAxis])) infer.at_most(infer.shape(1)[i], infer.attrs[kShape][i], "the index is longer than the result");
          }
          return scattered_type(infer);
        },
    .grad = [](Grad& g) { flow_scattered(g, {g.x(1), op::gather_elements, op::scatter_elements, {kAxis = g.attrs[kAxis]}, g.y().shape()}); },
    .compute = [](Compute& c) { compute_scatter<by_element>(c, combine_of(c.attrs)); },
};

constinit const OpDef gather_nd = {
    .name = "gather_nd",
    .doc = "a tuple of indices, the last axis of index, for each slice of y: y[b.., i.., s..] = x[b.., index[b.., i.., :].., s..], where b.. are batch_dims axes. Negative "
           "indices count from the end; one out of range gives NaN (0 for integers)",
    .inputs = {"x", "index"},
    .attrs = {kBatchDims},
    .infer =
        [](Infer& infer) {
          require_index(infer);
          const std::size_t count = tuple_size(infer, infer.rank(0)), batch = static_cast<std::size_t>(infer.attrs[kBatchDims]);
          Type type{infer.dtype(0), Shape(infer.shape(1).begin(), infer.shape(1).end() - 1)};
          for (std::size_t i = 0; i < batch; ++i) infer.unify(infer.shape(0)[i], infer.shape(1)[i], "batch extents");
          type.shape.insert(type.shape.end(), infer.shape(0).begin() + static_cast<std::ptrdiff_t>(batch + count), infer.shape(0).end());
          return std::vector<Type>{type};
        },
    .grad =
        [](Grad& g) {
          g.flow(0, op::scatter_nd(g.dy(), g.x(1), {kBatchDims = g.attrs[kBatchDims], kShape = g.x(0).shape(), kReduction = std::string("add")}));
        },
    .compute = compute_gather<by_tuple>,
};

constinit const OpDef scatter_nd = {
    .name = "scatter_nd",
    .doc = "a tuple of indices, the last axis of index, for each slice of the updates: y is x, or 0s of the given shape without x; then, in index order, "
           "y[b.., index[b.., i.., :].., s..] = updates[b.., i.., s..], or combined by the reduction as in scatter_elements",
    .inputs = {"updates", "index", "x?"},
    .attrs = {kBatchDims, kShape, kReduction},
    .infer =
        [](Infer& infer) {
          require_index(infer);
          const Shape& shape = infer.attrs[kShape];
          const std::size_t count = tuple_size(infer, shape.size()), batch = static_cast<std::size_t>(infer.attrs[kBatchDims]), leading = infer.rank(1) - 1;
          infer.require(infer.rank(0) == leading + shape.size() - batch - count, Code::kShape, "ranks of updates, index and result do not fit");
          for (std::size_t i = 0; i < infer.rank(0); ++i)
            infer.unify(infer.shape(0)[i], i < leading ? infer.shape(1)[i] : shape[i - leading + batch + count], "extents of updates");
          return scattered_type(infer);
        },
    .grad = [](Grad& g) { flow_scattered(g, {g.x(1), op::gather_nd, op::scatter_nd, {kBatchDims = g.attrs[kBatchDims]}, g.y().shape()}); },
    .compute = [](Compute& c) { compute_scatter<by_tuple>(c, combine_of(c.attrs)); },
};

}  // namespace hone::op
