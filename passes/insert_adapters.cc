// Low-rank adapters become part of a model.
#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <type_traits>

#include "base/philox.h"
#include "ir/rewriter.h"
#include "passes/adapters.h"
#include "passes/matrix_views.h"

namespace hone {

namespace {

constexpr std::uint64_t kAdapterStream = 0x4c6f524100000000;  // apart from those of fresh weights

/// PyTorch's kaiming_uniform_(a = sqrt(5)) of [rank, inputs..]: the gain sqrt(2 / (1 + 5)) times sqrt(3 / inputs) to either side.
Tensor drawn(const std::vector<std::int64_t>& shape, DType dtype, std::uint64_t seed, std::uint64_t stream) {
  const double limit = 1 / std::sqrt(static_cast<double>(checked_element_count(shape) / shape[0]));
  const auto fill = [&](auto* values, std::size_t count) {
    using Element = std::remove_pointer_t<decltype(values)>;
    for (std::size_t i = 0; i < count; ++i) values[i] = static_cast<Element>((2 * philox_uniform(seed, stream, i).first - 1) * limit);
  };
  return Tensor::make(dtype, shape, [&](std::span<std::byte> bytes) {
    if (dtype == DType::kF64) fill(reinterpret_cast<double*>(bytes.data()), bytes.size() / sizeof(double));
    else fill(reinterpret_cast<float*>(bytes.data()), bytes.size() / sizeof(float));
  });
}

/// Adapters of f16 and bf16 matrices are f32: a step is smaller than what those types tell apart.
DType dtype_of_adapter(DType matrix) { return matrix == DType::kF64 ? DType::kF64 : DType::kF32; }

void add_factors(Graph& graph, const std::vector<Adapter>& adapters, const Recipe& recipe) {
  Builder builder(graph);
  for (std::size_t i = 0; i < adapters.size(); ++i) {
    const Type type = graph.type(graph.find_input(adapters[i].weight)->value);
    const DType dtype = dtype_of_adapter(type.dtype);
    const std::vector<std::int64_t> shape = constant_shape(type.shape);
    const bool outputs_first = adapters[i].outputs_first or adapters[i].of_convolution;
    std::vector<std::int64_t> of_a = {recipe.lora.rank}, of_b = {shape[outputs_first ? 0 : 1], recipe.lora.rank};
    if (adapters[i].of_convolution) of_a.insert(of_a.end(), shape.begin() + 1, shape.end()), of_b.resize(shape.size(), 1);
    else of_a.push_back(shape[outputs_first ? 1 : 0]);
    builder.input(Role::kWeight, adapters[i].a, {dtype, shape_of(of_a)}, drawn(of_a, dtype, static_cast<std::uint64_t>(recipe.train.seed), kAdapterStream + i));
    builder.input(Role::kWeight, adapters[i].b, {dtype, shape_of(of_b)}, Tensor::zeros(dtype, of_b));
  }
}

/// The factors of one adapter in a graph that is being built: what is added to the matrix is B A * scale if its outputs come first, else A' B' * scale.
struct Factors {
  Val a, b;
  bool outputs_first = false;
  double scale = 1;

  /// x M, where M is what is added to the matrix, or its transpose.
  Val from_left(Val x, bool x_transposed, bool transposed) const {
    const bool b_first = outputs_first != transposed;  // M = B A, else A' B'
    const Val inner = op::matmul(cast(x, a.dtype()), b_first ? b : a, {kTransA = x_transposed, kTransB = not b_first});
    return op::matmul(inner * scale, b_first ? a : b, {kTransB = not b_first});
  }
  /// M x.
  Val from_right(Val x, bool x_transposed, bool transposed) const {
    const bool b_first = outputs_first != transposed;
    const Val inner = op::matmul(b_first ? a : b, cast(x, a.dtype()), {kTransA = not b_first, kTransB = x_transposed});
    return op::matmul(b_first ? b : a, inner * scale, {kTransA = not b_first});
  }
  /// Rows of M.
  Val rows(Val index, bool transposed) const {
    const bool b_first = outputs_first != transposed;
    const Val found = op::gather(b_first ? b : transpose_last(a), index, {kAxis = 0});
    return op::matmul(found * scale, b_first ? a : b, {kTransB = not b_first});
  }
  /// x * M, where M is what is added to a convolution's weight.
  Val from_convolution(Val x, const Attrs& attrs) const {
    const std::size_t axes = attrs[kStrides].size();
    Attrs at_a = attrs, at_b = attrs;
    at_b.set(kStrides = Ints(axes, 1));
    at_b.set(kDilations = Ints(axes, 1));
    at_b.set(kPadsBegin = Shape(axes, Dim(0)));
    at_b.set(kPadsEnd = Shape(axes, Dim(0)));
    return op::conv(op::conv(cast(x, a.dtype()), a, std::move(at_a)) * scale, b, std::move(at_b));
  }
  /// What is added to a convolution's weight, itself.
  Val window(const Shape& shape) const {
    const Dim rank = a.shape()[0], rest = element_count(a.shape()).value() / rank.value();
    return reshape(op::matmul(reshape(b, {b.shape()[0], rank}) * scale, reshape(a, {rank, rest})), shape);
  }
  /// M itself.
  Val whole(bool transposed) const {
    const bool b_first = outputs_first != transposed;
    return op::matmul(b_first ? b * scale : a * scale, b_first ? a : b, {kTransA = not b_first, kTransB = not b_first});
  }
};

class Inserter {
 public:
  Inserter(const Graph& graph, const std::vector<Adapter>& adapters) : views_(graph) {
    for (const Adapter& adapter : adapters) adapters_.emplace(graph.find_input(adapter.weight)->value.index, Inputs{&adapter, graph.find_input(adapter.a)->value, graph.find_input(adapter.b)->value});
  }

  bool visit(Rewriter& rewriter, NodeId id) {
    const Node& node = rewriter.node(id);
    if (*node.op == op::conv and adapters_.contains(node.operands[1].index)) return visit_convolution(rewriter, node);
    const bool passes_on = view_of(node.results[0]).has_value();
    std::size_t adapted = node.operands.size();
    for (std::size_t i = node.operands.size(); i-- > 0;)
      if (view_of(node.operands[i])) adapted = i;
    if (passes_on or adapted == node.operands.size()) return false;
    if (not visit_product(rewriter, node) and not visit_lookup(rewriter, node)) visit_other(rewriter, node);
    return true;
  }

 private:
  struct Inputs {
    const Adapter* adapter;
    ValueId a, b;
  };

  /// The value as a view of an adapter's matrix.
  std::optional<MatrixView> view_of(ValueId value) const {
    const auto view = views_.find(value);
    return view and adapters_.contains(view->weight.index) ? view : std::nullopt;
  }
  Factors factors(Rewriter& rewriter, const MatrixView& view) const {
    const Inputs& inputs = adapters_.at(view.weight.index);
    return {rewriter.mapped(inputs.a), rewriter.mapped(inputs.b), inputs.adapter->outputs_first, inputs.adapter->scale};
  }
  /// What the adapter adds stands behind the node's own result, and comes from it.
  template <typename Added>
  void add(Rewriter& rewriter, const Node& node, Val y, const Added& added) const {
    const Builder::Scope scope(rewriter.builder(), derived_from(node.loc, "adapter"), node.part);
    rewriter.replace(node.results[0], y + cast(added(), y.dtype()));
  }
  /// The node's own result.
  Val copy(Rewriter& rewriter, const Node& node, std::span<const Val> operands) const {
    const Builder::Scope scope(rewriter.builder(), node.loc, node.part);
    return rewriter.builder().add(*node.op, operands, node.attrs)[0];
  }
  /// The operand; a view with its adapter added, which is made once.
  Val operand(Rewriter& rewriter, const Node& node, std::size_t i) {
    const auto view = view_of(node.operands[i]);
    if (not view) return rewriter.mapped(node.operands[i]);
    const auto [found, is_new] = wholes_.try_emplace(node.operands[i].index);
    if (not is_new) return found->second;
    const Builder::Scope scope(rewriter.builder(), derived_from(node.loc, "adapter"), node.part);
    const Val matrix = rewriter.mapped(node.operands[i]);
    return found->second = matrix + cast(factors(rewriter, *view).whole(view->transposed), matrix.dtype());
  }

  bool visit_product(Rewriter& rewriter, const Node& node) {
    if (*node.op != op::matmul) return false;
    const auto left = view_of(node.operands[0]), right = view_of(node.operands[1]);
    const Val a = right ? operand(rewriter, node, 0) : rewriter.operand(node, 0), b = rewriter.operand(node, 1);
    add(rewriter, node, copy(rewriter, node, std::array{a, b}), [&] {
      return right ? factors(rewriter, *right).from_left(a, node.attrs[kTransA], is_transposed(node, 1, *right))
                   : factors(rewriter, *left).from_right(b, node.attrs[kTransB], is_transposed(node, 0, *left));
    });
    return true;
  }

  bool visit_convolution(Rewriter& rewriter, const Node& node) {
    const Val x = rewriter.operand(node, 0), weight = rewriter.operand(node, 1);
    add(rewriter, node, copy(rewriter, node, std::array{x, weight}), [&] { return factors(rewriter, {.weight = node.operands[1]}).from_convolution(x, node.attrs); });
    return true;
  }

  bool visit_lookup(Rewriter& rewriter, const Node& node) {
    if (*node.op != op::gather or node.attrs[kAxis] != 0 or rewriter.old().type(node.operands[1]).shape.empty()) return false;
    const MatrixView view = *view_of(node.operands[0]);
    const Val table = rewriter.operand(node, 0), index = rewriter.operand(node, 1);
    add(rewriter, node, copy(rewriter, node, std::array{table, index}), [&] { return factors(rewriter, view).rows(index, view.transposed); });
    return true;
  }

  void visit_other(Rewriter& rewriter, const Node& node) {
    std::vector<Val> operands;
    for (std::size_t i = 0; i < node.operands.size(); ++i) operands.push_back(operand(rewriter, node, i));
    std::vector<std::unique_ptr<Graph>> bodies;
    for (const auto& body : node.bodies) bodies.push_back(std::make_unique<Graph>(body->clone()));
    const Builder::Scope scope(rewriter.builder(), node.loc, node.part);
    const std::vector<Val> made = rewriter.builder().add(*node.op, operands, node.attrs, std::move(bodies));
    for (std::size_t i = 0; i < made.size(); ++i) rewriter.replace(node.results[i], made[i]);
  }

  MatrixViews views_;
  std::map<std::uint32_t, Inputs> adapters_;  // by the matrix's value
  std::map<std::uint32_t, Val> wholes_;       // by the view's value
};

}  // namespace

Adapted with_adapters(const Graph& imported, const Recipe& recipe) {
  Adapted adapted{.graph = imported.clone(), .recipe = recipe};
  if (recipe.lora.targets.empty()) return adapted;
  adapted.adapters = choose_adapters(imported, recipe);
  add_factors(adapted.graph, adapted.adapters, recipe);
  Inserter inserter(adapted.graph, adapted.adapters);
  (void)Rewriter::rewrite(adapted.graph, [&](Rewriter& rewriter, NodeId id) { return inserter.visit(rewriter, id); });
  for (const Adapter& adapter : adapted.adapters)
    for (const std::string& name : {adapter.a, adapter.b}) adapted.recipe.model.train_only.push_back(name);
  return adapted;
}

Graph build_merged_weights(const Adapted& adapted) {
  Graph graph;
  graph.name = "merged_weights";
  Builder builder(graph);
  const auto copied = [&](const std::string& name) {
    const Input& input = *adapted.graph.find_input(name);
    return builder.input(Role::kWeight, name, adapted.graph.type(input.value), input.data);
  };
  for (const Adapter& adapter : adapted.adapters) {
    const Builder::Scope scope(builder, Loc{.derived = "adapter of " + adapter.weight}, Part::kForward);
    const auto narrowed = std::find_if(adapted.narrowed.begin(), adapted.narrowed.end(), [&](const NarrowedWeight& each) { return each.name == adapter.weight; });
    (void)copied(adapter.weight);
    if (narrowed != adapted.narrowed.end() and not narrowed->scales.empty()) (void)copied(narrowed->scales);
    const Val weight = widened_weight(builder, adapter.weight, adapted.narrowed);
    const Factors factors{copied(adapter.a), copied(adapter.b), adapter.outputs_first, adapter.scale};
    builder.output(adapter.weight, weight + cast(adapter.of_convolution ? factors.window(weight.shape()) : factors.whole(false), weight.dtype()));
  }
  return graph;
}

}  // namespace hone
