// The oracle: runs a kernel, a node or a whole graph on the host, straight from its meaning. For tests, for checking gradients
// (Precision::kDouble) and for folding constants; no backend. Collective ops are the identity, `lower` ops must have been expanded.
#pragma once

#include <functional>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "base/tensor.h"
#include "ir/graph.h"
#include "ir/kernel/program.h"

namespace hone {

/// Runs the outer points begin .. end-1 of `kernel` over the memory of its buffers, as the compiled form would (ir/kernel/kernel.h).
void interpret(const Kernel& kernel, std::span<void* const> buffers, std::span<const std::int64_t> sizes, std::int64_t begin, std::int64_t end,
               Precision precision = Precision::kFloat);

/// What is fed, by input name: every input of role kInput, and whatever else is to differ from its Input::data. The dtype is the
/// declared one (f32 and f64 convert into each other).
using Feeds = std::map<std::string, Tensor, std::less<>>;

struct NamedTensor {
  std::string name;
  Tensor value;
};

struct GraphResults {
  std::vector<NamedTensor> outputs;  ///< in the graph's order
  std::vector<NamedTensor> states;   ///< what each alias leaves in its input, in the graph's order
  DimBindings bindings;              ///< of all symbols that feeds, data and equations determine

  /// The output, or the state after the step, named `name`; HONE_CHECK fails if there is none.
  const Tensor& operator[](std::string_view name) const;
};

/// What is done to the values on their way, in the graph and in the bodies of its nodes: how a test asks what rounding can do to the results.
struct NodeHooks {
  std::function<void(const Graph&, const Node&, std::vector<Tensor>& operands)> before;
  std::function<void(const Graph&, const Node&, std::vector<Tensor>& results)> after;
};

/// Runs graphs repeatedly: each node's kernel is compiled once. The graph must not change meanwhile.
class Interpreter {
 public:
  explicit Interpreter(const Graph& graph, Precision precision = Precision::kFloat) : graph_(graph), precision_(precision) {}

  /// Values have storage_type: in kDouble f32 results are f64. `bindings` are symbols that no feed determines. Throws kDataName
  /// (missing or unknown feed), kDataType, kDataShape (a feed or equation that contradicts), kDynamic (a symbol that is unbound).
  GraphResults run(const Feeds& feeds, DimBindings bindings = {}) { return run(feeds, std::move(bindings), nullptr); }
  GraphResults run(const Feeds& feeds, DimBindings bindings, const NodeHooks& hooks) { return run(feeds, std::move(bindings), &hooks); }

  /// The results of one node of any meaning but `lower`. An absent operand is a default Tensor; operands have storage_type.
  std::vector<Tensor> run_node(NodeId node, std::span<const Tensor> operands, const DimBindings& bindings);

 private:
  GraphResults run(const Feeds& feeds, DimBindings bindings, const NodeHooks* hooks);
  std::vector<Tensor> feed_inputs(const Feeds& feeds, DimBindings& bindings) const;
  void bind_sizes(std::span<const Tensor> inputs, DimBindings& bindings) const;
  void equate_sizes(DimBindings& bindings) const;
  std::vector<Tensor> run_kernel(const Node& node, NodeId id, std::span<const Tensor> operands, const DimBindings& bindings);
  std::vector<Tensor> run_region(const Node& node, NodeId id, std::span<const Tensor> operands, const DimBindings& bindings);
  std::vector<Tensor> run_body(NodeId id, std::size_t body, std::span<const Tensor> given, const DimBindings& bindings);
  std::vector<Tensor> run_host(const Node& node, std::span<const Tensor> operands, const DimBindings& bindings) const;

  const Graph& graph_;
  Precision precision_;
  std::map<NodeId, KernelProgram> programs_;
  std::map<std::pair<NodeId, std::size_t>, Interpreter> bodies_;
  const NodeHooks* hooks_ = nullptr;  ///< of the run that is going on
};

/// One run of `graph`.
GraphResults interpret(const Graph& graph, const Feeds& feeds, Precision precision = Precision::kFloat, DimBindings bindings = {});
/// One run of one node; see Interpreter::run_node.
std::vector<Tensor> interpret_node(const Graph& graph, NodeId node, std::span<const Tensor> operands, const DimBindings& bindings = {},
                                   Precision precision = Precision::kFloat);

}  // namespace hone
