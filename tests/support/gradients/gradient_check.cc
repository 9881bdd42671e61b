#include "tests/support/gradients/gradient_check.h"

#include <gtest/gtest.h>

#include <cmath>

#include "base/philox.h"
#include "ir/op.h"
#include "passes/passes.h"
#include "tests/support/tensor_values.h"

namespace hone::test {

namespace {

constexpr double kStep = 1e-5;       // truncation and rounding error both around 1e-10 for values around 1
constexpr double kTolerance = 1e-6;  // relative to the largest slope, and to 1

/// p as a function of the variables' elements.
class Function {
 public:
  Function(const Graph& graph, Feeds feeds, const DimBindings& sizes) : interpreter_(graph, Precision::kDouble), feeds_(std::move(feeds)), sizes_(sizes) {}

  double at(const std::string& name, const std::vector<double>& values) {
    Tensor& fed = feeds_.at(name);
    const Tensor before = fed;
    fed = Tensor::of<double>(before.shape(), std::span<const double>(values));
    const double p = value();
    fed = before;
    return p;
  }
  double value() { return interpreter_.run(feeds_, sizes_)["p"].at(0); }
  void move(const std::string& name, const Tensor& direction, double step) {
    std::vector<double> moved;
    const Tensor& fed = feeds_.at(name);
    for (std::int64_t i = 0; i < fed.element_count(); ++i) moved.push_back(fed.at(i) + step * direction.at(i));
    feeds_.at(name) = Tensor::of<double>(fed.shape(), std::span<const double>(moved));
  }

 private:
  Interpreter interpreter_;
  Feeds feeds_;
  const DimBindings& sizes_;
};

std::vector<double> slopes_of(Function& function, const std::string& name, const Tensor& at) {
  std::vector<double> x = elements(at), slopes;
  for (double& element : x) {
    const double value = element, step = kStep * std::max(1.0, std::fabs(value));
    element = value + step;
    const double above = function.at(name, x);
    element = value - step;
    const double below = function.at(name, x);
    element = value;
    slopes.push_back((above - below) / (2 * step));
  }
  return slopes;
}

void expect_elements_match(const std::string& name, const std::vector<double>& slopes, const Tensor* gradient) {
  double largest = 1;
  for (const double slope : slopes) largest = std::max(largest, std::fabs(slope));
  int shown = 0;
  for (std::size_t i = 0; i < slopes.size() and shown < 3; ++i) {
    const double found = gradient == nullptr ? 0 : gradient->at(static_cast<std::int64_t>(i));
    if (std::fabs(found - slopes[i]) <= kTolerance * largest) continue;
    ++shown;
    ADD_FAILURE() << "d p / d " << name << "[" << i << "] is " << found << ", differences give " << slopes[i];
  }
}

}  // namespace

Tensor random_tensor(const std::vector<std::int64_t>& shape, std::uint64_t seed) {
  std::vector<double> values(static_cast<std::size_t>(checked_element_count(shape)));
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = 2 * philox_uniform(seed, 7, i).first - 1;
  return Tensor::of<double>(shape, std::span<const double>(values));
}

std::vector<std::string> variables_of(const Graph& graph) {
  std::vector<std::string> names;
  for (const Input& input : graph.inputs())
    if (input.role == Role::kInput and input.name.starts_with("x") and is_float(graph.type(input.value).dtype)) names.push_back(input.name);
  return names;
}

void project(Graph& graph, std::size_t results, Projection projection, Feeds& feeds, const DimBindings& sizes) {
  Builder builder(graph);
  const std::vector<Output> outputs = graph.outputs();
  Val p = builder.scalar(0, DType::kF64);
  for (std::size_t i = 0; i < outputs.size() and i < results; ++i) {
    Val y = builder.val(outputs[i].value);
    if (not is_float(y.dtype())) continue;
    if (projection == Projection::kSquared) y = square(y);
    const std::string name = "w" + std::to_string(i);
    feeds[name] = random_tensor(evaluate(y.shape(), sizes), 1000 + i).cast(y.dtype() == DType::kF64 ? DType::kF64 : DType::kF32);
    p = p + cast(sum_all(y * builder.input(Role::kInput, name, y.type())), DType::kF64);
  }
  builder.clear_outputs();
  builder.output("p", p);
}

void add_gradients(Graph& graph) {
  (void)expand_for_gradients(graph);
  const std::vector<std::string> names = variables_of(graph);
  std::vector<ValueId> wrt;
  for (const std::string& name : names) wrt.push_back(graph.find_input(name)->value);
  const std::vector<ValueId> gradients = differentiate(graph, graph.find_output("p")->value, wrt);
  Builder builder(graph);
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (not gradients[i].valid()) continue;
    EXPECT_EQ(graph.type(gradients[i]), graph.type(wrt[i])) << "the gradient of " << names[i] << " has another type";
    builder.output("g:" + names[i], builder.val(gradients[i]));
  }
  (void)expand(graph);
}

void expect_gradients_match(const Graph& graph, const Feeds& feeds, const DimBindings& sizes) {
  Graph forward = graph.clone();
  (void)expand(forward);
  Graph backward = graph.clone();
  add_gradients(backward);
  const GraphResults results = interpret(backward, feeds, Precision::kDouble, sizes);
  Function function(forward, feeds, sizes), above(forward, feeds, sizes), below(forward, feeds, sizes);
  double along = 0, largest = 1;
  for (const std::string& name : variables_of(forward)) {
    const std::vector<double> slopes = slopes_of(function, name, feeds.at(name));
    const Output* output = backward.find_output("g:" + name);
    expect_elements_match(name, slopes, output == nullptr ? nullptr : &results[output->name]);
    const Tensor direction = random_tensor(feeds.at(name).shape(), 2000 + name.size() + static_cast<std::uint64_t>(name.back()));
    above.move(name, direction, kStep);
    below.move(name, direction, -kStep);
    for (std::int64_t i = 0; output != nullptr and i < direction.element_count(); ++i) {
      along += direction.at(i) * results[output->name].at(i);
      largest += std::fabs(direction.at(i) * results[output->name].at(i));
    }
  }
  EXPECT_NEAR((above.value() - below.value()) / (2 * kStep), along, kTolerance * largest) << "the dot test: <w, J v> against <J^T w, v>";
}

}  // namespace hone::test
