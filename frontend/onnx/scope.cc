#include "frontend/onnx/scope.h"

#include <fmt/format.h>

#include <algorithm>

#include "ir/ops/ops.h"

namespace hone::onnx {

PreparedBody prepare(Body body, Outside outside, const std::string& file) {
  Locations locations(*body.nodes, file);
  Diags problems;
  std::vector<int> order = build_order(body, outside, locations, problems);
  std::unordered_set<std::string_view> read(body.outputs.begin(), body.outputs.end());
  for (const int i : order) {
    const NodeProto& node = body.nodes->Get(i);
    read.insert(node.input().begin(), node.input().end());
    for (const std::string_view name : captured_names(node)) read.insert(name);
  }
  return {std::move(body), std::move(locations), std::move(order), std::move(read), std::move(problems)};
}

Val Region::local(Val val) {
  std::vector<Region*> between;  // from this region outwards to the one that has the value
  for (Region* region = this; &val.builder() != &region->builder_; region = region->outer_) {
    HONE_CHECK(region->outer_ != nullptr, "a value from a graph that is not around this one");
    between.push_back(region);
  }
  for (; not between.empty(); between.pop_back()) val = between.back()->capture(val);
  return val;
}

Item Region::local(const Item& item) {
  Item result = item;
  if (item.is_tensor()) result.tensor = local(item.tensor);
  for (Val& element : result.elements) element = local(element);
  return result;
}

void Region::output(const Item& item) { builder_.output(fmt::format("result.{}", graph_->outputs().size()), local(item.tensor)); }

void Region::capture_like(const Region& other) {
  for (const Val& val : other.captured_) local(val);
}

void Region::pass_equations_to(Builder& outside) const {
  for (const auto& [a, b] : graph_->equations()) outside.equate(a, b);
}

/// What is known when compiling stays known inside: small constants and sizes are written again.
Val Region::capture(Val val) {
  constexpr std::int64_t kSmall = 64;
  const auto found = inside_.find(val.id());
  if (found != inside_.end()) return found->second;
  const Graph& outside = val.builder().graph();
  const Tensor* constant = outside.constant_of(val.id());
  const auto& known = outside.value(val.id()).known;
  Val inside;
  if (constant != nullptr and constant->element_count() <= kSmall) {
    inside = builder_.constant(*constant);
  } else if (known and is_integer(val.dtype())) {
    inside = cast(reshape(builder_.add(op::sizes, {}, {kSizes = *known})[0], val.shape()), val.dtype());
  } else {
    inside = builder_.input(Role::kInput, fmt::format("captured.{}", captured_.size()), val.type());
    captured_.push_back(val);
  }
  inside_.emplace(val.id(), inside);
  return inside;
}

const Item* Scope::made(std::string_view name) const {
  for (const Scope* scope = this; scope != nullptr; scope = scope->outer)
    if (const auto found = scope->values.find(name); found != scope->values.end()) return &found->second;
  return nullptr;
}

Item Scope::find(std::string_view name) const {
  const Item* item = made(name);
  return item == nullptr ? Item() : region->local(*item);
}

Loc Scope::loc_of(const NodeProto& node) const {
  Loc loc = body->locations.of(node);
  loc.node = path + loc.node;
  if (loc.layer.empty()) loc.layer = layer;
  return loc;
}

BodyAttribute body_attribute(const ImportNode& node, const NodeProto& proto, const Scope& scope, std::string_view name) {
  const AttributeProto* attribute = node.attribute(name);
  if (attribute == nullptr or not attribute->has_g()) node.fail(Code::kBadAttribute, fmt::format("has no graph {}", name));
  for (const AttributeProto& own : proto.attribute())
    if (own.name() == name and not own.ref_attr_name().empty())
      if (const auto found = scope.call->written_in.find(own.ref_attr_name()); found != scope.call->written_in.end()) return {&attribute->g(), found->second};
  return {&attribute->g(), &scope};
}

}  // namespace hone::onnx
