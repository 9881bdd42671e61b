#include "ir/kernel/interpret.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "base/bind_symbols.h"
#include "base/check.h"
#include "base/text.h"
#include "ir/kernel/interpret_region.h"
#include "ir/op.h"

namespace hone {

namespace {

bool is_bound(const Dim& dim, const DimBindings& bindings) {
  return std::ranges::all_of(dim.symbols(), [&](const std::string& symbol) { return bindings.contains(symbol); });
}

std::string input_text(const Input& input) { return fmt::format("{} {}", to_string(input.role), quoted(input.name)); }

/// `tensor` in the memory format of `declared`.
Tensor stored(const Tensor& tensor, DType declared, Precision precision, const Input& input) {
  const DType wanted = storage_type(declared, precision);
  const bool plain_float = tensor.dtype() == DType::kF32 or tensor.dtype() == DType::kF64;
  const bool converts = tensor.dtype() == declared or (plain_float and (declared == DType::kF32 or declared == DType::kF64));
  if (not converts)
    throw Error(Code::kDataType, fmt::format("{} has element type {}, expected {}", input_text(input), to_string(tensor.dtype()), to_string(declared)));
  return tensor.cast(wanted);
}

void check_names(const Graph& graph, const Feeds& feeds) {
  std::vector<std::string> names;
  for (const Input& input : graph.inputs()) names.push_back(input.name);
  for (const auto& [name, tensor] : feeds) {
    if (std::ranges::find(names, name) != names.end()) continue;
    throw Error(Code::kDataName, fmt::format("there is no input {}; the inputs are {}", quoted(name), fmt::join(names, ", ")), {}, {did_you_mean(name, names)});
  }
}

/// A tensor whose bytes `memory` points at until someone else sees it. Every byte is 0xff, so that an element nobody stores is a NaN.
struct Unfilled {
  Tensor tensor;
  void* memory = nullptr;
};
Unfilled unfilled(DType dtype, std::vector<std::int64_t> shape) {
  Unfilled made;
  made.tensor = Tensor::make(dtype, std::move(shape), [&made](std::span<std::byte> bytes) {
    std::memset(bytes.data(), 0xff, bytes.size());
    made.memory = bytes.data();
  });
  return made;
}

/// The elements become what the node's symbols stand for.
void bind_elements(const Node& node, const Tensor& elements, DimBindings& bindings) {
  const std::vector<Dim>& symbols = node.attrs[kSizes];
  for (std::size_t i = 0; i < symbols.size(); ++i) bindings.insert_or_assign(symbols[i].text(), elements.int_at(static_cast<std::int64_t>(i)));
}

}  // namespace

void interpret(const Kernel& kernel, std::span<void* const> buffers, std::span<const std::int64_t> sizes, std::int64_t begin, std::int64_t end,
               Precision precision) {
  KernelProgram(kernel, precision).run(buffers, sizes, begin, end);
}

const Tensor& GraphResults::operator[](std::string_view name) const {
  for (const auto* list : {&outputs, &states})
    for (const NamedTensor& entry : *list)
      if (entry.name == name) return entry.value;
  internal_error(__FILE__, __LINE__, fmt::format("the graph has no output or state {}", quoted(name)));
}

GraphResults Interpreter::run(const Feeds& feeds, DimBindings bindings, const NodeHooks* hooks) {
  struct Until {
    const NodeHooks*& hooks;
    ~Until() { hooks = nullptr; }
  } const until_it_ends{hooks_ = hooks};
  std::vector<Tensor> values = feed_inputs(feeds, bindings);
  for (std::size_t i = 0; i < graph_.node_count(); ++i) {
    const Node& node = graph_.node(NodeId(i));
    std::vector<Tensor> operands;
    for (const ValueId operand : node.operands) operands.push_back(operand.valid() ? values[operand.index] : Tensor());
    if (hooks != nullptr) hooks->before(graph_, node, operands);
    std::vector<Tensor> results = run_node(NodeId(i), operands, bindings);
    if (hooks != nullptr) hooks->after(graph_, node, results);
    if (node.op->binds) {
      bind_elements(node, operands[0], bindings);
      equate_sizes(bindings);
    }
    for (std::size_t k = 0; k < results.size(); ++k) {
      bind_symbols(graph_.type(node.results[k]).shape, results[k].shape(), bindings, fmt::format("result {} of {}", k, node.op->name));
      values[node.results[k].index] = std::move(results[k]);
    }
  }
  GraphResults results;
  for (const Output& output : graph_.outputs()) results.outputs.push_back({output.name, values[output.value.index]});
  for (const Alias& alias : graph_.aliases()) results.states.push_back({graph_.input_of(alias.state)->name, values[alias.value.index]});
  results.bindings = std::move(bindings);
  return results;
}

std::vector<Tensor> Interpreter::feed_inputs(const Feeds& feeds, DimBindings& bindings) const {
  check_names(graph_, feeds);
  std::vector<Tensor> values(graph_.value_count()), inputs;
  for (const Input& input : graph_.inputs()) {
    const auto fed = feeds.find(input.name);
    if (fed == feeds.end() and not input.data)
      throw Error(Code::kDataName, fmt::format("{} is not fed{}", input_text(input), input.role == Role::kInput ? "" : " and has no data of its own"));
    inputs.push_back(stored(fed != feeds.end() ? fed->second : *input.data, graph_.type(input.value).dtype, precision_, input));
    values[input.value.index] = inputs.back();
  }
  bind_sizes(inputs, bindings);
  return values;
}

void Interpreter::bind_sizes(std::span<const Tensor> inputs, DimBindings& bindings) const {
  std::size_t known = 0;
  do {  // until a round binds nothing new: an extent with two unknown symbols waits for the other inputs
    known = bindings.size();
    for (std::size_t i = 0; i < inputs.size(); ++i)
      bind_symbols(graph_.type(graph_.inputs()[i].value).shape, inputs[i].shape(), bindings, input_text(graph_.inputs()[i]));
    equate_sizes(bindings);
  } while (bindings.size() != known);
}

/// Of two equal sizes the known one tells the other; two known ones must be equal.
void Interpreter::equate_sizes(DimBindings& bindings) const {
  for (const auto& [a, b] : graph_.equations()) {
    const auto equate = [&](const Dim& left, const Dim& right) {
      const std::int64_t value = right.evaluate(bindings);
      bind_symbols({left}, std::span(&value, 1), bindings, fmt::format("the size {}, which the model takes to be {},", right.text(), left.text()));
    };
    if (is_bound(b, bindings)) equate(a, b);
    else if (is_bound(a, bindings)) equate(b, a);
  }
}

std::vector<Tensor> Interpreter::run_node(NodeId id, std::span<const Tensor> operands, const DimBindings& bindings) {
  const Node& node = graph_.node(id);
  HONE_CHECK(operands.size() == node.operands.size(), fmt::format("{} interpreted with {} operands", node.op->name, operands.size()));
  HONE_CHECK(node.op->lower == nullptr, fmt::format("{} must be expanded into ordinary ops before it is interpreted", node.op->name));
  if (node.op->region != Region::kNone) return run_region(node, id, operands, bindings);
  if (node.op->collective or node.op->binds) return {operands.begin(), operands.begin() + static_cast<std::ptrdiff_t>(node.results.size())};
  return node.op->host != nullptr ? run_host(node, operands, bindings) : run_kernel(node, id, operands, bindings);
}

std::vector<Tensor> Interpreter::run_body(NodeId id, std::size_t body, std::span<const Tensor> given, const DimBindings& bindings) {
  const Graph& graph = *graph_.node(id).bodies[body];
  Interpreter& interpreter = bodies_.try_emplace({id, body}, graph, precision_).first->second;
  Feeds feeds;
  std::size_t next = 0;
  for (const Input& input : graph.inputs())
    if (input.role == Role::kInput) feeds.emplace(input.name, given[next++]);
  GraphResults made = interpreter.run(feeds, bindings, hooks_);
  std::vector<Tensor> results;
  for (NamedTensor& output : made.outputs) results.push_back(std::move(output.value));
  return results;
}

std::vector<Tensor> Interpreter::run_region(const Node& node, NodeId id, std::span<const Tensor> operands, const DimBindings& bindings) {
  std::vector<Type> types;
  for (const ValueId result : node.results) {
    const Type& type = graph_.type(result);
    types.push_back({storage_type(type.dtype, precision_), shape_of(evaluate(type.shape, bindings))});
  }
  const std::int64_t trips = node.attrs[kTrips].empty() ? 0 : node.attrs[kTrips][0].evaluate(bindings);
  return interpret_region(node, operands, trips, types, [&](std::size_t body, std::span<const Tensor> given) { return run_body(id, body, given, bindings); });
}

std::vector<Tensor> Interpreter::run_kernel(const Node& node, NodeId id, std::span<const Tensor> operands, const DimBindings& bindings) {
  auto found = programs_.find(id);
  if (found == programs_.end()) found = programs_.emplace(id, KernelProgram(kernel_of(graph_, id), precision_)).first;
  const KernelProgram& program = found->second;
  std::vector<void*> buffers;
  for (const Tensor& operand : operands) buffers.push_back(const_cast<std::byte*>(operand.bytes().data()));  // read-only buffers are not written: K7
  std::vector<Tensor> results;
  for (const ValueId result : node.results) {
    const Type& type = graph_.type(result);
    Unfilled made = unfilled(storage_type(type.dtype, precision_), evaluate(type.shape, bindings));
    buffers.push_back(made.memory);
    results.push_back(std::move(made.tensor));
  }
  std::vector<std::int64_t> sizes;
  for (const Dim& dim : size_arguments(program.kernel())) sizes.push_back(dim.evaluate(bindings));
  program.run(buffers, sizes, 0, program.outer_size(sizes));
  return results;
}

std::vector<Tensor> Interpreter::run_host(const Node& node, std::span<const Tensor> operands, const DimBindings& bindings) const {
  std::vector<HostTensor> given, made;
  for (const Tensor& operand : operands)
    given.push_back({.dtype = operand.dtype(), .shape = operand.shape(), .data = const_cast<std::byte*>(operand.bytes().data())});  // read only
  std::vector<Tensor> results;
  for (const ValueId id : node.results) {
    const Type& type = graph_.type(id);
    Unfilled result = unfilled(storage_type(type.dtype, precision_), evaluate(type.shape, bindings));
    made.push_back({.dtype = result.tensor.dtype(), .shape = result.tensor.shape(), .data = result.memory});
    results.push_back(std::move(result.tensor));
  }
  HostAttributes::Lists attributes;
  for (const auto& [name, dims] : attribute_lists(node.attrs)) attributes[name] = evaluate(dims, bindings);
  HostScratch scratch;
  node.op->host->call(HostAttributes(std::move(attributes)), given, made, scratch);
  return results;
}

GraphResults interpret(const Graph& graph, const Feeds& feeds, Precision precision, DimBindings bindings) {
  return Interpreter(graph, precision).run(feeds, std::move(bindings));
}

std::vector<Tensor> interpret_node(const Graph& graph, NodeId node, std::span<const Tensor> operands, const DimBindings& bindings, Precision precision) {
  return Interpreter(graph, precision).run_node(node, operands, bindings);
}

}  // namespace hone
