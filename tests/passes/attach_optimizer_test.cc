// The optimizers as attached to a graph, against PyTorch's and Keras's documented formulas written plainly, for a few steps.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <map>

#include "ir/kernel/interpret.h"
#include "ir/op.h"
#include "ir/verify.h"
#include "passes/passes.h"
#include "tests/support/temp_folder.h"

namespace hone::test {
namespace {

using Options = Recipe::Optimizer;

/// One element of a weight with its states, all 0 unless written before.
struct Element {
  double w;
  std::map<std::string, double> state = {};
};
/// One step on one element; t counts from 1.
using Formula = void (*)(Element&, double g, double t, const Options&);

void torch_sgd(Element& e, double g, double t, const Options& o) {
  g += o.weight_decay * e.w;
  if (o.momentum != 0) {
    double& buffer = e.state["velocity"];
    buffer = t == 1 ? g : o.momentum * buffer + (1 - o.dampening) * g;
    g = o.nesterov ? g + o.momentum * buffer : buffer;
  }
  e.w -= o.learning_rate * g;
}

void keras_sgd(Element& e, double g, double, const Options& o) {
  e.w -= e.w * o.weight_decay * o.learning_rate;
  double& velocity = e.state["velocity"];
  velocity = o.momentum * velocity - o.learning_rate * g;
  e.w += o.nesterov ? o.momentum * velocity - o.learning_rate * g : velocity;
}

void move_moments(Element& e, double g, const Options& o) {
  e.state["m"] = o.beta1 * e.state["m"] + (1 - o.beta1) * g;
  e.state["v"] = o.beta2 * e.state["v"] + (1 - o.beta2) * g * g;
  e.state["v_max"] = o.amsgrad ? std::max(e.state["v_max"], e.state["v"]) : e.state["v"];
}

void torch_adam_step(Element& e, double t, const Options& o) {
  const double denominator = std::sqrt(e.state["v_max"]) / std::sqrt(1 - std::pow(o.beta2, t)) + o.epsilon;
  e.w -= o.learning_rate / (1 - std::pow(o.beta1, t)) * e.state["m"] / denominator;
}

void torch_adam(Element& e, double g, double t, const Options& o) {
  move_moments(e, g + o.weight_decay * e.w, o);
  torch_adam_step(e, t, o);
}

void torch_adamw(Element& e, double g, double t, const Options& o) {
  e.w *= 1 - o.learning_rate * o.weight_decay;
  move_moments(e, g, o);
  torch_adam_step(e, t, o);
}

void keras_adam(Element& e, double g, double t, const Options& o) {
  e.w -= e.w * o.weight_decay * o.learning_rate;
  move_moments(e, g, o);
  const double alpha = o.learning_rate * std::sqrt(1 - std::pow(o.beta2, t)) / (1 - std::pow(o.beta1, t));
  e.w -= e.state["m"] * alpha / (std::sqrt(e.state["v_max"]) + o.epsilon);
}

void nadam(Element& e, double g, double t, const Options& o, double momentum_decay) {
  const auto mu = [&](double step) { return o.beta1 * (1 - 0.5 * std::pow(0.96, step * momentum_decay)); };
  double& product = e.state.try_emplace("product", 1).first->second;
  product *= mu(t);
  move_moments(e, g, o);
  const double denominator = std::sqrt(e.state["v"] / (1 - std::pow(o.beta2, t))) + o.epsilon;
  e.w -= o.learning_rate * (1 - mu(t)) / (1 - product) * g / denominator;
  e.w -= o.learning_rate * mu(t + 1) / (1 - product * mu(t + 1)) * e.state["m"] / denominator;
}
void torch_nadam(Element& e, double g, double t, const Options& o) { nadam(e, g + o.weight_decay * e.w, t, o, o.momentum_decay); }
void keras_nadam(Element& e, double g, double t, const Options& o) { nadam(e, g, t, o, 1); }

void torch_rmsprop(Element& e, double g, double, const Options& o) {
  g += o.weight_decay * e.w;
  double& square = e.state["mean_square"] = o.rho * e.state["mean_square"] + (1 - o.rho) * g * g;
  double& mean = e.state["mean"] = o.rho * e.state["mean"] + (1 - o.rho) * g;
  const double average = std::sqrt(square - (o.centered ? mean * mean : 0)) + o.epsilon;
  double& buffer = e.state["velocity"] = o.momentum * e.state["velocity"] + g / average;
  e.w -= o.learning_rate * buffer;
}

void keras_rmsprop(Element& e, double g, double, const Options& o) {
  double& velocity = e.state["mean_square"] = o.rho * e.state["mean_square"] + (1 - o.rho) * g * g;
  double& average = e.state["mean"] = o.rho * e.state["mean"] + (1 - o.rho) * g;
  const double denominator = velocity - (o.centered ? average * average : 0) + o.epsilon;
  double& momentum = e.state["velocity"] = o.momentum * e.state["velocity"] + o.learning_rate * g / std::sqrt(denominator);
  e.w -= momentum;
}

void torch_adagrad(Element& e, double g, double t, const Options& o) {
  g += o.weight_decay * e.w;
  double& sum = e.state.try_emplace("sum", o.initial_accumulator_value).first->second += g * g;
  e.w -= o.learning_rate / (1 + (t - 1) * o.lr_decay) * g / (std::sqrt(sum) + o.epsilon);
}

void keras_adagrad(Element& e, double g, double, const Options& o) {
  double& sum = e.state.try_emplace("sum", o.initial_accumulator_value).first->second += g * g;
  e.w -= o.learning_rate * g / std::sqrt(sum + o.epsilon);
}

struct Row {
  std::string kind;
  Convention convention;
  Formula formula;
  Options options;
};

/// Every number on, so that each formula is seen whole; what a convention does not have stays off.
Options options(double weight_decay, double momentum = 0, double dampening = 0, bool nesterov = false) {
  Options o;
  o.learning_rate = 0.1, o.beta1 = 0.9, o.beta2 = 0.99, o.epsilon = 1e-3, o.rho = 0.9, o.momentum_decay = 4e-3;
  o.weight_decay = weight_decay, o.momentum = momentum, o.dampening = dampening, o.nesterov = nesterov;
  return o;
}
Options amsgrad(double weight_decay) {
  Options o = options(weight_decay);
  o.amsgrad = true;
  return o;
}
Options centered(double momentum) {
  Options o = options(0, momentum);
  o.centered = true;
  return o;
}
Options accumulator(double initial, double lr_decay) {
  Options o = options(0);
  o.initial_accumulator_value = initial, o.lr_decay = lr_decay;
  return o;
}

std::vector<Row> rows() {
  constexpr Convention kTorch = Convention::kTorch, kKeras = Convention::kKeras;
  return {{"sgd", kTorch, torch_sgd, options(0)},
          {"sgd", kTorch, torch_sgd, options(0.1, 0.9)},
          {"sgd", kTorch, torch_sgd, options(0.1, 0.9, 0.3)},
          {"sgd", kTorch, torch_sgd, options(0, 0.9, 0, true)},
          {"sgd", kKeras, keras_sgd, options(0)},
          {"sgd", kKeras, keras_sgd, options(0.1, 0.9)},
          {"sgd", kKeras, keras_sgd, options(0, 0.9, 0, true)},
          {"adam", kTorch, torch_adam, options(0)},
          {"adam", kTorch, torch_adam, amsgrad(0.1)},
          {"adam", kKeras, keras_adam, options(0)},
          {"adam", kKeras, keras_adam, amsgrad(0.1)},
          {"adamw", kTorch, torch_adamw, options(0.1)},
          {"adamw", kTorch, torch_adamw, amsgrad(0.1)},
          {"adamw", kKeras, keras_adam, options(0.1)},
          {"nadam", kTorch, torch_nadam, options(0.1)},
          {"nadam", kKeras, keras_nadam, options(0)},
          {"rmsprop", kTorch, torch_rmsprop, options(0.1)},
          {"rmsprop", kTorch, torch_rmsprop, options(0, 0.9)},
          {"rmsprop", kTorch, torch_rmsprop, centered(0.5)},
          {"rmsprop", kKeras, keras_rmsprop, options(0)},
          {"rmsprop", kKeras, keras_rmsprop, options(0, 0.9)},
          {"rmsprop", kKeras, keras_rmsprop, centered(0.5)},
          {"adagrad", kTorch, torch_adagrad, accumulator(0, 0.1)},
          {"adagrad", kTorch, torch_adagrad, accumulator(0.2, 0)},
          {"adagrad", kKeras, keras_adagrad, accumulator(0.1, 0)}};
}

constexpr double kStart[] = {1, -0.5, 2};

/// A graph whose weight "w" gets the fed gradient sum "g"; loss and target count are fed, too.
class Training {
 public:
  Training(const Row& row, std::string part = "") {
    Recipe recipe;
    recipe.optimizer = row.options;
    recipe.optimizer.kind = row.kind;
    recipe.train.convention = row.convention;
    Builder b(graph_);
    const Val w = b.input(Role::kWeight, "w", {DType::kF32, {3}}, Tensor::of<double>({3}, kStart).cast(DType::kF32));
    const Val g = b.input(Role::kInput, "g", w.type()), loss = b.input(Role::kInput, "loss", {DType::kF32, {}}),
              count = b.input(Role::kInput, "count", {DType::kF32, {}});
    const TrainedWeight weights[] = {{w.id(), "w", std::move(part)}};
    const ValueId gradients[] = {g.id()};
    attach_optimizer(graph_, {loss.id(), count.id()}, weights, gradients, recipe, {.gradient_norms = true});
    update_if_finite(graph_, loss.id());
    (void)expand(graph_);
    verify(graph_);
    feeds_["learning_rate"] = Tensor::scalar(row.options.learning_rate);
    feeds_["count"] = Tensor::scalar(2.0F);
  }

  GraphResults step(const std::vector<double>& mean_gradient, float loss) {
    std::vector<double> sums;
    for (const double g : mean_gradient) sums.push_back(2 * g);
    feeds_["g"] = Tensor::of<double>({3}, std::span<const double>(sums));
    feeds_["loss"] = Tensor::scalar(loss);
    GraphResults results = interpret(graph_, feeds_, Precision::kDouble);
    for (const NamedTensor& state : results.states) feeds_[state.name] = state.value;
    return results;
  }
  void feed(const std::string& name, float value) { feeds_[name] = Tensor::scalar(value); }

 private:
  Graph graph_;
  Feeds feeds_;
};

std::string name_of(const Row& row) {
  return row.kind + (row.convention == Convention::kKeras ? ", Keras" : ", PyTorch") + ", momentum " + std::to_string(row.options.momentum) + ", decay " +
         std::to_string(row.options.weight_decay);
}

std::vector<double> gradient_of_step(int t) { return {0.3 * t - 1, 0.5 / t, -0.2 * t * t}; }

TEST(AttachOptimizer, FollowsTheFormulasOfPyTorchAndKeras) {
  for (const Row& row : rows()) {
    SCOPED_TRACE(name_of(row));
    Training training(row);
    std::vector<Element> expected = {{kStart[0]}, {kStart[1]}, {kStart[2]}};
    for (int t = 1; t <= 5; ++t) {
      const std::vector<double> gradient = gradient_of_step(t);
      const GraphResults results = training.step(gradient, 1);
      for (std::size_t i = 0; i < 3; ++i) {
        row.formula(expected[i], gradient[i], t, row.options);
        EXPECT_NEAR(results["w"].at(static_cast<std::int64_t>(i)), expected[i].w, 2e-6) << "step " << t << ", element " << i;
        for (const auto& [name, value] : expected[i].state)
          for (const NamedTensor& state : results.states)
            if (state.name == "w/" + name) EXPECT_NEAR(state.value.at(static_cast<std::int64_t>(i)), value, 2e-6) << state.name << " in step " << t;
      }
      EXPECT_EQ(results["step"].at(0), t);
    }
  }
}

TEST(AttachOptimizer, AttachesOnlyTheStatesThatAreNeeded) {
  const auto states = [](const Row& row) {
    Training training(row);
    std::string names;
    for (const NamedTensor& state : training.step({1, 1, 1}, 1).states) names += state.name + " ";
    return names;
  };
  EXPECT_EQ(states({"sgd", Convention::kTorch, torch_sgd, options(0)}), "step w ");
  EXPECT_EQ(states({"sgd", Convention::kTorch, torch_sgd, options(0, 0.9)}), "step w w/velocity ");
  EXPECT_EQ(states({"adam", Convention::kTorch, torch_adam, options(0)}), "step w w/m w/v ");
  EXPECT_EQ(states({"adam", Convention::kTorch, torch_adam, amsgrad(0)}), "step w w/m w/v w/v_max ");
  EXPECT_EQ(states({"nadam", Convention::kTorch, torch_nadam, options(0)}), "step w w/m w/v nadam/mu_product ");
  EXPECT_EQ(states({"rmsprop", Convention::kTorch, torch_rmsprop, options(0, 0.9)}), "step w w/mean_square w/velocity ");
}

TEST(AttachOptimizer, ALossThatIsNotFiniteChangesNothing) {
  for (const Row& row : rows()) {
    SCOPED_TRACE(name_of(row));
    Training training(row);
    const GraphResults before = training.step(gradient_of_step(1), 1);
    for (const float loss : {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity()}) {
      const double nan = std::numeric_limits<double>::quiet_NaN();
      const GraphResults after = training.step({nan, 1, nan}, loss);
      for (std::size_t s = 0; s < before.states.size(); ++s)
        EXPECT_TRUE(std::ranges::equal(before.states[s].value.bytes(), after.states[s].value.bytes())) << before.states[s].name << " changed";
    }
  }
}

/// All targets are ignored, or all samples weigh nothing: the gradients are sums of nothing, and their mean is no 0 / 0.
TEST(AttachOptimizer, ABatchWithoutTargetsHasGradientsOfZero) {
  for (const Row& row : rows()) {
    SCOPED_TRACE(name_of(row));
    Training with_none(row), with_zeros(row);
    with_none.feed("count", 0);
    const GraphResults none = with_none.step({0, 0, 0}, 0), zeros = with_zeros.step({0, 0, 0}, 0);
    ASSERT_EQ(none.states.size(), zeros.states.size());
    for (std::size_t s = 0; s < none.states.size(); ++s) EXPECT_TRUE(std::ranges::equal(none.states[s].value.bytes(), zeros.states[s].value.bytes())) << none.states[s].name;
  }
}

TEST(AttachOptimizer, APartAloneIsTrained) {
  Training training({"sgd", Convention::kTorch, torch_sgd, options(0)}, "[1:3]");
  const GraphResults results = training.step({1, 1, 1}, 1);
  EXPECT_NEAR(results["w"].at(0), kStart[0], 1e-7);
  EXPECT_NEAR(results["w"].at(1), kStart[1] - 0.1, 1e-7);
  EXPECT_NEAR(results["w"].at(2), kStart[2] - 0.1, 1e-7);
}

TEST(AttachOptimizer, PartsThatAreNoneAreRefused) {
  const Row row = {"sgd", Convention::kTorch, torch_sgd, options(0)};
  for (const char* part : {"[1:4]", "[2:1]", "[1]", "[0:1, 0:1]", "[0:1:2]"}) EXPECT_THROW(Training(row, part), Error) << part;
}

TEST(AttachOptimizer, DecayLeavesAloneWhatIsExcluded) {
  Options excluding = options(0.1);
  excluding.exclude_from_weight_decay = {"?"};
  Training training({"adamw", Convention::kTorch, torch_adamw, excluding}), without({"adamw", Convention::kTorch, torch_adamw, options(0)});
  const Tensor found = training.step({1, 2, 3}, 1)["w"], expected = without.step({1, 2, 3}, 1)["w"];
  for (std::int64_t i = 0; i < 3; ++i) EXPECT_EQ(found.at(i), expected.at(i));
}

TEST(AttachOptimizer, AnExclusionThatMatchesNothingIsRefused) {
  Options excluding = options(0.1);
  excluding.exclude_from_weight_decay = {"W"};
  expect_error(Code::kRecipeModel, "did you mean \"w\"?", [&] { Training({"adamw", Convention::kTorch, torch_adamw, excluding}); });
}

TEST(AttachOptimizer, GradientNormsAreOfTheMeanGradient) {
  Training training({"sgd", Convention::kTorch, torch_sgd, options(0)});
  EXPECT_NEAR(training.step({2, 3, 6}, 1)["grad_norm:w"].at(0), 7, 1e-6);
}

}  // namespace
}  // namespace hone::test
