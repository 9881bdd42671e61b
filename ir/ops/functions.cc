// Functions of one number, remainders and gelu.
#include <fmt/format.h>

#include "ir/ops/infer.h"
#include "ir/ops/ops.h"

namespace hone::op {

namespace {

constexpr std::string_view kFlat = "its derivative is 0 wherever there is one";

/// y = a - q b with q = (a - y) / b a whole number, which the gradient takes for a constant.
void grad_remainder(Grad& g) {
  g.flow(0, g.dy());
  g.flow(1, -(g.dy() * op::round((g.x(0) - g.y()) / g.x(1))));
}

}  // namespace

constinit const OpDef sin = {
    .name = "sin",
    .doc = "y = sin(x); NaN for infinite x",
    .inputs = {"x"},
    .infer = infer_float_elementwise,
    .grad = [](Grad& g) { g.flow(0, g.dy() * op::cos(g.x(0))); },
    .scalar = [](const Args& x) { return expr::sin(x[0]); },
    .onnx = "Sin",
};

constinit const OpDef cos = {
    .name = "cos",
    .doc = "y = cos(x); NaN for infinite x",
    .inputs = {"x"},
    .infer = infer_float_elementwise,
    .grad = [](Grad& g) { g.flow(0, -(g.dy() * op::sin(g.x(0)))); },
    .scalar = [](const Args& x) { return expr::cos(x[0]); },
    .onnx = "Cos",
};

constinit const OpDef tan = {
    .name = "tan",
    .doc = "y = tan(x); NaN for infinite x",
    .inputs = {"x"},
    .infer = infer_float_elementwise,
    .grad = [](Grad& g) { g.flow(0, g.dy() * (square(g.y()) + 1.0)); },
    .scalar = [](const Args& x) { return expr::tan(x[0]); },
    .onnx = "Tan",
};

constinit const OpDef asin = {
    .name = "asin",
    .doc = "y = the angle in [-pi/2, pi/2] whose sine is x; NaN outside of [-1, 1]",
    .inputs = {"x"},
    .infer = infer_float_elementwise,
    .grad = [](Grad& g) { g.flow(0, g.dy() / op::sqrt(1.0 - square(g.x(0)))); },
    .scalar = [](const Args& x) { return expr::asin(x[0]); },
    .onnx = "Asin",
};

constinit const OpDef acos = {
    .name = "acos",
    .doc = "y = the angle in [0, pi] whose cosine is x; NaN outside of [-1, 1]",
    .inputs = {"x"},
    .infer = infer_float_elementwise,
    .grad = [](Grad& g) { g.flow(0, -(g.dy() / op::sqrt(1.0 - square(g.x(0))))); },
    .scalar = [](const Args& x) { return expr::acos(x[0]); },
    .onnx = "Acos",
};

constinit const OpDef atan = {
    .name = "atan",
    .doc = "y = the angle in (-pi/2, pi/2) whose tangent is x",
    .inputs = {"x"},
    .infer = infer_float_elementwise,
    .grad = [](Grad& g) { g.flow(0, g.dy() / (square(g.x(0)) + 1.0)); },
    .scalar = [](const Args& x) { return expr::atan(x[0]); },
    .onnx = "Atan",
};

constinit const OpDef sinh = {
    .name = "sinh",
    .doc = "y = (e^x - e^-x) / 2",
    .inputs = {"x"},
    .infer = infer_float_elementwise,
    .grad = [](Grad& g) { g.flow(0, g.dy() * op::cosh(g.x(0))); },
    .scalar = [](const Args& x) { return expr::sinh(x[0]); },
    .onnx = "Sinh",
};

constinit const OpDef cosh = {
    .name = "cosh",
    .doc = "y = (e^x + e^-x) / 2",
    .inputs = {"x"},
    .infer = infer_float_elementwise,
    .grad = [](Grad& g) { g.flow(0, g.dy() * op::sinh(g.x(0))); },
    .scalar = [](const Args& x) { return expr::cosh(x[0]); },
    .onnx = "Cosh",
};

constinit const OpDef asinh = {
    .name = "asinh",
    .doc = "y = the number whose sinh is x",
    .inputs = {"x"},
    .infer = infer_float_elementwise,
    .grad = [](Grad& g) { g.flow(0, g.dy() / op::sqrt(square(g.x(0)) + 1.0)); },
    .scalar = [](const Args& x) { return expr::asinh(x[0]); },
    .onnx = "Asinh",
};

constinit const OpDef acosh = {
    .name = "acosh",
    .doc = "y = the number from 0 up whose cosh is x; NaN below 1",
    .inputs = {"x"},
    .infer = infer_float_elementwise,
    .grad = [](Grad& g) { g.flow(0, g.dy() / (op::sqrt(g.x(0) - 1.0) * op::sqrt(g.x(0) + 1.0))); },  // x^2 may overflow, and cancels near 1
    .scalar = [](const Args& x) { return expr::acosh(x[0]); },
    .onnx = "Acosh",
};

constinit const OpDef atanh = {
    .name = "atanh",
    .doc = "y = the number whose tanh is x; infinite at -1 and 1, NaN beyond",
    .inputs = {"x"},
    .infer = infer_float_elementwise,
    .grad = [](Grad& g) { g.flow(0, g.dy() / (1.0 - square(g.x(0)))); },
    .scalar = [](const Args& x) { return expr::atanh(x[0]); },
    .onnx = "Atanh",
};

constinit const OpDef round = {
    .name = "round",
    .doc = "y = the whole number nearest to x; of two equally near ones the even",
    .inputs = {"x"},
    .infer = infer_float_elementwise,
    .grad = no_gradient(kFlat),
    .scalar = [](const Args& x) { return expr::round(x[0]); },
    .onnx = "Round",
};

constinit const OpDef floor_mod = {
    .name = "floor_mod",
    .doc = "y = a - floor(a / b) b: the remainder with the sign of b, as Python's %. Over 0 integers give 0, floats NaN. The gradient of b is -floor(a / b) dy",
    .inputs = {"a", "b"},
    .infer = infer_elementwise,
    .grad = grad_remainder,
    .scalar = [](const Args& x) { return expr::mod(x[0], x[1]); },
};

constinit const OpDef trunc_mod = {
    .name = "trunc_mod",
    .doc = "y = a - trunc(a / b) b: the remainder with the sign of a, as C's fmod. Over 0 integers give 0, floats NaN. The gradient of b is -trunc(a / b) dy",
    .inputs = {"a", "b"},
    .infer = infer_elementwise,
    .grad = grad_remainder,
    .scalar = [](const Args& x) { return expr::fmod(x[0], x[1]); },
};

constinit const OpDef gelu = {
    .name = "gelu",
    .doc = "y = x times the normal distribution's share below x: x (1 + erf(x / sqrt 2)) / 2, or with tanh_form x (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3))) / 2",
    .inputs = {"x"},
    .attrs = {kTanhForm},
    .infer = infer_float_elementwise,
    .lower =
        [](const Lower& l) {
          const Val x = l.x(0);
          const Val share = l.attrs[kTanhForm] ? op::tanh((x + x * square(x) * 0.044715) * 0.7978845608028654) : op::erf(x * 0.7071067811865476);
          return std::vector<Val>{x * ((share + 1.0) * 0.5)};
        },
};

}  // namespace hone::op
