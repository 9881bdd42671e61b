// Gathering, scattering, choosing by position.
#include "tests/gradients/gradient_cases.h"

namespace hone::test {

namespace {

GradientInput positions(std::vector<Extent> shape, std::vector<double> values) { return given(DType::kI64, std::move(shape), std::move(values)); }

void add_gather(GradientCases& cases) {
  const char* const op = "Gather";
  cases.add(op, "rows", {x({5, 3}), positions({4}, {0, 4, 2, 0})});
  cases.add(op, "axis 1", {x({3, 5}), positions({2}, {4, 1})}, {{"axis", 1}});
  cases.add(op, "the last axis", {x({2, 2, 4}), positions({3}, {3, 3, 0})}, {{"axis", -1}});
  cases.add(op, "positions of two axes", {x({4, 2}), positions({2, 3}, {0, 1, 3, 3, 2, 0})});
  cases.add(op, "one position", {x({4, 3}), positions({}, {2})});
  cases.add(op, "one position of a vector", {x({4}), positions({}, {1})});
  cases.add(op, "positions from the end", {x({4, 2}), positions({3}, {-1, -4, 2})});
  cases.add(op, "the same row many times", {x({3, 2}), positions({5}, {1, 1, 1, 1, 1})});
  cases.add(op, "constant positions", {x({5, 2}), numbers({3, 0, 3})});
  cases.add(op, "a symbolic batch", {x({6, 2}), whole({"N"}, 0, 5)});
  cases.add(op, "from a symbolic axis", {x({"N", 2}), positions({2}, {0, 2})});
  cases.add(op, "no positions", {x({4, 2}), positions({0}, {})});
  cases.add(op, "i32 positions of two axes along the middle", {x({2, 4, 2}), whole({2, 2}, 0, 3, DType::kI32)}, {{"axis", 1}});
}

void add_where(GradientCases& cases) {
  const char* const op = "Where";
  const auto choice = [](std::vector<Extent> shape) { return whole(std::move(shape), 0, 1, DType::kBool); };
  cases.add(op, "equal shapes", {choice({3, 4}), x({3, 4}), x({3, 4})});
  cases.add(op, "the condition broadcasts", {choice({3, 1}), x({3, 4}), x({3, 4})});
  cases.add(op, "the first broadcasts", {choice({3, 4}), x({4}), x({3, 4})});
  cases.add(op, "the second broadcasts", {choice({3, 4}), x({3, 4}), x({3, 1})});
  cases.add(op, "all broadcast", {choice({2, 1, 1}), x({3, 1}), x({4})});
  cases.add(op, "scalars", {choice({5}), x({}), x({})});
  cases.add(op, "a constant on one side", {choice({2, 3}), x({2, 3}), constant(x({}))});
  cases.add(op, "a constant condition", {constant(choice({2, 3})), x({2, 3}), x({3})});
  cases.add(op, "a symbolic batch", {choice({"N", 1}), x({"N", 4}), x({4})});
  cases.add(op, "rank 5", {choice({2, 1, 1, 2, 1}), x({2, 1, 2, 2, 2}), x({2, 2})});
  cases.add(op, "no elements", {choice({0, 2}), x({0, 2}), x({2})});
}

void add_gather_elements(GradientCases& cases) {
  const char* const op = "GatherElements";
  cases.add(op, "axis 0", {x({4, 3}), whole({2, 3}, 0, 3)});
  cases.add(op, "axis 1", {x({3, 5}), whole({3, 2}, 0, 4)}, {{"axis", 1}});
  cases.add(op, "the last axis", {x({2, 2, 4}), whole({2, 2, 6}, 0, 3)}, {{"axis", -1}});
  cases.add(op, "positions from the end", {x({4, 2}), whole({3, 2}, -4, 3)});
  cases.add(op, "the index is shorter along other axes", {x({4, 5}), whole({2, 3}, 0, 3)});
  cases.add(op, "a vector", {x({5}), whole({7}, 0, 4)});
  cases.add(op, "one element many times", {x({3}), positions({4}, {1, 1, 1, 1})});
  cases.add(op, "constant positions", {x({3, 2}), constant(positions({1, 2}, {2, 0}))});
  cases.add(op, "a symbolic batch", {x({"N", 4}), whole({"N", 2}, 0, 3)}, {{"axis", 1}});
  cases.add(op, "along a symbolic axis", {x({"N", 2}), whole({4, 2}, 0, 2)});
  cases.add(op, "i32 positions, axis in the middle", {x({2, 3, 2}), whole({2, 4, 2}, 0, 2, DType::kI32)}, {{"axis", 1}});
  cases.add(op, "no positions", {x({2, 3}), whole({2, 0}, 0, 1)}, {{"axis", 1}});
}

void add_gather_nd(GradientCases& cases) {
  const char* const op = "GatherND";
  cases.add(op, "elements", {x({3, 4}), positions({3, 2}, {0, 1, 2, 3, 0, 1})});
  cases.add(op, "slices", {x({4, 3}), positions({2, 1}, {3, 0})});
  cases.add(op, "one element", {x({2, 2}), positions({2}, {1, 0})});
  cases.add(op, "an index of rank 3", {x({2, 3, 2}), whole({2, 2, 2}, 0, 1)});
  cases.add(op, "a batch axis", {x({3, 4, 2}), whole({3, 1}, 0, 3)}, {{"batch_dims", 1}});
  cases.add(op, "two batch axes", {x({2, 3, 4}), whole({2, 3, 1}, 0, 3)}, {{"batch_dims", 2}});
  cases.add(op, "a batch axis and more positions", {x({2, 3, 4}), whole({2, 5, 2}, 0, 2)}, {{"batch_dims", 1}});
  cases.add(op, "positions from the end", {x({3, 4}), whole({4, 2}, -3, 2)});
  cases.add(op, "the same place many times", {x({2, 2}), positions({3, 2}, {1, 1, 1, 1, 1, 1})});
  cases.add(op, "constant positions", {x({3, 2}), constant(positions({2, 1}, {2, 2}))});
  cases.add(op, "a symbolic number of places", {x({4, 2}), whole({"N", 1}, 0, 3)});
  cases.add(op, "a symbolic batch", {x({"N", 4}), whole({"N", 1}, 0, 3)}, {{"batch_dims", 1}});
}

void add_scatter_elements(GradientCases& cases) {
  const char* const op = "ScatterElements";
  cases.add(op, "axis 0", {x({4, 3}), positions({2, 3}, {0, 1, 2, 3, 0, 1}), x({2, 3})});
  cases.add(op, "axis 1", {x({2, 5}), positions({2, 2}, {4, 0, 1, 3}), x({2, 2})}, {{"axis", 1}});
  cases.add(op, "positions from the end", {x({1, 5}), positions({1, 2}, {-1, -4}), x({1, 2})}, {{"axis", -1}});
  cases.add(op, "places that meet", {x({4}), positions({5}, {1, 1, 3, 1, 3}), x({5})});
  cases.add(op, "added", {x({4, 2}), whole({6, 2}, 0, 3), x({6, 2})}, {{"reduction", "add"}}).opset(18);
  cases.add(op, "added along the last axis", {x({2, 2, 3}), whole({2, 2, 4}, -3, 2), x({2, 2, 4})}, {{"axis", 2}, {"reduction", "add"}}).opset(18);
  cases.add(op, "multiplied", {x({3, 2}), whole({5, 2}, 0, 2), x({5, 2})}, {{"reduction", "mul"}}).opset(18);
  cases.add(op, "the largest", {x({3, 2}), whole({5, 2}, 0, 2), x({5, 2})}, {{"reduction", "max"}}).opset(18);
  cases.add(op, "the smallest", {x({3, 2}), whole({5, 2}, 0, 2), x({5, 2})}, {{"reduction", "min"}}).opset(18);
  cases.add(op, "into a constant", {constant(x({3, 4})), whole({3, 2}, 0, 3), x({3, 2})}, {{"axis", 1}});
  cases.add(op, "constant updates", {x({3, 4}), whole({3, 2}, 0, 3), constant(x({3, 2}))}, {{"axis", 1}});
  cases.add(op, "a symbolic batch", {x({"N", 4}), whole({"N", 2}, 0, 3), x({"N", 2})}, {{"axis", 1}});
  cases.add(op, "by an older name", {x({3, 3}), positions({1, 3}, {2, 0, 1}), x({1, 3})}).opset(10).nodes([](TestModel& model) {
    model.node("Scatter", {"x0", "c1", "x2"}, {"y0"});
  });
  cases.add(op, "nothing", {x({3}), whole({0}, 0, 2), x({0})});
}

void add_scatter_nd(GradientCases& cases) {
  const char* const op = "ScatterND";
  cases.add(op, "elements", {x({3, 4}), positions({2, 2}, {0, 1, 2, 3}), x({2})});
  cases.add(op, "slices", {x({4, 3}), positions({2, 1}, {3, 0}), x({2, 3})});
  cases.add(op, "slices that meet", {x({3, 2}), positions({3, 1}, {1, 1, 0}), x({3, 2})});
  cases.add(op, "an index of rank 3", {x({4, 2}), positions({2, 1, 1}, {2, 0}), x({2, 1, 2})});
  cases.add(op, "positions from the end", {x({3, 2}), positions({2, 1}, {-1, -3}), x({2, 2})});
  cases.add(op, "added", {x({3, 2}), whole({5, 1}, 0, 2), x({5, 2})}, {{"reduction", "add"}});
  cases.add(op, "elements added", {x({2, 3}), whole({6, 2}, 0, 1), x({6})}, {{"reduction", "add"}});
  cases.add(op, "multiplied", {x({3, 2}), whole({5, 1}, 0, 2), x({5, 2})}, {{"reduction", "mul"}});
  cases.add(op, "the largest", {x({3, 2}), whole({5, 1}, 0, 2), x({5, 2})}, {{"reduction", "max"}}).opset(18);
  cases.add(op, "the smallest", {x({3, 2}), whole({5, 1}, 0, 2), x({5, 2})}, {{"reduction", "min"}}).opset(18);
  cases.add(op, "into a constant", {constant(x({4, 2})), whole({2, 1}, 0, 3), x({2, 2})});
  cases.add(op, "a symbolic number of places", {x({4, 2}), whole({"N", 1}, 0, 3), x({"N", 2})}, {{"reduction", "add"}});
}

void add_tensor_scatter(GradientCases& cases) {
  const char* const op = "TensorScatter";
  const auto add = [&](std::string says, std::vector<GradientInput> inputs, std::vector<GradientAttribute> attributes = {}) {
    cases.add(op, std::move(says), std::move(inputs), std::move(attributes)).opset(24);
  };
  add("from the start", {x({2, 1, 4, 2}), x({2, 1, 2, 2})});
  add("from an index each", {x({2, 1, 4, 2}), x({2, 1, 2, 2}), positions({2}, {1, 2})});
  add("the last axis", {x({2, 3, 4}), x({2, 3, 1}), positions({2}, {3, 0})}, {{"axis", -1}});
  add("axis 1", {x({2, 5, 3}), x({2, 2, 3}), positions({2}, {3, 0})}, {{"axis", 1}});
  add("circular", {x({2, 4, 2}), x({2, 3, 2}), positions({2}, {3, 2})}, {{"mode", "circular"}});
  add("circular along the last axis", {x({2, 3, 3}), x({2, 3, 2}), positions({2}, {2, 1})}, {{"mode", "circular"}, {"axis", 2}});
  add("all of it", {x({2, 3, 2}), x({2, 3, 2})});
  add("into a constant", {constant(x({2, 3, 2})), x({2, 1, 2}), positions({2}, {1, 2})});
  add("a constant update", {x({2, 3, 2}), constant(x({2, 1, 2})), positions({2}, {1, 2})});
  add("constant indices", {x({2, 3, 2}), x({2, 2, 2}), numbers({0, 1})});
  add("a symbolic batch", {x({"N", 4, 2}), x({"N", 1, 2}), whole({"N"}, 0, 3)});
}

void add_reverse_sequence(GradientCases& cases) {
  const char* const op = "ReverseSequence";
  cases.add(op, "time first", {x({4, 3}), positions({3}, {4, 2, 1})});
  cases.add(op, "batch first", {x({3, 4}), positions({3}, {1, 3, 4})}, {{"time_axis", 1}, {"batch_axis", 0}});
  cases.add(op, "features", {x({4, 2, 3}), positions({2}, {3, 2})});
  cases.add(op, "batch first, features", {x({2, 4, 3}), positions({2}, {3, 4})}, {{"time_axis", 1}, {"batch_axis", 0}});
  cases.add(op, "whole sequences", {x({4, 2}), positions({2}, {4, 4})});
  cases.add(op, "sequences of one", {x({4, 2}), positions({2}, {1, 1})});
  cases.add(op, "a length of 0", {x({4, 2}), positions({2}, {0, 3})});
  cases.add(op, "constant lengths", {x({4, 2}), numbers({2, 4})});
  cases.add(op, "a symbolic batch", {x({4, "N", 2}), whole({"N"}, 1, 4)});
  cases.add(op, "symbolic steps", {x({"N", 2}), positions({2}, {3, 2})});
  cases.add(op, "rank 4", {x({3, 2, 2, 2}), positions({2}, {2, 3})});
}

}  // namespace

void add_index_cases(GradientCases& cases) {
  add_gather(cases);
  add_gather_elements(cases);
  add_gather_nd(cases);
  add_scatter_elements(cases);
  add_scatter_nd(cases);
  add_tensor_scatter(cases);
  add_reverse_sequence(cases);
  add_where(cases);
}

}  // namespace hone::test
