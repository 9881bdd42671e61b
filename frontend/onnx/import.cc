#include "frontend/onnx/import.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "base/files.h"
#include "base/text.h"
#include "formats/onnx_external.h"
#include "formats/onnx_file.h"
#include "frontend/onnx/graph_import.h"
#include "frontend/onnx/leftovers.h"
#include "frontend/onnx/mend_model.h"
#include "frontend/onnx/ops.h"
#include "frontend/onnx/symbols.h"
#include "frontend/onnx/training_info.h"
#include "frontend/onnx/values.h"
#include "frontend/onnx/versions.h"
#include "frontend/onnx/written_norms.h"

namespace hone::onnx {

namespace {

/// The opset of the standard domain; other domains do not matter unless a node uses them, which is reported there. Throws kOpset.
std::int64_t opset_of(const ModelProto& model, const Loc& file) {
  std::optional<std::int64_t> opset;
  for (const OperatorSetIdProto& import : model.opset_import())
    if (canonical_domain(import.domain()).empty()) opset = std::max(opset.value_or(0), import.version());
  const auto& nodes = model.graph().node();
  if (not opset and std::none_of(nodes.begin(), nodes.end(), [](const NodeProto& node) { return canonical_domain(node.domain()).empty(); })) return kNewestOpset;
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

/// Bodies in bodies: a file's own depth is limited by its format, that of a model made elsewhere is not.
void check_nesting(const ModelProto& model, const Loc& file) {
  constexpr int kDeepest = 64;
  int depth = nesting_depth(model.graph().node());
  for (const TrainingInfoProto& training : model.training_info())
    for (const GraphProto* graph : {&training.initialization(), &training.algorithm()}) depth = std::max(depth, nesting_depth(graph->node()));
  for (const FunctionProto& function : model.functions()) depth = std::max(depth, nesting_depth(function.node()));
  if (depth > kDeepest) throw Error(Code::kTooLarge, fmt::format("bodies of nodes lie {} deep in each other; the limit is {}", depth, kDeepest), file);
}

/// A graph as far as it can be imported, and what is wrong with it.
struct Attempt {
  Graph graph;
  Diags found;
  std::vector<std::string> failed_outputs;
};

/// Importing again with what was learned of the sizes, until there is nothing to learn. Each round names one size less, so it ends.
Attempt import_graph(ImportContext& context, const Diags& common, Symbols& symbols) {
  for (;;) {
    Attempt attempt{.graph = {}, .found = common, .failed_outputs = {}};
    GraphImport import(context, attempt.found);
    attempt.graph = import.run(symbols);
    if (symbols.learn(attempt.graph.equations())) continue;
    attempt.failed_outputs = import.failed_outputs();
    return attempt;
  }
}

/// Says that outputs nobody asks for were left out, and why.
Diag outputs_left_out(const Attempt& all, const std::string& asked, const Loc& file) {
  constexpr std::size_t kMostReasons = 3;
  const bool is_one = all.failed_outputs.size() == 1;
  Diag diag{Code::kModelWarning, "", file, {}, Severity::kWarning};
  diag.message = fmt::format("the output{} {} {} left out: {}, which is asked for, needs nothing of what cannot be imported", is_one ? "" : "s", list_of(all.failed_outputs),
                             is_one ? "is" : "are", quoted(asked));
  for (const Diag& problem : all.found.all())
    if (problem.severity == Severity::kError and diag.notes.size() < kMostReasons)
      diag.notes.push_back(problem.loc.node.empty() ? problem.message : fmt::format("at node {}: {}", quoted(problem.loc.node), problem.message));
  return diag;
}

using Initializers = std::vector<std::optional<Tensor>>;

/// Imports graphs of one file, which share their sizes.
class FileImport {
 public:
  FileImport(const ModelProto& model, const std::string& folder, const std::string& file_name, std::int64_t opset, Symbols& symbols, std::optional<FreeBatch> batch = {})
      : model_(model), folder_(folder), file_name_(file_name), opset_(opset), symbols_(symbols), batch_(std::move(batch)) {}

  Graph run(const GraphProto& graph, const Initializers& initializers, const Roles& roles, const Diags& common, Diags& diags) {
    return taken(attempt(graph, initializers, roles, common, {}), diags);
  }

  /// The model's graph. Where `asked` is one of its outputs, those that cannot be imported are left out if it needs nothing of what is wrong with them.
  Graph run_for(const std::string& asked, const GraphProto& graph, const Initializers& initializers, const Roles& roles, const Diags& common, Diags& diags) {
    Attempt all = attempt(graph, initializers, roles, common, {});
    const std::vector<std::string> good = made_outputs(all, graph);
    if (not all.found.has_errors() or good.empty() or all.failed_outputs.empty()) return taken(std::move(all), diags);
    if (std::find(good.begin(), good.end(), asked) != good.end()) {
      Attempt rest = attempt(graph, initializers, roles, common, {all.failed_outputs.begin(), all.failed_outputs.end()});
      if (not rest.found.has_errors()) {
        rest.found.add(outputs_left_out(all, asked, Loc{.file = file_name_}));
        return taken(std::move(rest), diags);
      }
    }
    if (not asked.empty()) return taken(std::move(all), diags);
    const auto floats = std::find_if(good.begin(), good.end(), [&](const std::string& name) {
      const Output* output = all.graph.find_output(name);
      return output != nullptr and is_float(all.graph.type(output->value).dtype);
    });
    const std::string best = floats == good.end() ? good[0] : *floats;
    return taken(std::move(all), diags, fmt::format("of the model's outputs {} can be imported: [model] output = {} leaves the rest out", list_of(good), quoted(best)));
  }

 private:
  Attempt attempt(const GraphProto& graph, const Initializers& initializers, const Roles& roles, Diags common, std::set<std::string> left_out) {
    Body body(graph);
    std::erase_if(body.outputs, [&](std::string_view output) { return left_out.contains(std::string(output)); });
    ImportContext context{graph, folder_, file_name_, opset_, Functions(model_, Loc{.file = file_name_}, common), prepare(body, Outside::kNothing, file_name_), initializers, roles};
    context.left_out = std::move(left_out);
    context.batch = batch_;
    for (const Diag& diag : context.main.problems.all()) common.add(diag);
    return import_graph(context, common, symbols_);
  }

  /// `way_out` goes to the last problem.
  static Graph taken(Attempt attempt, Diags& diags, const std::string& way_out = "") {
    std::vector<Diag> found = attempt.found.all();
    const auto last = std::find_if(found.rbegin(), found.rend(), [](const Diag& diag) { return diag.severity == Severity::kError; });
    if (not way_out.empty() and last != found.rend()) last->notes.push_back(way_out);
    for (Diag& diag : found) diags.add(std::move(diag));
    return std::move(attempt.graph);
  }

  static std::vector<std::string> made_outputs(const Attempt& all, const GraphProto& graph) {
    std::vector<std::string> made;
    for (const ValueInfoProto& output : graph.output())
      if (std::find(all.failed_outputs.begin(), all.failed_outputs.end(), output.name()) == all.failed_outputs.end()) made.push_back(output.name());
    return made;
  }

  const ModelProto& model_;
  const std::string& folder_;
  const std::string& file_name_;
  std::int64_t opset_;
  Symbols& symbols_;
  std::optional<FreeBatch> batch_;
};

/// What the import of a graph with another inside of it found, less what the other has reported.
void add_news(const Diags& found, Diags& diags) {
  std::set<std::string> known;
  for (const Diag& diag : diags.all()) known.insert(to_string(diag));
  for (const Diag& diag : found.all())
    if (known.insert(to_string(diag)).second) diags.add(diag);
}

/// Imported::own_training.
void import_training(FileImport& import, const TrainingInfo& info, const TrainingInfoProto& proto, const Initializers& initializers, const std::string& folder, const Loc& file,
                     const ImportOptions& options, Imported& imported, Diags& diags) {
  Diags found;
  Initializers all = initializers;
  for (auto& tensor : read_initializers(proto.algorithm(), folder, file, found)) all.push_back(std::move(tensor));
  Graph step = import.run(info.step, all, info.roles, {}, found);
  if (not found.has_errors()) bind_updates(step, info, file, found);
  if (not found.has_errors() and options.own_first_values and not info.first_values.empty()) {
    Graph initialization = import.run(info.initialization, read_initializers(info.initialization, folder, file, found), {}, {}, found);
    bind_first_values(initialization, step, info, file, found);
    imported.own_training.initialization = std::move(initialization);
  }
  imported.own_training.step = std::move(step);
  add_news(found, diags);
}

/// Does one of the graphs know more of the sizes of the inputs that both have?
bool differ_in_sizes(const Graph& a, const Graph& b) {
  return std::any_of(a.inputs().begin(), a.inputs().end(), [&](const Input& input) {
    const Input* other = b.find_input(input.name);
    return other != nullptr and a.type(input.value) != b.type(other->value);
  });
}

/// The inputs that `values` name get them as initializers, and are inputs no more.
void bind_inputs(ModelProto& model, const std::map<std::string, Tensor>& values, const Loc& file) {
  GraphProto& graph = *model.mutable_graph();
  std::vector<std::string> names;
  for (const ValueInfoProto& input : graph.input()) names.push_back(input.name());
  for (const auto& [name, value] : values) {
    if (std::find(names.begin(), names.end(), name) == names.end())
      throw Error(Code::kUsage, fmt::format("--bind {}: the model has no such input", quoted(name)), file, {did_you_mean(name, names), "inputs: " + quoted_list(names)});
    TensorProto* initializer = graph.add_initializer();
    store_tensor(initializer, value);
    initializer->set_name(name);
  }
}

/// What training does not replace gets its data into the model itself: the trained one is written elsewhere, and has no use for the files that lie beside this one.
void embed_constants(ModelProto& model, const Graph& graph, const std::string& folder, const Loc& file) {
  std::set<ValueId> read;
  for (const Node& node : graph.nodes()) read.insert(node.operands.begin(), node.operands.end());
  std::set<std::string_view> weights;
  for (const Input& input : graph.inputs())
    if (input.role == Role::kWeight and read.contains(input.value)) weights.insert(input.name);
  std::set<const TensorProto*> replaced;
  for (const TensorProto& tensor : model.graph().initializer())
    if (weights.contains(tensor.name())) replaced.insert(&tensor);
  for (TensorProto* tensor : all_tensors(model))
    if (is_external(*tensor) and dtype_of_onnx(tensor->data_type()) and not replaced.contains(tensor)) store_tensor(tensor, tensor_of(*tensor, folder, file));
}

/// All inputs of a Keras model share their first axis, the batch, and tf2onnx gives each a made-up name of its own there: "unk__12".
void learn_batch_of_keras(const ModelProto& model, Symbols& symbols) {
  if (model.producer_name() != "tf2onnx") return;
  std::set<std::string_view> initializers;
  for (const TensorProto& tensor : model.graph().initializer()) initializers.insert(tensor.name());
  std::vector<Dim> batches;
  for (const ValueInfoProto& input : model.graph().input()) {
    const TensorShapeProto& shape = input.type().tensor_type().shape();
    if (initializers.contains(input.name()) or shape.dim_size() == 0) continue;
    const auto& first = shape.dim(0);
    const bool is_made_up = not first.has_dim_value() and (first.dim_param().empty() or first.dim_param().starts_with("unk__"));
    if (is_made_up) batches.push_back(symbols.declared(input.name(), shape)[0]);
  }
  std::vector<std::pair<Dim, Dim>> equations;
  for (std::size_t i = 1; i < batches.size(); ++i) equations.emplace_back(batches[0], batches[i]);
  symbols.learn(equations);
}

/// A value between the nodes that the recipe names as the output is one while the model is imported: files that end in classes or boxes have their logits there.
class NamedOutput {
 public:
  NamedOutput(GraphProto& graph, const std::string& name) : graph_(graph) {
    if (name.empty() or std::any_of(graph.output().begin(), graph.output().end(), [&](const ValueInfoProto& output) { return output.name() == name; })) return;
    is_added_ = std::any_of(graph.node().begin(), graph.node().end(), [&](const NodeProto& node) { return std::find(node.output().begin(), node.output().end(), name) != node.output().end(); });
    if (is_added_) graph.add_output()->set_name(name);
  }
  NamedOutput(const NamedOutput&) = delete;
  NamedOutput& operator=(const NamedOutput&) = delete;
  ~NamedOutput() {
    if (is_added_) graph_.mutable_output()->RemoveLast();
  }

 private:
  GraphProto& graph_;
  bool is_added_ = false;
};

/// What to do about a model that is fixed to `exported` samples and wanted for another batch.
struct WantedBatch {
  std::int64_t exported = 1;
  std::string wanted;  ///< "batches of 8"
};

/// Nothing if the model can stay as it is.
std::optional<WantedBatch> wanted_batch(const GraphProto& graph, const std::optional<std::int64_t>& batch) {
  const auto exported = batch ? fixed_batch(graph) : std::nullopt;
  if (not exported or *exported == *batch or (*batch == 0 and *exported != 1)) return std::nullopt;
  return WantedBatch{*exported, *batch == 0 ? "batches of more samples" : fmt::format("batches of {}", *batch)};
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

Imported import_parts(ModelProto given, const std::string& file_name, const std::string& folder, const ImportOptions& options, Diags& diags) {
  Imported imported;
  const Loc file{.file = file_name};
  try {
    check_nesting(given, file);
    const std::int64_t opset = opset_of(given, file);
    const NamedOutput named(*given.mutable_graph(), options.output);
    make_dense(given, folder, file, diags);
    write_leftovers(given, file, diags);
    const bool own_training = options.own_training and given.training_info_size() > 0;
    Roles told;
    try {
      if (not own_training) told = mend_weights(given, file_name, folder, options.mend, diags);  // its algorithm names the weights as they are
    } catch (const Error& error) { diags.append(error); }
    ModelProto bound;
    if (not options.bind.empty()) bind_inputs(bound = given, options.bind, file);
    ModelProto& model = options.bind.empty() ? given : bound;
    Diags common;
    for (const auto& [name, size] : options.dims)
      if (size < 0) throw Error(Code::kUsage, fmt::format("the size {} cannot be {}", quoted(name), size), {}, {"it is a number of elements"});
    Symbols symbols(options.dims, options.equal_dims);
    learn_batch_of_keras(model, symbols);
    if (model.graph().output_size() == 0)
      common.error(Code::kBadGraph, "the model has no outputs", file, {"name what it computes in graph.output, or export it again"});
    std::optional<TrainingInfo> training;
    if (own_training) training = read_training_info(model, file, common);
    Roles roles = training ? training->roles : told;
    for (const auto& [name, value] : options.bind) roles.of.insert_or_assign(name, Role::kConstant);
    const Initializers initializers = read_initializers(model.graph(), folder, file, common);
    FileImport import(model, folder, file_name, opset, symbols);
    imported.graph = import.run_for(options.output, model.graph(), initializers, roles, common, diags);
    if (const auto wanted = diags.has_errors() or own_training ? std::nullopt : wanted_batch(model.graph(), options.batch)) {
      Symbols free_symbols(options.dims, options.equal_dims);
      Diags problems;
      const FreedInputs freed(*model.mutable_graph(), wanted->exported, "batch");
      const FreeBatch batch{Dim::symbol("batch"), wanted->exported};
      Graph graph = FileImport(model, folder, file_name, opset, free_symbols, batch).run_for(options.output, model.graph(), initializers, roles, common, problems);
      const std::string fixed = fmt::format("the model was exported for batches of {}", wanted->exported);
      std::string reason = problems.has_errors() or not free_symbols.determined().empty() ? "" : why_not_free(graph, imported.graph, options.output, batch);
      if (not free_symbols.determined().empty()) reason = "its nodes take no other number of samples";
      for (const Diag& problem : problems.all())
        if (problem.severity == Severity::kError and reason.empty()) reason = fmt::format("with another batch, {} at node {}", problem.message, quoted(problem.loc.node));
      if (reason.empty()) {
        imported.graph = std::move(graph);
        symbols = std::move(free_symbols);
        diags.warn(Code::kModelWarning, fixed + ", and is taken for those of any size", file);
      } else {
        diags.warn(Code::kModelWarning, fmt::format("{}, and takes no others: it does not learn from {}", fixed, wanted->wanted), file,
                   {reason, R"(export it with a free batch: torch.onnx.export(..., dynamic_axes={"NAME": {0: "batch"}}), or dynamic_shapes where dynamo=True)",
                    fmt::format("or say what it is: [data] batch_size = {}", wanted->exported)});
      }
    }
    if (training and not training->updates.empty() and not diags.has_errors()) {
      import_training(import, *training, model.training_info(0), initializers, folder, file, options, imported, diags);
      Diags again;  // with nothing new in it
      if (differ_in_sizes(imported.graph, *imported.own_training.step)) imported.graph = import.run(model.graph(), initializers, roles, {}, again);
    }
    // PyTorch's exporters keep batch normalization whole: what is written out there is frozen on purpose.
    if (not diags.has_errors() and not own_training and given.producer_name() != "pytorch") restore_batch_norm(imported.graph, file, diags);
    if (not diags.has_errors()) embed_constants(given, imported.graph, folder, file);
    symbols.check_asked(diags);
    for (const auto& [symbol, value] : symbols.determined())
      diags.warn(Code::kModelWarning, fmt::format("the size {} can only be {}: the model's nodes take nothing else", symbol, value), file);
    if (model.training_info_size() > 0 and not own_training)
      diags.warn(Code::kModelWarning, "the training algorithm that the model carries (TrainingInfoProto) is kept and not used", file);
  } catch (const Error& error) { diags.append(error); }
  imported.model = std::move(given);
  for (const Diag& diag : diags.all())
    if (diag.severity != Severity::kError) imported.warnings.push_back(diag);
  return imported;
}

Imported import_model(ModelProto model, const std::string& file_name, const std::string& folder, const ImportOptions& options) {
  Diags diags;
  Imported imported = import_parts(std::move(model), file_name, folder, options, diags);
  if (diags.has_errors()) throw_problems(diags);
  return imported;
}

Imported import_model(const std::string& path, const ImportOptions& options) {
  return import_model(load_model(path), path.substr(path.rfind('/') + 1), folder_of(path), options);
}

}  // namespace hone::onnx
