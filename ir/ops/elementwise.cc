// Elementwise arithmetic. Operands broadcast as in numpy and have one element type.
#include <fmt/format.h>

#include "ir/ops/infer.h"
#include "ir/ops/ops.h"

namespace hone {

std::vector<Type> infer_elementwise(Infer& infer) {
  Type type = infer.type(0);
  for (std::size_t i = 1; i < infer.count(); ++i) {
    infer.require(infer.dtype(i) == type.dtype, Code::kType, fmt::format("element types differ: {} and {}", to_string(type.dtype), to_string(infer.dtype(i))));
    type.shape = infer.broadcast(type.shape, infer.shape(i));
  }
  return {type};
}

std::vector<Type> infer_float_elementwise(Infer& infer) {
  infer.require(is_float(infer.dtype(0)), Code::kType, fmt::format("needs floats, got {}", to_string(infer.dtype(0))));
  return infer_elementwise(infer);
}

Ints all_axes(std::size_t rank) {
  Ints axes(rank);
  for (std::size_t i = 0; i < rank; ++i) axes[i] = static_cast<std::int64_t>(i);
  return axes;
}

Ints all_axes_but(std::size_t rank, std::size_t axis) {
  Ints axes = all_axes(rank);
  axes.erase(axes.begin() + static_cast<std::ptrdiff_t>(axis));
  return axes;
}

std::optional<std::size_t> only_axis(const Shape& shape) {
  std::optional<std::size_t> only;
  for (std::size_t axis = 0; axis < shape.size(); ++axis) {
    if (shape[axis].is_constant(1)) continue;
    if (only) return std::nullopt;
    only = axis;
  }
  return only;
}

namespace {

std::optional<Rounding> rounding_named(std::string_view name) {
  if (name.empty() or name == "nearest") return Rounding::kNearest;
  return name == "up" ? std::optional(Rounding::kUp) : name == "down" ? std::optional(Rounding::kDown) : std::nullopt;
}

}  // namespace

namespace op {

constinit const OpDef add = {
    .name = "add",
    .doc = "y = a + b",
    .inputs = {"a", "b"},
    .infer = infer_elementwise,
    .grad = [](Grad& g) { g.flow(0, g.dy()), g.flow(1, g.dy()); },
    .scalar = [](const Args& x) { return x[0] + x[1]; },
    .onnx = "Add",
};

constinit const OpDef sub = {
    .name = "sub",
    .doc = "y = a - b",
    .inputs = {"a", "b"},
    .infer = infer_elementwise,
    .grad = [](Grad& g) { g.flow(0, g.dy()), g.flow(1, -g.dy()); },
    .scalar = [](const Args& x) { return x[0] - x[1]; },
    .onnx = "Sub",
};

constinit const OpDef mul = {
    .name = "mul",
    .doc = "y = a * b",
    .inputs = {"a", "b"},
    .infer = infer_elementwise,
    .grad = [](Grad& g) { g.flow(0, g.dy() * g.x(1)), g.flow(1, g.dy() * g.x(0)); },
    .scalar = [](const Args& x) { return x[0] * x[1]; },
    .onnx = "Mul",
};

constinit const OpDef div = {
    .name = "div",
    .doc = "y = a / b; integers truncate, and give 0 where b is 0",
    .inputs = {"a", "b"},
    .infer = infer_elementwise,
    .grad = [](Grad& g) { g.flow(0, g.dy() / g.x(1)), g.flow(1, -(g.dy() * g.y() / g.x(1))); },
    .scalar = [](const Args& x) { return x[0] / x[1]; },
    .onnx = "Div",
};

constinit const OpDef pow = {
    .name = "pow",
    .doc = "y = a to the power b, as C's pow. The gradient of b is 0 where a is 0, as in PyTorch",
    .inputs = {"a", "b"},
    .infer = infer_elementwise,
    .grad =
        [](Grad& g) {
          const Val zero = g.builder().scalar(0, g.x(0).dtype()), one = g.builder().scalar(1, g.x(0).dtype());
          // b * a^(b-1), and 0 where b is 0: a^-1 may be infinite there
          g.flow(0, op::where(op::equal(g.x(1), zero), hone::broadcast_to(zero, g.y().shape()), g.dy() * g.x(1) * op::pow(g.x(0), g.x(1) - 1.0)));
          const Val is_zero = op::equal(g.x(0), zero);
          g.flow(1, op::where(is_zero, hone::broadcast_to(zero, g.y().shape()), g.dy() * g.y() * op::log(op::where(is_zero, one, g.x(0)))));
        },
    .scalar = [](const Args& x) { return expr::pow(x[0], x[1]); },
};

/// The gradient of max and min goes to the operand that was taken; both get half where they are equal (as torch.maximum).
template <const OpDef& kTaken>
void grad_extremum(Grad& g) {
  const Val zero = g.builder().scalar(0, g.dy().dtype());
  const Val tie = op::equal(g.x(0), g.x(1)), half = g.dy() * 0.5;
  g.flow(0, op::where(tie, half, op::where(kTaken(g.x(0), g.x(1)), g.dy(), zero)));
  g.flow(1, op::where(tie, half, op::where(kTaken(g.x(1), g.x(0)), g.dy(), zero)));
}

constinit const OpDef maximum = {
    .name = "maximum",
    .doc = "y = max(a, b); NaN if either is",
    .inputs = {"a", "b"},
    .infer = infer_elementwise,
    .grad = grad_extremum<op::greater>,
    .scalar = [](const Args& x) { return expr::max(x[0], x[1]); },
};

constinit const OpDef minimum = {
    .name = "minimum",
    .doc = "y = min(a, b); NaN if either is",
    .inputs = {"a", "b"},
    .infer = infer_elementwise,
    .grad = grad_extremum<op::less>,
    .scalar = [](const Args& x) { return expr::min(x[0], x[1]); },
};

constinit const OpDef neg = {
    .name = "neg",
    .doc = "y = -x",
    .inputs = {"x"},
    .infer = like_input<0>,
    .grad = [](Grad& g) { g.flow(0, -g.dy()); },
    .scalar = [](const Args& x) { return -x[0]; },
    .onnx = "Neg",
};

constinit const OpDef abs = {
    .name = "abs",
    .doc = "y = |x|; the gradient at 0 is 0",
    .inputs = {"x"},
    .infer = like_input<0>,
    .grad = [](Grad& g) { g.flow(0, g.dy() * op::sign(g.x(0))); },
    .scalar = [](const Args& x) { return expr::abs(x[0]); },
    .onnx = "Abs",
};

constinit const OpDef sign = {
    .name = "sign",
    .doc = "y = -1, 0 or 1",
    .inputs = {"x"},
    .infer = like_input<0>,
    .grad = no_gradient("its derivative is 0 wherever there is one"),
    .scalar = [](const Args& x) { return expr::sign(x[0]); },
    .onnx = "Sign",
};

constinit const OpDef exp = {
    .name = "exp",
    .doc = "y = e^x",
    .inputs = {"x"},
    .infer = infer_float_elementwise,
    .grad = [](Grad& g) { g.flow(0, g.dy() * g.y()); },
    .scalar = [](const Args& x) { return expr::exp(x[0]); },
    .onnx = "Exp",
};

constinit const OpDef log = {
    .name = "log",
    .doc = "y = natural logarithm of x; -inf at 0, NaN below",
    .inputs = {"x"},
    .infer = infer_float_elementwise,
    .grad = [](Grad& g) { g.flow(0, g.dy() / g.x(0)); },
    .scalar = [](const Args& x) { return expr::log(x[0]); },
    .onnx = "Log",
};

constinit const OpDef sqrt = {
    .name = "sqrt",
    .doc = "y = square root of x; NaN below 0",
    .inputs = {"x"},
    .infer = infer_float_elementwise,
    .grad = [](Grad& g) { g.flow(0, g.dy() * 0.5 / g.y()); },
    .scalar = [](const Args& x) { return expr::sqrt(x[0]); },
    .onnx = "Sqrt",
};

constinit const OpDef tanh = {
    .name = "tanh",
    .doc = "y = tanh(x)",
    .inputs = {"x"},
    .infer = infer_float_elementwise,
    .grad = [](Grad& g) { g.flow(0, g.dy() * (1.0 - square(g.y()))); },
    .scalar = [](const Args& x) { return expr::tanh(x[0]); },
    .onnx = "Tanh",
};

constinit const OpDef sigmoid = {
    .name = "sigmoid",
    .doc = "y = 1 / (1 + e^-x)",
    .inputs = {"x"},
    .infer = infer_float_elementwise,
    .grad = [](Grad& g) { g.flow(0, g.dy() * g.y() * (1.0 - g.y())); },
    .scalar = [](const Args& x) { return expr::sigmoid(x[0]); },
    .onnx = "Sigmoid",
};

constinit const OpDef relu = {
    .name = "relu",
    .doc = "y = max(x, 0); NaN stays NaN; the gradient at 0 is 0",
    .inputs = {"x"},
    .infer = like_input<0>,
    .grad =
        [](Grad& g) {
          const Val zero = g.builder().scalar(0, g.y().dtype());
          g.flow(0, op::where(op::greater(g.y(), zero), g.dy(), zero));
        },
    .scalar = [](const Args& x) { return expr::max(x[0], expr::like(x[0], 0)); },
    .onnx = "Relu",
};

constinit const OpDef softplus = {
    .name = "softplus",
    .doc = "y = log(1 + e^x), without overflow",
    .inputs = {"x"},
    .infer = infer_float_elementwise,
    .grad = [](Grad& g) { g.flow(0, g.dy() * op::sigmoid(g.x(0))); },
    .scalar = [](const Args& x) { return expr::max(x[0], expr::like(x[0], 0)) + expr::log1p(expr::exp(-expr::abs(x[0]))); },
    .onnx = "Softplus",
};

constinit const OpDef erf = {
    .name = "erf",
    .doc = "y = the error function of x",
    .inputs = {"x"},
    .infer = infer_float_elementwise,
    .grad = [](Grad& g) { g.flow(0, g.dy() * op::exp(-square(g.x(0))) * 1.1283791670955126); },  // 2 / sqrt(pi)
    .scalar = [](const Args& x) { return expr::erf(x[0]); },
    .onnx = "Erf",
};

constinit const OpDef floor = {
    .name = "floor",
    .doc = "y = the largest whole number not above x",
    .inputs = {"x"},
    .infer = infer_float_elementwise,
    .grad = no_gradient("its derivative is 0 wherever there is one"),
    .scalar = [](const Args& x) { return expr::floor(x[0]); },
    .onnx = "Floor",
};

constinit const OpDef clip = {
    .name = "clip",
    .doc = "y = min(max(x, low), high): high wins where low > high. The gradient is dy where low < x < high, and that of the bound where it is taken; at a bound there is none, as PyTorch has it and TensorFlow's relu6",
    .inputs = {"x", "low", "high"},
    .infer = infer_elementwise,
    .grad =
        [](Grad& g) {
          const Val zero = g.builder().scalar(0, g.dy().dtype()), above = op::greater(op::maximum(g.x(0), g.x(1)), g.x(2));
          const Val below = op::less(g.x(0), g.x(1)), inside = op::logical_and(op::greater(g.x(0), g.x(1)), op::less(g.x(0), g.x(2)));
          g.flow(0, op::where(inside, g.dy(), zero));
          g.flow(1, op::where(op::logical_and(below, op::logical_not(above)), g.dy(), zero));
          g.flow(2, op::where(above, g.dy(), zero));
        },
    .scalar = [](const Args& x) { return expr::min(expr::max(x[0], x[1]), x[2]); },
};

constinit const OpDef cast = {
    .name = "cast",
    .doc =
        "y = x as another element type; floats truncate to integers and saturate, integers keep their low bits (those of 4 and 2 bits whatever x is), anything but 0 "
        "is true. Floats that are storage only are rounded once, to nearest even; with `saturate` what is too large for one of 8 bits becomes its largest number, else "
        "infinity or NaN. `rounding` to f8e8m0: up (away from 0), down, or nearest, which is the default. The gradient passes straight through",
    .inputs = {"x"},
    .attrs = {kTo, kSaturate, kRounding},
    .infer =
        [](Infer& infer) {
          infer.require(rounding_named(infer.attrs[kRounding]).has_value(), Code::kBadAttribute, "the rounding must be up, down or nearest");
          return std::vector<Type>{{infer.attrs[kTo], infer.shape(0)}};
        },
    .grad =
        [](Grad& g) {
          if (is_float(g.y().dtype())) g.flow(0, g.dy());
        },
    .scalar = [](const Args& x) { return expr::round_to(x[0], {x.result, *rounding_named(x.attrs[kRounding]), x.attrs[kSaturate]}); },
};

constinit const OpDef stop_gradient = {
    .name = "stop_gradient",
    .doc = "y = x, as a constant to every gradient",
    .inputs = {"x"},
    .infer = like_input<0>,
    .grad = no_gradient("it is there to stop the gradient"),
    .scalar = [](const Args& x) { return x[0]; },
};

}  // namespace op
}  // namespace hone
