// Where nodes stand while they are written: the graph of ours that they go to, the names that they see, the function call that they belong to.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "frontend/onnx/node.h"
#include "frontend/onnx/order.h"

namespace hone::onnx {

/// A body with everything that follows from the file alone. Made once, however often the body is written.
struct PreparedBody {
  Body body;
  Locations locations;
  std::vector<int> order;                      ///< positions of the nodes to write
  std::unordered_set<std::string_view> read;   ///< names that a node of `order` (its own bodies included) or an output reads
  Diags problems;
};
PreparedBody prepare(Body body, Outside outside, const std::string& file);

/// Items by ONNX name.
using Items = std::unordered_map<std::string_view, Item>;

/// A graph of ours that is being written: the model's, or the body of a region op, which reads values from around it through inputs of its own.
class Region {
 public:
  Region() : graph_(std::make_unique<Graph>()), builder_(*graph_) {}
  explicit Region(Region& outer) : outer_(&outer), graph_(std::make_unique<Graph>()), builder_(*graph_) {}

  Builder& builder() { return builder_; }
  Graph& graph() { return *graph_; }
  std::unique_ptr<Graph> take() { return std::move(graph_); }
  Region* outer() const { return outer_; }
  /// `val`, which belongs to this region or to one around it, as a value of this one.
  Val local(Val val);
  Item local(const Item& item);
  /// Values of the region around this one that local() gave inputs for, in the order of those inputs.
  const std::vector<Val>& captured() const { return captured_; }
  /// Makes an output of `item`, which must be a tensor.
  void output(const Item& item);
  /// Makes captured values of those that `other`, a region inside of the same one, captured: in the same order.
  void capture_like(const Region& other);
  /// What is known of sizes inside holds outside.
  void pass_equations_to(Builder& outside) const;

 private:
  Val capture(Val val);

  Region* outer_ = nullptr;
  std::unique_ptr<Graph> graph_;
  Builder builder_;
  std::vector<Val> captured_;
  std::unordered_map<ValueId, Val> inside_;  ///< what stands for a value of the outer region
};

struct Scope;

/// The attributes of a function at one call; those that are graphs read the names where they were written.
struct FunctionCall {
  const FunctionProto* function;
  BoundAttributes attributes;
  std::map<std::string, const Scope*, std::less<>> written_in;
};

/// What a node sees.
struct Scope {
  const PreparedBody* body;
  Region* region;
  const Scope* outer = nullptr;        ///< of a node's body: names that it does not make are looked up there
  const FunctionCall* call = nullptr;  ///< the innermost, if any
  std::int64_t opset = 0;              ///< of the default domain
  std::string path = {};               ///< in front of names of nodes: "fc1/", "loop[3]/"
  std::string layer = {};              ///< of nodes that name none
  Items values = {};

  /// What `name` stands for, as a value of this scope's region; kFailed if nothing could be made of it.
  Item find(std::string_view name) const;
  /// The same as a value of the region that has it; null if there is none.
  const Item* made(std::string_view name) const;
  Loc loc_of(const NodeProto& node) const;
  const BoundAttributes* attributes() const { return call == nullptr ? nullptr : &call->attributes; }
};

/// A node's body and where its names are looked up: around the node, or around a function's call that has the body for an attribute.
struct BodyAttribute {
  const GraphProto* graph;
  const Scope* written_in;
};
/// Throws kBadAttribute when the node has no graph of that name.
BodyAttribute body_attribute(const ImportNode& node, const NodeProto& proto, const Scope& scope, std::string_view name);

}  // namespace hone::onnx
