#include "tests/random_graphs/draw.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "base/diag.h"
#include "passes/passes.h"
#include "tests/ops/op_cases.h"
#include "tests/random_graphs/random_choice.h"

namespace hone::test {

const DimBindings& drawn_sizes() { return case_sizes(); }

namespace {

constexpr double kTame = 1e3;  // larger results are not drawn on: a few more ops and they overflow
constexpr std::int64_t kMostElements = 1 << 17;  // nor are results of more: a graph is interpreted some hundred times
constexpr std::int64_t kWide = 4096;  // elements in a row of what is worth a second thread

/// The fewest with which a weight is large enough for panels (backends/panels.h).
std::int64_t columns_of_panels(std::int64_t rows) { return std::max<std::int64_t>(64, (8192 / rows + 32) / 32 * 32); }

/// Where the shapes of a graph's values cannot be evaluated, it is not for a session.
bool has_other_symbols(const Shape& shape) {
  for (const Dim& dim : shape)
    for (const std::string& symbol : dim.symbols())
      if (not drawn_sizes().contains(symbol)) return true;
  return false;
}

bool is_tame(const Tensor& tensor) {
  if (tensor.element_count() > kMostElements) return false;
  if (not is_float(tensor.dtype())) return true;
  for (std::int64_t i = 0; i < tensor.element_count(); ++i)
    if (not(std::abs(tensor.at(i)) <= kTame)) return false;
  return true;
}

class Drawer {
 public:
  explicit Drawer(std::uint64_t seed) : seed_(seed), choice_(seed), builder_(graph_) {}

  DrawnGraph draw() {
    graph_.name = fmt::format("s{}", seed_);
    // One graph in eight has tensors that are worth a second thread.
    const std::int64_t width = choice_.one_in(8) ? kWide : choice_.between(1, 9);
    add_input(Role::kInput, f32({kN, width}), 0);
    if (choice_.one_in(2)) add_input(Role::kInput, f32({kN, choice_.between(1, 4), choice_.between(2, 7)}), 1);
    add_input(Role::kWeight, f32({width}), 2);
    const std::int64_t steps = choice_.between(3, 14);
    for (std::int64_t i = 0; i < steps; ++i) add_something();
    if (choice_.one_in(4)) add_attention();
    add_outputs();
    if (choice_.one_in(2)) add_training();
    tell_sizes();
    return {seed_, std::move(graph_), std::move(feeds_)};
  }

 private:
  // --- Values: what they are for the sizes drawn_sizes() is known, so that what overflows or is no number is not drawn on. ---

  Val keep(Val value, Tensor tensor) {
    if (tensors_.size() <= value.id().index) tensors_.resize(value.id().index + 1);
    tensors_[value.id().index] = std::move(tensor);
    pool_.push_back(value);
    return value;
  }

  Val add_input(Role role, const Operand& operand, std::size_t position) {
    const std::string name = fmt::format("s{}.{}{}", seed_, role == Role::kInput ? "x" : "w", graph_.inputs().size());
    Tensor tensor = tensor_of(operand, position + seed_);
    const Val value = builder_.input(role, name, operand.type, role == Role::kInput ? std::nullopt : std::optional(tensor));
    if (role == Role::kInput) feeds_.emplace(name, tensor);
    return keep(value, std::move(tensor));
  }

  /// Adds the node if its operands fit, without taking sizes to be equal that are not, and its results are tame.
  std::vector<Val> try_add(const OpDef& op, const std::vector<Val>& operands, const Attrs& attrs = {},
                           const std::vector<std::shared_ptr<const Graph>>& bodies = {}) {
    const auto clones = [&] {
      std::vector<std::unique_ptr<Graph>> made;
      for (const auto& body : bodies) made.push_back(std::make_unique<Graph>(body->clone()));
      return made;
    };
    Graph alone;  // the node by itself
    Builder builder(alone);
    std::vector<Val> inputs;
    Feeds feeds;
    std::vector<NamedTensor> results;
    try {
      for (std::size_t i = 0; i < operands.size(); ++i) {
        if (not operands[i].valid()) {
          inputs.emplace_back();
          continue;
        }
        const Tensor* constant = graph_.constant_of(operands[i].id());
        inputs.push_back(builder.input(constant != nullptr ? Role::kConstant : Role::kInput, fmt::format("x{}", i), operands[i].type(),
                                       constant != nullptr ? std::optional(*constant) : std::nullopt));
        if (constant == nullptr) feeds.emplace(fmt::format("x{}", i), tensors_[operands[i].id().index]);
      }
      const std::vector<Val> made = builder.add(op, inputs, attrs, clones());
      for (std::size_t i = 0; i < made.size(); ++i) {
        if (has_other_symbols(made[i].shape())) return {};
        builder.output(fmt::format("y{}", i), made[i]);
      }
      (void)expand(alone);
      if (not alone.equations().empty()) return {};
      results = interpret(alone, feeds, Precision::kFloat, drawn_sizes()).outputs;
    } catch (const Error&) { return {}; } catch (const InternalError&) {
      return {};
    }  // an element type for which there is no scalar operation
    for (const NamedTensor& result : results)
      if (not is_tame(result.value)) return {};
    const std::vector<Val> made = builder_.add(op, operands, attrs, clones());
    for (std::size_t i = 0; i < made.size(); ++i) keep(made[i], results[i].value);
    return made;
  }

  // --- What there is to draw ---

  void add_something() {
    for (int attempt = 0; attempt < 30; ++attempt) {
      const std::int64_t what = choice_.between(0, 99);
      const bool added = what < 45 ? add_scalar_op() : what < 60 ? add_index_map() : what < 73 ? add_reduction() : what < 82 ? add_product() : add_case();
      if (added) return;
    }
  }

  /// A value of the pool, later ones more often.
  Val any() {
    const auto count = static_cast<std::int64_t>(pool_.size());
    return pool_[static_cast<std::size_t>(std::max(choice_.between(0, count - 1), choice_.between(0, count - 1)))];
  }

  /// For an elementwise op over `like`: a value of the pool, a number, or a weight along the last axis.
  Val partner(Val like) {
    const std::int64_t what = choice_.between(0, 5);
    if (what == 0 and is_float(like.dtype())) return number(like);
    if (what == 1 and like.dtype() == DType::kF32 and like.rank() > 0 and like.shape().back().is_constant() and like.shape().back().value() > 0)
      return add_input(Role::kWeight, f32({like.shape().back()}), graph_.inputs().size());
    if (what == 2) return like;
    return any();
  }

  Val number(Val like) {
    constexpr double kNumbers[] = {0, 1, -1, 0.5, 2, 1e-3, 3};
    const Val value = builder_.scalar(kNumbers[choice_.between(0, 6)], like.dtype());
    if (tensors_.size() <= value.id().index or tensors_[value.id().index].byte_count() == 0) keep(value, *graph_.constant_of(value.id()));
    return value;
  }

  bool add_scalar_op() {
    static const std::vector<const OpDef*> ops = [] {
      std::vector<const OpDef*> list;
      for (const OpDef* op : all_ops())
        if (op->scalar != nullptr) list.push_back(op);
      return list;
    }();
    const OpDef& op = *choice_.of(ops);
    std::vector<Val> operands = {any()};
    while (operands.size() < op.inputs.size()) operands.push_back(partner(operands.back()));
    Attrs attrs;
    constexpr DType kTypes[] = {DType::kF32, DType::kF32, DType::kF64, DType::kI32, DType::kI64, DType::kF16, DType::kBF16, DType::kBool};
    if (op == op::cast) attrs.set(kTo = kTypes[choice_.between(0, 7)]);
    if (op == op::bit_cast) attrs.set(kTo = operands[0].dtype());
    return not try_add(op, operands, attrs).empty();
  }

  bool add_index_map() {
    const Val x = any();
    if (x.rank() == 0) return not try_add(op::broadcast_to, {x}, {kShape = Shape{kN, choice_.between(1, 4)}}).empty();
    switch (choice_.between(0, 5)) {
      case 0: return not try_add(op::transpose, {x}, {kPerm = choice_.permutation(x.rank())}).empty();
      case 1: return not try_add(op::reshape, {x}, {kShape = choice_.other_shape(x.shape())}).empty();
      case 2: {
        Shape shape = x.shape();
        shape.insert(shape.begin(), choice_.one_in(2) ? kN : Dim(choice_.between(1, 3)));
        return not try_add(op::broadcast_to, {x}, {kShape = shape}).empty();
      }
      case 3: return not try_add(op::concat, {x, any()}, {kAxis = choice_.axis(x.rank())}).empty();
      default: return add_range(x);
    }
  }

  /// A slice, or a pad, along one axis.
  bool add_range(Val x) {
    const auto axis = static_cast<std::size_t>(choice_.axis(x.rank()));
    Shape starts(x.rank(), Dim(0)), sizes = x.shape();
    Ints steps(x.rank(), 1);
    if (not sizes[axis].is_constant() or sizes[axis].value() < 1) return false;
    const std::int64_t extent = sizes[axis].value();
    if (choice_.one_in(2)) {
      starts[axis] = choice_.between(0, extent - 1);
      steps[axis] = choice_.one_in(4) ? -1 : choice_.between(1, 2);
      const std::int64_t room = steps[axis] < 0 ? starts[axis].value() + 1 : (extent - starts[axis].value() + steps[axis] - 1) / steps[axis];
      sizes[axis] = choice_.between(1, room);
      return not try_add(op::slice, {x}, {kStarts = starts, kSizes = sizes, kSteps = steps}).empty();
    }
    steps[axis] = choice_.between(1, 2);
    starts[axis] = choice_.between(-1, 2);
    sizes[axis] = extent * steps[axis] + choice_.between(0, 3);
    return not try_add(op::pad, {x}, {kStarts = starts, kSizes = sizes, kSteps = steps}).empty();
  }

  bool add_reduction() {
    const Val x = any();
    if (x.rank() == 0) return false;
    const std::int64_t axis = choice_.axis(x.rank());
    const OpDef* const along_axis[] = {&op::softmax, &op::log_softmax, &op::argmax, &op::argmin};
    const OpDef* const over_axes[] = {&op::reduce_sum, &op::reduce_mean, &op::reduce_max, &op::reduce_min, &op::reduce_sum, &op::reduce_prod};
    if (choice_.one_in(3)) return not try_add(*along_axis[choice_.between(0, 3)], {x}, {kAxis = axis}).empty();
    return not try_add(*over_axes[choice_.between(0, 5)], {x}, {kAxes = choice_.some_axes(x.rank()), kKeepDims = choice_.one_in(2)}).empty();
  }

  bool add_product() {
    const Val x = any();
    if (x.dtype() != DType::kF32 or x.rank() < 2 or not x.shape().back().is_constant() or x.shape().back().value() < 1) return false;
    const bool transposed = choice_.one_in(2);
    const Dim in = x.shape().back(), out = choice_.one_in(2) and in.value() < kWide ? columns_of_panels(in.value()) : choice_.between(1, 9);
    const Val weight = add_input(Role::kWeight, f32(transposed ? Shape{out, in} : Shape{in, out}, -1, 1), graph_.inputs().size());
    return not try_add(op::matmul, {x, weight}, {kTransB = transposed}).empty();
  }

  /// Positions that attend to those before them, or to all.
  void add_attention() {
    const Shape heads = {kN, choice_.between(1, 2), choice_.between(2, 40), choice_.between(1, 9)};
    std::vector<Val> operands;
    for (int i = 0; i < 3; ++i)
      if (operands.push_back(with_shape(any(), heads)); not operands.back().valid()) operands.back() = add_input(Role::kInput, f32(heads), graph_.inputs().size());
    (void)try_add(op::fused_attention, operands, {kScale = 0.5, kCausal = not choice_.one_in(4)});
  }

  /// A case of any op, more often of one with a body and of a convolution, its float operands made of values of the pool.
  bool add_case() {
    static const std::vector<const OpCase*> cases = [] {
      std::vector<const OpCase*> list;
      for (const OpCase& each : op_cases())
        for (int times = each.op->region != Region::kNone ? 10 : *each.op == op::conv ? 5 : 1; times > 0; --times) list.push_back(&each);
      return list;
    }();
    const OpCase& drawn = *choice_.of(cases);
    if (drawn.op->binds or *drawn.op == op::gradient) return false;  // sizes that data say, and what needs the graph before it
    if (std::any_of(drawn.operands.begin(), drawn.operands.end(), [](const Operand& operand) { return has_other_symbols(operand.type.shape); })) return false;
    std::vector<Val> operands;
    for (std::size_t i = 0; i < drawn.operands.size(); ++i) {
      const Operand& operand = drawn.operands[i];
      if (operand.is_absent) operands.emplace_back();
      else if (operand.is_constant) operands.push_back(constant_of(operand, i));
      else operands.push_back(operand_for(operand, i));
    }
    return not try_add(*drawn.op, operands, drawn.attrs, drawn.bodies).empty();
  }

  Val constant_of(const Operand& operand, std::size_t position) {
    Tensor tensor = tensor_of(operand, position);
    const Val value = builder_.constant(tensor);
    return keep(value, std::move(tensor));
  }

  Val operand_for(const Operand& operand, std::size_t position) {
    if (operand.type.dtype == DType::kF32 and operand.values.empty() and choice_.between(0, 9) < 7)
      if (const Val fitted = fitted_to(any(), operand); fitted.valid()) return fitted;
    const bool is_weight = operand.type.dtype == DType::kF32 and is_constant(operand.type.shape) and choice_.one_in(2);
    return add_input(is_weight ? Role::kWeight : Role::kInput, operand, position);
  }

  Val first(const std::vector<Val>& values) const { return values.empty() ? Val() : values[0]; }

  /// A value of the pool brought to the operand's shape and range; invalid where that is not possible.
  Val fitted_to(Val value, const Operand& operand) {
    if (value.dtype() != DType::kF32 or element_count(operand.type.shape).is_constant(0) or has_other_symbols(operand.type.shape)) return {};
    value = with_shape(value, operand.type.shape);
    if (not value.valid() or (operand.low <= -2 and operand.high >= 2)) return value;
    value = first(try_add(op::sigmoid, {value}));
    const auto by = [&](const OpDef& op, double number) {
      if (not value.valid()) return;
      const Val scalar = builder_.scalar(number);
      keep(scalar, *graph_.constant_of(scalar.id()));
      value = first(try_add(op, {value, scalar}));
    };
    by(op::mul, 0.96 * (operand.high - operand.low));
    by(op::add, operand.low + 0.02 * (operand.high - operand.low));
    return value;
  }

  /// By reshape, slice, pad and broadcast.
  Val with_shape(Val value, const Shape& shape) {
    const auto leading = [](const Shape& s) { return not s.empty() and not s[0].is_constant() ? s[0] : Dim(1); };
    const auto rest = [&](const Shape& s) { return Shape(s.begin() + (leading(s).is_constant() ? 0 : 1), s.end()); };
    if (value.shape() == shape) return value;
    const Dim from = leading(value.shape()), to = leading(shape), count = element_count(rest(value.shape())), wanted = element_count(rest(shape));
    if ((from != to and not from.is_constant()) or not count.is_constant() or not wanted.is_constant() or count.value() < 1 or wanted.value() < 1) return {};
    value = first(try_add(op::reshape, {value}, {kShape = Shape{from, count}}));
    if (not value.valid()) return {};
    if (count != wanted) {
      const Attrs range = {kStarts = Shape{0, 0}, kSizes = Shape{from, wanted}, kSteps = Ints{1, 1}};
      value = first(try_add(count.value() > wanted.value() ? op::slice : op::pad, {value}, range));
    }
    if (value.valid() and from != to) value = first(try_add(op::broadcast_to, {value}, {kShape = Shape{to, wanted}}));
    return value.valid() ? first(try_add(op::reshape, {value}, {kShape = shape})) : Val();
  }

  // --- What makes a graph of the nodes ---

  /// What nobody reads, and a few of the others.
  void add_outputs() {
    const std::vector<std::uint32_t> uses = count_uses(graph_);
    for (const Val value : pool_)
      if (graph_.input_of(value.id()) == nullptr and (uses[value.id().index] == 0 or choice_.one_in(10)))
        builder_.output(fmt::format("y{}", graph_.outputs().size()), value);
  }

  /// Updates of the weights by the gradient of a sum over the float outputs.
  void add_training() {
    Graph step = graph_.clone();
    Builder builder(step);
    Val loss = builder.scalar(0);
    for (const Output& output : graph_.outputs())
      if (graph_.type(output.value).dtype == DType::kF32) loss = loss + sum_all(builder.val(output.value) * builder.val(output.value) * 0.01);
    builder.output("loss", loss);
    (void)expand_for_gradients(step);
    std::vector<ValueId> weights;
    for (const Input& input : step.inputs())
      if (input.role == Role::kWeight) weights.push_back(input.value);
    const std::size_t equations = step.equations().size();
    try {
      const std::vector<ValueId> gradients = differentiate(step, step.find_output("loss")->value, weights);
      for (std::size_t i = 0; i < weights.size(); ++i)
        if (gradients[i].valid()) update(builder, builder.val(weights[i]), builder.val(gradients[i]));
    } catch (const Error&) { return; }  // an op without a gradient on the way
    if (step.equations().size() != equations) return;
    graph_ = std::move(step);
  }

  void update(Builder& builder, Val weight, Val gradient) {
    const std::string name = builder.graph().input_of(weight.id())->name;
    const auto state = [&](const char* suffix) {
      return builder.input(Role::kState, name + suffix, weight.type(), Tensor::zeros(DType::kF32, constant_shape(weight.shape())));
    };
    const Val rate = builder.scalar(0.01, DType::kF64), step = builder.scalar(3, DType::kF64),
              finite = op::is_finite(builder.val(builder.graph().find_output("loss")->value));
    std::vector<Val> operands = {weight, gradient, rate, step}, states = {weight};
    const bool is_adam = choice_.one_in(2);
    for (const char* suffix : is_adam ? std::vector{"/m", "/v"} : std::vector{"/velocity"})
      operands.push_back(state(suffix)), states.push_back(operands.back());
    const Attrs adam = {kBeta1 = 0.9, kBeta2 = 0.999, kEpsilon = 1e-3}, momentum = {kMomentum = 0.9};
    const std::vector<Val> made = is_adam ? op::adam.build_all(operands, adam) : op::sgd.build_all(operands, momentum);
    for (std::size_t i = 0; i < states.size(); ++i) builder.alias(states[i], op::where(finite, made[i], states[i]));
  }

  /// Every symbol must be the extent of an input.
  void tell_sizes() {
    std::set<std::string> used, told;
    const auto use = [&used](const Shape& shape) {
      for (const Dim& dim : shape)
        for (const std::string& symbol : dim.symbols()) used.insert(symbol);
    };
    for (std::uint32_t i = 0; i < graph_.value_count(); ++i) use(graph_.type(ValueId(i)).shape);
    for (const Node& node : graph_.nodes())
      for (const auto& [name, attr] : node.attrs)
        if (const auto* shape = std::get_if<Shape>(&attr.value)) use(*shape);
    for (const Input& input : graph_.inputs())
      if (input.role == Role::kInput)
        for (const Dim& dim : graph_.type(input.value).shape)
          if (dim.is_symbol()) told.insert(dim.text());
    Builder builder(graph_);
    for (const std::string& symbol : used)
      if (not told.contains(symbol)) add_size(builder, Dim::symbol(symbol));
  }

  void add_size(Builder& builder, Dim size) {
    const std::string name = fmt::format("s{}.{}", seed_, size.text());
    builder.input(Role::kInput, name, {DType::kF32, {size}});
    feeds_.emplace(name, tensor_of(f32({size}), 0));
  }

  std::uint64_t seed_;
  RandomChoice choice_;
  Graph graph_;
  Builder builder_;
  Feeds feeds_;
  std::vector<Tensor> tensors_;  // by value
  std::vector<Val> pool_;
};

}  // namespace

DrawnGraph draw_graph(std::uint64_t seed) { return Drawer(seed).draw(); }

Feeds feeds_for(const DrawnGraph& drawn, const DimBindings& sizes) {
  Feeds feeds;
  for (const Input& input : drawn.graph.inputs()) {
    if (input.role != Role::kInput) continue;
    const Tensor& first = drawn.feeds.find(input.name)->second;
    Operand operand{.type = drawn.graph.type(input.value)};
    if (first.element_count() > 0) operand.low = operand.high = first.at(0);
    for (std::int64_t i = 0; i < first.element_count(); ++i)
      operand.low = std::min(operand.low, first.at(i)), operand.high = std::max(operand.high, first.at(i));
    feeds.emplace(input.name, tensor_of(operand, drawn.seed + feeds.size(), sizes));
  }
  return feeds;
}

}  // namespace hone::test
