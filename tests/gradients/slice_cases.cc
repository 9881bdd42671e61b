// Pieces, pads and joins.
#include "tests/gradients/gradient_cases.h"

namespace hone::test {

namespace {

void add_slice(GradientCases& cases) {
  const char* const op = "Slice";
  cases.add(op, "rows", {x({5, 3}), numbers({1}), numbers({4})});
  cases.add(op, "both axes", {x({4, 5}), numbers({1, 0}), numbers({3, 4})});
  cases.add(op, "axis 1", {x({3, 6}), numbers({2}), numbers({5}), numbers({1})});
  cases.add(op, "a negative axis", {x({3, 6}), numbers({2}), numbers({5}), numbers({-1})});
  cases.add(op, "steps of 2", {x({3, 7}), numbers({0}), numbers({7}), numbers({1}), numbers({2})});
  cases.add(op, "backwards", {x({5}), numbers({4}), numbers({-6}), numbers({0}), numbers({-1})});
  cases.add(op, "backwards in steps of 2", {x({7, 2}), numbers({-1}), numbers({0}), numbers({0}), numbers({-2})});
  cases.add(op, "from the end", {x({6}), numbers({-4}), numbers({-1})});
  cases.add(op, "to the end and beyond", {x({6}), numbers({2}), numbers({1000})});
  cases.add(op, "nothing", {x({4, 2}), numbers({3}), numbers({3})});
  cases.add(op, "a symbolic batch", {x({"N", 5}), numbers({1}), numbers({4}), numbers({1})});
  cases.add(op, "along a symbolic axis", {x({"N", 2}), numbers({1}), numbers({INT64_MAX}), numbers({0})});
  cases.add(op, "three axes, mixed steps", {x({3, 4, 5}), numbers({0, 3, 1}), numbers({3, 0, 5}), numbers({0, 1, 2}), numbers({2, -1, 3})});
  cases.add(op, "attributes", {x({4, 5})}, {{"starts", Ints{1, -3}}, {"ends", Ints{4, 5}}, {"axes", Ints{0, 1}}}).opset(9);
}

void add_split(GradientCases& cases) {
  const char* const op = "Split";
  cases.add(op, "two halves", {x({4, 3})}).outputs(2);
  cases.add(op, "axis 1", {x({2, 6})}, {{"axis", 1}}).outputs(3);
  cases.add(op, "the last axis", {x({2, 2, 4})}, {{"axis", -1}}).outputs(2);
  cases.add(op, "sizes", {x({6, 2}), numbers({1, 3, 2})}).outputs(3);
  cases.add(op, "sizes along axis 1", {x({2, 5}), numbers({4, 1})}, {{"axis", 1}}).outputs(2);
  cases.add(op, "one part", {x({3, 2})}).outputs(1);
  cases.add(op, "a part without elements", {x({3, 2}), numbers({3, 0})}).outputs(2);
  cases.add(op, "one part is not used", {x({4, 3})}).outputs(2).leaves_out(0);
  cases.add(op, "unequal parts by number", {x({7, 2})}, {{"num_outputs", 3}}).outputs(3).opset(18);
  cases.add(op, "a symbolic batch", {x({"N", 4})}, {{"axis", 1}}).outputs(2);
  cases.add(op, "sizes as an attribute", {x({5, 2})}, {{"split", Ints{2, 3}}}).outputs(2).opset(11);
  cases.add(op, "rank 4", {x({1, 4, 2, 2})}, {{"axis", 1}}).outputs(4);
}

void add_pad(GradientCases& cases) {
  const char* const op = "Pad";
  cases.add(op, "a matrix", {x({2, 3}), numbers({1, 0, 2, 1})});
  cases.add(op, "a value", {x({2, 3}), numbers({1, 1, 1, 1}), constant(x_of({}, {0.5}))});
  cases.add(op, "a value that is a variable", {x({2, 3}), numbers({1, 0, 0, 2}), x({})});
  cases.add(op, "a vector", {x({4}), numbers({2, 3})});
  cases.add(op, "cuts", {x({4, 4}), numbers({-1, 0, 0, -2})});
  cases.add(op, "a cut and a pad", {x({3, 4}), numbers({-1, 2, 1, -1})});
  cases.add(op, "chosen axes", {x({2, 3, 2}), numbers({1, 2}), absent(), numbers({1})}).opset(18);
  cases.add(op, "negative axes", {x({2, 3, 2}), numbers({1, 0, 2, 1}), absent(), numbers({-1, 0})}).opset(18);
  cases.add(op, "nothing", {x({2, 3}), numbers({0, 0, 0, 0})});
  cases.add(op, "a symbolic batch", {x({"N", 3}), numbers({0, 1, 0, 1})});
  cases.add(op, "images", {x({1, 2, 3, 3}), numbers({0, 0, 1, 1, 0, 0, 1, 1})});
  cases.add(op, "attributes", {x({2, 3})}, {{"pads", Ints{0, 1, 1, 0}}, {"value", 0.5}}).opset(9);
}

void add_pad_modes(GradientCases& cases) {
  const char* const op = "Pad";
  for (const std::string mode : {"edge", "reflect", "wrap"}) {
    const auto add = [&](const std::string& says, std::vector<GradientInput> inputs) { cases.add(op, mode + ", " + says, std::move(inputs), {{"mode", mode}}).opset(19); };
    add("a vector", {x({4}), numbers({2, 3})});
    add("both axes", {x({2, 3}), numbers({1, 2, 0, 1})});
    add("a symbolic batch", {x({"N", 3}), numbers({0, 1, 0, 2})});
    add("along a symbolic axis", {x({"N", 2}), numbers({2, 0, 1, 0})});
    add("a cut and a pad", {x({5, 2}), numbers({-1, 0, 2, 0})});
    add("more than there is", {x({2}), numbers({3, 4})});
    add("one axis of an image", {x({1, 2, 3, 3}), numbers({1, 1}), absent(), numbers({3})});
  }
}

void add_center_crop_pad(GradientCases& cases) {
  const char* const op = "CenterCropPad";
  const auto add = [&](std::string says, std::vector<Extent> shape, std::vector<std::int64_t> target, std::vector<GradientAttribute> attributes = {}) {
    cases.add(op, std::move(says), {x(std::move(shape)), numbers(std::move(target))}, std::move(attributes)).opset(18);
  };
  add("cut", {5, 6}, {3, 4});
  add("cut by odd numbers", {5, 6}, {2, 3});
  add("padded", {2, 3}, {4, 5});
  add("padded by odd numbers", {2, 3}, {5, 4});
  add("cut and padded", {5, 2}, {2, 5});
  add("as it is", {3, 2}, {3, 2});
  add("chosen axes", {4, 3, 2}, {2, 3}, {{"axes", Ints{0, 2}}});
  add("negative axes", {4, 3, 2}, {5, 1}, {{"axes", Ints{-1, -3}}});
  add("a symbolic batch", {"N", 5}, {2}, {{"axes", Ints{1}}});
  add("a symbolic axis is cut", {"N", 2}, {1, 2});
  add("a symbolic axis is padded", {"N", 2}, {6, 2});
}

void add_trilu(GradientCases& cases) {
  const auto k = [](double diagonal) { return constant(given(DType::kI64, {}, {diagonal})); };
  cases.add("Trilu", "upper", {x({4, 4})});
  cases.add("Trilu", "lower", {x({4, 4})}, {{"upper", 0}});
  cases.add("Trilu", "above the diagonal", {x({4, 5}), k(1)});
  cases.add("Trilu", "below the diagonal", {x({4, 5}), k(-2)}, {{"upper", 0}});
  cases.add("Trilu", "more rows than columns", {x({5, 3}), k(-1)});
  cases.add("Trilu", "a batch", {x({2, 3, 3})}, {{"upper", 0}});
  cases.add("Trilu", "two batch axes", {x({2, 2, 3, 2})});
  cases.add("Trilu", "a symbolic batch", {x({"N", 3, 3})});
  cases.add("Trilu", "symbolic extents", {x({"N", "M"}), k(1)}, {{"upper", 0}});
  cases.add("Trilu", "a diagonal that is fed", {x({3, 4}), given(DType::kI64, {}, {1})});
  cases.add("Trilu", "no elements", {x({0, 3})});
  cases.add("Trilu", "nothing is left", {x({2, 2}), k(5)});
}

}  // namespace

void add_slice_cases(GradientCases& cases) {
  add_pad_modes(cases);
  add_center_crop_pad(cases);
  add_trilu(cases);
  add_slice(cases);
  add_split(cases);
  add_pad(cases);
}

}  // namespace hone::test
