// Builder appends nodes to a graph; Val is a value together with its builder, so that formulas read as formulas:
//   dy * (1.0f - square(y))
#pragma once

#include "ir/graph.h"

namespace hone {

class Builder;

/// A value being built with. Small, copied freely; lives no longer than its Builder.
class Val {
 public:
  Val() = default;
  Val(Builder& builder, ValueId id) : builder_(&builder), id_(id) {}

  bool valid() const { return id_.valid(); }
  ValueId id() const { return id_; }
  Builder& builder() const { return *builder_; }
  const Type& type() const;
  const Shape& shape() const { return type().shape; }
  DType dtype() const { return type().dtype; }
  std::size_t rank() const { return shape().size(); }

 private:
  Builder* builder_ = nullptr;
  ValueId id_;
};

class Builder {
 public:
  explicit Builder(Graph& graph) : graph_(graph) {}
  Builder(const Builder&) = delete;
  Builder& operator=(const Builder&) = delete;

  const Graph& graph() const { return graph_; }

  Val input(Role role, std::string name, Type type, std::optional<Tensor> data = std::nullopt);
  /// A constant input; equal one-element constants are one.
  Val constant(Tensor tensor, std::string name = {});
  Val scalar(double value, DType dtype = DType::kF32);
  /// A constant vector of int64.
  Val ints(const Ints& values);
  void output(std::string name, Val value);
  /// After the step, input `state` holds `value` (same type).
  void alias(Val state, Val value);
  void set_bounds(ValueId input, Dim low, Dim high);
  void set_role(ValueId input, Role role);
  /// From now on alias number `i` (Graph::aliases) gives `value`.
  void redirect_alias(std::size_t i, Val value);
  /// Lets constant() find a one-element constant that is there already.
  void remember_scalar(ValueId input);
  void set_input_data(ValueId input, Tensor data);
  void set_name(Val value, std::string name);
  void clear_outputs();
  void clear_aliases();
  void equate(Dim a, Dim b);

  /// Appends one node: checks operand count and attributes, infers the result types (throws Error at `loc` when they do not fit).
  /// `bodies` are those of a region op.
  std::vector<Val> add(const OpDef& op, std::span<const Val> operands, Attrs attrs = {}, std::vector<std::unique_ptr<Graph>> bodies = {});
  /// The elements of `value` as sizes. Where they are not known yet they become *value symbols* from here on (a node read_sizes): numbers that are read when running.
  /// `value`: integers, of a constant shape of at most 64 elements. Symbols are called after `name`, which no other value of the model may have.
  enum class Sign : bool { kAny, kNotNegative };
  std::vector<Dim> materialize(Val value, std::string_view name, Sign sign = Sign::kAny);
  Val val(ValueId id) { return {*this, id}; }

  /// Where the nodes added from now on come from, and what part of the step they are. Restored by the guard's end.
  class Scope {
   public:
    Scope(Builder& builder, Loc loc, Part part) : builder_(builder), loc_(builder.loc_), part_(builder.part_) {
      builder_.loc_ = std::move(loc);
      builder_.part_ = part;
    }
    ~Scope() {
      builder_.loc_ = std::move(loc_);
      builder_.part_ = part_;
    }
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;

   private:
    Builder& builder_;
    Loc loc_;
    Part part_;
  };
  const Loc& loc() const { return loc_; }
  Part part() const { return part_; }

 private:
  Graph& graph_;
  Loc loc_;
  Part part_ = Part::kForward;
  std::map<std::string, ValueId> scalars_;
};

inline const Type& Val::type() const { return builder_->graph().type(id_); }

/// Appends the nodes of `body`, whose inputs of role kInput stand for `inputs` in their order; returns its outputs. Inputs with data become constants.
std::vector<Val> append_graph(Builder& builder, const Graph& body, std::span<const Val> inputs);

// Formulas. The number takes the other operand's element type.
Val operator+(Val a, Val b);
Val operator-(Val a, Val b);
Val operator*(Val a, Val b);
Val operator/(Val a, Val b);
Val operator-(Val a);
Val operator+(Val a, double b);
Val operator-(Val a, double b);
Val operator*(Val a, double b);
Val operator/(Val a, double b);
Val operator+(double a, Val b);
Val operator-(double a, Val b);
Val operator*(double a, Val b);
Val operator/(double a, Val b);
Val square(Val x);
/// Sums `x` over its axes (kept out of the result when keep_dims is false).
Val sum(Val x, Ints axes, bool keep_dims);
/// Sum of all elements, a scalar.
Val sum_all(Val x);
/// x summed over the axes along which `shape` was broadcast to x's shape; its result has `shape`.
Val sum_to(Val x, const Shape& shape);
Val reshape(Val x, Shape shape);
Val broadcast_to(Val x, Shape shape);
Val cast(Val x, DType dtype);
Val transpose(Val x, Ints perm);
/// The last two axes swapped.
Val transpose_last(Val x);
/// x[first, first + step, ...] along `axis`: `count` of them.
Val part_of(Val x, std::size_t axis, Dim first, Dim count, std::int64_t step = 1);
/// A tensor of `shape` filled with `value`.
Val full(Builder& builder, double value, DType dtype, Shape shape);
/// A size as a value: rank 0 of `dtype`.
Val size_value(Builder& builder, Dim size, DType dtype);

}  // namespace hone
