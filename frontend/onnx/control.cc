#include "frontend/onnx/control.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/text.h"
#include "frontend/onnx/constant_value.h"
#include "frontend/onnx/ops.h"
#include "ir/ops/ops.h"
#include "ir/ops/random.h"

namespace hone::onnx {

namespace {

/// Inputs that are no initializers.
std::size_t fed_inputs(const GraphProto& body) {
  return static_cast<std::size_t>(std::count_if(body.input().begin(), body.input().end(), [&](const ValueInfoProto& input) {
    return std::none_of(body.initializer().begin(), body.initializer().end(), [&](const TensorProto& one) { return one.name() == input.name(); });
  }));
}

/// The branch that a known condition chooses, or both as bodies of a branch.
class IfTask final : public ControlTask {
  using ControlTask::ControlTask;

  std::optional<std::vector<Item>> start() override {
    const auto condition = known_condition(node_, node_.item(0));
    for (const char* name : {"then_branch", "else_branch"}) {
      require_inputs(*body(name).graph, 0);
      require_outputs(*body(name).graph, 0, 0);
    }
    if (condition) {
      push(body(*condition ? "then_branch" : "else_branch"), {}, *condition ? "then" : "else");
    } else {
      then_ = std::make_unique<Region>(*scope_.region);
      push_in(*then_, body("then_branch"), {}, "then");
    }
    return std::nullopt;
  }

  std::optional<std::vector<Item>> step(std::vector<Item> results) override {
    if (not then_) return results;
    Region& region = else_ ? *else_ : *then_;
    for (const Item& result : results) {
      if (not result.is_tensor())
        node_.fail(Code::kDynamic, fmt::format("its condition must be known when compiling, because it gives {}", to_string(result)),
                   {"fix the input that it depends on with --bind NAME=FILE"});
      region.output(result);
    }
    if (else_) return write();
    else_ = std::make_unique<Region>(*scope_.region);
    else_->capture_like(*then_);
    push_in(*else_, body("else_branch"), {}, "else");
    return std::nullopt;
  }

  std::vector<Item> write() {
    then_->capture_like(*else_);
    std::vector<Val> operands = {reshape(node_.x(0), {})};
    operands.insert(operands.end(), then_->captured().begin(), then_->captured().end());
    then_->pass_equations_to(builder());
    else_->pass_equations_to(builder());
    then_->graph().name = "then";
    else_->graph().name = "else";
    std::vector<std::unique_ptr<Graph>> bodies;
    bodies.push_back(then_->take());
    bodies.push_back(else_->take());
    const std::vector<Val> results = builder().add(op::branch, operands, {kStream = next_stream(builder().graph())}, std::move(bodies));
    return {results.begin(), results.end()};
  }

  std::unique_ptr<Region> then_, else_;
};

/// The body once for each element of the first sequence; other sequences go along, tensors are the same for all.
class SequenceMapTask final : public ControlTask {
  using ControlTask::ControlTask;

  std::optional<std::vector<Item>> start() override {
    count_ = node_.sequence(0).size();
    for (std::size_t i = 1; i < node_.count(); ++i)
      if (node_.item(i).kind == Item::Kind::kSequence and node_.sequence(i).size() != count_)
        node_.fail(Code::kShape, fmt::format("input {} is a sequence of {} tensors, and input 0 one of {}", i, node_.sequence(i).size(), count_));
    require_inputs(*body("body").graph, node_.count());
    require_outputs(*body("body").graph, 0, 0);
    results_.resize(static_cast<std::size_t>(proto_.output_size()), Item::sequence({}));
    return go_on();
  }

  std::optional<std::vector<Item>> step(std::vector<Item> results) override {
    for (std::size_t i = 0; i < results_.size(); ++i) {
      node_.require(results[i].is_tensor(), Code::kType, fmt::format("output {} of its body is {}, and must be a tensor", i, to_string(results[i])));
      results_[i].elements.push_back(results[i].tensor);
    }
    return go_on();
  }

  std::optional<std::vector<Item>> go_on() {
    if (next_ == count_) return results_;
    std::vector<Item> inputs;
    for (std::size_t i = 0; i < node_.count(); ++i) {
      const Item& item = node_.item(i);
      inputs.push_back(item.kind == Item::Kind::kSequence ? Item(item.elements[next_]) : item);
    }
    push(body("body"), std::move(inputs), fmt::format("element[{}]", next_++));
    return std::nullopt;
  }

  std::size_t count_ = 0, next_ = 0;
  std::vector<Item> results_;
};

template <typename T>
std::unique_ptr<Task> make(GraphImport& import, ImportNode node, const NodeProto& proto, const Scope& scope) {
  return std::make_unique<T>(import, std::move(node), proto, scope);
}

struct ControlRow {
  std::string_view op_type;
  std::unique_ptr<Task> (*make)(GraphImport&, ImportNode, const NodeProto&, const Scope&);
  std::string_view domain = {};
};
constexpr ControlRow kControlRows[] = {{"If", make<IfTask>}, {"Loop", loop_task}, {"Scan", scan_task}, {"SequenceMap", make<SequenceMapTask>},
                          {"FlexAttention", flex_attention_task, "ai.onnx.preview"}, {"Gradient", gradient_task, kTrainingDomain}};

const ControlRow* find_control_row(const NodeProto& node) {
  const auto found = std::find_if(std::begin(kControlRows), std::end(kControlRows), [&](const ControlRow& row) { return row.op_type == node.op_type() and row.domain == canonical_domain(node.domain()); });
  return found != std::end(kControlRows) ? found : nullptr;
}

}  // namespace

bool is_control(const NodeProto& node) { return find_control_row(node) != nullptr; }

std::unique_ptr<Task> control_task(GraphImport& import, ImportNode node, const NodeProto& proto, const Scope& scope) {
  return find_control_row(proto)->make(import, std::move(node), proto, scope);
}

std::optional<std::vector<Item>> ControlTask::resume(std::vector<Item> results) {
  const Builder::Scope in(builder(), node_.loc(), Part::kForward);
  try {
    if (std::exchange(is_first_, false)) return start();
    return std::any_of(results.begin(), results.end(), [](const Item& item) { return item.failed(); }) ? failed() : step(std::move(results));
  } catch (const Error& error) { import_.report(error, proto_, node_.loc()); }
  return std::vector<Item>{};
}

void ControlTask::require_inputs(const GraphProto& body, std::size_t inputs) const {
  if (body.input_size() != static_cast<int>(inputs) and fed_inputs(body) != inputs)
    node_.fail(Code::kBadGraph, fmt::format("its body {} has {} inputs, and must have {}", quoted(body.name()), body.input_size(), inputs));
}

void ControlTask::require_outputs(const GraphProto& body, std::size_t least, std::size_t extra) const {
  least = std::max(least, static_cast<std::size_t>(proto_.output_size()) + extra);
  if (body.output_size() < static_cast<int>(least))
    node_.fail(Code::kBadGraph, fmt::format("its body {} has {} outputs, and must have at least {}", quoted(body.name()), body.output_size(), least));
}

void Iterations::take(const ImportNode& node, std::vector<Item> results, std::size_t first) {
  const auto middle = results.begin() + static_cast<std::ptrdiff_t>(first + states_.size());
  stacked_.resize(static_cast<std::size_t>(results.end() - middle));
  for (auto slice = middle; slice != results.end(); ++slice) {
    node.require(slice->is_tensor(), Code::kType, fmt::format("an output of its body that is stacked is {}", to_string(*slice)));
    stacked_[static_cast<std::size_t>(slice - middle)].push_back(slice->tensor);
  }
  states_.assign(std::make_move_iterator(results.begin() + static_cast<std::ptrdiff_t>(first)), std::make_move_iterator(middle));
  ++count_;
}

std::string LoopBody::problem(const std::vector<Item>& initial) const {
  for (const Item& item : stacked)
    if (not item.is_tensor()) return fmt::format("an output of its body that is stacked is {}", to_string(item));
  for (std::size_t i = 0; i < initial.size(); ++i) {
    const bool fits = initial[i].is_tensor() and states[i].is_tensor() and initial[i].tensor.type() == states[i].tensor.type();
    if (not fits) return fmt::format("state {} begins as {}, and its body makes it {}", i, to_string(initial[i]), to_string(states[i]));
  }
  const auto& nodes = region->graph().nodes();
  const bool reads_sizes = std::any_of(nodes.begin(), nodes.end(), [](const Node& node) { return node.op->binds; });
  return reads_sizes ? "sizes inside of its body depend on what each iteration computes" : "";
}

std::vector<Item> LoopBody::write(Builder& builder, const Dim& trips, const std::vector<Item>& initial, const std::vector<Val>& scanned) {
  for (const std::vector<Item>* some : {&states, &stacked})
    for (const Item& item : *some) region->output(item);
  std::vector<Val> operands;
  for (const Item& item : initial) operands.push_back(item.tensor);
  operands.insert(operands.end(), scanned.begin(), scanned.end());
  operands.insert(operands.end(), region->captured().begin(), region->captured().end());
  if (operands.empty()) {  // an op needs one
    region->builder().input(Role::kInput, "nothing", {DType::kF32, {}});
    operands.push_back(builder.scalar(0));
  }
  region->pass_equations_to(builder);
  region->graph().name = "iteration";
  std::vector<std::unique_ptr<Graph>> bodies;
  bodies.push_back(region->take());
  const std::vector<Val> results = builder.add(
      op::scan, operands,
      {kTrips = Shape{trips}, kStates = static_cast<std::int64_t>(initial.size()), kScanned = static_cast<std::int64_t>(scanned.size()),
       kStream = stream != 0 ? std::exchange(stream, 0) : next_stream(builder.graph())},
      std::move(bodies));
  std::vector<Item> items(results.begin(), results.begin() + static_cast<std::ptrdiff_t>(initial.size()));
  items.insert(items.end(), results.begin() + static_cast<std::ptrdiff_t>(2 * initial.size()), results.end());
  return items;
}

Val LoopBody::write_trips(Builder& builder, const Dim& most, Val first, Val condition, const std::vector<Item>& initial) {
  region->output(reshape(region->local(condition), {}));
  for (const Item& item : states) region->output(item);
  std::vector<std::unique_ptr<Graph>> bodies;
  bodies.push_back(std::make_unique<Graph>(region->graph().clone()));
  bodies[0]->name = "condition";
  region->builder().clear_outputs();
  std::vector<Val> operands = {reshape(first, {})};
  for (const Item& item : initial) operands.push_back(item.tensor);
  operands.insert(operands.end(), region->captured().begin(), region->captured().end());
  stream = next_stream(builder.graph());
  return builder.add(op::while_trips, operands, {kTrips = Shape{most}, kStates = static_cast<std::int64_t>(initial.size()), kStream = stream}, std::move(bodies))[0];
}

std::optional<bool> known_condition(const ImportNode& node, const Item& condition) {
  node.require(condition.is_tensor() and condition.tensor.dtype() == DType::kBool, Code::kType, "its condition must be a bool tensor");
  const Val val = condition.tensor;
  node.require(element_count(val.shape()).is_constant(1), Code::kShape, "its condition must have one element");
  const auto value = constant_value(val.builder().graph(), val.id());
  return value ? std::optional(value->int_at(0) != 0) : std::nullopt;
}

Val take_slice(Val x, std::size_t axis, std::int64_t at) {
  Shape shape = x.shape();
  shape.erase(shape.begin() + static_cast<std::ptrdiff_t>(axis));
  return reshape(part_of(x, axis, at, 1), shape);
}

Val stack(const ImportNode& node, std::vector<Val> parts, std::size_t axis) {
  const std::size_t rank = parts[0].rank();
  for (Val& part : parts) {
    node.require(part.rank() == rank, Code::kShape, "an output of its body does not keep its number of axes");
    Shape shape = part.shape();
    shape.insert(shape.begin() + static_cast<std::ptrdiff_t>(axis), Dim(1));
    part = reshape(part, shape);
  }
  return parts.size() == 1 ? parts[0] : op::concat.build(parts, {kAxis = static_cast<std::int64_t>(axis)});
}

Item probe_of(Region& region, const Item& item, const std::string& name) {
  Item probe = item;
  if (item.is_tensor()) probe.tensor = region.builder().input(Role::kInput, name, item.tensor.type());
  for (std::size_t i = 0; i < item.elements.size(); ++i)
    probe.elements[i] = region.builder().input(Role::kInput, fmt::format("{}.{}", name, i), item.elements[i].type());
  return probe;
}

Val empty_stack(Builder& builder, const Type& slice, std::size_t axis) {
  Shape shape = slice.shape;
  shape.insert(shape.begin() + static_cast<std::ptrdiff_t>(std::min(axis, shape.size())), Dim(0));
  return full(builder, 0, slice.dtype, shape);
}

}  // namespace hone::onnx
