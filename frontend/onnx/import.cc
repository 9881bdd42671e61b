#include "frontend/onnx/import.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "base/files.h"
#include "base/text.h"
#include "frontend/onnx/constant_value.h"
#include "frontend/onnx/ops.h"
#include "frontend/onnx/order.h"
#include "frontend/onnx/symbols.h"
#include "frontend/onnx/values.h"
#include "frontend/onnx/versions.h"
#include "ir/op.h"

namespace hone::onnx {

namespace {

bool is_standard_domain(const std::string& domain) { return domain.empty() or domain == "ai.onnx"; }

bool is_local_function(const ModelProto& model, const NodeProto& node) {
  return std::any_of(model.functions().begin(), model.functions().end(), [&](const FunctionProto& function) {
    return function.name() == node.op_type() and
           (function.domain() == node.domain() or (is_standard_domain(function.domain()) and is_standard_domain(node.domain())));
  });
}

bool can_import(const ModelProto& model, const NodeProto& node) {
  return is_standard_domain(node.domain()) and is_supported(node.op_type()) and not is_local_function(model, node);
}

/// The opset of the standard domain; other domains do not matter unless a node uses them, which is reported there. Throws kOpset.
std::int64_t opset_of(const ModelProto& model, const Loc& file) {
  std::optional<std::int64_t> opset;
  for (const OperatorSetIdProto& import : model.opset_import())
    if (is_standard_domain(import.domain())) opset = std::max(opset.value_or(0), import.version());
  if (not opset)
    throw Error(Code::kOpset, "the file does not say which version of the ONNX operators it uses", file, {"convert it with onnx.version_converter"});
  if (*opset < kOldestOpset)
    throw Error(Code::kOpset, fmt::format("opset {} is too old: {} to {} are supported", *opset, kOldestOpset, kNewestOpset), file,
                {"convert the model with onnx.version_converter"});
  if (*opset > kNewestOpset)
    throw Error(Code::kOpset, fmt::format("opset {} is newer than what this version of Hone knows: {} to {} are supported", *opset, kOldestOpset, kNewestOpset),
                file, {fmt::format("export the model with opset {} or older", kNewestOpset)});
  return *opset;
}

/// A problem that one of our ops found begins with its name; the user knows the node by the operator's: "matmul: ..." becomes "MatMul: ...".
std::string in_onnx_words(const std::string& message, const std::string& op_type) {
  const std::size_t colon = message.find(": ");
  const bool ours = colon != std::string::npos and find_op(std::string_view(message).substr(0, colon)) != nullptr;
  return ours ? printable(op_type) + message.substr(colon) : message;
}

/// Operators that are not supported, each with all the nodes that need it.
class UnknownOperators {
 public:
  UnknownOperators(const ModelProto& model, const Locations& locations) : model_(model), locations_(locations) {}

  void add(const NodeProto& node) { nodes_[{node.domain(), node.op_type()}].push_back(&node); }

  void report(Diags& diags) const {
    for (const auto& [name, nodes] : nodes_) {
      const std::string count = nodes.size() == 1 ? "1 node" : fmt::format("{} nodes", nodes.size());
      const std::string domain = is_standard_domain(name.first) ? "" : fmt::format(" of domain {}", quoted(name.first));
      diags.error(Code::kUnknownOp, fmt::format("operator {}{} is not supported ({})", printable(name.second), domain, count), locations_.of(*nodes[0]),
                  notes(nodes));
    }
  }

 private:
  std::vector<std::string> notes(const std::vector<const NodeProto*>& nodes) const {
    constexpr std::size_t kMostNamed = 4;
    std::vector<std::string> notes;
    std::string others;
    for (std::size_t i = 1; i < std::min(nodes.size(), kMostNamed + 1); ++i) others += (i == 1 ? "also at " : ", ") + quoted(locations_.of(*nodes[i]).node);
    if (nodes.size() > kMostNamed + 1) others += fmt::format(" and {} more", nodes.size() - kMostNamed - 1);
    if (not others.empty()) notes.push_back(others);
    const NodeProto& node = *nodes[0];
    if (is_local_function(model_, node)) notes.emplace_back("it is a function of the model itself; export the model with its functions inlined (onnx.inliner)");
    else if (not is_standard_domain(node.domain())) notes.emplace_back("only operators of the standard domain ai.onnx are known");
    else if (not is_standard_operator(node.op_type())) notes.push_back("ONNX has no such operator" + hint(node.op_type()));
    return notes;
  }

  static std::string hint(const std::string& op_type) {
    const std::string hint = did_you_mean(op_type, supported_operators());
    return hint.empty() ? "" : "; " + hint;
  }

  const ModelProto& model_;
  const Locations& locations_;
  std::map<std::pair<std::string, std::string>, std::vector<const NodeProto*>> nodes_;
};

/// Makes one graph out of the model, once. Problems and warnings go to `diags`.
class GraphImport {
 public:
  GraphImport(const ModelProto& model, const std::string& folder, std::int64_t opset, const Locations& locations, Diags& diags)
      : model_(model), folder_(folder), opset_(opset), locations_(locations), diags_(diags), builder_(graph_) {
    graph_.name = model.graph().name().empty() ? "main" : model.graph().name();
    for (const NodeProto& node : model.graph().node())
      for (const std::string& operand : node.input()) read_.insert(operand);
    for (const ValueInfoProto& output : model.graph().output()) read_.insert(output.name());
  }

  Graph run(const std::vector<std::optional<Tensor>>& initializers, const std::vector<int>& order, Symbols& symbols) {
    values_ = add_inputs(builder_, model_.graph(), initializers, symbols, locations_, diags_);
    UnknownOperators unknown(model_, locations_);
    for (const int position : order) {
      const NodeProto& node = model_.graph().node(position);
      if (can_import(model_, node)) add_node(node);
      else unknown.add(node);
    }
    unknown.report(diags_);
    add_outputs(symbols);
    warn_of_aliases();
    return std::move(graph_);
  }

 private:
  /// The node's operands; nothing when one of them could not be made.
  std::optional<std::vector<Val>> operands_of(const NodeProto& node) {
    std::vector<Val> operands;
    for (const std::string& name : node.input()) {
      if (name.empty()) {
        operands.emplace_back();
        continue;
      }
      const auto found = values_.find(name);
      if (found == values_.end() or not found->second.valid()) return std::nullopt;
      operands.push_back(found->second);
    }
    while (not operands.empty() and not operands.back().valid()) operands.pop_back();
    return operands;
  }

  void add_node(const NodeProto& proto) {
    auto operands = operands_of(proto);
    if (not operands) return;
    const Loc loc = locations_.of(proto);
    std::vector<bool> wanted;
    for (const std::string& name : proto.output()) wanted.push_back(read_.contains(name) and not name.empty());
    const Builder::Scope scope(builder_, loc, Part::kForward);
    try {
      ImportNode node(builder_, proto, *std::move(operands), std::move(wanted), loc, folder_);
      to_newest_form(node, opset_);
      add_results(node, proto, import_node(node));
    } catch (const Error& error) {
      for (Diag diag : error.diags()) {
        if (diag.loc.empty()) diag.loc = loc;
        diag.message = in_onnx_words(diag.message, proto.op_type());
        diags_.add(std::move(diag));
      }
    }
  }

  void add_results(const ImportNode& node, const NodeProto& proto, const std::vector<Val>& results) {
    for (std::size_t i = 0; i < node.result_count(); ++i) {
      const std::string& name = proto.output(static_cast<int>(i));
      if (name.empty()) continue;
      const Val result = i < results.size() ? known(results[i]) : Val();
      if (not result.valid()) {
        if (node.wants(i)) node.fail(Code::kUnknownOp, fmt::format("its result {} ({}) is not supported", i, quoted(name)));
        continue;
      }
      check_size(result.type(), quoted(name), node.loc());
      if (graph_.value(result.id()).name.empty()) builder_.set_name(result, name);
      if (proto.op_type() == "Identity") note_alias(result, name);
      values_.emplace(name, result);
    }
  }

  /// Integers that follow from constants, if by float arithmetic, as a constant: a size may be computed from them.
  Val known(Val result) {
    if (not result.valid() or is_float(result.dtype()) or graph_.value(result.id()).known or graph_.input_of(result.id()) != nullptr) return result;
    const auto value = constant_value(graph_, result.id());
    return value ? builder_.constant(*value) : result;
  }

  void add_outputs(Symbols& symbols) {
    for (const ValueInfoProto& output : model_.graph().output()) {
      const auto found = values_.find(output.name());
      if (found == values_.end() or not found->second.valid()) continue;  // reported already
      builder_.output(output.name(), found->second);
      compare_with_declared(output, found->second.type(), symbols);
    }
  }

  /// Exporters often declare an output's extents wrongly; what matters is what the nodes give.
  void compare_with_declared(const ValueInfoProto& output, const Type& type, Symbols& symbols) {
    const auto& declared = output.type().tensor_type();
    if (not declared.has_shape()) return;
    bool differs = dtype_of_onnx(declared.elem_type()) != type.dtype or declared.shape().dim_size() != static_cast<int>(type.shape.size());
    for (int i = 0; not differs and i < declared.shape().dim_size(); ++i) {
      const auto& extent = declared.shape().dim(i);
      const Dim& actual = type.shape[static_cast<std::size_t>(i)];
      differs = extent.has_dim_value() and extent.dim_value() > 0 and actual.is_constant() and not actual.is_constant(extent.dim_value());
    }
    if (differs)
      diags_.warn(Code::kModelWarning,
                  fmt::format("output {} is {}, and the file declares it as {}[{}]", quoted(output.name()), to_string(type),
                              onnx_type_name(declared.elem_type()), to_string(symbols.declared(output.name(), declared.shape()))),
                  locations_.file());
  }

  void note_alias(Val result, const std::string& name) {
    if (const Input* input = graph_.input_of(result.id()); input != nullptr and input->role == Role::kWeight) aliases_[input->name].push_back(name);
  }

  void warn_of_aliases() {
    for (const auto& [weight, names] : aliases_)
      diags_.warn(Code::kModelWarning, fmt::format("the weight {} also goes by the names {}: they are trained as one", quoted(weight), join(names, ", ")),
                  locations_.file(),
                  {"exporters merge weights that happen to be equal, such as those of a fresh model; export without constant folding to keep them apart"});
  }

  const ModelProto& model_;
  const std::string& folder_;
  const std::int64_t opset_;
  const Locations& locations_;
  Diags& diags_;
  Graph graph_;
  Builder builder_;
  Values values_;
  std::set<std::string_view> read_;  ///< names that a node or the model's outputs read
  std::map<std::string, std::vector<std::string>> aliases_;
};

/// Importing again with what was learned of the sizes, until there is nothing to learn. Each round names one size less, so it ends.
Graph import_graph(const ModelProto& model, const std::string& folder, std::int64_t opset, const Locations& locations, Symbols& symbols, Diags& diags) {
  Diags common;
  const std::vector<int> order = build_order(model.graph(), locations, common);
  const std::vector<std::optional<Tensor>> initializers = read_initializers(model.graph(), folder, locations.file(), common);
  for (;;) {
    Diags round = common;
    Graph graph = GraphImport(model, folder, opset, locations, round).run(initializers, order, symbols);
    if (symbols.learn(graph.equations())) continue;
    for (const Diag& diag : round.all()) diags.add(diag);
    return graph;
  }
}

/// A broken file may have millions of problems; nobody reads more than the first.
[[noreturn]] void throw_problems(const Diags& diags) {
  constexpr std::size_t kMostProblems = 200;
  std::vector<Diag> errors;
  for (const Diag& diag : diags.all())
    if (diag.severity == Severity::kError) errors.push_back(diag);
  if (errors.size() > kMostProblems) {
    const std::size_t left_out = errors.size() - kMostProblems;
    errors.resize(kMostProblems);
    errors.back().notes.push_back(fmt::format("there are {} more problems", left_out));
  }
  throw Error(std::move(errors));
}

}  // namespace

Imported import_model(ModelProto model, const std::string& file_name, const std::string& folder, const ImportOptions& options) {
  Imported imported;
  Diags diags;
  const Locations locations(model.graph(), file_name);
  Symbols symbols(options.dims);
  const std::int64_t opset = opset_of(model, locations.file());
  imported.graph = import_graph(model, folder, opset, locations, symbols, diags);
  symbols.check_fixed(diags);
  if (diags.has_errors()) throw_problems(diags);
  for (const auto& [symbol, value] : symbols.determined())
    diags.warn(Code::kModelWarning, fmt::format("the size {} can only be {}: the model's nodes take nothing else", symbol, value), locations.file());
  imported.model = std::move(model);
  imported.warnings = diags.all();
  return imported;
}

Imported import_model(const std::string& path, const ImportOptions& options) {
  return import_model(load_model(path), path.substr(path.rfind('/') + 1), folder_of(path), options);
}

}  // namespace hone::onnx
