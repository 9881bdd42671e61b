// Scan: a body that is written once and run in a loop, or, where it cannot be, written out slice by slice.
#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"
#include "frontend/onnx/control.h"
#include "ir/ops/ops.h"

namespace hone::onnx {

namespace {

/// Its body: (states..., slices of the scanned operands...) -> (states..., slices of the stacked results...).
class ScanTask final : public ControlTask {
  using ControlTask::ControlTask;

  /// Up to opset 8, Scan runs for each sample of a batch (axis 0 of all operands, behind the lengths) on its own. Later there is one sample, which is all of it.
  struct Sample {
    std::vector<Item> states;
    std::vector<Val> scanned;
    Dim trips;
  };

  std::optional<std::vector<Item>> start() override {
    const std::size_t first = is_batched() ? 1 : 0;  // operand 0 is the lengths
    const std::int64_t scanned = node_.integer("num_scan_inputs", 0);
    node_.require(node_.count() >= first and scanned >= 1 and scanned <= static_cast<std::int64_t>(node_.count() - first), Code::kBadAttribute,
                  fmt::format("num_scan_inputs is {}, and the node has {} inputs", scanned, node_.count()));
    states_ = node_.count() - first - static_cast<std::size_t>(scanned);
    const GraphProto& graph = *body("body").graph;
    require_inputs(graph, node_.count() - first);
    require_outputs(graph, states_, 0);
    input_axes_ = list("scan_input_axes", static_cast<std::size_t>(scanned));
    input_directions_ = list(is_batched() ? "directions" : "scan_input_directions", static_cast<std::size_t>(scanned));
    output_axes_ = list("scan_output_axes", static_cast<std::size_t>(graph.output_size()) - states_);
    output_directions_ = list("scan_output_directions", output_axes_.size());
    add_samples(first);
    if (samples_.empty()) node_.fail(Code::kShape, "runs for no sample at all");
    return begin_sample();
  }

  std::optional<std::vector<Item>> begin_sample() {
    iterations_ = Iterations(samples_[done_.size()].states);
    const Dim& trips = samples_[done_.size()].trips;
    const bool is_short = trips.is_constant() and trips.value() <= 1, is_padded = trips != length_;
    return is_short or is_padded or is_written_out_ ? go_on() : try_loop();
  }

  /// The body with inputs of its own.
  std::optional<std::vector<Item>> try_loop() {
    body_.region = std::make_unique<Region>(*scope_.region);
    trial_.emplace(import_);
    body_.region->builder().input(Role::kInput, "i", {DType::kI64, {}});
    push_in(*body_.region, body("body"), inputs_inside(*body_.region), "scan");
    return std::nullopt;
  }

  std::optional<std::vector<Item>> failed() override {
    if (not trial_) return std::vector<Item>{};
    return write_out("its body cannot be written once for all iterations");
  }

  /// Slice by slice, if they can be counted.
  std::optional<std::vector<Item>> write_out(const std::string& because) {
    const Dim& trips = samples_[done_.size()].trips;
    is_written_out_ = trips.is_constant() and trips.value() <= kMostUnrolled;
    trial_->end(is_written_out_ ? GraphImport::Trial::Keep::kNothing : GraphImport::Trial::Keep::kProblems);
    const bool is_reported = trial_->has_problems();
    trial_.reset();
    if (is_written_out_) return go_on();
    if (not is_reported)
      node_.fail(Code::kDynamic, because, {fmt::format("iterations are written out one by one if it is known when compiling that there are at most {}", kMostUnrolled)});
    return std::vector<Item>{};
  }

  std::optional<std::vector<Item>> write_loop(std::vector<Item> results) {
    const Sample& sample = samples_[done_.size()];
    const auto middle = results.begin() + static_cast<std::ptrdiff_t>(states_);
    body_.states.assign(results.begin(), middle);
    body_.stacked.assign(middle, results.end());
    if (const std::string problem = body_.problem(sample.states); not problem.empty()) return write_out(problem);
    trial_->end(GraphImport::Trial::Keep::kProblems);
    trial_.reset();
    std::vector<Val> scanned;
    for (std::size_t k = 0; k < sample.scanned.size(); ++k) {
      const Val in_front = moved(sample.scanned[k], static_cast<std::size_t>(input_axes_[k]), 0);
      scanned.push_back(input_directions_[k] == 0 ? in_front : flipped(in_front));
    }
    std::vector<Item> made = body_.write(builder(), sample.trips, sample.states, scanned);
    for (std::size_t k = 0; k + states_ < made.size(); ++k) {
      const Val stacked = made[k + states_].tensor;
      made[k + states_] = moved(output_directions_[k] == 0 ? stacked : flipped(stacked), 0, output_axis(k, stacked.rank() - 1));
    }
    done_.push_back(std::move(made));
    return next_sample();
  }

  /// Axis `from` becomes axis `to`; the others keep their order.
  static Val moved(Val x, std::size_t from, std::size_t to) {
    if (from == to) return x;
    Ints perm;
    for (std::size_t i = 0; i < x.rank(); ++i)
      if (i != from) perm.push_back(static_cast<std::int64_t>(i));
    perm.insert(perm.begin() + static_cast<std::ptrdiff_t>(to), static_cast<std::int64_t>(from));
    return transpose(x, perm);
  }

  /// The slices along axis 0 from the last to the first.
  static Val flipped(Val x) {
    Shape starts(x.rank(), Dim(0));
    starts[0] = x.shape()[0] - 1;
    Ints steps(x.rank(), 1);
    steps[0] = -1;
    return op::slice(x, {kStarts = starts, kSizes = x.shape(), kSteps = steps});
  }

  bool is_batched() const { return scope_.opset < 9; }

  /// A list attribute with one entry for each of `count`; zeros where it is left out.
  Ints list(std::string_view name, std::size_t count) const {
    const Ints given = node_.integers(name).value_or(Ints(count, 0));
    node_.require(given.size() == count, Code::kBadAttribute, fmt::format("{} has {} entries, and must have {}", name, given.size(), count));
    return given;
  }

  void add_samples(std::size_t first) {
    std::vector<Item> states;
    std::vector<Val> scanned;
    for (std::size_t i = first; i < first + states_; ++i) states.push_back(node_.item(i));
    for (std::size_t i = first + states_; i < node_.count(); ++i) scanned.push_back(node_.x(i));
    if (not is_batched()) return add_sample(std::move(states), std::move(scanned), std::nullopt);
    node_.require(scanned[0].rank() >= 2, Code::kShape, "the scanned inputs need an axis for the batch and one for the sequence");
    const std::int64_t batch = extent_of(scanned[0].shape()[0]);
    std::optional<Ints> lengths;
    if (node_.has(0)) lengths = node_.numbers(0, "sequence_lens");
    node_.require(not lengths or static_cast<std::int64_t>(lengths->size()) == batch, Code::kShape, "there must be one length for each sample of the batch");
    for (std::int64_t b = 0; b < batch; ++b) {
      std::vector<Item> own_states;
      std::vector<Val> own_scanned;
      for (std::size_t i = first; i < node_.count(); ++i) {
        const Val x = node_.x(i);
        node_.require(x.rank() >= 1 and x.shape()[0].is_constant(batch), Code::kShape, fmt::format("input {} must have {} samples along axis 0", i, batch));
        if (i < first + states_) own_states.emplace_back(take_slice(x, 0, b));
        else own_scanned.push_back(take_slice(x, 0, b));
      }
      add_sample(std::move(own_states), std::move(own_scanned), lengths ? std::optional((*lengths)[static_cast<std::size_t>(b)]) : std::nullopt);
    }
  }

  void add_sample(std::vector<Item> states, std::vector<Val> scanned, std::optional<std::int64_t> length) {
    for (std::size_t i = 0; i < scanned.size(); ++i) {
      input_axes_[i] = static_cast<std::int64_t>(node_.axis(input_axes_[i], scanned[i].rank()));
      const Dim extent = scanned[i].shape()[static_cast<std::size_t>(input_axes_[i])];
      if (i == 0) length_ = extent;
      if (extent != length_ and extent.is_constant() and length_.is_constant())
        node_.fail(Code::kShape, fmt::format("the scanned inputs have different lengths, {} and {}", length_.text(), extent.text()));
      if (extent != length_) builder().equate(extent, length_);
    }
    if (length)
      node_.require(*length >= 0 and (not length_.is_constant() or *length <= length_.value()), Code::kShape, "a length is negative, or longer than the sequence");
    samples_.push_back({std::move(states), std::move(scanned), length ? Dim(*length) : length_});
  }

  std::int64_t extent_of(const Dim& dim) const {
    if (not dim.is_constant())
      node_.fail(Code::kDynamic, fmt::format("the number of iterations must be known when compiling, and is {}", dim.text()),
                 {fmt::format("fix the size with --dim {}=N", dim.symbols().front())});
    return dim.value();
  }

  std::optional<std::vector<Item>> step(std::vector<Item> results) override {
    if (trial_) return write_loop(std::move(results));
    if (probe_) return without_iterations(results);
    iterations_.take(node_, std::move(results), 0);
    return go_on();
  }

  std::optional<std::vector<Item>> go_on() {
    const Sample& sample = samples_[done_.size()];
    const std::int64_t i = iterations_.count(), trips = extent_of(sample.trips);
    if (trips > kMostUnrolled)
      node_.fail(Code::kDynamic, fmt::format("takes {} iterations; at most {} are written out one by one", trips, kMostUnrolled));
    if (i < trips) {
      std::vector<Item> inputs = iterations_.states();
      for (std::size_t k = 0; k < sample.scanned.size(); ++k)
        inputs.emplace_back(take_slice(sample.scanned[k], static_cast<std::size_t>(input_axes_[k]), input_directions_[k] == 0 ? i : trips - 1 - i));
      push(body("body"), std::move(inputs), samples_.size() == 1 ? fmt::format("scan[{}]", i) : fmt::format("scan[{},{}]", done_.size(), i));
      return std::nullopt;
    }
    if (trips == 0) return probe();
    done_.push_back(finished());
    return next_sample();
  }

  std::optional<std::vector<Item>> next_sample() {
    return done_.size() == samples_.size() ? all_samples() : begin_sample();
  }

  /// The results of one sample.
  std::vector<Item> finished() {
    std::vector<Item> results = iterations_.states();
    for (std::size_t k = 0; k < iterations_.stacked().size(); ++k) {
      std::vector<Val> slices = iterations_.stacked()[k];
      if (output_directions_[k] != 0) std::reverse(slices.begin(), slices.end());
      while (static_cast<std::int64_t>(slices.size()) < extent_of(length_)) slices.push_back(full(builder(), 0, slices[0].dtype(), slices[0].shape()));
      results.emplace_back(stack(node_, slices, output_axis(k, slices[0].rank())));
    }
    return results;
  }

  std::size_t output_axis(std::size_t k, std::size_t slice_rank) const { return node_.axis(output_axes_[k], slice_rank + 1); }

  std::vector<Item> all_samples() {
    if (not is_batched()) return done_[0];
    std::vector<Item> results;
    for (std::size_t k = 0; k < done_[0].size(); ++k) {
      std::vector<Val> parts;
      for (const std::vector<Item>& sample : done_) {
        node_.require(sample[k].is_tensor(), Code::kType, fmt::format("its result {} is {}, and must be a tensor", k, to_string(sample[k])));
        parts.push_back(sample[k].tensor);
      }
      results.emplace_back(stack(node_, parts, 0));
    }
    return results;
  }

  /// Without any iteration, the body is written for nothing but the types of its stacked results.
  std::optional<std::vector<Item>> probe() {
    probe_ = std::make_unique<Region>(*scope_.region);
    push_in(*probe_, body("body"), inputs_inside(*probe_), "scan[0]");
    return std::nullopt;
  }

  /// Inputs of `region` for the states and slices of the sample.
  std::vector<Item> inputs_inside(Region& region) const {
    const Sample& sample = samples_[done_.size()];
    std::vector<Item> inputs;
    for (std::size_t i = 0; i < sample.states.size(); ++i) inputs.push_back(probe_of(region, sample.states[i], fmt::format("state.{}", i)));
    for (std::size_t i = 0; i < sample.scanned.size(); ++i) {
      Type slice = sample.scanned[i].type();
      slice.shape.erase(slice.shape.begin() + static_cast<std::ptrdiff_t>(input_axes_[i]));
      inputs.emplace_back(region.builder().input(Role::kInput, fmt::format("scanned.{}", i), slice));
    }
    return inputs;
  }

  std::optional<std::vector<Item>> without_iterations(const std::vector<Item>& probed) {
    std::vector<Item> results = iterations_.states();
    for (std::size_t k = 0; k + states_ < probed.size(); ++k) {
      const Item& slice = probed[k + states_];
      node_.require(slice.is_tensor(), Code::kType, fmt::format("an output of its body that is stacked is {}", to_string(slice)));
      const Val empty = empty_stack(builder(), slice.tensor.type(), output_axis(k, slice.tensor.rank()));
      Shape padded = empty.shape();
      padded[output_axis(k, slice.tensor.rank())] = length_;
      results.emplace_back(length_.is_constant(0) ? empty : full(builder(), 0, empty.dtype(), padded));
    }
    probe_.reset();  // now: what was probed is its
    done_.push_back(std::move(results));
    return next_sample();
  }

  std::size_t states_ = 0;
  Dim length_;  ///< of the scanned axes
  bool is_written_out_ = false;
  LoopBody body_;
  std::optional<GraphImport::Trial> trial_;
  Ints input_axes_, input_directions_, output_axes_, output_directions_;
  std::vector<Sample> samples_;
  std::vector<std::vector<Item>> done_;  ///< results of the samples that are finished
  Iterations iterations_;
  std::unique_ptr<Region> probe_;
};

}  // namespace

std::unique_ptr<Task> scan_task(GraphImport& import, ImportNode node, const NodeProto& proto, const Scope& scope) {
  return std::make_unique<ScanTask>(import, std::move(node), proto, scope);
}

}  // namespace hone::onnx
