// Ops that move elements: index maps, no arithmetic.
#include <fmt/format.h>

#include <algorithm>

#include "ir/ops/infer.h"
#include "ir/ops/ops.h"
#include "ir/ops/window.h"

namespace hone::op {

namespace {

Indices zeros(Compute& c, std::size_t count) { return Indices(count, c.index_constant(0)); }

/// Row-major position of `index` in `shape`.
Scalar linear(Compute& c, const Shape& shape, const Indices& index) {
  Scalar at = c.index_constant(0);
  for (std::size_t i = 0; i < shape.size(); ++i) at = at * c.size(shape[i]) + index[i];
  return at;
}

Indices delinearized(Compute& c, const Shape& shape, Scalar at) {
  Indices index(shape.size());
  for (std::size_t i = shape.size(); i-- > 0; at = expr::floordiv(at, c.size(shape[i]))) index[i] = i == 0 ? at : expr::mod(at, c.size(shape[i]));
  return index;
}

/// The rank of slice's or pad's operand, each axis of which has a start, a size and a step.
std::size_t ranged_axes(const Infer& infer) {
  const std::size_t rank = infer.rank(0);
  infer.require(infer.attrs[kStarts].size() == rank and infer.attrs[kSizes].size() == rank and infer.attrs[kSteps].size() == rank, Code::kBadAttribute,
                "needs a start, a size and a step for each axis");
  return rank;
}

/// What a pad with `attrs` put into y, as it was: a slice; from a y with zeros at its ends where the pad may have dropped elements of x, whose extents are
/// `shape`.
Val taken_back(Val y, const Attrs& attrs, const Shape& shape) {
  const Ints& steps = attrs[kSteps];
  Shape starts = attrs[kStarts], before(shape.size(), Dim(0)), sizes = y.shape();
  for (std::size_t i = 0; i < shape.size(); ++i) {
    const Dim first = steps[i] > 0 ? starts[i] : starts[i] + (shape[i] - 1) * steps[i], last = steps[i] > 0 ? starts[i] + (shape[i] - 1) * steps[i] : starts[i];
    before[i] = max(Dim(0), Dim(0) - first);
    starts[i] += before[i];
    sizes[i] = before[i] + max(sizes[i], last + 1);
  }
  if (sizes != y.shape()) y = op::pad(y, {kStarts = before, kSizes = sizes, kSteps = Ints(shape.size(), 1)});
  return op::slice(y, {kStarts = starts, kSizes = shape, kSteps = steps});
}

/// concat element by element: each is looked for in all operands. A formula of the operands, which known contents and whoever reads it can be written down by.
void choose_part(Compute& c) {
  const auto axis = static_cast<std::size_t>(c.attrs[kAxis]);
  const Indices at = c.outer(c.result_shape());
  Dim start = 0;
  Scalar value;
  for (std::size_t i = 0; i < c.count(); ++i) {
    Indices from = at;
    from[axis] = at[axis] - c.size(start);
    const Scalar inside = expr::logical_and(expr::greater_equal(at[axis], c.size(start)), expr::less(at[axis], c.size(start + c.shape(i)[axis])));
    const Scalar part = c.load_if(inside, i, from);
    value = value.valid() ? expr::select(inside, part, value) : part;
    start += c.shape(i)[axis];
  }
  c.store(0, at, value);
}

/// concat row by row: at each point before the axis one operand after the other, each a run of memory.
void copy_parts(Compute& c) {
  const auto axis = static_cast<std::ptrdiff_t>(c.attrs[kAxis]);
  const Shape& shape = c.result_shape();
  const Indices row = c.outer(Shape(shape.begin(), shape.begin() + axis));
  Dim start = 0;
  for (std::size_t i = 0; i < c.count(); ++i) {
    const Indices inner = c.inner(Shape(c.shape(i).begin() + axis, c.shape(i).end()));
    Indices from = row, to = row;
    from.insert(from.end(), inner.begin(), inner.end());
    to.push_back(inner[0] + c.size(start));
    to.insert(to.end(), inner.begin() + 1, inner.end());
    c.store(0, to, c.load(i, from));
    start += c.shape(i)[static_cast<std::size_t>(axis)];
  }
}

}  // namespace

constinit const OpDef reshape = {
    .name = "reshape",
    .doc = "y = x with the same elements in the same row-major order under another shape",
    .inputs = {"x"},
    .attrs = {kShape},
    .infer =
        [](Infer& infer) {
          const Shape& shape = infer.attrs[kShape];
          const Dim from = element_count(infer.shape(0)), to = element_count(shape);
          if (from != to) {
            infer.require(not(from.is_constant() and to.is_constant()), Code::kShape,
                          fmt::format("{} elements do not fit [{}] with {}", from.text(), to_string(shape), to.text()));
            infer.unify(from, to, "element counts");
          }
          return std::vector<Type>{{infer.dtype(0), shape}};
        },
    .grad = [](Grad& g) { g.flow(0, hone::reshape(g.dy(), g.x(0).shape())); },
    .compute =
        [](Compute& c) {
          const Indices at = c.outer(c.result_shape());
          c.store(0, at, c.load(0, delinearized(c, c.shape(0), linear(c, c.result_shape(), at))));
        },
};

constinit const OpDef transpose = {
    .name = "transpose",
    .doc = "y's axis i is x's axis perm[i]",
    .inputs = {"x"},
    .attrs = {kPerm},
    .infer =
        [](Infer& infer) {
          const Ints& perm = infer.attrs[kPerm];
          Ints sorted = perm;
          std::sort(sorted.begin(), sorted.end());
          infer.require(sorted == all_axes(infer.rank(0)), Code::kBadAttribute, "perm is no permutation of the axes");
          Type type{infer.dtype(0), {}};
          for (const std::int64_t axis : perm) type.shape.push_back(infer.shape(0)[static_cast<std::size_t>(axis)]);
          return std::vector<Type>{type};
        },
    .grad =
        [](Grad& g) {
          Ints inverse(g.attrs[kPerm].size());
          for (std::size_t i = 0; i < inverse.size(); ++i) inverse[static_cast<std::size_t>(g.attrs[kPerm][i])] = static_cast<std::int64_t>(i);
          g.flow(0, hone::transpose(g.dy(), inverse));
        },
    .compute =
        [](Compute& c) {
          const Indices at = c.outer(c.result_shape());
          Indices from(at.size());
          for (std::size_t i = 0; i < at.size(); ++i) from[static_cast<std::size_t>(c.attrs[kPerm][i])] = at[i];
          c.store(0, at, c.load(0, from));
        },
};

constinit const OpDef broadcast_to = {
    .name = "broadcast_to",
    .doc = "y = x repeated along new leading axes and axes of extent 1 until it has the given shape",
    .inputs = {"x"},
    .attrs = {kShape},
    .infer =
        [](Infer& infer) {
          const Shape shape = infer.broadcast(infer.shape(0), infer.attrs[kShape]);
          infer.require(shape.size() == infer.attrs[kShape].size(), Code::kShape, fmt::format("does not broadcast to [{}]", to_string(infer.attrs[kShape])));
          return std::vector<Type>{{infer.dtype(0), infer.attrs[kShape]}};
        },
    .grad = [](Grad& g) { g.flow(0, g.dy()); },  // flow() sums
    .compute =
        [](Compute& c) {
          const Indices at = c.outer(c.result_shape());
          const std::size_t extra = at.size() - c.shape(0).size();
          Indices from = zeros(c, c.shape(0).size());
          for (std::size_t i = 0; i < from.size(); ++i)
            if (not c.shape(0)[i].is_constant(1)) from[i] = at[i + extra];
          c.store(0, at, c.load(0, from));
        },
};

constinit const OpDef concat = {
    .name = "concat",
    .doc = "y = the operands one after another along an axis",
    .inputs = {"x..."},
    .attrs = {kAxis},
    .infer =
        [](Infer& infer) {
          Type type = infer.type(0);
          const auto axis = static_cast<std::size_t>(infer.attrs[kAxis]);
          infer.require(axis < type.shape.size(), Code::kBadAttribute, "axis out of range");
          for (std::size_t i = 1; i < infer.count(); ++i) {
            infer.require(infer.dtype(i) == type.dtype, Code::kType, "element types differ");
            infer.require(infer.rank(i) == type.shape.size(), Code::kShape, "ranks differ");
            for (std::size_t d = 0; d < type.shape.size(); ++d)
              type.shape[d] = d == axis ? type.shape[d] + infer.shape(i)[d] : infer.unify(type.shape[d], infer.shape(i)[d], "extents");
          }
          return std::vector<Type>{type};
        },
    .grad =
        [](Grad& g) {
          const auto axis = static_cast<std::size_t>(g.attrs[kAxis]);
          Shape starts(g.y().rank(), Dim(0));
          for (std::size_t i = 0; i < g.count(); ++i) {
            g.flow(i, op::slice(g.dy(), {kStarts = starts, kSizes = g.x(i).shape(), kSteps = Ints(starts.size(), 1)}));
            starts[axis] += g.x(i).shape()[axis];
          }
        },
    .compute = [](Compute& c) { c.attrs[kAxis] == 0 ? choose_part(c) : copy_parts(c); },
};

constinit const OpDef slice = {
    .name = "slice",
    .doc = "y[i...] = x[starts + i * steps ...] with extents sizes; steps may be negative, starts are positions in x",
    .inputs = {"x"},
    .attrs = {kStarts, kSizes, kSteps},
    .infer =
        [](Infer& infer) {
          const std::size_t rank = ranged_axes(infer);
          for (std::size_t i = 0; i < rank; ++i) {
            const Dim last = infer.attrs[kStarts][i] + (infer.attrs[kSizes][i] - 1) * Dim(infer.attrs[kSteps][i]), room = infer.shape(0)[i] - last;
            infer.require(
                infer.attrs[kSizes][i].is_constant(0) or ((not last.is_constant() or last.value() >= 0) and (not room.is_constant() or room.value() > 0)),
                Code::kShape, fmt::format("axis {}: elements up to {} of {} are asked for", i, last.text(), infer.shape(0)[i].text()));
          }
          return std::vector<Type>{{infer.dtype(0), infer.attrs[kSizes]}};
        },
    .grad =
        [](Grad& g) {
          g.flow(0, op::pad(g.dy(), {kStarts = g.attrs[kStarts], kSizes = g.x(0).shape(), kSteps = g.attrs[kSteps]}));
        },
    .compute =
        [](Compute& c) {
          const Indices at = c.outer(c.result_shape());
          Indices from;
          for (std::size_t i = 0; i < at.size(); ++i) from.push_back(c.size(c.attrs[kStarts][i]) + at[i] * static_cast<double>(c.attrs[kSteps][i]));
          c.store(0, at, c.load(0, from));
        },
};

constinit const OpDef pad = {
    .name = "pad",
    .doc =
        "the counterpart of slice: y is 0 but for y[starts + i * steps ...] = x[i ...]; y has extents sizes. Elements of x that fall outside of y are dropped",
    .inputs = {"x"},
    .attrs = {kStarts, kSizes, kSteps},
    .infer =
        [](Infer& infer) {
          ranged_axes(infer);
          return std::vector<Type>{{infer.dtype(0), infer.attrs[kSizes]}};
        },
    .grad = [](Grad& g) { g.flow(0, taken_back(g.dy(), g.attrs, g.x(0).shape())); },
    .compute =
        [](Compute& c) {
          const Indices at = c.outer(c.result_shape());
          Indices from;
          Scalar inside;
          for (std::size_t i = 0; i < at.size(); ++i) {
            const std::int64_t step = c.attrs[kSteps][i];
            const Dim start = c.attrs[kStarts][i], extent = c.shape(0)[i];
            if (step == 1 and start.is_constant(0) and extent == c.result_shape()[i]) {
              from.push_back(at[i]);
              continue;
            }
            const Scalar offset = at[i] - c.size(start);
            const Scalar position = step == 1 ? offset : expr::floordiv(offset, c.index_constant(step));
            inside = both(inside, within(c, position, extent));
            if (step != 1) inside = expr::logical_and(inside, expr::equal(offset, position * static_cast<double>(step)));
            from.push_back(position);
          }
          c.store(0, at, inside.valid() ? c.load_if(inside, 0, from) : c.load(0, from));
        },
};

constinit const OpDef sizes = {
    .name = "sizes",
    .doc = "y = the given sizes as a vector of i64: what Shape, Size and sizes fed into arithmetic become",
    .inputs = {},
    .attrs = {kSizes},
    .infer =
        [](Infer& infer) {
          infer.know(0, infer.attrs[kSizes]);
          return std::vector<Type>{{DType::kI64, {static_cast<std::int64_t>(infer.attrs[kSizes].size())}}};
        },
    .grad = no_gradient("its result is a size"),
    .compute =
        [](Compute& c) {
          const Indices at = c.outer(c.result_shape());
          Scalar value = c.index_constant(0);
          for (std::size_t i = c.attrs[kSizes].size(); i-- > 0;)
            value = expr::select(expr::equal(at[0], c.index_constant(static_cast<std::int64_t>(i))), c.size(c.attrs[kSizes][i]), value);
          c.store(0, at, value);
        },
};

}  // namespace hone::op
