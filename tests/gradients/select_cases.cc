// Choosing elements by their values or by a condition, and windows put back into an image.
#include "tests/gradients/gradient_cases.h"

namespace hone::test {

namespace {

void add_top_k(GradientCases& cases) {
  const char* const op = "TopK";
  const auto add = [&](std::string says, std::vector<GradientInput> inputs, std::vector<GradientAttribute> attributes = {}) {
    cases.add(op, std::move(says), std::move(inputs), std::move(attributes)).outputs(2);
  };
  add("the largest two", {x({3, 5}), numbers({2})});
  add("the smallest two", {x({3, 5}), numbers({2})}, {{"largest", 0}});
  add("axis 0", {x({5, 3}), numbers({3})}, {{"axis", 0}});
  add("axis in the middle", {x({2, 4, 3}), numbers({2})}, {{"axis", 1}});
  add("all of them", {x({2, 4}), numbers({4})});
  add("one", {x({2, 4}), numbers({1})});
  add("not sorted", {x({2, 5}), numbers({3})}, {{"sorted", 0}});
  add("a vector", {x({7}), numbers({3})});
  add("a symbolic batch", {x({"N", 4}), numbers({2})});
  add("along a symbolic axis", {x({"N", 2}), numbers({2})}, {{"axis", 0}});
  add("none", {x({2, 3}), numbers({0})});
  cases.add(op, "the number is an attribute", {x({2, 4})}, {{"k", 2}}).outputs(2).opset(9);
}

void add_compress(GradientCases& cases) {
  const char* const op = "Compress";
  const auto marks = [](std::vector<double> values) {
    const auto count = static_cast<std::int64_t>(values.size());
    return constant(given(DType::kBool, {count}, std::move(values)));
  };
  cases.add(op, "rows", {x({4, 3}), marks({1, 0, 0, 1})}, {{"axis", 0}});
  cases.add(op, "columns", {x({2, 4}), marks({0, 1, 1, 0})}, {{"axis", 1}});
  cases.add(op, "the last axis", {x({2, 2, 3}), marks({1, 0, 1})}, {{"axis", -1}});
  cases.add(op, "elements", {x({2, 3}), marks({0, 1, 0, 0, 1, 1})});
  cases.add(op, "a short condition", {x({5, 2}), marks({0, 1})}, {{"axis", 0}});
  cases.add(op, "a short condition for elements", {x({3, 2}), marks({1, 1, 0, 1})});
  cases.add(op, "all", {x({3, 2}), marks({1, 1, 1})}, {{"axis", 0}});
  cases.add(op, "none", {x({3, 2}), marks({0, 0, 0})}, {{"axis", 0}});
  cases.add(op, "a symbolic batch", {x({"N", 3}), marks({1, 0, 1})}, {{"axis", 1}});
  cases.add(op, "of a symbolic axis", {x({"N", 2}), marks({0, 1, 1})}, {{"axis", 0}});
  for (const std::int64_t axis : {0, 1})
    cases.add(op, "by a fed condition, axis " + std::to_string(axis), {x({4, 4}), given(DType::kBool, {4}, {0, 1, 1, 1})}).nodes([axis](TestModel& model) {
      model.node("Compress", {"x0", "c1"}, {"chosen"}).set("axis", axis);
      model.node("Mul", {"chosen", "chosen"}, {"squares"});
      model.node("ReduceSum", {"squares"}, {"y0"}).set("keepdims", 0);
    });
}

void add_col2im(GradientCases& cases) {
  const char* const op = "Col2Im";
  const auto add = [&](std::string says, std::vector<Extent> shape, Ints image, Ints block, std::vector<GradientAttribute> attributes = {}) {
    cases.add(op, std::move(says), {x(std::move(shape)), numbers(std::move(image)), numbers(std::move(block))}, std::move(attributes)).opset(18);
  };
  add("windows side by side", {1, 5, 5}, {5, 5}, {1, 5});
  add("windows that overlap", {1, 4, 6}, {3, 4}, {2, 2});
  add("strides", {1, 9, 4}, {5, 5}, {3, 3}, {{"strides", Ints{2, 2}}});
  add("pads", {1, 5, 15}, {5, 5}, {1, 5}, {{"pads", Ints{0, 1, 0, 1}}});
  add("dilations", {1, 4, 5}, {6, 6}, {2, 2}, {{"dilations", Ints{1, 5}}});
  add("strides that leave gaps", {1, 4, 4}, {5, 5}, {2, 2}, {{"strides", Ints{3, 3}}});
  add("one axis", {2, 6, 4}, {6}, {3});
  add("three axes", {1, 8, 8}, {3, 3, 3}, {2, 2, 2});
  add("channels", {2, 12, 4}, {3, 3}, {2, 2});
  add("a symbolic batch", {"N", 4, 4}, {3, 3}, {2, 2});
  add("all at once", {1, 8, 6}, {4, 5}, {2, 2}, {{"pads", Ints{1, 0, 1, 1}}, {"strides", Ints{2, 2}}, {"dilations", Ints{2, 1}}});
}

}  // namespace

void add_select_cases(GradientCases& cases) {
  add_top_k(cases);
  add_compress(cases);
  add_col2im(cases);
}

}  // namespace hone::test
