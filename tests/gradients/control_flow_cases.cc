// If, Loop and Scan.
#include "tests/gradients/gradient_cases.h"

namespace hone::test {

namespace {

/// y0 = c0 ? `then` : `otherwise`, operators over x1 and x2.
std::function<void(TestModel&)> choice(const std::string& then, const std::string& otherwise) {
  return [then, otherwise](TestModel& model) {
    onnx::NodeProto& node = model.node("If", {"c0"}, {"y0"}).proto();
    BodyGraph(node, "then_branch").output("a").node(then, {"x1", "x2"}, {"a"});
    BodyGraph(node, "else_branch").output("b").node(otherwise, {"x1", "x2"}, {"b"});
  };
}

void add_if_cases(GradientCases& cases) {
  for (const double condition : {0.0, 1.0}) {
    const std::string value = condition == 0 ? ", not taken" : ", taken";
    const GradientInput when_running = given(DType::kBool, {}, {condition}), known = constant(when_running);
    cases.add("If", "fed" + value, {when_running, x({3, 4}), x({3, 4}, 0.5, 2)}).nodes(choice("Mul", "Div"));
    cases.add("If", "fed, operands broadcast" + value, {when_running, x({2, 1, 4}), x({3, 1}, 0.5, 2)}).nodes(choice("Sub", "Div"));
    cases.add("If", "fed, a symbolic batch" + value, {when_running, x({"N", 4}), x({4}, 0.5, 2)}).nodes(choice("Mul", "Add"));
    cases.add("If", "fed, matrices" + value, {when_running, x({3, 3}), x({3, 3})}).nodes(choice("MatMul", "Sub"));
    cases.add("If", "known" + value, {known, x({3, 4}), x({3, 4}, 0.5, 2)}).nodes(choice("Mul", "Div"));
    cases.add("If", "a branch that leaves an operand out" + value, {when_running, x({5}), x({5})}).nodes([](TestModel& model) {
      onnx::NodeProto& node = model.node("If", {"c0"}, {"y0"}).proto();
      BodyGraph(node, "then_branch").output("a").node("Sin", {"x1"}, {"a"});
      BodyGraph(node, "else_branch").output("b").node("Mul", {"x1", "x2"}, {"b"});
    });
  }
}

/// y0 (the last state), y1 (each trip's product) = Loop of c0 iterations at most over state x1: v <- sin(v) * x2, while `go_on` holds.
std::function<void(TestModel&)> loop(std::function<void(BodyGraph&)> go_on) {
  return [go_on = std::move(go_on)](TestModel& model) {
    onnx::NodeProto& node = model.node("Loop", {"c0", "", "x1"}, {"y0", "y1"}).proto();
    BodyGraph body(node, "body");
    body.input("i").input("go").input("v").output("on").output("next").output("each");
    go_on(body);
    body.node("Sin", {"v"}, {"sine"});
    body.node("Mul", {"sine", "x2"}, {"next"});
    body.node("Mul", {"next", "v"}, {"each"});
  };
}
void always(BodyGraph& body) { body.node("Identity", {"go"}, {"on"}); }

void add_loop_cases(GradientCases& cases) {
  const auto trips = [](double count) { return given(DType::kI64, {}, {count}); };
  for (const double count : {0.0, 1.0, 4.0})
    cases.add("Loop", "iterations that are known: " + std::to_string(static_cast<int>(count)), {constant(trips(count)), x({2, 3}), x({2, 3}, 0.5, 1.5)}).outputs(2).nodes(loop(always));
  for (const double count : {0.0, 1.0, 4.0})
    cases.add("Loop", "iterations that are fed: " + std::to_string(static_cast<int>(count)), {trips(count), x({2, 3}), x({2, 3}, 0.5, 1.5)}).outputs(2).nodes(loop(always));
  cases.add("Loop", "what is read from outside broadcasts", {trips(3), x({2, 3}), x({3}, 0.5, 1.5)}).outputs(2).nodes(loop(always));
  cases.add("Loop", "a symbolic batch", {constant(trips(3)), x({"N", 3}), x({3}, 0.5, 1.5)}).outputs(2).nodes(loop(always));
  cases.add("Loop", "until a state is small", {constant(trips(50)), x({1}, 1, 1.5), x_of({1}, {0.8})}).outputs(2).nodes(loop([](BodyGraph& body) {
    body.node("Constant", {}, {"small"}).set("value", f32({1}, {0.3F}));
    body.node("Greater", {"v", "small"}, {"is_large"});
    body.node("Squeeze", {"is_large"}, {"on"});
  }));
  cases.add("Loop", "until a number of iterations", {constant(trips(50)), x({2, 2}), x({2, 2}, 0.5, 1.5)}).outputs(2).nodes(loop([](BodyGraph& body) {
    body.node("Constant", {}, {"last"}).set("value", Tensor::scalar(std::int64_t{2}));
    body.node("Less", {"i", "last"}, {"on"});
  }));
  cases.add("Loop", "in a loop", {constant(trips(2)), x({3}), x({3}, 0.5, 1.5)}).nodes([](TestModel& model) {
    onnx::NodeProto& node = model.node("Loop", {"c0", "", "x1"}, {"y0"}).proto();
    BodyGraph body(node, "body");
    body.input("i").input("go").input("v").output("go").output("next");
    onnx::NodeProto& inner = body.node("Loop", {"c0", "", "v"}, {"next"}).proto();
    BodyGraph inner_body(inner, "body");
    inner_body.input("j").input("go_on").input("w").output("go_on").output("product");
    inner_body.node("Tanh", {"w"}, {"t"});
    inner_body.node("Mul", {"t", "x2"}, {"product"});
  });
}

/// y0 (the last state), y1 (all) = Scan: v <- tanh(v * x2 + slice), over the rows of x1; x0 is the first state.
std::function<void(TestModel&)> scan(std::vector<std::pair<std::string, std::vector<std::int64_t>>> attributes = {}) {
  return [attributes = std::move(attributes)](TestModel& model) {
    TestNode node = model.node("Scan", {"x0", "x1"}, {"y0", "y1"}).set("num_scan_inputs", 1);
    for (const auto& [name, values] : attributes) node.set(name, values);
    BodyGraph body(node.proto(), "body");
    body.input("v").input("slice").output("next").output("each");
    body.node("Mul", {"v", "x2"}, {"product"});
    body.node("Add", {"product", "slice"}, {"sum"});
    body.node("Tanh", {"sum"}, {"next"});
    body.node("Mul", {"next", "slice"}, {"each"});
  };
}

void add_scan_cases(GradientCases& cases) {
  using Attributes = std::vector<std::pair<std::string, std::vector<std::int64_t>>>;
  const auto add = [&](const char* says, std::vector<Extent> state, std::vector<Extent> scanned, std::vector<Extent> outer, const Attributes& attributes = {}) {
    cases.add("Scan", says, {x(std::move(state)), x(std::move(scanned)), x(std::move(outer))}).outputs(2).nodes(scan(attributes));
  };
  add("rows", {3}, {4, 3}, {3});
  add("one row", {3}, {1, 3}, {3});
  add("no row", {3}, {0, 3}, {3});
  add("scalars", {}, {5}, {});
  add("matrices", {2, 3}, {4, 2, 3}, {3});
  add("a symbolic length", {3}, {"N", 3}, {3});
  add("backwards", {3}, {4, 3}, {3}, {{"scan_input_directions", {1}}});
  add("results backwards", {3}, {4, 3}, {3}, {{"scan_output_directions", {1}}});
  add("along another axis", {3}, {3, 4}, {3}, {{"scan_input_axes", {1}}});
  add("results along another axis", {3}, {4, 3}, {3}, {{"scan_output_axes", {-1}}});
  add("everything at once", {2, 1}, {2, 4, 1}, {1}, {{"scan_input_axes", {1}}, {"scan_input_directions", {1}}, {"scan_output_axes", {2}}, {"scan_output_directions", {1}}});
}

}  // namespace

void add_control_flow_cases(GradientCases& cases) {
  add_if_cases(cases);
  add_loop_cases(cases);
  add_scan_cases(cases);
}

}  // namespace hone::test
