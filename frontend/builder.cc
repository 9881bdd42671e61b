#include "frontend/builder.h"

#include <fmt/format.h>

#include <cmath>

#include "base/philox.h"
#include "ir/ops/formulas.h"
#include "ir/ops/infer.h"
#include "ir/ops/ops.h"

namespace hone::nn {

Model::Model(std::string name, std::uint64_t seed) : builder_(graph_), seed_(seed) { graph_.name = std::move(name); }

Value Model::input(const std::string& name, Shape sample, DType dtype) {
  if (graph_.find_input(name) != nullptr) throw Error(Code::kBadGraph, fmt::format("the model has an input \"{}\" already", name));
  sample.insert(sample.begin(), Dim::symbol("N"));
  return {*this, builder_.input(Role::kInput, name, {dtype, std::move(sample)})};
}

void Model::output(const std::string& name, Value value) {
  if (graph_.find_output(name) != nullptr) throw Error(Code::kBadGraph, fmt::format("the model has an output \"{}\" already", name));
  builder_.output(name, value.val());
}

std::string Model::layer_name(const std::string& kind) {
  const int number = layers_[kind]++;
  return number == 0 ? kind : fmt::format("{}_{}", kind, number);
}

Val Model::weight(const std::string& name, std::vector<std::int64_t> shape, Init init) {
  double in = 1, out = 1, window = 1;
  if (shape.size() == 2) in = static_cast<double>(shape[0]), out = static_cast<double>(shape[1]);
  for (std::size_t i = 2; i < shape.size(); ++i) window *= static_cast<double>(shape[i]);
  if (shape.size() > 2) in = static_cast<double>(shape[1]) * window, out = static_cast<double>(shape[0]) * window;
  const double limit = std::sqrt(6 / (in + out));  // Glorot & Bengio 2010
  const std::uint64_t stream = weights_++;
  Tensor data = Tensor::make(DType::kF32, shape, [&](std::span<std::byte> bytes) {
    auto* values = reinterpret_cast<float*>(bytes.data());
    for (std::size_t i = 0; i < bytes.size() / sizeof(float); ++i) {
      if (init == Init::kGlorotUniform) values[i] = static_cast<float>(limit * (2 * philox_uniform(seed_, stream, i).first - 1));
      else values[i] = init == Init::kOnes ? 1.0F : 0.0F;
    }
  });
  Type type{DType::kF32, shape_of(data.shape())};
  return builder_.input(Role::kWeight, name, std::move(type), std::move(data));
}

namespace {

/// One layer being built: its name is where its nodes come from.
struct Layer {
  Layer(Value x, const std::string& kind)
      : model(x.model()), name(model.layer_name(kind)), scope(model.builder(), Loc{.node = name}, Part::kForward) {}
  Model& model;
  std::string name;
  Builder::Scope scope;

  Val weight(const std::string& part, std::vector<std::int64_t> shape, Model::Init init) { return model.weight(name + "/" + part, std::move(shape), init); }
  Value done(Val val) const { return {model, val}; }
  [[noreturn]] void fail(const std::string& message) const { throw Error(Code::kShape, fmt::format("{}: {}", name, message), Loc{.node = name}); }
};

std::int64_t constant_extent(const Layer& layer, const Value& x, std::size_t axis) {
  if (axis >= x.shape().size()) layer.fail(fmt::format("its input [{}] needs more than {} axes", to_string(x.shape()), axis));
  if (not x.shape()[axis].is_constant()) layer.fail(fmt::format("axis {} of its input [{}] must be a number, as a weight depends on it", axis, to_string(x.shape())));
  return x.shape()[axis].value();
}

Value pool(Value x, std::int64_t size, std::int64_t stride, const OpDef& op, const std::string& kind) {
  Layer layer(x, kind);
  if (x.shape().size() < 3) layer.fail(fmt::format("its input [{}] has no spatial axis", to_string(x.shape())));
  const std::size_t spatial = x.shape().size() - 2;
  stride = stride == 0 ? size : stride;
  Shape extents;
  for (std::size_t i = 0; i < spatial; ++i) extents.push_back(floordiv(x.shape()[i + 2] - size, stride) + 1);
  const Shape none(spatial, Dim(0));
  return layer.done(op.build({x.val()}, {kKernel = Ints(spatial, size), kStrides = Ints(spatial, stride), kDilations = Ints(spatial, 1), kPadsBegin = none, kPadsEnd = none, kSpatial = extents}));
}

Value activation(Value x, const OpDef& op, const std::string& kind) {
  Layer layer(x, kind);
  return layer.done(op(x.val()));
}

}  // namespace

Value dense(Value x, std::int64_t units, bool use_bias) {
  Layer layer(x, "dense");
  if (x.shape().size() < 2) layer.fail(fmt::format("its input [{}] needs two axes or more", to_string(x.shape())));
  const std::int64_t in = constant_extent(layer, x, x.shape().size() - 1);
  Val y = op::matmul(x.val(), layer.weight("kernel", {in, units}, Model::Init::kGlorotUniform));
  if (use_bias) y = y + layer.weight("bias", {units}, Model::Init::kZeros);
  return layer.done(y);
}

Value conv(Value x, std::int64_t channels, std::int64_t kernel, ConvOptions options) {
  Layer layer(x, "conv");
  if (x.shape().size() < 3) layer.fail(fmt::format("its input [{}] has no spatial axis", to_string(x.shape())));
  const std::size_t spatial = x.shape().size() - 2;
  const std::int64_t in = constant_extent(layer, x, 1);
  if (options.groups < 1 or in % options.groups != 0 or channels % options.groups != 0) layer.fail(fmt::format("{} groups divide neither {} nor {} channels", options.groups, in, channels));
  std::vector<std::int64_t> shape = {channels, in / options.groups};
  shape.insert(shape.end(), spatial, kernel);
  Shape begin, end;
  for (std::size_t i = 0; i < spatial; ++i) {
    const Dim extent = x.shape()[i + 2];
    const Dim total = options.same ? max((ceildiv(extent, options.stride) - 1) * options.stride + (kernel - 1) * options.dilation + 1 - extent, 0) : Dim(2 * options.padding);
    begin.push_back(floordiv(total, 2));
    end.push_back(total - floordiv(total, 2));
  }
  Val y = op::conv(x.val(), layer.weight("kernel", shape, Model::Init::kGlorotUniform),
                   {kStrides = Ints(spatial, options.stride), kDilations = Ints(spatial, options.dilation), kPadsBegin = begin, kPadsEnd = end, kGroups = options.groups});
  if (options.use_bias) y = y + per_channel(layer.weight("bias", {channels}, Model::Init::kZeros), y.rank());
  return layer.done(y);
}

Value max_pool(Value x, std::int64_t size, std::int64_t stride) { return pool(x, size, stride, op::max_pool, "max_pool"); }
Value average_pool(Value x, std::int64_t size, std::int64_t stride) { return pool(x, size, stride, op::avg_pool, "average_pool"); }

Value global_average_pool(Value x) {
  Layer layer(x, "global_average_pool");
  Ints axes;
  for (std::size_t i = 2; i < x.shape().size(); ++i) axes.push_back(static_cast<std::int64_t>(i));
  if (axes.empty()) layer.fail(fmt::format("its input [{}] has no spatial axis", to_string(x.shape())));
  return layer.done(op::reduce_mean(x.val(), {kAxes = axes, kKeepDims = false}));
}

Value batch_norm(Value x, double momentum, double epsilon) {
  Layer layer(x, "batch_norm");
  const std::vector<std::int64_t> shape = {constant_extent(layer, x, 1)};
  const Val scale = layer.weight("gamma", shape, Model::Init::kOnes), bias = layer.weight("beta", shape, Model::Init::kZeros);
  const Val mean = layer.weight("moving_mean", shape, Model::Init::kZeros), variance = layer.weight("moving_variance", shape, Model::Init::kOnes);
  return layer.done(op::batch_norm.build({x.val(), scale, bias, mean, variance}, {kEpsilon = epsilon, kMomentum = momentum}));
}

Value embedding(Value x, std::int64_t vocabulary, std::int64_t size) {
  Layer layer(x, "embedding");
  return layer.done(op::gather(layer.weight("embeddings", {vocabulary, size}, Model::Init::kGlorotUniform), x.val(), {kAxis = 0}));
}

Value flatten(Value x) {
  Shape rest(x.shape().begin() + 1, x.shape().end());
  return reshape(x, {element_count(rest)});
}

Value reshape(Value x, Shape sample) {
  Layer layer(x, "reshape");
  sample.insert(sample.begin(), x.shape()[0]);
  return layer.done(hone::reshape(x.val(), std::move(sample)));
}

Value permute(Value x, std::vector<std::int64_t> axes) {
  Layer layer(x, "permute");
  axes.insert(axes.begin(), 0);
  return layer.done(hone::transpose(x.val(), std::move(axes)));
}

Value relu(Value x) { return activation(x, op::relu, "relu"); }
Value sigmoid(Value x) { return activation(x, op::sigmoid, "sigmoid"); }
Value tanh(Value x) { return activation(x, op::tanh, "tanh"); }

Value softmax(Value x) {
  Layer layer(x, "softmax");
  return layer.done(op::softmax(x.val(), {kAxis = static_cast<std::int64_t>(x.shape().size()) - 1}));
}

Value operator+(Value a, Value b) { return Layer(a, "add").done(a.val() + b.val()); }
Value operator-(Value a, Value b) { return Layer(a, "subtract").done(a.val() - b.val()); }
Value operator*(Value a, Value b) { return Layer(a, "multiply").done(a.val() * b.val()); }

}  // namespace hone::nn
