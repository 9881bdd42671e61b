// Operators with bodies: If, Loop, Scan, SequenceMap, FlexAttention; and Gradient, which names a part of the graph around it.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "frontend/onnx/graph_import.h"

namespace hone::onnx {

/// Does the operator have bodies, or name values, so that control_task() writes it?
bool is_control(const NodeProto& node);

/// What writes `node`, an operator with bodies in `scope`. It lives no longer than `scope` and `proto`.
std::unique_ptr<Task> control_task(GraphImport& import, ImportNode node, const NodeProto& proto, const Scope& scope);

/// One step of a node with bodies at a time; what goes wrong is reported at the node.
class ControlTask : public Task {
 public:
  ControlTask(GraphImport& import, ImportNode node, const NodeProto& proto, const Scope& scope)
      : import_(import), node_(std::move(node)), proto_(proto), scope_(scope) {}

  std::optional<std::vector<Item>> resume(std::vector<Item> results) final;

 protected:
  virtual std::optional<std::vector<Item>> start() = 0;
  /// `results`: what the body gave, all of it.
  virtual std::optional<std::vector<Item>> step(std::vector<Item> results) = 0;
  /// When the body could not be written.
  virtual std::optional<std::vector<Item>> failed() { return std::vector<Item>{}; }

  Builder& builder() { return scope_.region->builder(); }
  Item number(std::int64_t value) { return builder().constant(Tensor::scalar(value)); }
  BodyAttribute body(std::string_view name) const { return body_attribute(node_, proto_, scope_, name); }
  /// Pushes the writing of a body around the node.
  void push(const BodyAttribute& body, std::vector<Item> inputs, const std::string& step) { push_in(*scope_.region, body, std::move(inputs), step); }
  void push_in(Region& region, const BodyAttribute& body, std::vector<Item> inputs, const std::string& step) {
    import_.push_body(body, scope_, region, std::move(inputs), node_, step);
  }
  /// Throws kBadGraph unless the body takes that many inputs.
  void require_inputs(const GraphProto& body, std::size_t inputs) const;
  /// Throws kBadGraph unless the body gives at least `least` outputs, and more than the node's by `extra`.
  void require_outputs(const GraphProto& body, std::size_t least, std::size_t extra) const;

  GraphImport& import_;
  const ImportNode node_;
  const NodeProto& proto_;
  const Scope& scope_;

 private:
  bool is_first_ = true;
};

/// Most iterations that are written one after another.
inline constexpr std::int64_t kMostUnrolled = 64;

/// Iterations written one after another: what goes from one to the next, and what each adds to the stacked results.
class Iterations {
 public:
  explicit Iterations(std::vector<Item> states = {}) : states_(std::move(states)) {}

  const std::vector<Item>& states() const { return states_; }
  std::int64_t count() const { return count_; }
  /// Slice by slice, result by result; empty before the first iteration.
  const std::vector<std::vector<Val>>& stacked() const { return stacked_; }
  /// Takes a body's results from `first` on: the new states, then a slice of each stacked result.
  void take(const ImportNode& node, std::vector<Item> results, std::size_t first);

 private:
  std::vector<Item> states_;
  std::vector<std::vector<Val>> stacked_;
  std::int64_t count_ = 0;
};

/// A loop's body, written once as a graph of its own.
struct LoopBody {
  std::unique_ptr<Region> region;
  std::vector<Item> states, stacked;  ///< results, values of the region
  std::int64_t stream = 0;            ///< of the random numbers inside, once write_trips() has chosen it: the loop must draw what its count did

  /// Why the body cannot be a loop's that begins with `initial`; "" if it can.
  std::string problem(const std::vector<Item>& initial) const;
  /// Writes the loop around it, which begins with `initial` and reads `scanned` slice by slice: the final states, and what is stacked along axis 0.
  std::vector<Item> write(Builder& builder, const Dim& trips, const std::vector<Item>& initial, const std::vector<Val>& scanned);
  /// The number of iterations, at most `most`, of a loop that goes on while the body's `condition` holds, and `first` at the beginning.
  Val write_trips(Builder& builder, const Dim& most, Val first, Val condition, const std::vector<Item>& initial);
};

/// A condition as far as it is known. Throws unless it is one bool.
std::optional<bool> known_condition(const ImportNode& node, const Item& condition);
/// x[at] along `axis`, which goes.
Val take_slice(Val x, std::size_t axis, std::int64_t at);
/// The parts one after another along a new axis.
Val stack(const ImportNode& node, std::vector<Val> parts, std::size_t axis);
/// An item of the same type that a body written in `region` can be given, to see what it makes of it.
Item probe_of(Region& region, const Item& item, const std::string& name);
/// A stacked result of no slices like `slice`.
Val empty_stack(Builder& builder, const Type& slice, std::size_t axis);

std::unique_ptr<Task> loop_task(GraphImport& import, ImportNode node, const NodeProto& proto, const Scope& scope);
std::unique_ptr<Task> gradient_task(GraphImport& import, ImportNode node, const NodeProto& proto, const Scope& scope);
std::unique_ptr<Task> flex_attention_task(GraphImport& import, ImportNode node, const NodeProto& proto, const Scope& scope);
std::unique_ptr<Task> scan_task(GraphImport& import, ImportNode node, const NodeProto& proto, const Scope& scope);

}  // namespace hone::onnx
