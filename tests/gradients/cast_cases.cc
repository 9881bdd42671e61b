// Conversions between element types: gradients go through those from float to float.
#include "tests/gradients/gradient_cases.h"

namespace hone::test {

namespace {

constexpr std::int64_t kFloat = 1, kDouble = 11;  // TensorProto's numbers

void add_cast(GradientCases& cases) {
  cases.add("Cast", "f32 to f64", {x({3, 4})}, {{"to", kDouble}});
  cases.add("Cast", "f64 to f32", {of_type(DType::kF64, x({3, 4}))}, {{"to", kFloat}});
  cases.add("Cast", "f32 to f32", {x({3, 4})}, {{"to", kFloat}});
  cases.add("Cast", "f64 to f64", {of_type(DType::kF64, x({3, 4}))}, {{"to", kDouble}});
  cases.add("Cast", "a scalar", {x({})}, {{"to", kDouble}});
  cases.add("Cast", "a symbolic batch", {x({"N", 5})}, {{"to", kDouble}});
  cases.add("Cast", "two symbols, f64 to f32", {of_type(DType::kF64, x({"N", 1, "M"}))}, {{"to", kFloat}});
  cases.add("Cast", "rank 4", {x({2, 1, 3, 2})}, {{"to", kDouble}});
  cases.add("Cast", "no elements", {x({0, 2})}, {{"to", kDouble}});
  cases.add("Cast", "there and back", {x({3, 4})}).nodes([](TestModel& model) {
    model.node("Cast", {"x0"}, {"wide"}).set("to", kDouble);
    model.node("Mul", {"wide", "wide"}, {"square"});
    model.node("Cast", {"square"}, {"y0"}).set("to", kFloat);
  });
  cases.add("Cast", "beside one to an integer, which ends the gradient", {x({7})}).nodes([](TestModel& model) {
    model.node("Cast", {"x0"}, {"whole"}).set("to", 7);
    model.node("Cast", {"whole"}, {"steps"}).set("to", kFloat);
    model.node("Mul", {"x0", "steps"}, {"y0"});
  });
  cases.add("Cast", "a mask", {x({3, 4}), given(DType::kBool, {3, 4}, {1, 0, 1, 1, 0, 0, 1, 0, 1, 1, 1, 0})}).nodes([](TestModel& model) {
    model.node("Cast", {"c1"}, {"mask"}).set("to", kFloat);
    model.node("Mul", {"x0", "mask"}, {"y0"});
  });
}

void add_cast_like(GradientCases& cases) {
  const GradientInput wide = fed(of_type(DType::kF64, x({1}))), narrow = fed(x({2}));
  cases.add("CastLike", "f32 to f64", {x({3, 4}), wide});
  cases.add("CastLike", "f64 to f32", {of_type(DType::kF64, x({3, 4})), narrow});
  cases.add("CastLike", "f32 to f32", {x({3, 4}), narrow});
  cases.add("CastLike", "f64 to f64", {of_type(DType::kF64, x({3, 4})), wide});
  cases.add("CastLike", "a constant target", {x({3, 4}), constant(wide)});
  cases.add("CastLike", "a scalar", {x({}), wide});
  cases.add("CastLike", "a symbolic batch", {x({"N", 5}), wide});
  cases.add("CastLike", "like another variable", {x({2, 3}), of_type(DType::kF64, x({4}))});
  cases.add("CastLike", "like itself", {x({2, 3})}).nodes([](TestModel& model) { model.node("CastLike", {"x0", "x0"}, {"y0"}); });
  cases.add("CastLike", "rank 4", {x({2, 1, 3, 2}), wide});
  cases.add("CastLike", "no elements", {x({0, 2}), wide});
}

}  // namespace

void add_cast_cases(GradientCases& cases) {
  add_cast(cases);
  add_cast_like(cases);
}

}  // namespace hone::test
