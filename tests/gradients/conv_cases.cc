// Convolutions.
#include "tests/gradients/gradient_cases.h"

namespace hone::test {

namespace {

void add_conv(GradientCases& cases) {
  const char* const op = "Conv";
  cases.add(op, "images", {x({2, 2, 4, 4}), x({3, 2, 3, 3}), x({3})});
  cases.add(op, "without biases", {x({1, 2, 4, 3}), x({2, 2, 2, 2})});
  cases.add(op, "pads", {x({1, 2, 3, 3}), x({2, 2, 3, 3}), x({2})}, {{"pads", Ints{1, 1, 1, 1}}});
  cases.add(op, "uneven pads", {x({1, 1, 3, 4}), x({2, 1, 3, 2})}, {{"pads", Ints{2, 0, 1, 1}}});
  cases.add(op, "strides", {x({1, 2, 5, 6}), x({2, 2, 2, 3}), x({2})}, {{"strides", Ints{2, 3}}});
  cases.add(op, "strides that leave a rest", {x({1, 1, 6, 6}), x({2, 1, 3, 3})}, {{"strides", Ints{2, 2}}});
  cases.add(op, "dilations", {x({1, 2, 6, 5}), x({2, 2, 2, 2})}, {{"dilations", Ints{2, 3}}});
  cases.add(op, "groups", {x({1, 4, 3, 3}), x({4, 2, 2, 2}), x({4})}, {{"group", 2}});
  cases.add(op, "depthwise", {x({1, 3, 4, 4}), x({3, 1, 3, 3})}, {{"group", 3}, {"pads", Ints{1, 1, 1, 1}}});
  cases.add(op, "depthwise with a multiplier", {x({1, 2, 3, 3}), x({4, 1, 2, 2})}, {{"group", 2}});
  cases.add(op, "one axis", {x({2, 3, 7}), x({2, 3, 3}), x({2})}, {{"pads", Ints{1, 0}}, {"strides", Ints{2}}});
  cases.add(op, "three axes", {x({1, 2, 3, 3, 2}), x({2, 2, 2, 2, 2}), x({2})});
  cases.add(op, "windows of 1", {x({2, 3, 2, 2}), x({4, 3, 1, 1}), x({4})});
  cases.add(op, "SAME_UPPER", {x({1, 1, 5, 5}), x({2, 1, 3, 2})}, {{"auto_pad", "SAME_UPPER"}, {"strides", Ints{2, 2}}});
  cases.add(op, "SAME_LOWER", {x({1, 1, 4, 5}), x({2, 1, 2, 2})}, {{"auto_pad", "SAME_LOWER"}});
  cases.add(op, "VALID", {x({1, 1, 4, 4}), x({1, 1, 3, 3})}, {{"auto_pad", "VALID"}});
  cases.add(op, "strides, dilations, groups and pads", {x({1, 4, 5, 5}), x({2, 2, 2, 2}), x({2})},
            {{"strides", Ints{2, 1}}, {"dilations", Ints{1, 2}}, {"group", 2}, {"pads", Ints{1, 1, 0, 1}}});
  cases.add(op, "a symbolic batch", {x({"N", 2, 3, 3}), x({2, 2, 2, 2}), x({2})});
  cases.add(op, "symbolic extents", {x({1, 1, "N", "M"}), x({2, 1, 2, 2})}, {{"pads", Ints{1, 1, 1, 1}}});
  cases.add(op, "constant weights", {x({1, 2, 3, 3}), constant(x({2, 2, 2, 2})), constant(x({2}))});
}

void add_conv_transpose(GradientCases& cases) {
  const char* const op = "ConvTranspose";
  cases.add(op, "images", {x({2, 2, 3, 3}), x({2, 3, 3, 3}), x({3})});
  cases.add(op, "without biases", {x({1, 2, 2, 3}), x({2, 2, 2, 2})});
  cases.add(op, "strides", {x({1, 2, 3, 2}), x({2, 2, 3, 2}), x({2})}, {{"strides", Ints{2, 3}}});
  cases.add(op, "pads", {x({1, 1, 4, 4}), x({1, 2, 3, 3})}, {{"pads", Ints{1, 1, 1, 1}}});
  cases.add(op, "uneven pads", {x({1, 1, 4, 3}), x({1, 2, 3, 3})}, {{"pads", Ints{0, 1, 2, 0}}, {"strides", Ints{2, 1}}});
  cases.add(op, "dilations", {x({1, 1, 3, 3}), x({1, 2, 2, 2})}, {{"dilations", Ints{2, 2}}});
  cases.add(op, "groups", {x({1, 4, 2, 2}), x({4, 2, 2, 2}), x({4})}, {{"group", 2}});
  cases.add(op, "depthwise", {x({1, 3, 3, 3}), x({3, 1, 2, 2})}, {{"group", 3}, {"strides", Ints{2, 2}}});
  cases.add(op, "output_padding", {x({1, 1, 3, 3}), x({1, 2, 3, 3})}, {{"strides", Ints{2, 2}}, {"output_padding", Ints{1, 1}}});
  cases.add(op, "output_shape", {x({1, 1, 3, 3}), x({1, 2, 3, 3})}, {{"strides", Ints{3, 2}}, {"output_shape", Ints{10, 8}}});
  cases.add(op, "SAME_UPPER", {x({1, 1, 3, 3}), x({1, 2, 3, 3})}, {{"strides", Ints{2, 2}}, {"auto_pad", "SAME_UPPER"}});
  cases.add(op, "one axis", {x({2, 2, 5}), x({2, 2, 3}), x({2})}, {{"strides", Ints{2}}});
  cases.add(op, "three axes", {x({1, 1, 2, 2, 2}), x({1, 2, 2, 2, 2})});
  cases.add(op, "a symbolic batch", {x({"N", 2, 2, 2}), x({2, 2, 2, 2})});
  cases.add(op, "constant weights", {x({1, 2, 3, 3}), constant(x({2, 2, 2, 2}))});
}

}  // namespace

void add_conv_cases(GradientCases& cases) {
  add_conv(cases);
  add_conv_transpose(cases);
}

}  // namespace hone::test
