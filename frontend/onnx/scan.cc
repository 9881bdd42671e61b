// Scan, written out slice by slice.
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
    std::int64_t trips;
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
    iterations_ = Iterations(samples_[0].states);
    return go_on();
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
    std::optional<std::int64_t> trips;
    for (std::size_t i = 0; i < scanned.size(); ++i) {
      input_axes_[i] = static_cast<std::int64_t>(node_.axis(input_axes_[i], scanned[i].rank()));
      const std::int64_t extent = extent_of(scanned[i].shape()[static_cast<std::size_t>(input_axes_[i])]);
      if (trips.value_or(extent) != extent) node_.fail(Code::kShape, fmt::format("the scanned inputs have different lengths, {} and {}", *trips, extent));
      trips = extent;
    }
    if (*trips > kMostUnrolled)
      node_.fail(Code::kDynamic, fmt::format("takes {} iterations; at most {} are written out one by one", *trips, kMostUnrolled));
    length_ = *trips;
    node_.require(length.value_or(0) >= 0 and length.value_or(0) <= *trips, Code::kShape, "a length is negative, or longer than the sequence");
    samples_.push_back({std::move(states), std::move(scanned), length.value_or(*trips)});
  }

  std::int64_t extent_of(const Dim& dim) const {
    if (not dim.is_constant())
      node_.fail(Code::kDynamic, fmt::format("the number of iterations must be known when compiling, and is {}", dim.text()),
                 {fmt::format("fix the size with --dim {}=N", dim.symbols().front())});
    return dim.value();
  }

  std::optional<std::vector<Item>> step(std::vector<Item> results) override {
    if (probe_) return without_iterations(results);
    iterations_.take(node_, std::move(results), 0);
    return go_on();
  }

  std::optional<std::vector<Item>> go_on() {
    const Sample& sample = samples_[done_.size()];
    const std::int64_t i = iterations_.count();
    if (i < sample.trips) {
      std::vector<Item> inputs = iterations_.states();
      for (std::size_t k = 0; k < sample.scanned.size(); ++k)
        inputs.emplace_back(take_slice(sample.scanned[k], static_cast<std::size_t>(input_axes_[k]), input_directions_[k] == 0 ? i : sample.trips - 1 - i));
      push(body("body"), std::move(inputs), samples_.size() == 1 ? fmt::format("scan[{}]", i) : fmt::format("scan[{},{}]", done_.size(), i));
      return std::nullopt;
    }
    if (sample.trips == 0) return probe();
    done_.push_back(finished());
    return next_sample();
  }

  std::optional<std::vector<Item>> next_sample() {
    if (done_.size() == samples_.size()) return all_samples();
    iterations_ = Iterations(samples_[done_.size()].states);
    return go_on();
  }

  /// The results of one sample.
  std::vector<Item> finished() {
    std::vector<Item> results = iterations_.states();
    for (std::size_t k = 0; k < iterations_.stacked().size(); ++k) {
      std::vector<Val> slices = iterations_.stacked()[k];
      if (output_directions_[k] != 0) std::reverse(slices.begin(), slices.end());
      while (static_cast<std::int64_t>(slices.size()) < length_) slices.push_back(full(builder(), 0, slices[0].dtype(), slices[0].shape()));
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
    const Sample& sample = samples_[done_.size()];
    probe_ = std::make_unique<Region>(*scope_.region);
    std::vector<Item> inputs;
    for (std::size_t i = 0; i < sample.states.size(); ++i) inputs.push_back(probe_of(*probe_, sample.states[i], fmt::format("state.{}", i)));
    for (std::size_t i = 0; i < sample.scanned.size(); ++i) {
      Type slice = sample.scanned[i].type();
      slice.shape.erase(slice.shape.begin() + static_cast<std::ptrdiff_t>(input_axes_[i]));
      inputs.emplace_back(probe_->builder().input(Role::kInput, fmt::format("scanned.{}", i), slice));
    }
    push_in(*probe_, body("body"), std::move(inputs), "scan[0]");
    return std::nullopt;
  }

  std::optional<std::vector<Item>> without_iterations(const std::vector<Item>& probed) {
    probe_.reset();
    std::vector<Item> results = iterations_.states();
    for (std::size_t k = 0; k + states_ < probed.size(); ++k) {
      const Item& slice = probed[k + states_];
      node_.require(slice.is_tensor(), Code::kType, fmt::format("an output of its body that is stacked is {}", to_string(slice)));
      const Val empty = empty_stack(builder(), slice.tensor.type(), output_axis(k, slice.tensor.rank()));
      Shape padded = empty.shape();
      padded[output_axis(k, slice.tensor.rank())] = length_;
      results.emplace_back(length_ == 0 ? empty : full(builder(), 0, empty.dtype(), padded));
    }
    done_.push_back(std::move(results));
    return next_sample();
  }

  std::size_t states_ = 0;
  std::int64_t length_ = 0;  ///< of the scanned axes
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
