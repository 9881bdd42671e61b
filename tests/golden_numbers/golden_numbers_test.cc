// Hone's losses, optimizers, schedules and metrics against PyTorch's and Keras's own numbers (make.py), and that none of them is without such a case.
#include <fmt/format.h>

#include <map>
#include <set>

#include "base/objectives.h"
#include "base/recipe_tables.h"
#include "ir/kernel/interpret.h"
#include "ir/ops/ops.h"
#include "ir/verify.h"
#include "passes/passes.h"
#include "runtime/train/early_stopping.h"
#include "runtime/train/means.h"
#include "runtime/train/schedule.h"
#include "tests/golden_numbers/golden_file.h"
#include "tests/support/tensor_values.h"

namespace hone::test {
namespace {

/// A model that gives what it is fed.
Graph model_of(const std::vector<std::int64_t>& shape) {
  Graph graph;
  Builder builder(graph);
  Shape symbolic(shape.begin(), shape.end());
  symbolic[0] = Dim::symbol("N");
  builder.output("y", builder.input(Role::kInput, "x", {DType::kF32, symbolic}));
  return graph;
}

Feeds feeds_of(const Json& golden, const Graph& graph) {
  Feeds feeds;
  feeds["x"] = Tensor::of<double>(shape_of(golden["shape"]), numbers_of(golden["output"]));
  const auto feed = [&](const char* name, const std::vector<double>& values) {
    const Input* input = graph.find_input(name);
    ASSERT_NE(input, nullptr) << name;
    const Type& type = graph.type(input->value);
    const DimBindings sizes = {{"N", shape_of(golden["shape"])[0]}};
    const Tensor tensor = Tensor::of<double>(evaluate(type.shape, sizes), values);
    feeds[name] = is_float(type.dtype) ? tensor : tensor.cast(type.dtype);
  };
  if (golden.contains("target") and not golden["target"].is_null()) feed("target", numbers_of(golden["target"]));
  if (golden.contains("sample_weight")) feed("sample_weight", numbers_of(golden["sample_weight"]));
  return feeds;
}

std::string name_of(const Recipe& recipe, std::string_view kind) { return fmt::format("{} {}", recipe.train.convention == Convention::kKeras ? "keras" : "torch", kind); }

TEST(GoldenNumbers, LossesAndTheirGradients) {
  for (const Json& golden : golden_cases("losses")) {
    SCOPED_TRACE(golden["recipe"].get<std::string>());
    Graph graph = model_of(shape_of(golden["shape"]));
    const ValueId variable[] = {graph.find_input("x")->value};
    attach_loss(graph, recipe_of(golden));
    (void)expand_for_gradients(graph);
    const ValueId gradient = differentiate(graph, graph.find_output("loss_sum")->value, variable)[0];
    Builder builder(graph);
    builder.output("gradient", builder.val(gradient));
    (void)expand(graph);
    verify(graph);
    const GraphResults results = interpret(graph, feeds_of(golden, graph), Precision::kDouble);
    const double count = results["target_count"].at(0);
    expect_same({results["loss_sum"].at(0) / count}, {golden["loss"].get<double>()}, "loss");
    if (not golden.contains("gradient")) continue;
    std::vector<double> mean = elements(results["gradient"]);
    for (double& element : mean) element /= count;
    expect_same(mean, numbers_of(golden["gradient"]), "gradient");
  }
}

/// The weights of a case, whose gradients are fed.
class Training {
 public:
  explicit Training(const Json& golden) : Training(golden, recipe_of(golden), recipe_of(golden)) {}
  /// Made with other numbers than it then runs with.
  Training(const Json& golden, const Recipe& compiled, const Recipe& run) : golden_(golden), recipe_(compiled) {
    Builder builder(graph_);
    std::vector<TrainedWeight> weights;
    std::vector<ValueId> gradients;
    for (const Json& weight : golden["weights"]) {
      const std::string name = weight["name"];
      const Tensor start = Tensor::of<double>(shape_of(weight["shape"]), numbers_of(weight["start"])).cast(DType::kF32);
      const Val value = builder.input(Role::kWeight, name, {DType::kF32, Shape(start.shape().begin(), start.shape().end())}, start);
      weights.push_back({.value = value.id(), .name = name, .part = "", .is_matrix = value.rank() >= 2});
      gradients.push_back(builder.input(Role::kInput, "gradient of " + name, value.type()).id());
    }
    const Val loss = builder.input(Role::kInput, "loss", {DType::kF32, {}}), count = builder.input(Role::kInput, "count", {DType::kF32, {}});
    attach_optimizer(graph_, {loss.id(), count.id()}, weights, gradients, recipe_, {});
    update_if_finite(graph_, loss.id());
    (void)expand(graph_);
    verify(graph_);
    feeds_["loss"] = feeds_["count"] = Tensor::scalar(1.0F);
    feeds_["learning_rate"] = Tensor::scalar(run.optimizer.learning_rate);
    for (const RecipeKey& key : recipe_keys())
      if (graph_.find_input(key.name) != nullptr) feeds_[std::string(key.name)] = Tensor::scalar(key.get(run).number);
  }

  GraphResults step(std::size_t i) {
    for (const Json& weight : golden_["weights"]) {
      const std::string name = weight["name"];
      feeds_["gradient of " + name] = Tensor::of<double>(shape_of(weight["shape"]), numbers_of(golden_["gradients"][i][name]));
    }
    GraphResults results = interpret(graph_, feeds_, Precision::kDouble);
    for (const NamedTensor& state : results.states) feeds_[state.name] = state.value;
    return results;
  }

 private:
  const Json& golden_;
  Recipe recipe_;
  Graph graph_;
  Feeds feeds_;
};

void expect_golden(const Json& golden, Training training) {
  for (std::size_t i = 0; i < golden["after"].size(); ++i) {
    const GraphResults results = training.step(i);
    for (const auto& [name, after] : golden["after"][i].items()) expect_same(elements(results[name]), numbers_of(after), fmt::format("{} after step {}", name, i + 1));
    if (not golden.contains("averages")) continue;
    for (const auto& [name, after] : golden["averages"][i].items())
      expect_same(elements(results[name + "/ema"]), numbers_of(after), fmt::format("average of {} after step {}", name, i + 1));
  }
}

TEST(GoldenNumbers, Optimizers) {
  for (const Json& golden : golden_cases("optimizers")) {
    SCOPED_TRACE(golden["recipe"].get<std::string>());
    expect_golden(golden, Training(golden));
  }
}

TEST(GoldenNumbers, OptimizersWhoseNumbersAreChangedWhenRunning) {
  std::set<std::string_view> changed;
  for (const Json& golden : golden_cases("optimizers")) {
    SCOPED_TRACE(golden["recipe"].get<std::string>());
    const Recipe run = recipe_of(golden);
    Recipe compiled = run;
    for (const RecipeKey& key : recipe_keys()) {
      RecipeValue value = key.get(compiled);
      if (key.when != RecipeKey::When::kIfThere or key.kind != RecipeValue::Kind::kFloat or value.number == 0) continue;
      value.number *= 0.75;
      key.set(compiled, value);
      changed.insert(key.name);
    }
    expect_golden(golden, Training(golden, compiled, run));
  }
  for (const RecipeKey& key : recipe_keys())
    if (key.when == RecipeKey::When::kIfThere and key.kind == RecipeValue::Kind::kFloat) EXPECT_TRUE(changed.contains(key.name)) << key.name << " is in no case";
}

/// Of a limit 0 is none.
TEST(GoldenNumbers, LimitsThatAreTakenAwayWhenRunning) {
  for (double Recipe::Optimizer::*limit : {&Recipe::Optimizer::clip_norm, &Recipe::Optimizer::clip_value}) {
    int cases = 0;
    for (const Json& golden : golden_cases("optimizers")) {
      Recipe recipe = recipe_of(golden);
      if (recipe.optimizer.clip_norm != 0 or recipe.optimizer.clip_value != 0 or ++cases > 3) continue;
      SCOPED_TRACE(golden["recipe"].get<std::string>());
      recipe.optimizer.*limit = 1e-3;
      expect_golden(golden, Training(golden, recipe, recipe_of(golden)));
    }
  }
}

/// PyTorch dampens nothing where there is no momentum.
TEST(GoldenNumbers, DampeningGoesWithItsMomentum) {
  int cases = 0;
  for (const Json& golden : golden_cases("optimizers")) {
    Recipe compiled = recipe_of(golden), run = compiled;
    if (compiled.optimizer.kind != "sgd" or compiled.train.convention == Convention::kKeras or compiled.optimizer.momentum != 0) continue;
    SCOPED_TRACE(golden["recipe"].get<std::string>());
    compiled.optimizer.momentum = 0.9;
    compiled.optimizer.dampening = run.optimizer.dampening = 0.3;
    expect_golden(golden, Training(golden, compiled, run));
    ++cases;
  }
  EXPECT_GT(cases, 0);
}

TEST(GoldenNumbers, Schedules) {
  for (const Json& golden : golden_cases("schedules")) {
    if (not golden.contains("steps")) continue;
    SCOPED_TRACE(golden["recipe"].get<std::string>());
    const RunLength run = {.steps = golden["steps"].get<std::int64_t>(), .steps_per_epoch = golden["steps_per_epoch"].get<std::int64_t>()};
    std::vector<double> rates;
    for (std::int64_t step = 0; step < run.steps; ++step) rates.push_back(learning_rate_at(recipe_of(golden), step, run));
    expect_same(rates, numbers_of(golden["rates"]), "learning rate");
  }
}

TEST(GoldenNumbers, PlateausAlsoWhenTheyGoOnFromACheckpoint) {
  for (const Json& golden : golden_cases("schedules")) {
    if (not golden.contains("values")) continue;
    Recipe recipe = recipe_of(golden);
    SCOPED_TRACE(golden["recipe"].get<std::string>());
    Plateau plateau(recipe), resumed(recipe);
    std::vector<double> rates;
    for (const double value : numbers_of(golden["values"])) {
      Plateau next(recipe);
      next.restore(resumed.state());
      EXPECT_EQ(next.observe(value), plateau.observe(value));
      resumed = next;
      rates.push_back(recipe.optimizer.learning_rate * plateau.factor());
      EXPECT_EQ(resumed.factor(), plateau.factor());
    }
    expect_same(rates, numbers_of(golden["rates"]), "learning rate");
  }
}

TEST(GoldenNumbers, EarlyStoppingAlsoWhenItGoesOnFromACheckpoint) {
  for (const Json& golden : golden_cases("schedules")) {
    if (not golden.contains("monitored")) continue;
    SCOPED_TRACE(golden["recipe"].get<std::string>());
    const Recipe recipe = recipe_of(golden);
    EarlyStopping stopping(recipe);
    int epoch = 0, best = 0, stopped = 0;
    for (const double value : numbers_of(golden["monitored"])) {
      EarlyStopping next(recipe);
      next.restore(stopping.state());
      const EarlyStopping::Verdict verdict = next.observe(value);
      stopping = next;
      ++epoch;
      if (verdict.is_best) best = epoch;
      if (verdict.stop) stopped = epoch;
      if (verdict.stop) break;
    }
    EXPECT_EQ(stopped, golden["stopped_after"].get<int>());
    EXPECT_EQ(best, golden["best_epoch"].get<int>());
  }
}

/// Gives the results of one batch after the other as a session does.
class Interpreted : public StepRunner {
 public:
  explicit Interpreted(const Graph& graph) : graph_(graph) {
    for (const Output& output : graph.outputs()) {
      entry_.results.push_back({output.name, static_cast<std::uint32_t>(entry_.buffers.size())});
      entry_.buffers.push_back({.dtype = graph.type(output.value).dtype, .shape = graph.type(output.value).shape});
    }
  }
  const plan::Entry& entry() const { return entry_; }
  void feed(const Feeds& feeds) { results_ = interpret(graph_, feeds); }
  void run(std::string_view, const NamedViews&) override {}
  TensorView result(std::string_view name) override { return TensorView(results_[name]); }

 private:
  const Graph& graph_;
  plan::Entry entry_;
  GraphResults results_;
};

TEST(GoldenNumbers, MetricsOverBatchesAlsoWhenTheyGoOnFromACheckpoint) {
  for (const Json& golden : golden_cases("metrics")) {
    SCOPED_TRACE(golden["recipe"].get<std::string>());
    Graph graph = model_of(shape_of(golden["batches"][0]["shape"]));
    attach_loss(graph, recipe_of(golden));
    (void)expand(graph);
    verify(graph);
    Interpreted runner(graph);
    Means means(runner.entry(), "val_"), resumed(runner.entry(), "val_");
    for (const Json& batch : golden["batches"]) {
      runner.feed(feeds_of(batch, graph));
      means.add(runner);
      Means next(runner.entry(), "val_");
      next.restore(resumed.state());
      next.add(runner);
      resumed.restore(next.state());
    }
    EXPECT_EQ(resumed.values(), means.values());
    ASSERT_EQ(means.values().size(), 2U);
    EXPECT_EQ(means.values()[1].first, "val_" + golden["metric"].get<std::string>());
    expect_same({means.values()[1].second}, {golden["value"].get<double>()}, "metric");
  }
}

/// What each case of a file is about, by convention.
std::set<std::string> covered(const std::string& file, std::string (*what)(const Recipe&)) {
  std::set<std::string> names;
  for (const Json& golden : golden_cases(file)) names.insert(name_of(recipe_of(golden), what(recipe_of(golden))));
  return names;
}

TEST(GoldenNumbers, EveryLossOptimizerAndScheduleHasCases) {
  const std::map<std::string_view, std::set<std::string>> cases = {
      {"loss.kind", covered("losses", [](const Recipe& recipe) { return recipe.loss.kind; })},
      {"optimizer.kind", covered("optimizers", [](const Recipe& recipe) { return recipe.optimizer.kind; })},
      {"schedule.kind", covered("schedules", [](const Recipe& recipe) { return recipe.schedule.kind; })}};
  for (const RecipeKind& kind : recipe_kinds()) {
    if (not cases.contains(kind.key)) continue;
    const std::set<std::string>& there = cases.at(kind.key);
    const bool is_same_in_both = kind.key == "schedule.kind";
    EXPECT_TRUE(there.contains(fmt::format("torch {}", kind.name)) or (is_same_in_both and there.contains(fmt::format("keras {}", kind.name)))) << kind.key << " " << kind.name;
    EXPECT_TRUE(there.contains(fmt::format("keras {}", kind.name)) or is_same_in_both) << kind.key << " " << kind.name;
  }
}

TEST(GoldenNumbers, EveryMetricHasCasesWithWhatItGoesWith) {
  std::set<std::pair<std::string_view, Compared>> there;
  for (const Json& golden : golden_cases("metrics")) there.emplace(find_metric(golden["metric"].get<std::string>())->name, find_loss(recipe_of(golden).loss.kind)->compared);
  for (const MetricKind& metric : metric_kinds())
    for (const Compared compared : metric.beside) EXPECT_TRUE(there.contains({metric.name, compared})) << metric.name;
}

}  // namespace
}  // namespace hone::test
