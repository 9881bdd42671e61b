// Writing one body: the model's graph, a function's, or a node's. Nodes that cannot be written are reported, and the others written all the same.
#pragma once

#include "frontend/onnx/graph_import.h"

namespace hone::onnx {

class BodyTask : public Task {
 public:
  /// `call`: for a function's body, which `scope` is one of.
  BodyTask(GraphImport& import, Scope scope, std::optional<FunctionCall> call = std::nullopt);
  ~BodyTask() override;

  /// The body's outputs.
  std::optional<std::vector<Item>> resume(std::vector<Item> results) override;
  Scope& scope() { return scope_; }

 private:
  /// Writes the node, or pushes what does.
  void start(const NodeProto& proto);
  std::optional<std::vector<Item>> operands_of(const NodeProto& proto) const;
  void write(const NodeProto& proto, ImportNode& node, bool is_constant);
  /// Is this any but the model's graph?
  bool is_inner() const { return scope_.outer != nullptr or scope_.call != nullptr; }
  void add_results(const NodeProto& proto, const ImportNode& node, std::vector<Item> results);
  void add_result(const NodeProto& proto, int i, Item item, const Loc& loc);
  Val known(Val result);

  GraphImport& import_;
  Scope scope_;
  std::optional<FunctionCall> call_;
  std::size_t next_ = 0;               ///< in the order of the body
  const NodeProto* waiting_ = nullptr; ///< the node that another task writes
};

}  // namespace hone::onnx
