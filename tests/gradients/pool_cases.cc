// Pooling.
#include "tests/gradients/gradient_cases.h"

namespace hone::test {

namespace {

void add_windows(GradientCases& cases, const char* op, const std::vector<GradientAttribute>& more = {}, double low = -2, double high = 2) {
  const auto add = [&](const std::string& says, std::vector<Extent> shape, std::vector<GradientAttribute> attributes) {
    attributes.insert(attributes.end(), more.begin(), more.end());
    cases.add(op, (more.empty() ? "" : more[0].name + ": ") + says, {x(std::move(shape), low, high)}, std::move(attributes)).opset(19);
  };
  add("images", {1, 2, 4, 4}, {{"kernel_shape", Ints{2, 2}}});
  add("strides", {2, 1, 4, 6}, {{"kernel_shape", Ints{2, 2}}, {"strides", Ints{2, 2}}});
  add("windows that overlap", {1, 1, 5, 5}, {{"kernel_shape", Ints{3, 3}}, {"strides", Ints{1, 2}}});
  add("pads", {1, 1, 4, 4}, {{"kernel_shape", Ints{3, 3}}, {"pads", Ints{1, 1, 1, 1}}, {"strides", Ints{2, 2}}});
  add("uneven pads", {1, 2, 3, 4}, {{"kernel_shape", Ints{2, 3}}, {"pads", Ints{0, 1, 1, 2}}});
  add("dilations", {1, 1, 5, 5}, {{"kernel_shape", Ints{2, 2}}, {"dilations", Ints{2, 3}}});
  add("ceil_mode", {1, 1, 5, 6}, {{"kernel_shape", Ints{2, 2}}, {"strides", Ints{2, 4}}, {"ceil_mode", 1}});
  add("ceil_mode with pads", {1, 1, 5, 5}, {{"kernel_shape", Ints{3, 3}}, {"strides", Ints{3, 3}}, {"pads", Ints{1, 1, 1, 1}}, {"ceil_mode", 1}});
  add("SAME_UPPER", {1, 1, 5, 5}, {{"kernel_shape", Ints{3, 2}}, {"strides", Ints{2, 2}}, {"auto_pad", "SAME_UPPER"}});
  add("SAME_LOWER", {1, 1, 4, 4}, {{"kernel_shape", Ints{2, 2}}, {"auto_pad", "SAME_LOWER"}});
  add("one axis", {2, 2, 7}, {{"kernel_shape", Ints{3}}, {"strides", Ints{2}}});
  add("three axes", {1, 1, 3, 3, 3}, {{"kernel_shape", Ints{2, 2, 2}}});
  add("a symbolic batch", {"N", 2, 3, 3}, {{"kernel_shape", Ints{2, 2}}});
  add("a window over all", {1, 3, 3, 2}, {{"kernel_shape", Ints{3, 2}}});
}

void add_global(GradientCases& cases, const char* op, double low = -2, double high = 2) {
  const auto xs = [&](std::vector<Extent> shape) { return x(std::move(shape), low, high); };
  cases.add(op, "images", {xs({2, 3, 3, 4})});
  cases.add(op, "one axis", {xs({2, 3, 5})});
  cases.add(op, "three axes", {xs({1, 2, 2, 3, 2})});
  cases.add(op, "an extent of 1", {xs({2, 2, 1, 4})});
  cases.add(op, "windows of one element", {xs({2, 3, 1, 1})});
  cases.add(op, "one channel", {xs({1, 1, 3, 3})});
  cases.add(op, "a symbolic batch", {xs({"N", 2, 2, 2})});
  cases.add(op, "symbolic extents", {xs({1, 2, "N", "M"})});
  cases.add(op, "a longer axis", {xs({1, 2, 31})});
  cases.add(op, "many channels", {xs({1, 7, 2, 2})});
  cases.add(op, "f64", {of_type(DType::kF64, xs({2, 2, 3, 2}))});
}

void add_lrn(GradientCases& cases) {
  const auto add = [&](const std::string& says, GradientInput input, std::vector<GradientAttribute> attributes) {
    cases.add("LRN", says, {std::move(input)}, std::move(attributes));
  };
  add("three channels", x({1, 4, 2, 2}), {{"size", 3}, {"alpha", 0.5}});
  add("one channel", x({2, 3, 2, 2}), {{"size", 1}, {"alpha", 0.3}});
  add("an even number", x({1, 5, 2, 1}), {{"size", 4}, {"alpha", 0.4}});
  add("more than there are", x({1, 3, 2, 2}), {{"size", 7}, {"alpha", 0.5}, {"beta", 0.5}});
  add("defaults", x({2, 4, 2, 2}, -3, 3), {{"size", 3}});
  add("beta 1", x({1, 4, 3, 1}), {{"size", 3}, {"alpha", 0.7}, {"beta", 1.0}});
  add("a bias of 2", x({1, 4, 2, 2}), {{"size", 5}, {"alpha", 0.2}, {"bias", 2.0}});
  add("one axis", x({2, 4, 3}), {{"size", 3}, {"alpha", 0.5}});
  add("three axes", x({1, 3, 2, 1, 2}), {{"size", 2}, {"alpha", 0.5}});
  add("no spatial axes", x({3, 5}), {{"size", 3}, {"alpha", 0.5}});
  add("a symbolic batch", x({"N", 3, 2, 2}), {{"size", 3}, {"alpha", 0.5}});
  add("symbolic extents", x({1, 3, "N", "M"}), {{"size", 3}, {"alpha", 0.5}});
}

void add_max_unpool(GradientCases& cases) {
  const auto add = [&](const std::string& says, std::vector<Extent> shape, std::vector<double> positions, std::vector<GradientAttribute> attributes) {
    cases.add("MaxUnpool", says, {x(shape), given(DType::kI64, shape, std::move(positions))}, std::move(attributes));
  };
  const Ints two = {2, 2};
  add("an image", {1, 1, 2, 2}, {5, 7, 13, 15}, {{"kernel_shape", two}, {"strides", two}});
  add("channels", {1, 2, 1, 2}, {0, 3, 12, 10}, {{"kernel_shape", two}, {"strides", two}});
  add("a batch", {2, 1, 1, 2}, {4, 2, 9, 15}, {{"kernel_shape", two}, {"strides", two}});
  add("pads", {1, 1, 2, 2}, {0, 2, 6, 8}, {{"kernel_shape", Ints{3, 3}}, {"strides", two}, {"pads", Ints{1, 1, 1, 1}}});
  add("windows that overlap", {1, 1, 2, 3}, {1, 2, 3, 5, 8, 11}, {{"kernel_shape", two}});
  add("one axis", {1, 2, 3}, {1, 2, 5, 6, 9, 11}, {{"kernel_shape", Ints{2}}, {"strides", Ints{2}}});
  add("three axes", {1, 1, 1, 2, 1}, {3, 13}, {{"kernel_shape", Ints{2, 2, 2}}, {"strides", Ints{2, 2, 2}}});
  add("unequal strides", {1, 1, 2, 2}, {0, 4, 12, 17}, {{"kernel_shape", Ints{2, 3}}, {"strides", Ints{2, 3}}});
  add("a symbolic batch", {"M", 1, 1, 1}, {1, 6}, {{"kernel_shape", two}});
  cases.add("MaxUnpool", "output_shape", {x({1, 1, 2, 2}), given(DType::kI64, {1, 1, 2, 2}, {5, 7, 13, 15}), numbers({1, 1, 5, 5})},
            {{"kernel_shape", two}, {"strides", two}});
  cases.add("MaxUnpool", "of what was pooled", {x({1, 2, 4, 4})}).nodes([](TestModel& model) {
    model.node("MaxPool", {"x0"}, {"pooled", "taken"}).set("kernel_shape", std::vector<std::int64_t>{2, 2}).set("strides", std::vector<std::int64_t>{2, 2});
    model.node("MaxUnpool", {"pooled", "taken"}, {"y0"}).set("kernel_shape", std::vector<std::int64_t>{2, 2}).set("strides", std::vector<std::int64_t>{2, 2});
  });
}

}  // namespace

void add_pool_cases(GradientCases& cases) {
  add_windows(cases, "MaxPool");
  add_windows(cases, "AveragePool");
  add_windows(cases, "AveragePool", {{"count_include_pad", 1}});
  add_windows(cases, "LpPool");
  add_windows(cases, "LpPool", {{"p", 3}}, 0.2, 2);
  cases.add("LpPool", "p = 1", {x({1, 2, 4, 5})}, {{"p", 1}, {"kernel_shape", Ints{2, 3}}}).opset(19);
  add_global(cases, "GlobalLpPool");
  cases.add("GlobalLpPool", "p = 1", {x({2, 3, 3, 2}, 0.2, 2)}, {{"p", 1}});
  cases.add("GlobalLpPool", "p = 3", {x({2, 3, 3, 2})}, {{"p", 3}});
  add_global(cases, "GlobalAveragePool");
  add_global(cases, "GlobalMaxPool");
  add_lrn(cases);
  add_max_unpool(cases);
}

}  // namespace hone::test
