// One op, one entry, one meaning. An op is one `constinit const OpDef` in ir/ops/*.cc and its name in the list ir/ops/ops.h.
// From the meaning follow the interpreter, the kernels of every backend, and what fusion may merge.
#pragma once

#include "host/functions.h"
#include "ir/builder.h"
#include "ir/graph.h"
#include "ir/kernel/compute.h"

namespace hone {

/// What an `infer` function sees: operand types, attributes and known contents; it returns the result types.
class Infer {
 public:
  Infer(Graph& graph, const OpDef& op, std::span<const ValueId> operands, const Attrs& attributes, const Loc& loc, std::span<const std::unique_ptr<Graph>> bodies = {})
      : attrs(attributes), graph_(graph), op_(op), operands_(operands), loc_(loc), bodies_(bodies) {}

  const Attrs& attrs;
  const OpDef& op() const { return op_; }
  std::size_t count() const { return operands_.size(); }
  bool has(std::size_t i) const { return i < operands_.size() and operands_[i].valid(); }
  const Type& type(std::size_t i) const { return graph_.type(operands_[i]); }
  const Shape& shape(std::size_t i) const { return type(i).shape; }
  DType dtype(std::size_t i) const { return type(i).dtype; }
  std::size_t rank(std::size_t i) const { return shape(i).size(); }
  /// Known integer contents of operand i, row-major; nullptr if unknown.
  const std::vector<Dim>* known(std::size_t i) const;
  /// Says what the contents of result i are.
  void know(std::size_t result, std::vector<Dim> contents);
  /// The body graphs of a region op.
  std::size_t body_count() const { return bodies_.size(); }
  const Graph& body(std::size_t i) const { return *bodies_[i]; }
  /// Throws unless `condition`; the message gets op, loc and operand types added.
  void require(bool condition, Code code, std::string_view message) const;
  [[noreturn]] void fail(Code code, std::string_view message) const;
  /// Two sizes that must be equal: returns the simpler; throws when both are numbers and differ; else notes the equation.
  Dim unify(Dim a, Dim b, std::string_view what);
  /// One of `a` at most `b`: throws when both are numbers and it is more; else what must be is noted as an equation, where it does not follow.
  void at_most(Dim a, Dim b, std::string_view what);
  /// numpy broadcasting of two shapes.
  Shape broadcast(const Shape& a, const Shape& b);
  const std::vector<std::optional<std::vector<Dim>>>& known_results() const { return known_results_; }

 private:
  Graph& graph_;
  const OpDef& op_;
  std::span<const ValueId> operands_;
  const Loc& loc_;
  std::span<const std::unique_ptr<Graph>> bodies_;
  std::vector<std::optional<std::vector<Dim>>> known_results_;
  friend class Builder;
};

/// What a `grad` function sees. Gradients are ordinary graph code.
class Grad {
 public:
  /// `wanted`: by operand, does anything ask for its gradient?
  Grad(Builder& builder, const Node& node, std::span<const Val> dys, std::vector<bool> wanted)
      : attrs(node.attrs), builder_(builder), node_(node), dys_(dys), wanted_(std::move(wanted)), flows_(node.operands.size()) {}

  const Attrs& attrs;
  Builder& builder() { return builder_; }
  std::size_t count() const { return node_.operands.size(); }
  bool has(std::size_t i) const { return i < node_.operands.size() and node_.operands[i].valid(); }
  Val x(std::size_t i) { return builder_.val(node_.operands[i]); }
  Val y(std::size_t i = 0) { return builder_.val(node_.results[i]); }
  /// Formulas may leave out what nobody wants, where it is dear.
  bool wants(std::size_t i) const { return wanted_[i]; }
  bool has_dy(std::size_t i) const { return dys_[i].valid(); }
  const Graph& body(std::size_t i) const { return *node_.bodies[i]; }
  /// The gradient of result i; a zero tensor if nothing flows into it.
  Val dy(std::size_t i = 0);
  /// Adds to the gradient of operand i; sums over broadcast axes to the operand's shape.
  void flow(std::size_t i, Val gradient);
  const std::vector<std::vector<Val>>& flows() const { return flows_; }

 private:
  Builder& builder_;
  const Node& node_;
  std::span<const Val> dys_;
  std::vector<bool> wanted_;
  std::vector<std::vector<Val>> flows_;
};

/// What a `lower` function sees; it returns the results in ordinary ops.
struct Lower {
  Builder& builder;
  const Node& node;
  const Attrs& attrs;
  bool has(std::size_t i) const { return i < node.operands.size() and operands[i].valid(); }
  Val x(std::size_t i) const { return operands[i]; }
  std::vector<Val> operands;
};

using InferFn = std::vector<Type> (*)(Infer&);
using GradFn = void (*)(Grad&);
using ScalarFn = Scalar (*)(const Args&);
using ComputeFn = void (*)(Compute&);
using LowerFn = std::vector<Val> (*)(const Lower&);

/// Either a formula or the sentence why there is none.
struct Gradient {
  constexpr Gradient() = default;
  constexpr Gradient(GradFn function) : formula(function) {}  // NOLINT
  template <typename F>
  constexpr Gradient(F function) requires std::is_convertible_v<F, GradFn> : formula(function) {}  // NOLINT: a lambda is a formula
  GradFn formula = nullptr;
  std::string_view reason;
};
consteval Gradient no_gradient(std::string_view reason) {
  Gradient gradient;
  gradient.reason = reason;
  return gradient;
}

/// What a region op does with its bodies.
enum class Region : std::uint8_t { kNone, kScan, kWhile, kBranch, kCall };

struct OpDef {
  std::string_view name;
  std::string_view doc;
  FixedList<std::string_view, 12> inputs;          ///< "x"; "x?" optional; "x..." the last, any number
  FixedList<std::string_view, 6> results = {"y"};
  FixedList<AttrRef, 12> attrs = {};
  InferFn infer = nullptr;
  Gradient grad = {};
  // exactly one meaning:
  ScalarFn scalar = nullptr;    ///< elementwise with broadcasting: one expression of the operands
  ComputeFn compute = nullptr;  ///< index formulas
  LowerFn lower = nullptr;      ///< a rewrite into other ops
  const HostFunction* host = nullptr;  ///< a plain C++ function over whole tensors
  Region region = Region::kNone;  ///< control flow over body graphs: ir/ops/regions.cc says what it does with them
  bool binds = false;           ///< the identity that makes elements known as symbols: read_sizes
  bool collective = false;      ///< exchanged between replicas; the identity for one replica
  std::string_view onnx = {};   ///< the ONNX operator, where the mapping is one to one
  bool keep = false;            ///< a `lower` op that stays whole through autodiff (it has a grad of its own)
  bool whole = false;           ///< a `lower` op that stays whole until rows are chosen: made for targets that have one for it (passes/fuse_attention.h)

  /// Builds a node: `matmul(a, b)`, `transpose(x, {kPerm = perm})`. Returns the first result.
  template <typename... Vals>
    requires(std::is_same_v<Vals, Val> and ...)
  Val operator()(Val first, Vals... rest) const { return build({first, rest...}); }
  Val operator()(Val x, Attrs attributes) const { return build({x}, std::move(attributes)); }
  Val operator()(Val a, Val b, Attrs attributes) const { return build({a, b}, std::move(attributes)); }
  Val operator()(Val a, Val b, Val c, Attrs attributes) const { return build({a, b, c}, std::move(attributes)); }
  /// The same with any operands (at least one valid); the first result.
  Val build(std::vector<Val> operands, Attrs attributes = {}) const;
  /// All results.
  std::vector<Val> build_all(std::vector<Val> operands, Attrs attributes = {}) const;

  bool is_variadic() const { return not inputs.empty() and inputs[inputs.size() - 1].ends_with("..."); }
  std::size_t required_operands() const;
  friend bool operator==(const OpDef& a, const OpDef& b) { return &a == &b; }
};

/// All ops, in the order of the list of names.
std::span<const OpDef* const> all_ops();
/// The op named `name`, or nullptr.
const OpDef* find_op(std::string_view name);



}  // namespace hone
