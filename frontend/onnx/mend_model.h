// The model while its weights are mended (frontend/onnx/mend.h): who reads which weight, and the few changes that are made.
#pragma once

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "formats/onnx_file.h"
#include "frontend/onnx/exported_program.h"
#include "frontend/onnx/mend.h"
#include "frontend/onnx/order.h"
#include "frontend/onnx/readers.h"

namespace hone::onnx {

/// The exporter's name for what it folded; parameters that it left as they are keep their own names.
inline bool is_folded_name(std::string_view name) { return name.starts_with("onnx::"); }
/// Do all elements have the same bytes? So do none and one.
bool all_elements_equal(const Tensor& tensor);
/// Have they the same type and the same bytes?
bool are_equal(const Tensor& a, const Tensor& b);

class MendModel {
 public:
  MendModel(ModelProto& model, const std::string& file, const std::string& folder, const MendOptions& options, Diags& diags);

  const GraphProto& graph() const { return graph_; }
  Loc loc(const NodeProto& node) const { return locations_.of(node); }

  /// What the exporter says of the initializers.
  const ExportedProgram& program() const { return program_; }
  bool is_from_keras() const { return model_.producer_name() == "tf2onnx"; }
  bool is_from_pytorch() const { return model_.producer_name() == "pytorch"; }
  /// Is it of PyTorch's older exporter? The newer one calls nodes "node_...", and its record may have been lost in some tool.
  bool is_from_torchscript() const { return is_from_torchscript_; }
  /// Is it, though it has one element alone, by its name a parameter or buffer of a module?
  bool is_scalar_of_module(const TensorProto& tensor) const;
  /// Names of the float initializers that may be weights, in the file's order: constants by the exporter's own account are none, nor are those of rank 0 that nothing says are parameters.
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
  /// Is there a node in that layer itself?
  bool has_layer(const std::string& layer) const { return layers_.contains(layer); }
  /// Has a layer that looks like another call of one parameters of its own? Then the model's author numbers modules.
  bool has_numbered_modules() const { return has_numbered_modules_; }
  /// Is there a name that begins with "MODULE."?
  bool has_parameters_of(const std::string& module) const {
    const auto next = taken_.lower_bound(module + ".");
    return next != taken_.end() and next->starts_with(module + ".");
  }
  /// The pattern of the recipe's model.tie that `name` matches, or nullptr.
  const std::string* tie_pattern(const std::string& name) const;
  bool is_tied_by_name(const std::string& name) const { return tie_pattern(name) != nullptr; }
  /// Does the recipe name it as one of the weights to train?
  bool is_trained_by_name(const std::string& name) const { return std::find(options_.train_only.begin(), options_.train_only.end(), name) != options_.train_only.end(); }
  /// What the patterns of model.tie may match: weights and aliases of them. Throws kRecipeModel for one that matches none.
  std::vector<std::string> checked_names_to_tie() const;
  /// Once weights are tied: a warning for each pattern none of whose `names` is shared with anything.
  void warn_of_idle_ties(const std::vector<std::string>& names) const;

  /// The bodies of the graph's nodes, and those of nodes in bodies.
  std::vector<GraphProto*> bodies();
  /// The copy is what `from` is by the exporter's account.
  void copy_weight(const std::string& from, const std::string& name);
  /// The copy is a parameter, or a constant, whatever `from` is.
  void copy_as(const std::string& from, const std::string& name, Origin origin, std::set<std::string> parameters);
  void add_weight(TensorProto weight);
  /// A weight that is the parameter of that name.
  void add_parameter(TensorProto weight, const std::string& parameter);
  /// A weight becomes the third operand of a Conv, ConvTranspose or Gemm that has two.
  void set_bias(int node, const std::string& weight);
  /// What a node gives becomes the sum of it and a weight.
  void add_behind(int node, const std::string& weight);
  /// `weight` becomes the result of a node over `from`: Identity, or Transpose.
  void derive_weight(const std::string& weight, const std::string& from, std::string_view op_type);
  /// `weight` is no initializer any more: a node that add_node() adds makes it.
  void remove_weight(const std::string& weight);
  /// A node without attributes, in front of those that there are. Nodes are added in the order in which they are to run.
  NodeProto& add_node(std::string_view op_type, const std::vector<std::string>& inputs, const std::string& output);
  /// A name that nothing has, and from now on counts as taken: `wanted`, or one like it.
  std::string take_name(std::string wanted);
  void redirect(const Reader& reader, const std::string& name);
  /// Readers of what a node gives get it from a copy of the node, behind it.
  void copy_node(int node, std::span<const Reader> readers);
  void remove_node(int node) { removed_.insert(node); }
  /// Positions of nodes hold until here; then the nodes to remove are gone, and readers() is up to date.
  void finish();

  void warn(std::string message, std::vector<std::string> notes) const { diags_.warn(Code::kModelWarning, std::move(message), locations_.file(), std::move(notes)); }

 private:
  void index();

  ModelProto& model_;
  GraphProto& graph_;
  const std::string& folder_;
  const MendOptions& options_;
  Diags& diags_;
  Locations locations_;
  ExportedProgram program_;
  std::unordered_map<std::string, std::vector<Reader>> readers_;
  std::unordered_map<std::string, const TensorProto*> initializers_;
  std::set<std::string, std::less<>> taken_;
  std::set<std::string> layers_;
  bool has_numbered_modules_ = false, is_from_torchscript_ = false;
  std::set<int> removed_;
  std::vector<NodeProto> added_;  ///< go in front
  std::multimap<int, NodeProto> behind_;  ///< go behind a node
};

/// At most six items, and how many more there are.
std::string first_of(const std::vector<std::string>& items);
/// The same of names, in quotes.
std::string list_of(const std::vector<std::string>& names);
/// An integer attribute of a node, `otherwise` where it is not given.
std::int64_t integer_attribute(const NodeProto& node, std::string_view name, std::int64_t otherwise = 0);
/// Biases that the exporter left out because they were zero become weights again, where its record names them.
void restore_biases(MendModel& m);
/// Is the node a product or convolution, with a weight of the file as its second operand?
bool is_layer_with_weight(const MendModel& m, const NodeProto& node);
enum class HasBias : std::uint8_t { kNo, kYes, kScaledInstead /* by what was a batch normalization */ };
/// Is something added to what such a layer gives?
HasBias has_bias(const MendModel& m, const NodeProto& layer);
/// Elements of the bias of such a layer; 0 where its weight does not say.
std::int64_t bias_extent(const NodeProto& node, const TensorProto& weight);
/// Layers without a bias that the recipe names get one of zeros. Throws kRecipeModel for a pattern that matches none.
void add_biases(MendModel& m, const std::vector<std::string>& patterns);
/// Names that Identity nodes give to weights: each becomes a weight of its own, but where one layer reads them in several of its calls. Were there any?
bool keep_aliases_apart(MendModel& m);
/// Equal weights that were folded for several calls of one layer become one.
void tie_calls(MendModel& m);
/// Weights that nodes read as different parameters become one for each of them, where the exporter left a record of what was what.
void keep_parameters_apart(MendModel& m);
/// Running statistics that are one initializer with a scale, a shift or another layer's statistics get one of their own: they are equal in a model that was never trained, and tools merge what is equal.
void keep_statistics_apart(MendModel& m);
/// Makes equal weights one where the recipe says so, and warns of transposes that look like a tied pair.
void tie_equal(MendModel& m);
/// Views of a parameter that were folded into initializers of their own, by the exporter's record, are made of the parameter again; what else was computed from parameters is named by a warning.
void restore_views(MendModel& m);
/// Does every reader take the initializer for something that a gradient would reach and nobody learns: the scales of quantized tensors, the two numbers of a OneHot?
bool is_setting(const MendModel& m, const std::string& name);
/// A warning for a model whose weights or activations are integers: what of it can be trained is little.
void name_quantized(const MendModel& m);
/// Dropout nodes that were exported for inference do nothing in training either, which a warning says.
void name_idle_dropout(const MendModel& m);
/// What tf2onnx makes of Keras's layers: recurrent ones have a single bias there, and biases that are zero are not in the file at all.
void name_keras(const MendModel& m, Roles& roles);
/// Constant nodes where models keep weights become initializers.
void lift_constants(MendModel& m);
/// ConstantOfShape nodes where models keep weights become initializers.
void fill_weights(MendModel& m);

}  // namespace hone::onnx
