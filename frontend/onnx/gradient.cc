// ai.onnx.preview.training.Gradient: the derivatives of the value that `y` names with respect to those that `xs` name. Its operands are where they are taken, `xs` first,
// then `zs`, of which y depends, too. Where an operand is another value than the one named, the nodes between are written once more for it.
#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"
#include "frontend/onnx/body_task.h"
#include "frontend/onnx/control.h"
#include "ir/ops/ops.h"

namespace hone::onnx {

namespace {

class GradientTask final : public ControlTask {
  using ControlTask::ControlTask;

  std::optional<std::vector<Item>> start() override {
    for (const AttributeProto& attribute : proto_.attribute())
      if (not attribute.ref_attr_name().empty())
        node_.fail(Code::kBadAttribute, fmt::format("takes {} from the function's attributes", attribute.name()), {"name the values of the function in the node itself"});
    y_ = node_.text("y", "");
    names_ = strings("xs");
    xs_ = names_.size();
    node_.require(not y_.empty() and xs_ > 0, Code::kBadAttribute, "needs y and xs: the names of the values to differentiate, and with respect to which");
    const std::vector<std::string> zs = strings("zs");
    names_.insert(names_.end(), zs.begin(), zs.end());
    for (std::size_t i = 0; i < names_.size(); ++i)
      if (std::find(names_.begin(), names_.begin() + static_cast<std::ptrdiff_t>(i), names_[i]) != names_.begin() + static_cast<std::ptrdiff_t>(i))
        node_.fail(Code::kBadAttribute, fmt::format("names {} twice in xs and zs", quoted(names_[i])));
    if (node_.count() != names_.size() or node_.result_count() > xs_)
      node_.fail(Code::kBadGraph, fmt::format("has {} inputs and {} outputs, and its xs and zs name {} values, xs alone {}", node_.count(), node_.result_count(), names_.size(), xs_));
    import_.count(std::min(scope_.region->graph().node_count(), kMostWrittenNodes / 8), node_.loc());  // a backward pass is about as long as what is before it
    if (takes_the_named()) return at_the_named();
    push_part();
    return std::nullopt;
  }

  /// `results`: y of the operands.
  std::optional<std::vector<Item>> step(std::vector<Item> results) override {
    std::vector<Val> at;
    for (std::size_t i = 0; i < names_.size(); ++i) at.push_back(node_.x(i));
    return derivatives(*scope_.region, results[0], std::move(at));
  }

  std::vector<std::string> strings(std::string_view name) const {
    const AttributeProto* attribute = node_.attribute(name);
    if (attribute == nullptr) return {};
    return {attribute->strings().begin(), attribute->strings().end()};
  }

  bool takes_the_named() const {
    for (std::size_t i = 0; i < names_.size(); ++i)
      if (const Item named = scope_.find(names_[i]); not named.is_tensor() or named.tensor.id() != node_.x(i).id()) return false;
    return true;
  }

  /// Where y is made, be it outside of the body that the node is in: inside nothing is known of how.
  std::optional<std::vector<Item>> at_the_named() {
    const Item* y = scope_.made(y_);
    if (y == nullptr or y->failed()) return std::vector<Item>{};  // as was reported
    node_.require(y->is_tensor(), Code::kType, fmt::format("its y is {}, and must be a tensor", to_string(*y)));
    const auto region_of = [&](Val val) {
      Region* region = scope_.region;
      while (&region->builder() != &val.builder()) region = region->outer();
      return region;
    };
    Region& region = *region_of(y->tensor);
    std::vector<Val> at;
    for (const std::string& name : names_) {
      const Val x = scope_.made(name)->tensor;
      for (const Region* inner = scope_.region; inner != &region; inner = inner->outer())
        if (region_of(x) == inner)
          node_.fail(Code::kBadGraph, fmt::format("its y {} is made outside of the body that {} is in, and so cannot depend on it", quoted(y_), quoted(name)));
      at.push_back(region.local(x));
      if (at.size() <= xs_) require_inside(region, x, name);
    }
    return derivatives(region, *y, std::move(at));
  }

  /// What the body reads of the graphs around it is not computed from x there: that way would not be seen.
  void require_inside(Region& region, Val x, const std::string& name) const {
    for (Region* level = &region; &level->builder() != &x.builder(); level = level->outer()) {
      Region& outer = *level->outer();
      const Val at = outer.local(x);
      const std::vector<bool> depends = dependents(outer.graph(), std::span(&at, 1));
      for (const Val& captured : level->captured())
        if (captured.id() != at.id() and depends[captured.id().index])
          node_.fail(Code::kBadGraph, fmt::format("its y {} depends on {} inside of a body and around it, too", quoted(y_), quoted(name)), {"take the gradient outside of the body"});
    }
  }

  /// For each value, whether it is computed from one of `from`, or is one.
  static std::vector<bool> dependents(const Graph& graph, std::span<const Val> from) {
    std::vector<bool> depends(graph.value_count());
    for (const Val& val : from) depends[val.id().index] = true;
    for (const Node& node : graph.nodes()) {
      const bool any = std::any_of(node.operands.begin(), node.operands.end(), [&](ValueId operand) { return operand.valid() and depends[operand.index]; });
      for (const ValueId result : node.results) depends[result.index] = depends[result.index] or any;
    }
    return depends;
  }

  /// The nodes that make y of xs and zs, which the operands stand for.
  void push_part() {
    Body body = scope_.body->body;
    if (not makes(body, y_)) node_.fail(Code::kBadGraph, fmt::format("takes other values than its xs and zs name, and its y {} is made in another graph", quoted(y_)));
    body.inputs.assign(names_.begin(), names_.end());
    body.outputs = {y_};
    const PreparedBody& part = import_.context().bodies.emplace(&proto_, prepare(body, Outside::kReplaced, import_.context().file)).first->second;
    for (const int i : part.order)
      for (const std::string& result : body.nodes->Get(i).output())
        if (std::find(names_.begin(), names_.end(), result) != names_.end())
          node_.fail(Code::kBadGraph, fmt::format("takes another value for {}, and y depends on another result of the node that makes it", quoted(result)));
    Scope scope{.body = &part, .region = scope_.region, .outer = &scope_, .call = scope_.call, .opset = scope_.opset, .path = node_.loc().node + "/", .layer = scope_.layer};
    for (std::size_t i = 0; i < names_.size(); ++i) scope.values.insert_or_assign(names_[i], node_.item(i));
    import_.push(std::make_unique<BodyTask>(import_, std::move(scope)));
  }

  static bool makes(const Body& body, const std::string& name) {
    return std::any_of(body.nodes->begin(), body.nodes->end(), [&](const NodeProto& node) { return std::find(node.output().begin(), node.output().end(), name) != node.output().end(); });
  }

  std::vector<Item> derivatives(Region& region, const Item& y, std::vector<Val> at) {
    node_.require(y.is_tensor() and is_float(y.tensor.dtype()), Code::kType, fmt::format("its y {} is {}, and must be a tensor of floats", quoted(y_), to_string(y)));
    for (std::size_t i = 0; i < xs_; ++i)
      if (not is_float(at[i].dtype())) node_.fail(Code::kType, fmt::format("its x {} is {}, and must be floats", quoted(names_[i]), to_string(at[i].type())));
    for (std::size_t i = 0; i < xs_; ++i) keep_apart(region, i, at[i]);
    require_independent(region.graph(), at);
    std::vector<Val> operands = {region.local(y.tensor)};
    operands.insert(operands.end(), at.begin(), at.begin() + static_cast<std::ptrdiff_t>(xs_));
    const Builder::Scope in(region.builder(), node_.loc(), Part::kUpdate);  // so that what is made of it is of the update, too
    const std::vector<Val> results = op::gradient.build_all(std::move(operands));
    std::vector<Item> items;
    for (const Val& result : results) items.push_back(scope_.region->local(result));
    return items;
  }

  /// Constants are folded, and equal ones are one value: what is differentiated must be none.
  void keep_apart(Region& region, std::size_t i, Val x) const {
    const Input* input = region.graph().input_of(x.id());
    if (input == nullptr or input->role != Role::kConstant) return;
    if (input->name.empty()) node_.fail(Code::kNoGradient, fmt::format("its x {} is the value of a Constant node", quoted(names_[i])), {"make it an initializer"});
    region.builder().set_role(x.id(), Role::kState);
  }

  /// None of xs and zs is computed from one of xs: what is held fixed while another moves would not be defined.
  void require_independent(const Graph& graph, const std::vector<Val>& at) const {
    const std::span<const Val> xs = std::span(at).first(xs_);
    const std::vector<bool> depends = dependents(graph, xs);
    for (std::size_t i = 0; i < at.size(); ++i) {
      if (not depends[at[i].id().index] or graph.input_of(at[i].id()) != nullptr) continue;
      const Node& maker = graph.producer(at[i].id());
      if (std::any_of(maker.operands.begin(), maker.operands.end(), [&](ValueId operand) { return operand.valid() and depends[operand.index]; }))
        node_.fail(Code::kBadGraph, fmt::format("{} among its xs and zs is computed from others of its xs", quoted(names_[i])), {"xs and zs name independent values: leave out one of the two"});
    }
  }

  std::string y_;
  std::vector<std::string> names_;  ///< xs, then zs
  std::size_t xs_ = 0;
};

}  // namespace

std::unique_ptr<Task> gradient_task(GraphImport& import, ImportNode node, const NodeProto& proto, const Scope& scope) {
  return std::make_unique<GradientTask>(import, std::move(node), proto, scope);
}

}  // namespace hone::onnx
