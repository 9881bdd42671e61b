// What PyTorch's exporter (torch.export) leaves in a file about its initializers: which are parameters of the module, which are buffers or constants,
// what was folded into which, and which parameters each node's call took. Exact where it is there; other exporters leave nothing.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "formats/onnx.pb.h"

namespace hone::onnx {

/// What an initializer is by the exporter's own account.
enum class Origin : std::uint8_t {
  kUnknown,    ///< the file does not say
  kParameter,  ///< a parameter, or computed from some
  kConstant,   ///< a buffer, a constant of the program, or computed from no parameter
};

/// Reads metadata: they are text that a file's maker chose, so whatever is not understood counts as not there.
class ExportedProgram {
 public:
  explicit ExportedProgram(const GraphProto& graph);

  /// Did the exporter leave a record at all?
  bool is_recorded() const { return not names_.empty(); }
  Origin origin_of(const std::string& initializer) const;
  /// Names of the parameters that the initializer is (one, its own) or was folded from.
  const std::set<std::string>& parameters_in(const std::string& initializer) const;
  /// Was it computed while the file was made, from parameters or constants?
  bool is_folded(const std::string& initializer) const;
  /// Names of the parameters that the call that became the node took.
  std::set<std::string> parameters_of(const NodeProto& node) const;
  /// The parameter that it took for a bias; "" if there is none, or the operator is not one that has a bias.
  std::string bias_of(const NodeProto& node) const;
  /// Names of the buffers that it took, in their order.
  std::vector<std::string> buffers_of(const NodeProto& node) const;
  /// The module whose code made the call that became the node, "" where that is not told.
  static std::string module_of(const NodeProto& node);
  /// Is there a parameter of that name?
  bool has_parameter(const std::string& name) const { return names_.contains(name); }
  /// Is the parameter in some initializer of the file? Those that are not were merged with an equal one.
  bool is_in_file(const std::string& parameter) const { return found_.contains(parameter); }

  /// `initializer` is from now on what `origin` and `parameters` say.
  void add(const std::string& initializer, Origin origin, std::set<std::string> parameters);

 private:
  struct Account {
    Origin origin = Origin::kUnknown;
    std::set<std::string> parameters;
    bool folded = false;
  };

  void read_signature(std::string_view signature);
  Account account_of(const ValueInfoProto& info) const;
  const Account& account(const std::string& initializer) const;
  bool may_hide_parameters(const std::string& name) const;

  std::unordered_map<std::string, std::string> parameters_, buffers_;  ///< by the name of the program's input
  std::set<std::string> names_;                              ///< of parameters, as the module calls them
  std::set<std::string> constants_;                          ///< names of buffers and constants
  std::set<std::string> found_;                              ///< those that are in some initializer
  std::unordered_map<std::string, Account> accounts_;        ///< by initializer
};

/// What a graph's metadata tell of the program's inputs: parameters, buffers, and what is fed.
inline constexpr std::string_view kSignature = "pkg.torch.export.ExportedProgram.graph_signature";
/// What a node's metadata tell of the call that became the node.
inline constexpr std::string_view kProgramCall = "pkg.torch.onnx.fx_node";

/// Names behind a "%", as a call is printed: its own, and those of the values that it takes.
std::vector<std::string> value_names(std::string_view call);

/// The row of the table that is never learned, where the call looks rows up and names one (padding_idx of torch.nn.Embedding).
std::optional<std::int64_t> padding_row_of(std::string_view call);

/// The value of `key`, or "".
template <typename Proto>
std::string metadata_of(const Proto& proto, std::string_view key) {
  for (const StringStringEntryProto& entry : proto.metadata_props())
    if (entry.key() == key) return entry.value();
  return {};
}

}  // namespace hone::onnx
