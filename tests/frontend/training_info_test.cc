// TrainingInfoProto: a model that says itself how it is trained, against steps computed by numpy; and what is wrong with such models.
#include "frontend/onnx/training_info.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "ir/verify.h"
#include "passes/pipeline.h"
#include "tests/frontend/training_models.h"

namespace hone::test {
namespace {

using ::testing::HasSubstr;

/// The training step of the model, run on the interpreter, its states carried from step to step.
class Training {
 public:
  explicit Training(const TestModel& model) {
    const onnx::Imported imported = model.import();
    EXPECT_TRUE(imported.own_training.step.has_value());
    TrainingReport report;
    for (EntryGraph& entry : build_entries(imported.graph, {}, report, &imported.own_training)) {
      verify(entry.graph);
      optimize(entry.graph);
      if (entry.name == "train_step") step_ = std::move(entry.graph);
      if (entry.name == "train_step_norms") norms_ = std::move(entry.graph);
      if (entry.name == "eval_step") evaluation_ = std::move(entry.graph);
    }
    for (const TrainedWeight& weight : report.trained) trained.push_back(weight.name);
    feeds = {{"x", linear_x()}, {"t", linear_targets()}};
  }

  /// The mean loss before the step.
  double step() {
    const GraphResults results = interpret(step_, feeds);
    for (const NamedTensor& state : results.states) feeds[state.name] = state.value;
    return results["loss_sum"].at(0) / results["target_count"].at(0);
  }
  GraphResults norms() const { return interpret(norms_, feeds); }
  const Graph& evaluation() const { return evaluation_; }

  Feeds feeds;
  std::vector<std::string> trained;

 private:
  Graph step_, norms_, evaluation_;
};

void expect_trajectory(const TestModel& model, const Trajectory& expected) {
  Training training(model);
  for (std::size_t i = 0; i < expected.losses.size(); ++i) EXPECT_NEAR(training.step(), expected.losses[i], 5e-6) << "step " << i;
  for (const auto& [name, values] : {std::pair("w", expected.w), std::pair("b", expected.b)})
    for (std::size_t i = 0; i < values.size(); ++i) EXPECT_NEAR(training.feeds[name].at(static_cast<std::int64_t>(i)), values[i], 5e-6) << name << i;
}

TEST(TrainingInfo, PlainNodesTrain) { expect_trajectory(trained_by_descent(), by_descent()); }

TEST(TrainingInfo, OptimizersOfOnnxTrain) {
  TestModel momentum = trained_by("Momentum", 1);
  algorithm_node(momentum, "Momentum").set("alpha", 0.9).set("beta", 0.5).set("norm_coefficient", 0.01).set("mode", "standard");
  expect_trajectory(momentum, by_momentum());
  expect_trajectory(trained_by("Adam", 2), by_adam());
  TestModel adagrad = trained_by("Adagrad", 1);
  algorithm_node(adagrad, "Adagrad").set("decay_factor", 0.1);
  expect_trajectory(adagrad, by_adagrad());
}

TEST(TrainingInfo, WhatIsUpdatedIsNoConstant) {
  Training training(trained_by("Adam", 2));
  for (int i = 0; i < 3; ++i) training.step();
  EXPECT_EQ(training.feeds["T"].int_at(0), 3);
  EXPECT_THAT(training.trained, testing::UnorderedElementsAre("w", "b"));
}

/// A scalar of the model's own graph that is trained must not be a number in the predicting entry, either.
TEST(TrainingInfo, RolesHoldInTheModelsGraph) {
  TestModel model;
  model.input("x", {"N"}).output("y").initializer("scale", f32({}, {2})).initializer("count", i64({}, {0}));
  model.node("Mul", {"x", "scale"}, {"y"});
  TestModel algorithm;
  algorithm.node("ReduceMean", {"y"}, {"loss"}).set("keepdims", 0);
  TestNode gradient = algorithm.node("Gradient", {"scale"}, {"next"});
  gradient.set("y", "loss").proto().set_domain("ai.onnx.preview.training");
  onnx::AttributeProto& xs = *gradient.proto().add_attribute();
  xs.set_name("xs");
  xs.add_strings("scale");
  algorithm.initializer("one", i64({}, {1})).node("Add", {"count", "one"}, {"count_next"});
  add_algorithm(model, std::move(algorithm), {{"scale", "next"}, {"count", "count_next"}});
  const onnx::Imported imported = model.import();
  EXPECT_EQ(imported.graph.find_input("scale")->role, Role::kWeight);
  for (const Input& input : imported.own_training.step->inputs())
    if (input.name == "count") EXPECT_EQ(input.role, Role::kState);
  Training training(model);
  training.feeds = {{"x", f32({2}, {3, 5})}};
  training.step();
  EXPECT_EQ(training.feeds["scale"].at(0), 4) << "the mean of x";
}

TEST(TrainingInfo, ABadStepChangesNothing) {
  Training training(trained_by("Adam", 2));
  training.step();
  const Feeds before = training.feeds;
  training.feeds["t"] = f32({4, 2}, {1, 2, 3, std::numeric_limits<float>::infinity(), 5, 6, 7, 8});
  training.step();
  for (const auto& [name, value] : before)
    if (name != "t") EXPECT_EQ(values_of(training.feeds[name]), values_of(value)) << name;
}

TEST(TrainingInfo, EvaluationUpdatesNothingAndHasNoBackwardPass) {
  const Training training(trained_by("Adam", 2));
  EXPECT_TRUE(training.evaluation().aliases().empty());
  EXPECT_EQ(ops_of(training.evaluation()).find("Adam"), std::string::npos);
  EXPECT_LT(training.evaluation().node_count(), 14u);
  const GraphResults results = interpret(training.evaluation(), training.feeds);
  EXPECT_NEAR(results["loss_sum"].at(0) / results["target_count"].at(0), by_adam().losses[0], 2e-6);
}

TEST(TrainingInfo, GradientNormsAreOfTheLoss) {
  const GraphResults results = Training(trained_by_descent()).norms();
  // numpy.linalg.norm of the gradients that the first step of by_descent() takes
  EXPECT_NEAR(results["grad_norm:w"].at(0), 2.42998595, 1e-5);
  EXPECT_NEAR(results["grad_norm:b"].at(0), 0.232833474, 1e-6);
}

TEST(TrainingInfo, NumbersThatAreNoUpdateAreMetrics) {
  TestModel model = trained_by_descent();
  onnx::GraphProto& algorithm = *model.proto.mutable_training_info(0)->mutable_algorithm();
  TestModel more;
  more.node("ReduceMax", {"squares"}, {"worst"}).set("keepdims", 0);
  *algorithm.add_node() = more.proto.graph().node(0);
  algorithm.add_output()->set_name("worst");
  const Graph step = *model.import().own_training.step;
  ASSERT_NE(step.find_output("metric:worst"), nullptr);
  EXPECT_EQ(step.outputs().size(), 3u);
}

/// The gradient may be written out instead: then the loss is the first output that is a number.
TEST(TrainingInfo, NeedsNoGradientNode) {
  TestModel model, algorithm;
  model.input("x", {"N", 2}).output("y").initializer("w", f32({2}, {1, 2}));
  model.node("Mul", {"x", "w"}, {"y"});
  algorithm.output("mean");
  algorithm.node("ReduceMean", {"y"}, {"mean"}).set("keepdims", 0);
  algorithm.node("Add", {"w", "w"}, {"twice"});
  add_algorithm(model, std::move(algorithm), {{"w", "twice"}});
  Training training(model);
  training.feeds = {{"x", f32({1, 2}, {1, 2})}};
  EXPECT_EQ(training.step(), 2.5);
  EXPECT_EQ(values_of(training.feeds["w"]), (std::vector<double>{2, 4}));
}

TEST(TrainingInfo, TwoVariablesMayChangePlaces) {
  TestModel model, algorithm;
  model.input("x", {"N"}).output("y").initializer("a", f32({2}, {1, 2})).initializer("c", f32({2}, {3, 4}));
  model.node("ReduceSum", {"x"}, {"y"}).set("keepdims", 0);
  algorithm.output("y_too").node("Identity", {"y"}, {"y_too"});
  algorithm.node("Identity", {"a"}, {"old_a"});
  algorithm.node("Identity", {"c"}, {"old_c"});
  add_algorithm(model, std::move(algorithm), {{"a", "old_c"}, {"c", "old_a"}});
  Training training(model);
  training.feeds = {{"x", f32({1}, {1})}};
  training.step();
  EXPECT_EQ(values_of(training.feeds["a"]), (std::vector<double>{3, 4}));
  EXPECT_EQ(values_of(training.feeds["c"]), (std::vector<double>{1, 2}));
}

void add_initialization(TestModel& model, TestModel graph, const std::string& initializer, const std::string& value) {
  onnx::TrainingInfoProto& info = *model.proto.mutable_training_info(0);
  *info.mutable_initialization() = graph.proto.graph();
  onnx::StringStringEntryProto& binding = *info.add_initialization_binding();
  binding.set_key(initializer);
  binding.set_value(value);
}

TestModel drawn(std::vector<std::int64_t> shape) {
  TestModel graph;
  graph.output("first").node("RandomNormal", {}, {"first"}).set("shape", std::move(shape)).set("scale", 2.0);
  return graph;
}

Tensor first_w(const TestModel& model, std::int64_t seed, bool own_first_values = true) {
  const onnx::Imported imported = model.import({.own_first_values = own_first_values});
  TrainingReport report;
  Recipe recipe;
  recipe.train.seed = seed;
  std::optional<Tensor> value;
  for (const EntryGraph& entry : build_entries(imported.graph, recipe, report, &imported.own_training)) {
    const Tensor& data = *entry.graph.find_input("w")->data;
    if (value) EXPECT_EQ(values_of(data), values_of(*value)) << entry.name;
    value = data;
  }
  return *value;
}

TEST(TrainingInfo, InitializationGivesFirstValues) {
  TestModel model = trained_by_descent();
  add_initialization(model, drawn({3, 2}), "w", "first");
  const std::vector<double> drawn = values_of(first_w(model, 0)), in_file = values_of(first_w(model, 0, false));
  EXPECT_EQ(in_file, (std::vector<double>{0.5, -0.25, 0.125, 0.75, -0.5, 0.25}));
  EXPECT_NE(drawn, in_file);
  EXPECT_EQ(drawn, values_of(first_w(model, 0)));
  EXPECT_NE(drawn, values_of(first_w(model, 1)));
}

// --- What is wrong with it ---

std::string problems_text(const TestModel& model) {
  std::string text;
  for (const Diag& diag : problems_of(model)) text += to_string(diag) + "\n";
  return text;
}

onnx::TrainingInfoProto& info_of(TestModel& model) { return *model.proto.mutable_training_info(0); }

TEST(TrainingInfoErrors, BindingsOfNamesThatAreNotThere) {
  TestModel model = trained_by_descent();
  info_of(model).mutable_update_binding(0)->set_key("ww");
  info_of(model).mutable_update_binding(1)->set_value("b_nxt");
  const std::string text = problems_text(model);
  EXPECT_THAT(text, HasSubstr("update_binding gives \"ww\" the value \"w_next\": there is no initializer \"ww\""));
  EXPECT_THAT(text, HasSubstr("there is no output of the algorithm or of the model of that name"));
  EXPECT_THAT(text, HasSubstr("did you mean \"b_next\"?"));
}

TEST(TrainingInfoErrors, AVariableBoundTwice) {
  TestModel model = trained_by_descent();
  add_update(model, "w", "w_next");
  EXPECT_THAT(problems_text(model), HasSubstr("it is bound twice"));
}

TEST(TrainingInfoErrors, AnInputIsNoVariable) {
  TestModel model = trained_by_descent();
  add_update(model, "x", "w_next");
  EXPECT_THAT(problems_text(model), HasSubstr("there is no initializer \"x\""));
}

TEST(TrainingInfoErrors, AnUpdateOfAnotherType) {
  TestModel model = trained_by_descent();
  info_of(model).mutable_update_binding(0)->set_value("b_next");
  EXPECT_THAT(problems_text(model), HasSubstr("update_binding gives \"w\", which is f32[3,2], the value \"b_next\", which is f32[2]"));
}

TEST(TrainingInfoErrors, NamesThatTheModelHasAlready) {
  TestModel model = trained_by_descent();
  info_of(model).mutable_algorithm()->mutable_node(0)->set_output(0, "product");
  EXPECT_THAT(problems_text(model), HasSubstr("the value \"product\" is made twice"));
}

TEST(TrainingInfoErrors, AnInitializerThatTheModelHasAlready) {
  TestModel model = trained_by_descent();
  info_of(model).mutable_algorithm()->mutable_initializer(0)->set_name("w");
  EXPECT_THAT(problems_text(model), HasSubstr("there are two initializers named \"w\""));
}

TEST(TrainingInfoErrors, ValuesThatNothingMakes) {
  TestModel model = trained_by_descent();
  algorithm_node(model, "Sub").proto().set_input(1, "tt");
  EXPECT_THAT(problems_text(model), HasSubstr("\"tt\", which nothing produces"));
}

TEST(TrainingInfoErrors, ALossThatDependsOnItsOwnGradient) {
  TestModel model = trained_by_descent();
  algorithm_node(model, "Mul").proto().set_input(1, "db");
  EXPECT_THAT(problems_text(model), HasSubstr("nodes depend on themselves"));
}

TEST(TrainingInfoErrors, NoLoss) {
  TestModel model = trained_by_descent();
  algorithm_node(model, "ReduceMean").proto().clear_attribute();
  algorithm_node(model, "ReduceMean").set("axes", std::vector<std::int64_t>{0}).set("keepdims", 0);
  EXPECT_THAT(problems_text(model), HasSubstr("gives no loss"));
}

TEST(TrainingInfoErrors, SeveralAlgorithms) {
  TestModel model = trained_by_descent();
  *model.proto.add_training_info() = info_of(model);
  EXPECT_THAT(problems_text(model), HasSubstr("carries 2 training algorithms"));
}

TEST(TrainingInfoErrors, FirstValuesOfAnotherType) {
  TestModel model = trained_by_descent();
  add_initialization(model, drawn({2, 3}), "w", "first");
  EXPECT_THAT(problems_text(model), HasSubstr("initialization_binding gives \"w\", which is f32[3,2], the value \"first\", which is f32[2,3]"));
}

TEST(TrainingInfoErrors, AnInitializationWithInputs) {
  TestModel model = trained_by_descent(), graph = drawn({3, 2});
  graph.input("seed", {1});
  add_initialization(model, graph, "w", "first");
  EXPECT_THAT(problems_text(model), HasSubstr("takes the input \"seed\", and must take none"));
}

/// It is run when compiling.
TEST(TrainingInfoErrors, AnInitializationThatMakesTooMuch) {
  TestModel model = trained_by_descent(), graph = drawn({1, 1});
  graph.initializer("huge", ints({1 << 17, 1 << 17})).initializer("shape", ints({3, 2}));
  graph.node("Expand", {"first", "huge"}, {"expanded"});
  graph.node("ReduceSum", {"expanded"}, {"total"});
  graph.node("Expand", {"total", "shape"}, {"w_first"});
  graph.output("w_first");
  add_initialization(model, graph, "w", "w_first");
  try {
    (void)first_w(model, 0);
    FAIL();
  } catch (const Error& error) { EXPECT_THAT(error.what(), HasSubstr("the limit is 2^28 elements")); }
}

TEST(TrainingInfo, IsLeftAsideWhereItIsNotWanted) {
  TestModel model = trained_by_descent();
  info_of(model).mutable_update_binding(0)->set_key("ww");
  const onnx::Imported imported = model.import({.own_training = false});
  EXPECT_FALSE(imported.own_training.step);
  ASSERT_EQ(imported.warnings.size(), 1u);
  EXPECT_THAT(imported.warnings[0].message, HasSubstr("is kept and not used"));
}

TEST(TrainingInfo, WithoutUpdatesTrainsNothing) {
  TestModel model = trained_by_descent();
  info_of(model).clear_update_binding();
  const onnx::Imported imported = model.import();
  EXPECT_FALSE(imported.own_training.step);
  ASSERT_EQ(imported.warnings.size(), 1u);
  EXPECT_THAT(imported.warnings[0].message, HasSubstr("updates nothing"));
}

TEST(TrainingInfo, ARecipeForTheModelPartIsRefused) {
  const onnx::Imported imported = trained_by_descent().import();
  Recipe recipe;
  recipe.model.freeze = {"b"};
  TrainingReport report;
  try {
    (void)build_entries(imported.graph, recipe, report, &imported.own_training);
    FAIL();
  } catch (const Error& error) { EXPECT_THAT(error.what(), HasSubstr("model.freeze")); }
}

}  // namespace
}  // namespace hone::test
