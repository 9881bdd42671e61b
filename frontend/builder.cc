#include "frontend/builder.h"

#include <fmt/format.h>

#include <algorithm>

#include "frontend/builder_initialize.h"
#include "frontend/builder_layer.h"
#include "ir/ops/formulas.h"
#include "ir/ops/infer.h"
#include "ir/ops/ops.h"
#include "ir/ops/random.h"

namespace hone::nn {

namespace {
constexpr const char* kOwnName = "every input, weight and output needs a name of its own";

void check_named(const char* what, const std::string& name) {
  if (name.empty()) throw Error(Code::kBadGraph, fmt::format("the model has {} without a name", what), {}, {kOwnName});
}
}  // namespace

/// What stays where it is when a model is moved.
struct ModelParts {
  Graph graph;
  Builder builder{graph};
  std::uint64_t seed = 0, weights = 0;
  std::map<std::string, int> layers = {};
  Model* model = nullptr;
};

Value::Value(Model& model, Val val) : model_(&model.parts()), val_(val) {}
Model& Value::model() const { return *model_->model; }

Model::Model(std::string name, std::uint64_t seed) : parts_(std::make_unique<ModelParts>()) {
  parts_->graph.name = std::move(name);
  parts_->seed = seed;
  parts_->model = this;
}
Model::Model(Model&& other) noexcept : parts_(std::move(other.parts_)) {
  if (parts_) parts_->model = this;
}
Model& Model::operator=(Model&& other) noexcept {
  parts_ = std::move(other.parts_);
  if (parts_) parts_->model = this;
  return *this;
}
Model::~Model() = default;

ModelParts& Model::parts() const {
  if (not parts_) throw Error(Code::kUsage, "a model is used that was moved from", {}, {"use the one that it was moved to"});
  return *parts_;
}
const Graph& Model::graph() const { return parts().graph; }
Builder& Model::builder() { return parts().builder; }

Value Model::input(const std::string& name, Shape sample, DType dtype) {
  check_named("an input", name);
  for (const Dim& extent : sample)
    if (extent.is_constant() and extent.value() < 1)
      throw Error(Code::kShape, fmt::format("samples of the input \"{}\" are [{}], which has no elements", name, to_string(sample)), Loc{.node = name}, {"each extent of a sample is 1 or more, or a symbol; the axis of the samples is added to them"});
  const Dim samples = Dim::symbol("N");
  if (std::ranges::find(sample, samples) != sample.end())
    throw Error(Code::kShape, fmt::format("samples of the input \"{}\" are [{}], and N is the number of samples", name, to_string(sample)), Loc{.node = name}, {"the axis of the samples is added: leave it out, or call another open axis by another name"});
  if (graph().find_input(name) != nullptr) throw Error(Code::kBadGraph, fmt::format("the model has an input \"{}\" already", name), {}, {kOwnName});
  sample.insert(sample.begin(), samples);
  return {*this, builder().input(Role::kInput, name, {dtype, std::move(sample)})};
}

void Model::output(const std::string& name, Value value) {
  check_named("an output", name);
  if (graph().find_output(name) != nullptr) throw Error(Code::kBadGraph, fmt::format("the model has an output \"{}\" already", name), {}, {kOwnName});
  if (&value.model() != this) throw Error(Code::kBadGraph, fmt::format("output \"{}\" is a value of another model", name), {}, {"a model's values stay in it: build it with one model"});
  builder().output(name, value.val());
}

std::string Model::layer_name(const std::string& kind) {
  const int number = parts().layers[kind]++;
  return number == 0 ? kind : fmt::format("{}_{}", kind, number);
}

Value Model::weight(const std::string& name, std::vector<std::int64_t> shape, const Initializer& initializer) {
  try {
    return weight(name, draw(initializer, std::move(shape), parts().seed, parts().weights++));
  } catch (const Error& error) {
    Diag diag = error.diags().front();
    if (diag.loc.node.empty()) diag.loc.node = name;
    throw Error({std::move(diag)});
  }
}

Value Model::weight(const std::string& name, Tensor elements) {
  check_named("a weight", name);
  if (graph().find_input(name) != nullptr) throw Error(Code::kBadGraph, fmt::format("the model has a weight or an input \"{}\" already", name), {}, {kOwnName});
  if (elements.dtype() != DType::kF32) throw Error(Code::kType, fmt::format("weight \"{}\" is {}, and must be f32", name, to_string(elements.dtype())), {}, {"cast its elements first"});
  Type type{DType::kF32, shape_of(elements.shape())};
  return {*this, builder().input(Role::kWeight, name, std::move(type), std::move(elements))};
}

void Layer::at_least(std::int64_t least, std::int64_t number, const char* what) const {
  if (number < least) fail(fmt::format("{} is {}", what, number), fmt::format("it is {} or more", least));
}

void Layer::between(double least, double most, double number, const char* what) const {
  if (not(number >= least and number <= most)) fail(fmt::format("{} is {}", what, number), fmt::format("it is from {} to {}", least, most));
}

Val Layer::operand(const Value& other) const {
  if (&other.model() != &model)
    throw Error(Code::kBadGraph, fmt::format("{}: one operand is of the model \"{}\", and one of the model \"{}\"", name, model.graph().name, other.model().graph().name), Loc{.node = name},
                {"a model's values stay in it: build both parts with one model"});
  return other.val();
}

std::int64_t Layer::axis_of(const Value& x, std::int64_t axis) const {
  const auto rank = static_cast<std::int64_t>(x.shape().size());
  const std::int64_t from_front = axis < 0 ? axis + rank : axis;
  if (from_front < 1 or from_front >= rank)
    fail(fmt::format("its input [{}] has no axis {} beside that of the samples", to_string(x.shape()), axis), "axes count from 1, behind the samples, or from the end: -1 is the last");
  return from_front;
}

std::size_t Layer::spatial_axes(const Value& x) const {
  if (x.shape().size() < 3) fail(fmt::format("its input [{}] has no spatial axis", to_string(x.shape())));
  return x.shape().size() - 2;
}

std::int64_t Layer::extent(const Value& x, std::size_t axis) const {
  if (axis >= x.shape().size()) fail(fmt::format("its input [{}] needs more than {} axes", to_string(x.shape()), axis));
  if (not x.shape()[axis].is_constant()) fail(fmt::format("axis {} of its input [{}] must be a number, as a weight depends on it", axis, to_string(x.shape())));
  return x.shape()[axis].value();
}

Value dense(Value x, std::int64_t units, const DenseOptions& options) {
  Layer layer(x, "dense");
  layer.at_least(1, units, "the number of units");
  if (x.shape().size() < 2) layer.fail(fmt::format("its input [{}] needs two axes or more", to_string(x.shape())));
  const std::int64_t in = layer.extent(x, x.shape().size() - 1);
  Val y = op::matmul(x.val(), layer.weight("kernel", {in, units}, options.kernel_initializer));
  if (options.use_bias) y = y + layer.weight("bias", {units}, Initializer::zeros());
  return layer.done(y);
}

Value batch_norm(Value x, double momentum, double epsilon) {
  Layer layer(x, "batch_norm");
  layer.between(0, 1, momentum, "the momentum");
  layer.between(0, 1, epsilon, "epsilon");
  const std::vector<std::int64_t> shape = {layer.extent(x, 1)};
  const Val scale = layer.weight("gamma", shape, Initializer::ones()), bias = layer.weight("beta", shape, Initializer::zeros());
  const Val mean = layer.weight("moving_mean", shape, Initializer::zeros()), variance = layer.weight("moving_variance", shape, Initializer::ones());
  return layer.done(op::batch_norm.build({x.val(), scale, bias, mean, variance}, {kEpsilon = epsilon, kMomentum = momentum}));
}

Value flatten(Value x) {
  Shape rest(x.shape().begin() + 1, x.shape().end());
  return reshape(x, {element_count(rest)});
}

Value reshape(Value x, Shape sample) {
  Layer layer(x, "reshape");
  const Dim before = element_count(Shape(x.shape().begin() + 1, x.shape().end())), after = element_count(sample);
  if (before.is_constant() and after.is_constant() and before != after)
    layer.fail(fmt::format("its input [{}] cannot be read as samples of [{}]", to_string(x.shape()), to_string(sample)), fmt::format("there are {} elements a sample, and {} are wanted", before.value(), after.value()));
  sample.insert(sample.begin(), x.shape()[0]);
  return layer.done(hone::reshape(x.val(), std::move(sample)));
}

Value permute(Value x, std::vector<std::int64_t> axes) {
  Layer layer(x, "permute");
  axes.insert(axes.begin(), 0);
  return layer.done(hone::transpose(x.val(), std::move(axes)));
}

Value concat(const std::vector<Value>& values, std::int64_t axis) {
  if (values.empty()) throw Error(Code::kUsage, "concat: there are no values", {}, {"give it one or more"});
  Layer layer(values[0], "concat");
  const std::int64_t from_front = layer.axis_of(values[0], axis);
  std::vector<Val> operands;
  for (const Value& value : values) operands.push_back(layer.operand(value));
  return layer.done(op::concat.build(operands, {kAxis = from_front}));
}

Value slice(Value x, std::int64_t axis, std::int64_t begin, std::int64_t end) {
  Layer layer(x, "slice");
  const auto at = static_cast<std::size_t>(layer.axis_of(x, axis));
  const Dim extent = x.shape()[at];
  const bool to_the_end = end == std::numeric_limits<std::int64_t>::max();
  const Dim first = begin < 0 ? extent + begin : Dim(begin), last = to_the_end ? extent : end < 0 ? extent + end : Dim(end);
  if (extent.is_constant() and (first.value() < 0 or first.value() >= last.value() or last.value() > extent.value()))
    layer.fail(fmt::format("axis {} of its input [{}] has no elements from {} to before {}", axis, to_string(x.shape()), begin, last.value()), "negative positions count from the end");
  return layer.done(part_of(x.val(), at, first, last - first));
}

Value dropout(Value x, double rate) {
  Layer layer(x, "dropout");
  if (not(rate >= 0 and rate < 1)) layer.fail(fmt::format("the rate is {}", rate), "it is the share of elements that are dropped: 0 or more, and less than 1");
  return layer.done(op::dropout(x.val(), layer.model.builder().scalar(rate, x.val().dtype()), {kStream = next_stream(layer.model.graph())}));
}

}  // namespace hone::nn
