// Loop: a body that is written once and run in a loop, or, where it cannot be (its states change their types, or are sequences), written out iteration by iteration.
#include <fmt/format.h>

#include <algorithm>

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
    for (std::size_t i = 0; i < states; ++i) initial_.push_back(node_.item(i + 2));
    condition_ = node_.has(1) ? node_.item(1) : Item(builder().constant(Tensor::scalar(true)));
    if (node_.has(0)) most_ = most_trips();
    if (most_ and most_->is_constant()) trips_ = most_->value();
    iterations_ = Iterations(initial_);
    const bool goes_on = known_condition(node_, condition_).value_or(true);
    const bool has_tensors = std::all_of(initial_.begin(), initial_.end(), [](const Item& item) { return item.is_tensor(); });
    const bool is_short = trips_ and *trips_ <= 1;
    return not goes_on or is_short or not has_tensors ? go_on() : try_loop();
  }

  /// M; a negative one is none.
  Dim most_trips() const {
    const Dim most = node_.content(0, "M");
    return most.may_be_negative() ? max(most, 0) : most;
  }

  /// The body with inputs of its own.
  std::optional<std::vector<Item>> try_loop() {
    body_.region = std::make_unique<Region>(*scope_.region);
    trial_.emplace(import_);
    Builder& inside = body_.region->builder();
    std::vector<Item> inputs = {inside.input(Role::kInput, "i", {DType::kI64, {}}), inside.constant(Tensor::scalar(true))};
    for (std::size_t i = 0; i < initial_.size(); ++i) inputs.push_back(probe_of(*body_.region, initial_[i], fmt::format("state.{}", i)));
    push_in(*body_.region, body("body"), std::move(inputs), "loop");
    return std::nullopt;
  }

  std::optional<std::vector<Item>> step(std::vector<Item> results) override {
    if (trial_) return write_loop(std::move(results));
    if (probe_) return without_iterations(results);
    condition_ = results[0];
    iterations_.take(node_, std::move(results), 1);
    return go_on();
  }

  std::optional<std::vector<Item>> failed() override {
    if (not trial_) return std::vector<Item>{};
    return write_out("its body cannot be written once for all iterations");
  }

  /// Iteration by iteration, if they can be counted.
  std::optional<std::vector<Item>> write_out(const std::string& because) {
    const bool can = trips_ ? *trips_ <= kMostUnrolled : not trial_->has_problems();
    trial_->end(can ? GraphImport::Trial::Keep::kNothing : GraphImport::Trial::Keep::kProblems);
    const bool is_reported = trial_->has_problems();
    trial_.reset();
    because_ = because;
    if (can) return go_on();
    if (not is_reported)
      node_.fail(Code::kDynamic, because, {fmt::format("iterations are written out one by one if it is known when compiling that there are at most {}", kMostUnrolled)});
    return std::vector<Item>{};
  }

  std::optional<std::vector<Item>> write_loop(std::vector<Item> results) {
    const auto middle = results.begin() + 1 + static_cast<std::ptrdiff_t>(initial_.size());
    body_.states.assign(results.begin() + 1, middle);
    body_.stacked.assign(middle, results.end());
    if (const std::string problem = body_.problem(initial_); not problem.empty()) return write_out(problem);
    trial_->end(GraphImport::Trial::Keep::kProblems);
    trial_.reset();
    return body_.write(builder(), trips_of(results[0]), initial_, {});
  }

  /// How many iterations there are, if the body's condition is `condition`.
  Dim trips_of(const Item& condition) {
    const bool always_begins = known_condition(node_, condition_).has_value(), always_goes_on = known_condition(node_, condition).value_or(false);
    if (always_goes_on and not most_) node_.fail(Code::kBadGraph, "never ends: it has no trip count, and its condition is always true");
    if (always_goes_on and always_begins) return *most_;
    const std::string name = node_.loc().node + ".trips";
    if (always_goes_on) return *most_ * builder().materialize(cast(reshape(condition_.tensor, {}), DType::kI64), name, Builder::Sign::kNotNegative)[0];
    const Dim most = most_.value_or(Dim(INT64_MAX));
    return builder().materialize(body_.write_trips(builder(), most, condition_.tensor, condition.tensor, initial_), name, Builder::Sign::kNotNegative)[0];
  }

  /// The next iteration, or the end.
  std::optional<std::vector<Item>> go_on() {
    const std::int64_t i = iterations_.count();
    const bool ends_by_count = trips_ and i >= *trips_;
    if (ends_by_count or not may_go_on()) return i == 0 ? probe() : finish();
    if (i >= kMostUnrolled) refuse_length();
    std::vector<Item> inputs = {number(i), condition_};
    inputs.insert(inputs.end(), iterations_.states().begin(), iterations_.states().end());
    push(body("body"), std::move(inputs), fmt::format("loop[{}]", i));
    return std::nullopt;
  }

  [[noreturn]] void refuse_length() const {
    const bool is_fed = most_ and not trips_;
    std::vector<std::string> notes = {because_.empty() ? "a loop is written once for all iterations if its states are tensors that keep their types and shapes; instead of a sequence the body may have an output that is stacked" : because_};
    if (is_fed) notes.emplace_back("--bind NAME=FILE fixes the input that the number depends on");
    node_.fail(Code::kDynamic, is_fed ? fmt::format("how many iterations it takes must be known when compiling, since they are written out one by one, and be at most {}", kMostUnrolled)
                                      : fmt::format("takes more than {} iterations, which is the most that is written out one by one", kMostUnrolled), std::move(notes));
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

  std::optional<Dim> most_;             ///< M, if it is given
  std::optional<std::int64_t> trips_;   ///< the same, if it is a number
  std::string because_;                 ///< why it is not written once for all iterations
  Item condition_;
  std::vector<Item> initial_;
  LoopBody body_;
  std::optional<GraphImport::Trial> trial_;
  Iterations iterations_;
  std::unique_ptr<Region> probe_;
};

}  // namespace

std::unique_ptr<Task> loop_task(GraphImport& import, ImportNode node, const NodeProto& proto, const Scope& scope) {
  return std::make_unique<LoopTask>(import, std::move(node), proto, scope);
}

}  // namespace hone::onnx
