// Comparisons, logic and choice.
#include "ir/ops/infer.h"
#include "ir/ops/ops.h"

namespace hone {

std::vector<Type> infer_compare(Infer& infer) {
  std::vector<Type> types = infer_elementwise(infer);
  types[0].dtype = DType::kBool;
  return types;
}

namespace op {

namespace {
constexpr std::string_view kResultIsTruth = "its result is true or false";

std::vector<Type> infer_logic(Infer& infer) {
  infer.require(infer.dtype(0) == DType::kBool, Code::kType, "needs bool operands");
  return infer_elementwise(infer);
}
}  // namespace

constinit const OpDef equal = {
    .name = "equal",
    .doc = "y = a == b; false for NaN",
    .inputs = {"a", "b"},
    .infer = infer_compare,
    .grad = no_gradient(kResultIsTruth),
    .scalar = [](const Args& x) { return expr::equal(x[0], x[1]); },
    .onnx = "Equal",
};

constinit const OpDef less = {
    .name = "less",
    .doc = "y = a < b; false for NaN",
    .inputs = {"a", "b"},
    .infer = infer_compare,
    .grad = no_gradient(kResultIsTruth),
    .scalar = [](const Args& x) { return expr::less(x[0], x[1]); },
    .onnx = "Less",
};

constinit const OpDef less_equal = {
    .name = "less_equal",
    .doc = "y = a <= b; false for NaN",
    .inputs = {"a", "b"},
    .infer = infer_compare,
    .grad = no_gradient(kResultIsTruth),
    .scalar = [](const Args& x) { return expr::less_equal(x[0], x[1]); },
    .onnx = "LessOrEqual",
};

constinit const OpDef greater = {
    .name = "greater",
    .doc = "y = a > b; false for NaN",
    .inputs = {"a", "b"},
    .infer = infer_compare,
    .grad = no_gradient(kResultIsTruth),
    .scalar = [](const Args& x) { return expr::greater(x[0], x[1]); },
    .onnx = "Greater",
};

constinit const OpDef greater_equal = {
    .name = "greater_equal",
    .doc = "y = a >= b; false for NaN",
    .inputs = {"a", "b"},
    .infer = infer_compare,
    .grad = no_gradient(kResultIsTruth),
    .scalar = [](const Args& x) { return expr::greater_equal(x[0], x[1]); },
    .onnx = "GreaterOrEqual",
};

constinit const OpDef logical_not = {
    .name = "logical_not",
    .doc = "y = not x",
    .inputs = {"x"},
    .infer = infer_logic,
    .grad = no_gradient(kResultIsTruth),
    .scalar = [](const Args& x) { return expr::logical_not(x[0]); },
    .onnx = "Not",
};

constinit const OpDef logical_and = {
    .name = "logical_and",
    .doc = "y = a and b",
    .inputs = {"a", "b"},
    .infer = infer_logic,
    .grad = no_gradient(kResultIsTruth),
    .scalar = [](const Args& x) { return expr::logical_and(x[0], x[1]); },
    .onnx = "And",
};

constinit const OpDef logical_or = {
    .name = "logical_or",
    .doc = "y = a or b",
    .inputs = {"a", "b"},
    .infer = infer_logic,
    .grad = no_gradient(kResultIsTruth),
    .scalar = [](const Args& x) { return expr::logical_or(x[0], x[1]); },
    .onnx = "Or",
};

constinit const OpDef where = {
    .name = "where",
    .doc = "y = condition ? a : b, elementwise with broadcasting; the side not taken does not count, be it NaN",
    .inputs = {"condition", "a", "b"},
    .infer =
        [](Infer& infer) {
          infer.require(infer.dtype(0) == DType::kBool, Code::kType, "the condition must be bool");
          infer.require(infer.dtype(1) == infer.dtype(2), Code::kType, "the two choices have different element types");
          return std::vector<Type>{{infer.dtype(1), infer.broadcast(infer.shape(0), infer.broadcast(infer.shape(1), infer.shape(2)))}};
        },
    .grad =
        [](Grad& g) {
          const Val zero = g.builder().scalar(0, g.dy().dtype());
          g.flow(1, op::where(g.x(0), g.dy(), zero));
          g.flow(2, op::where(g.x(0), zero, g.dy()));
        },
    .scalar = [](const Args& x) { return expr::select(x[0], x[1], x[2]); },
    .onnx = "Where",
};

constinit const OpDef is_finite = {
    .name = "is_finite",
    .doc = "y = x is neither NaN nor infinite",
    .inputs = {"x"},
    .infer = infer_compare,
    .grad = no_gradient(kResultIsTruth),
    .scalar = [](const Args& x) { return expr::logical_not(expr::logical_or(expr::is_nan(x[0]), expr::is_inf(x[0]))); },
};

}  // namespace op
}  // namespace hone
