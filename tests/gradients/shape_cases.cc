// The same elements in another shape or order.
#include "tests/gradients/gradient_cases.h"

namespace hone::test {

namespace {

void add_reshape(GradientCases& cases) {
  const char* const op = "Reshape";
  cases.add(op, "a matrix to a vector", {x({3, 4}), numbers({12})});
  cases.add(op, "an extent that follows", {x({3, 4}), numbers({2, -1})});
  cases.add(op, "an extent that is copied", {x({3, 4}), numbers({0, 2, 2})});
  cases.add(op, "a copy and one that follows", {x({2, 3, 4}), numbers({0, -1})});
  cases.add(op, "to a scalar", {x({1, 1}), numbers({})});
  cases.add(op, "from a scalar", {x({}), numbers({1, 1, 1})});
  cases.add(op, "a symbolic batch", {x({"N", 2, 3}), numbers({0, -1})});
  cases.add(op, "the symbol follows", {x({"N", 6}), numbers({-1, 2, 3})});
  cases.add(op, "allowzero", {x({0, 3}), numbers({3, 0})}, {{"allowzero", 1}});
  cases.add(op, "more axes", {x({24}), numbers({2, 1, 3, 4})});
  cases.add(op, "the same shape", {x({2, 3}), numbers({2, 3})});
}

void add_flatten(GradientCases& cases) {
  const char* const op = "Flatten";
  cases.add(op, "axis 1", {x({2, 3, 4})});
  cases.add(op, "axis 0", {x({2, 3, 2})}, {{"axis", 0}});
  cases.add(op, "axis 2", {x({2, 3, 2, 2})}, {{"axis", 2}});
  cases.add(op, "the axis behind the last", {x({2, 3})}, {{"axis", 2}});
  cases.add(op, "axis -1", {x({2, 3, 2})}, {{"axis", -1}});
  cases.add(op, "axis -3", {x({2, 3, 2})}, {{"axis", -3}});
  cases.add(op, "a vector", {x({5})});
  cases.add(op, "a vector, axis 0", {x({5})}, {{"axis", 0}});
  cases.add(op, "a symbolic batch", {x({"N", 2, 3})});
  cases.add(op, "two symbols", {x({"N", "M", 2})}, {{"axis", 2}});
  cases.add(op, "no elements", {x({2, 0, 3})});
}

void add_transpose(GradientCases& cases) {
  const char* const op = "Transpose";
  cases.add(op, "a matrix", {x({3, 4})});
  cases.add(op, "a vector", {x({5})});
  cases.add(op, "reversed by default", {x({2, 3, 4})});
  cases.add(op, "as it is", {x({2, 3, 4})}, {{"perm", Ints{0, 1, 2}}});
  cases.add(op, "a rotation", {x({2, 3, 4})}, {{"perm", Ints{2, 0, 1}}});
  cases.add(op, "its inverse", {x({2, 3, 4})}, {{"perm", Ints{1, 2, 0}}});
  cases.add(op, "the last two", {x({2, 3, 4})}, {{"perm", Ints{0, 2, 1}}});
  cases.add(op, "channels to the end", {x({2, 3, 2, 4})}, {{"perm", Ints{0, 2, 3, 1}}});
  cases.add(op, "a symbolic batch", {x({"N", 3, 2})}, {{"perm", Ints{1, 0, 2}}});
  cases.add(op, "two symbols", {x({"N", 2, "M"})});
  cases.add(op, "rank 5", {x({2, 1, 3, 1, 2})}, {{"perm", Ints{4, 1, 0, 3, 2}}});
  cases.add(op, "no elements", {x({0, 3})});
}

void add_squeeze(GradientCases& cases) {
  const char* const op = "Squeeze";
  cases.add(op, "all extents of 1", {x({1, 3, 1, 2})});
  cases.add(op, "axis 0", {x({1, 3, 1}), numbers({0})});
  cases.add(op, "the last axis", {x({1, 3, 1}), numbers({-1})});
  cases.add(op, "two axes", {x({1, 3, 1}), numbers({0, 2})});
  cases.add(op, "two axes in falling order", {x({1, 3, 1}), numbers({-1, 0})});
  cases.add(op, "to a scalar", {x({1, 1})});
  cases.add(op, "nothing to remove", {x({2, 3})});
  cases.add(op, "a symbolic batch", {x({"N", 1, 2}), numbers({1})});
  cases.add(op, "axes as an attribute", {x({3, 1, 2})}, {{"axes", Ints{1}}}).opset(11);
  cases.add(op, "rank 5", {x({1, 2, 1, 2, 1}), numbers({2})});
  cases.add(op, "no elements", {x({0, 1}), numbers({1})});
}

void add_unsqueeze(GradientCases& cases) {
  const char* const op = "Unsqueeze";
  cases.add(op, "in front", {x({3, 4}), numbers({0})});
  cases.add(op, "at the end", {x({3, 4}), numbers({-1})});
  cases.add(op, "in the middle", {x({3, 4}), numbers({1})});
  cases.add(op, "two axes", {x({3, 4}), numbers({0, 3})});
  cases.add(op, "axes out of order", {x({3, 4}), numbers({2, 0})});
  cases.add(op, "negative axes", {x({3, 4}), numbers({-1, -4})});
  cases.add(op, "a scalar", {x({}), numbers({0})});
  cases.add(op, "a scalar to rank 3", {x({}), numbers({0, 1, 2})});
  cases.add(op, "a symbolic batch", {x({"N", 2}), numbers({1})});
  cases.add(op, "axes as an attribute", {x({3, 2})}, {{"axes", Ints{1}}}).opset(11);
  cases.add(op, "no elements", {x({0}), numbers({1})});
}

void add_expand(GradientCases& cases) {
  const char* const op = "Expand";
  cases.add(op, "a row", {x({4}), numbers({3, 4})});
  cases.add(op, "a column", {x({3, 1}), numbers({3, 4})});
  cases.add(op, "a scalar", {x({}), numbers({2, 3})});
  cases.add(op, "extents of 1 in the shape", {x({3, 4}), numbers({1, 1})});
  cases.add(op, "a shape of fewer axes", {x({2, 3, 1}), numbers({4})});
  cases.add(op, "both ways", {x({3, 1}), numbers({2, 1, 4})});
  cases.add(op, "the same shape", {x({2, 3}), numbers({2, 3})});
  cases.add(op, "a symbolic batch", {x({"N", 1}), numbers({1, 4})});
  cases.add(op, "along two axes that are no neighbours", {x({1, 3, 1}), numbers({2, 3, 2})});
  cases.add(op, "to no elements", {x({1, 3}), numbers({0, 3})});
  cases.add(op, "rank 5", {x({2, 1, 1, 2, 1}), numbers({2, 2, 1, 2, 2})});
  cases.add(op, "to the shape of another input", {x({4}), x({"N", 4})}).nodes([](TestModel& model) {
    model.node("Shape", {"x1"}, {"shape"});
    model.node("Expand", {"x0", "shape"}, {"wide"});
    model.node("Mul", {"wide", "x1"}, {"y0"});
  });
}

void add_tile(GradientCases& cases) {
  const char* const op = "Tile";
  cases.add(op, "a vector", {x({3}), numbers({4})});
  cases.add(op, "rows", {x({2, 3}), numbers({2, 1})});
  cases.add(op, "columns", {x({2, 3}), numbers({1, 3})});
  cases.add(op, "both", {x({2, 3}), numbers({2, 2})});
  cases.add(op, "once", {x({2, 3}), numbers({1, 1})});
  cases.add(op, "not at all", {x({2, 3}), numbers({0, 2})});
  cases.add(op, "rank 4", {x({1, 2, 1, 3}), numbers({2, 1, 3, 1})});
  cases.add(op, "a symbolic batch", {x({"N", 2}), numbers({1, 3})});
  cases.add(op, "along a symbolic axis", {x({"N", 2}), numbers({2, 1})});
  cases.add(op, "a scalar", {x({}), numbers({})});
  cases.add(op, "rank 3, all axes", {x({2, 1, 2}), numbers({3, 2, 2})});
}

void add_concat(GradientCases& cases) {
  const char* const op = "Concat";
  cases.add(op, "axis 0", {x({2, 3}), x({1, 3})}, {{"axis", 0}});
  cases.add(op, "axis 1", {x({2, 3}), x({2, 2})}, {{"axis", 1}});
  cases.add(op, "the last axis", {x({2, 2, 1}), x({2, 2, 3})}, {{"axis", -1}});
  cases.add(op, "axis -2", {x({2, 2, 3}), x({2, 1, 3})}, {{"axis", -2}});
  cases.add(op, "one input", {x({2, 3})}, {{"axis", 0}});
  cases.add(op, "four inputs", {x({2}), x({3}), x({1}), x({2})}, {{"axis", 0}});
  cases.add(op, "the same input twice", {x({2, 3})}).nodes([](TestModel& model) { model.node("Concat", {"x0", "x0"}, {"y0"}).set("axis", 1); });
  cases.add(op, "a constant among them", {x({2, 2}), constant(x({2, 1})), x({2, 2})}, {{"axis", 1}});
  cases.add(op, "one without elements", {x({2, 2}), x({0, 2}), x({1, 2})}, {{"axis", 0}});
  cases.add(op, "a symbolic batch", {x({"N", 2}), x({"N", 3})}, {{"axis", 1}});
  cases.add(op, "along symbolic axes", {x({"N", 2}), x({"M", 2})}, {{"axis", 0}});
  cases.add(op, "rank 4", {x({1, 2, 2, 2}), x({1, 3, 2, 2})}, {{"axis", 1}});
}

void add_depth_to_space(GradientCases& cases) {
  const char* const op = "DepthToSpace";
  for (const char* mode : {"DCR", "CRD"}) {
    const auto add = [&](const std::string& says, std::vector<GradientInput> inputs, std::int64_t size) {
      cases.add(op, says + ", " + mode, std::move(inputs), {{"blocksize", size}, {"mode", mode}});
    };
    add("blocks of 2", {x({1, 8, 2, 3})}, 2);
    add("blocks of 3", {x({1, 9, 1, 2})}, 3);
    add("blocks of 1", {x({2, 3, 2, 2})}, 1);
    add("a symbolic batch", {x({"N", 4, 2, 1})}, 2);
    add("symbolic rows", {x({1, 4, "N", 2})}, 2);
  }
  cases.add(op, "the default mode", {x({2, 4, 1, 2})}, {{"blocksize", 2}});
}

void add_space_to_depth(GradientCases& cases) {
  const char* const op = "SpaceToDepth";
  const auto add = [&](std::string says, std::vector<Extent> shape, std::int64_t size) { cases.add(op, std::move(says), {x(std::move(shape))}, {{"blocksize", size}}); };
  add("blocks of 2", {1, 2, 4, 6}, 2);
  add("blocks of 3", {1, 1, 3, 6}, 3);
  add("blocks of 1", {2, 3, 2, 2}, 1);
  add("one block", {1, 2, 2, 2}, 2);
  add("a row of blocks", {1, 1, 2, 8}, 2);
  add("a column of blocks", {1, 1, 8, 2}, 2);
  add("a batch", {3, 1, 2, 4}, 2);
  add("a symbolic batch", {"N", 1, 4, 2}, 2);
  add("many channels", {1, 5, 2, 2}, 2);
  add("no images", {0, 1, 2, 2}, 2);
}

void add_identity(GradientCases& cases) {
  const char* const op = "Identity";
  cases.add(op, "a matrix", {x({3, 4})});
  cases.add(op, "a vector", {x({5})});
  cases.add(op, "a scalar", {x({})});
  cases.add(op, "rank 4", {x({2, 1, 3, 2})});
  cases.add(op, "rank 6", {x({1, 2, 1, 2, 1, 2})});
  cases.add(op, "a symbolic batch", {x({"N", 4})});
  cases.add(op, "two symbols", {x({"N", "M"})});
  cases.add(op, "no elements", {x({0, 2})});
  cases.add(op, "twice", {x({3})}).nodes([](TestModel& model) {
    model.node("Identity", {"x0"}, {"once"});
    model.node("Identity", {"once"}, {"y0"});
  });
  cases.add(op, "both it and its operand are read", {x({3})}).nodes([](TestModel& model) {
    model.node("Identity", {"x0"}, {"same"});
    model.node("Mul", {"same", "x0"}, {"y0"});
  });
}

}  // namespace

void add_shape_cases(GradientCases& cases) {
  add_identity(cases);
  add_depth_to_space(cases);
  add_space_to_depth(cases);
  add_reshape(cases);
  add_flatten(cases);
  add_transpose(cases);
  add_squeeze(cases);
  add_unsqueeze(cases);
  add_expand(cases);
  add_tile(cases);
  add_concat(cases);
}

}  // namespace hone::test
