// Loop, written out iteration by iteration.
#include <fmt/format.h>

#include "frontend/onnx/control.h"

namespace hone::onnx {

namespace {

/// Its body: (iteration, condition, states...) -> (condition, states..., slices...).
class LoopTask final : public ControlTask {
  using ControlTask::ControlTask;

  std::optional<std::vector<Item>> start() override {
    const std::size_t states = node_.count() < 2 ? 0 : node_.count() - 2;
    require_inputs(*body("body").graph, states + 2);
    require_outputs(*body("body").graph, states + 1, 1);
    if (node_.has(0)) trips_ = node_.numbers(0, "M")[0];
    std::vector<Item> initial;
    for (std::size_t i = 0; i < states; ++i) initial.push_back(node_.item(i + 2));
    iterations_ = Iterations(std::move(initial));
    condition_ = node_.has(1) ? node_.item(1) : Item(builder().constant(Tensor::scalar(true)));
    return go_on();
  }

  std::optional<std::vector<Item>> step(std::vector<Item> results) override {
    if (probe_) return without_iterations(results);
    condition_ = results[0];
    iterations_.take(node_, std::move(results), 1);
    return go_on();
  }

  /// The next iteration, or the end.
  std::optional<std::vector<Item>> go_on() {
    const std::int64_t i = iterations_.count();
    const bool ends_by_count = trips_ and i >= *trips_;
    if (ends_by_count or not may_go_on()) return i == 0 ? probe() : finish();
    if (i >= kMostUnrolled)
      node_.fail(Code::kDynamic, fmt::format("takes more than {} iterations, which is the most that is written out one by one", kMostUnrolled));
    std::vector<Item> inputs = {number(i), condition_};
    inputs.insert(inputs.end(), iterations_.states().begin(), iterations_.states().end());
    push(body("body"), std::move(inputs), fmt::format("loop[{}]", i));
    return std::nullopt;
  }

  bool may_go_on() const {
    const auto condition = known_condition(node_, condition_);
    if (not condition)
      node_.fail(Code::kDynamic, "its condition must be known when compiling",
                 {iterations_.count() == 0 ? "fix the input that it depends on with --bind NAME=FILE" : "its body computes the condition from what is known when running only"});
    return *condition;
  }

  std::vector<Item> finish() const {
    std::vector<Item> results = iterations_.states();
    for (const std::vector<Val>& slices : iterations_.stacked()) results.emplace_back(stack(node_, slices, 0));
    return results;
  }

  /// Without any iteration, the body is written for nothing but the types of its stacked results.
  std::optional<std::vector<Item>> probe() {
    probe_ = std::make_unique<Region>(*scope_.region);
    Builder& inside = probe_->builder();
    std::vector<Item> inputs = {inside.input(Role::kInput, "i", {DType::kI64, {}}), inside.input(Role::kInput, "condition", {DType::kBool, {}})};
    for (std::size_t i = 0; i < iterations_.states().size(); ++i) inputs.push_back(probe_of(*probe_, iterations_.states()[i], fmt::format("state.{}", i)));
    push_in(*probe_, body("body"), std::move(inputs), "loop[0]");
    return std::nullopt;
  }

  std::vector<Item> without_iterations(const std::vector<Item>& probed) {
    std::vector<Item> results = iterations_.states();
    for (std::size_t i = results.size() + 1; i < probed.size(); ++i) {
      node_.require(probed[i].is_tensor(), Code::kType, fmt::format("an output of its body that is stacked is {}", to_string(probed[i])));
      results.emplace_back(empty_stack(builder(), probed[i].tensor.type(), 0));
    }
    return results;
  }

  std::optional<std::int64_t> trips_;
  Item condition_;
  Iterations iterations_;
  std::unique_ptr<Region> probe_;
};

}  // namespace

std::unique_ptr<Task> loop_task(GraphImport& import, ImportNode node, const NodeProto& proto, const Scope& scope) {
  return std::make_unique<LoopTask>(import, std::move(node), proto, scope);
}

}  // namespace hone::onnx
