#include "frontend/onnx/graph_import.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"
#include "frontend/onnx/body_task.h"
#include "frontend/onnx/values.h"
#include "ir/op.h"

namespace hone::onnx {

namespace {

/// A problem that one of our ops found begins with its name; the user knows the node by the operator's: "matmul: ..." becomes "MatMul: ...".
std::string in_onnx_words(const std::string& message, const std::string& op_type) {
  const std::size_t colon = message.find(": ");
  const bool ours = colon != std::string::npos and find_op(std::string_view(message).substr(0, colon)) != nullptr;
  return ours ? printable(op_type) + message.substr(colon) : message;
}

/// `outer`/`step`/, shortened in the middle where bodies lie deep.
std::string path_of(const Loc& node, const std::string& step) {
  constexpr std::size_t kLongest = 240, kKept = 100;
  const std::string path = node.node + (step.empty() ? "/" : "/" + step + "/");
  return path.size() <= kLongest ? path : path.substr(0, kKept) + "..." + path.substr(path.size() - kKept);
}

}  // namespace

const PreparedBody& ImportContext::prepared(const GraphProto& graph) {
  const auto found = bodies.find(&graph);
  return found != bodies.end() ? found->second : bodies.emplace(&graph, prepare(Body(graph), Outside::kOuterNames, file)).first->second;
}

const PreparedBody& ImportContext::prepared(const FunctionProto& function) {
  const auto found = bodies.find(&function);
  return found != bodies.end() ? found->second : bodies.emplace(&function, prepare(Body(function), Outside::kNothing, file)).first->second;
}

GraphImport::GraphImport(ImportContext& context, Diags& diags) : context_(context), diags_(diags), unknown_(context.functions) {
  const std::string& name = context.graph.name();
  root_.graph().name = name.empty() ? "main" : name;
}

Graph GraphImport::run(Symbols& symbols) {
  Scope scope{.body = &context_.main, .region = &root_, .opset = context_.opset};
  scope.values = add_inputs(root_.builder(), context_.graph, context_.initializers, context_.roles, symbols, context_.main.locations, context_.left_out.empty() ? nullptr : &context_.main.read, diags_);
  push(std::make_unique<BodyTask>(*this, std::move(scope)));
  const std::vector<Item> results = run_tasks();
  unknown_.report(diags_);
  add_outputs(results, symbols);
  return std::move(root_.graph());
}

std::vector<Item> GraphImport::run_tasks() {
  std::vector<Item> results;
  while (not tasks_.empty()) {
    auto done = tasks_.back()->resume(std::move(results));
    results.clear();
    if (not done) continue;
    results = *std::move(done);
    tasks_.pop_back();
  }
  return results;
}

void GraphImport::count(std::size_t nodes, const Loc& loc) {
  written_ += nodes;
  if (written_ <= kMostWrittenNodes) return;
  throw Error(Code::kTooLarge, fmt::format("the model's functions, branches, loops and gradients become more than {} nodes when they are written out", kMostWrittenNodes),
              loc, {"functions that call functions several times each grow exponentially"});
}

void GraphImport::report(const Error& error, const NodeProto& proto, const Loc& loc) {
  if (written_ > kMostWrittenNodes) throw error;
  if (not failed_.insert(&proto).second) return;
  for (Diag diag : error.diags()) {
    if (diag.loc.empty()) diag.loc = loc;
    diag.message = in_onnx_words(diag.message, proto.op_type());
    found_->add(std::move(diag));
  }
}

GraphImport::Trial::Trial(GraphImport& import) : import_(import), outer_(import.found_), failed_before_(import.failed_) { import.found_ = &problems_; }

void GraphImport::Trial::end(Keep keep) {
  import_.found_ = outer_;
  if (keep == Keep::kNothing) import_.failed_ = failed_before_;
  else
    for (const Diag& diag : problems_.all()) outer_->add(diag);
}

void GraphImport::push_body(const BodyAttribute& body, const Scope& at, Region& region, std::vector<Item> inputs, const ImportNode& node, const std::string& step) {
  if (tasks_.size() >= kMostTasks) node.fail(Code::kTooLarge, fmt::format("bodies and functions lie more than {} deep in each other", kMostTasks));
  const PreparedBody& prepared = context_.prepared(*body.graph);
  const Scope& names = *body.written_in;
  Scope scope{.body = &prepared, .region = &region, .outer = &names, .call = names.call, .opset = names.opset, .path = path_of(node.loc(), step), .layer = at.layer};
  if (scope.layer.empty()) scope.layer = node.loc().layer;
  if (reported_.insert(&prepared).second)
    for (Diag diag : prepared.problems.all()) {
      diag.loc.node = scope.path + diag.loc.node;
      diags_.add(std::move(diag));
    }
  add_initializers(*body.graph, scope);
  std::size_t next = 0;
  for (const std::string_view name : prepared.body.inputs) {
    if (scope.values.contains(name) and inputs.size() < prepared.body.inputs.size()) continue;  // an initializer, listed as an input, too
    if (next < inputs.size()) scope.values.insert_or_assign(name, std::move(inputs[next++]));
  }
  push(std::make_unique<BodyTask>(*this, std::move(scope)));
}

void GraphImport::push_call(const FunctionProto& function, const Scope& scope, const ImportNode& node, const NodeProto& proto, const std::vector<Item>& operands) {
  if (is_open(function))
    node.fail(Code::kBadGraph, fmt::format("the function {} calls itself, directly or through others", name_of(function)), {"functions of ONNX models cannot be recursive"});
  if (tasks_.size() >= kMostTasks) node.fail(Code::kTooLarge, fmt::format("bodies and functions lie more than {} deep in each other", kMostTasks));
  const PreparedBody& prepared = context_.prepared(function);
  if (reported_.insert(&prepared).second)
    for (Diag diag : prepared.problems.all()) {
      diag.loc.node = fmt::format("{} of function {}", diag.loc.node, name_of(function));
      diags_.add(std::move(diag));
    }
  Scope inside{.body = &prepared, .region = scope.region, .opset = opset_of(function, scope.opset, node.loc()), .path = path_of(node.loc(), ""), .layer = node.loc().layer};
  if (inside.layer.empty()) inside.layer = node.loc().node;
  for (int i = 0; i < function.input_size(); ++i) {
    const auto at = static_cast<std::size_t>(i);
    inside.values.insert_or_assign(function.input(i), at < operands.size() ? operands[at] : Item::left_out());
  }
  push(std::make_unique<BodyTask>(*this, std::move(inside), call_of(function, node, proto, scope)));
}

/// Initializers inside of bodies are inputs of the model's graph, as all others: written once, read from wherever they are in scope.
void GraphImport::add_initializers(const GraphProto& graph, Scope& scope) {
  for (const TensorProto& proto : graph.initializer()) {
    const auto [made, is_new] = constants_.try_emplace(&proto);
    if (is_new) {
      try {
        made->second = add_inner_initializer(root_.builder(), proto, context_.folder, context_.main.locations.file());
      } catch (const Error& error) {
        for (const Diag& diag : error.diags()) diags_.add(diag);
      }
    }
    scope.values.insert_or_assign(proto.name(), made->second);
  }
}

void GraphImport::add_outputs(const std::vector<Item>& results, Symbols& symbols) {
  const auto& outputs = context_.graph.output();
  std::size_t next = 0;
  for (const ValueInfoProto& output : outputs) {
    const std::string& name = output.name();
    if (context_.left_out.contains(name)) continue;
    const Item& item = results[next++];
    if (item.failed()) failed_outputs_.push_back(name);
    if (item.is_tensor()) add_output(name, item.tensor, output.type(), symbols);
    for (std::size_t k = 0; k < item.elements.size(); ++k) add_output(fmt::format("{}.{}", name, k), item.elements[k], {}, symbols);
    if (item.kind == Item::Kind::kAbsent or item.kind == Item::Kind::kLeftOut)
      diags_.error(Code::kType, fmt::format("output {} is an optional that holds nothing", quoted(name)), context_.main.locations.file(),
                   {"take it out of the model's outputs"});
  }
}

/// Exporters often declare an output's extents wrongly; what matters is what the nodes give.
void GraphImport::add_output(const std::string& name, Val value, const TypeProto& type, Symbols& symbols) {
  if (not outputs_.insert(name).second)
    return diags_.error(Code::kBadGraph, fmt::format("there are two outputs named {}", quoted(name)), context_.main.locations.file(),
                        {"results are fetched by name: give each its own"});
  root_.builder().output(name, value);
  const Type& actual = value.type();
  const auto& declared = type.has_optional_type() ? type.optional_type().elem_type().tensor_type() : type.tensor_type();
  if (not declared.has_shape()) return;
  bool differs = dtype_of_onnx(declared.elem_type()) != actual.dtype or declared.shape().dim_size() != static_cast<int>(actual.shape.size());
  for (int i = 0; not differs and i < declared.shape().dim_size(); ++i) {
    const auto& extent = declared.shape().dim(i);
    const Dim& given = actual.shape[static_cast<std::size_t>(i)];
    differs = extent.has_dim_value() and extent.dim_value() > 0 and given.is_constant() and not given.is_constant(extent.dim_value());
  }
  if (differs)
    diags_.warn(Code::kModelWarning,
                fmt::format("output {} is {}, and the file declares it as {}[{}]", quoted(name), to_string(actual), onnx_type_name(declared.elem_type()),
                            to_string(symbols.declared(name, declared.shape()))),
                context_.main.locations.file());
}

}  // namespace hone::onnx
