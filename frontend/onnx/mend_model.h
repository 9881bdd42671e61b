// The model while its weights are mended (frontend/onnx/mend.h): who reads which weight, and the few changes that are made.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "formats/onnx_file.h"
#include "frontend/onnx/order.h"
#include "frontend/onnx/readers.h"

namespace hone::onnx {

class MendModel {
 public:
  MendModel(ModelProto& model, const std::string& file, const std::string& folder, const std::vector<std::string>& tie, Diags& diags);

  const GraphProto& graph() const { return graph_; }
  Loc loc(const NodeProto& node) const { return locations_.of(node); }

  /// Names of the float initializers of rank 1 or more, in the file's order.
  std::vector<std::string> weights() const;
  bool is_weight(const std::string& name) const;
  const TensorProto* initializer(const std::string& name) const;
  /// The contents of an initializer; nothing if there is none or it cannot be read.
  std::optional<Tensor> values(const std::string& name) const;
  const std::vector<Reader>& readers(const std::string& name) const;
  bool is_read_by(const std::string& name, std::string_view op_type, int operand) const;
  /// Is it an output of the graph, or read in a body of a node?
  bool is_read_outside(const std::string& name) const;
  bool is_free(const std::string& name) const { return not taken_.contains(name); }
  /// The pattern of the recipe's model.tie that `name` matches, or nullptr.
  const std::string* tie_pattern(const std::string& name) const;
  bool is_tied_by_name(const std::string& name) const { return tie_pattern(name) != nullptr; }
  /// Throws kRecipeModel for a pattern that matches no weight and no alias of one.
  void check_patterns() const;

  void copy_weight(const std::string& from, const std::string& name);
  void add_weight(TensorProto weight);
  /// `weight` becomes the result of a node over `from`: Identity, or Transpose.
  void derive_weight(const std::string& weight, const std::string& from, std::string_view op_type);
  void redirect(const Reader& reader, const std::string& name);
  void remove_node(int node) { removed_.insert(node); }
  /// Positions of nodes hold until here; then the nodes to remove are gone, and readers() is up to date.
  void finish();

  void warn(std::string message, std::vector<std::string> notes) { diags_.warn(Code::kModelWarning, std::move(message), locations_.file(), std::move(notes)); }

 private:
  void index();

  ModelProto& model_;
  GraphProto& graph_;
  const std::string& folder_;
  const std::vector<std::string>& tie_;
  Diags& diags_;
  Locations locations_;
  std::unordered_map<std::string, std::vector<Reader>> readers_;
  std::unordered_map<std::string, const TensorProto*> initializers_;
  std::set<std::string, std::less<>> taken_;
  std::set<int> removed_;
  std::vector<NodeProto> added_;  ///< go in front
};

/// Makes equal weights one where the recipe says so, and warns of transposes that look like a tied pair.
void tie_equal(MendModel& m);
/// ConstantOfShape nodes where models keep weights become initializers.
void fill_weights(MendModel& m);

}  // namespace hone::onnx
