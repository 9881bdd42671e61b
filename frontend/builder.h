// Models built in C++:
//
//   nn::Model model("digits");
//   nn::Value x = model.input("image", {28, 28, 1});          // f32[N,28,28,1]
//   x = nn::relu(nn::dense(nn::flatten(x), 256));
//   model.output("logits", nn::dense(x, 10));
//   onnx::save(model.graph(), "digits.onnx");
//
// Layers and their options are named as in Keras, and have its defaults but for normalizations, whose epsilon is PyTorch's 1e-5 and whose running statistics keep 0.9 (Keras: 1e-3 and 0.99); images and sequences that are convolved have their channels first, as in ONNX.
// Weights are drawn when a layer is built (Glorot uniform for matrices and convolutions as in Keras, zeros for biases) from the model's seed and
// the weight's number, so the same program gives the same model. Wrong shapes throw Error with the layer's name.
#pragma once

#include <cstdint>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "ir/builder.h"

namespace hone::nn {

class Model;
struct ModelParts;

/// The output of a layer. Small, copied freely; lives no longer than its Model, or the one that it was moved to.
class Value {
 public:
  Value(Model& model, Val val);
  Model& model() const;
  Val val() const { return val_; }
  const Shape& shape() const { return val_.shape(); }

 private:
  ModelParts* model_;
  Val val_;
};

/// How the elements of a weight are drawn.
struct Initializer {
  enum class Kind : std::uint8_t { kConstant, kUniform, kNormal, kGlorotUniform, kOrthogonal };
  Kind kind = Kind::kGlorotUniform;
  double scale = 1;

  static Initializer constant(double value) { return {Kind::kConstant, value}; }
  static Initializer zeros() { return constant(0); }
  static Initializer ones() { return constant(1); }
  /// Between -limit and limit.
  static Initializer uniform(double limit) { return {Kind::kUniform, limit}; }
  static Initializer normal(double deviation) { return {Kind::kNormal, deviation}; }
  /// Between -limit and limit with limit = sqrt(6 / (fan in + fan out)) (Glorot & Bengio 2010). Fans follow from the shape: [in, out], or [out, in, window...].
  static Initializer glorot_uniform() { return {Kind::kGlorotUniform}; }
  /// A matrix whose rows (or, if there are more of them, columns) are orthonormal (Saxe et al. 2014).
  static Initializer orthogonal() { return {Kind::kOrthogonal}; }
};

class Model {
 public:
  explicit Model(std::string name, std::uint64_t seed = 0);
  /// Values of it go on being values of the one that it is moved to, so that a function may make a model. One that was moved from throws kUsage.
  Model(Model&& other) noexcept;
  Model& operator=(Model&& other) noexcept;
  ~Model();

  /// An input of `batch` samples of the given shape.
  Value input(const std::string& name, Shape sample, DType dtype = DType::kF32);
  void output(const std::string& name, Value value);
  const Graph& graph() const;
  Builder& builder();

  /// "dense", then "dense_1", ...: Keras's layer names.
  std::string layer_name(const std::string& kind);
  /// A trainable weight, to be used as often as the model needs it. Throws kBadGraph when there is one of that name, kShape for an initializer that it does not fit.
  Value weight(const std::string& name, std::vector<std::int64_t> shape, const Initializer& initializer = Initializer::glorot_uniform());
  /// The same with the f32 elements that it begins with.
  Value weight(const std::string& name, Tensor elements);

 private:
  friend class Value;
  ModelParts& parts() const;

  std::unique_ptr<ModelParts> parts_;
};

struct DenseOptions {
  bool use_bias = true;
  Initializer kernel_initializer = Initializer::glorot_uniform();
};
/// x[..., in] times a weight [in, units], plus a bias [units].
Value dense(Value x, std::int64_t units, const DenseOptions& options = {});
/// a[..., m, k] times b[..., k, n], or b[..., n, k] transposed; axes in front broadcast. With a weight: what several layers share.
Value matmul(Value a, Value b, bool transpose_b = false);

struct ConvOptions {
  std::int64_t stride = 1;
  std::int64_t dilation = 1;
  std::int64_t groups = 1;
  std::int64_t padding = 0;  ///< zeros on every side
  bool same = false;         ///< pads so that the result has ceil(extent / stride) elements, the odd one at the end; then `padding` is ignored
  bool use_bias = true;
};
/// x[N,C,H,W] (or [N,C,L], [N,C,D,H,W]) with `channels` square windows of extent `kernel`.
Value conv(Value x, std::int64_t channels, std::int64_t kernel, ConvOptions options = {});
/// The same with windows of an extent for each spatial axis: conv(x, 8, {3, 1}).
Value conv(Value x, std::int64_t channels, const std::vector<std::int64_t>& kernel, ConvOptions options = {});
/// Each of x's channels with `multiplier` windows of its own: [N, C * multiplier, ...]. options.groups is not read.
Value depthwise_conv(Value x, std::int64_t kernel, std::int64_t multiplier = 1, ConvOptions options = {});
/// One window for each of x's channels, and a mixture of them for each of `channels`, which has the bias: depthwise_kernel [C,1,...] and pointwise_kernel [channels,C,1,...]. options.groups is not read.
Value separable_conv(Value x, std::int64_t channels, std::int64_t kernel, ConvOptions options = {});

struct ConvTransposeOptions {
  std::int64_t stride = 1;
  std::int64_t padding = 0;         ///< so much is cut off on every side
  std::int64_t output_padding = 0;  ///< more elements at the end: less than the stride
  bool same = false;                ///< the result has extent * stride elements; then `padding` and `output_padding` are ignored
  bool use_bias = true;
};
/// What takes a convolution's gradient back to its input (Keras's Conv2DTranspose): x[N,C,H,W] (or [N,C,L], [N,C,D,H,W]) -> `channels` channels of extents (extent - 1) * stride + kernel + output_padding - 2 * padding.
/// The weight is [C,channels,kernel...].
Value conv_transpose(Value x, std::int64_t channels, std::int64_t kernel, ConvTransposeOptions options = {});

struct PoolOptions {
  std::int64_t stride = 0;   ///< 0: the window's extent
  std::int64_t padding = 0;  ///< on every side, with elements that are neither the largest nor counted
  bool same = false;         ///< pads so that the result has ceil(extent / stride) elements, the odd one at the end; then `padding` is ignored
};
/// x[N,C,...]: windows of extent `size`, which is more than the padding; elements that fill no window are dropped.
Value max_pool(Value x, std::int64_t size, PoolOptions options = {});
Value average_pool(Value x, std::int64_t size, PoolOptions options = {});
/// The same with windows of an extent for each spatial axis: max_pool(x, {1, 2}).
Value max_pool(Value x, const std::vector<std::int64_t>& window, PoolOptions options = {});
Value average_pool(Value x, const std::vector<std::int64_t>& window, PoolOptions options = {});
/// x[N,C,...] -> [N,C]
Value global_average_pool(Value x);
Value global_max_pool(Value x);
/// Per channel (axis 1), with running statistics.
Value batch_norm(Value x, double momentum = 0.9, double epsilon = 1e-5);
/// Over the last axis, with a scale and, if asked for, a bias of its extent.
struct LayerNormOptions {
  double epsilon = 1e-5;
  bool use_bias = true;
};
Value layer_norm(Value x, const LayerNormOptions& options = {});
/// i32 or i64 x[...] -> rows of a weight [vocabulary, size]: [..., size]
Value embedding(Value x, std::int64_t vocabulary, std::int64_t size, const Initializer& initializer = Initializer::uniform(0.05));
/// The same with a table that other layers use, too.
Value embedding(Value x, Value table);

struct AttentionOptions {
  bool is_causal = false;  ///< a position attends to itself and those before it
  bool use_bias = true;
  std::optional<Value> mask = {};  ///< bool [N,positions that are attended to]: false are padded ones, to which nothing attends unless there are no others
  Initializer kernel_initializer = Initializer::glorot_uniform();
};
/// Multi-head self-attention (Vaswani et al. 2017) of x[N,T,C]: queries, keys and values by one weight [C,3C], scores divided by sqrt(C / heads), a projection [C,C]:
/// [N,T,C]. C must be a multiple of `heads`; T must be a number where attention is causal.
Value self_attention(Value x, std::int64_t heads, const AttentionOptions& options = {});
/// The same of x[N,T,C] to another sequence, memory[N,S,D]: queries by a weight [C,C], keys and values by one [D,2C]. Not causal.
Value cross_attention(Value x, Value memory, std::int64_t heads, const AttentionOptions& options = {});

struct LstmOptions {
  bool return_sequences = false;  ///< the state after every step [N,T,units] instead of after the last one
  bool bidirectional = false;     ///< and from the last step to the first, by weights of its own (backward_kernel, ...): [N,2 units], or of each step [N,T,2 units]
  bool use_bias = true;
  bool unit_forget_bias = true;  ///< the forget gate's bias begins at 1
  std::optional<Value> mask = {};  ///< bool [N,T]: false are padded steps, which leave the state as it was (not_equal(ids, 0), for one)
};
/// x[N,T,in] step by step (Hochreiter & Schmidhuber 1997, with the forget gate of Gers et al. 2000): [N,units]. Weights as in Keras: kernel [in,4 units],
/// recurrent_kernel [units,4 units], bias [4 units], the gates in the order input, forget, cell, output.
Value lstm(Value x, std::int64_t units, const LstmOptions& options = {});

struct GruOptions {
  bool return_sequences = false;  ///< the state after every step [N,T,units] instead of after the last one
  bool bidirectional = false;     ///< and from the last step to the first, by weights of its own (backward_kernel, ...): [N,2 units], or of each step [N,T,2 units]
  bool use_bias = true;
  bool reset_after = true;  ///< the reset gate takes part of what the state's product gives, not of the state before it
  Initializer bias_initializer = Initializer::zeros();
  std::optional<Value> mask = {};  ///< bool [N,T]: false are padded steps, which leave the state as it was
};
/// x[N,T,in] step by step (Cho et al. 2014): [N,units]. Weights as in Keras: kernel [in,3 units], recurrent_kernel [units,3 units], the gates in the order update, reset, candidate; bias
/// [2,3 units], one for the input and one for the state, or with reset_after = false [3 units].
Value gru(Value x, std::int64_t units, const GruOptions& options = {});
/// x[N,...] -> [N, product of the rest]
Value flatten(Value x);
/// x[N,...] -> [N, sample...]
Value reshape(Value x, Shape sample);
/// x[N, a, b, ...] with its sample axes reordered: permute(x, {2, 1}) is [N, b, a]. Axes count from 1.
Value permute(Value x, std::vector<std::int64_t> axes);
/// One behind the other along an axis, which counts from 1, or from the end: -1 is the last. All other extents are the same.
Value concat(const std::vector<Value>& values, std::int64_t axis = -1);
/// The elements from `begin` to before `end` along an axis, which counts as concat()'s does. Negative ones count from the end: slice(x, 1, -1) is the last step.
Value slice(Value x, std::int64_t axis, std::int64_t begin, std::int64_t end = std::numeric_limits<std::int64_t>::max());
/// Where the model is trained, each element is 0 with probability `rate`, else x / (1 - rate); elsewhere x. The file that the model becomes has a Dropout node in training mode, as PyTorch's exports
/// for training have: other programs that run it drop, too.
Value dropout(Value x, double rate);

Value relu(Value x);
Value sigmoid(Value x);
Value tanh(Value x);
/// x times the normal distribution's share below x, by erf.
Value gelu(Value x);
/// x sigmoid(x), which is Swish, too.
Value silu(Value x);
/// log(1 + exp(x)).
Value softplus(Value x);
/// x where it is more than 0, else slope x.
Value leaky_relu(Value x, double slope = 0.3);
/// x where it is more than 0, else alpha (exp(x) - 1).
Value elu(Value x, double alpha = 1);
Value exp(Value x);
Value log(Value x);
Value sqrt(Value x);
Value abs(Value x);
/// Over the last axis.
Value softmax(Value x);
Value log_softmax(Value x);

/// Of each sample's elements: x[N,...] -> [N]
Value sum(Value x);
Value mean(Value x);
/// Along axes, which count as concat()'s do; with keep_dims they stay, with one element.
Value sum(Value x, const std::vector<std::int64_t>& axes, bool keep_dims = false);
Value mean(Value x, const std::vector<std::int64_t>& axes, bool keep_dims = false);
Value max(Value x, const std::vector<std::int64_t>& axes, bool keep_dims = false);

/// Element by element; axes of one element, and missing ones in front, are repeated.
Value operator+(Value a, Value b);
Value operator-(Value a, Value b);
Value operator*(Value a, Value b);
Value operator/(Value a, Value b);
Value maximum(Value a, Value b);
Value minimum(Value a, Value b);
/// bool: is an element another one than `number`? What tells steps from padding: not_equal(ids, 0); of features not_equal(max(abs(x), {-1}), 0).
Value not_equal(Value x, double number);
Value operator-(Value x);
Value operator+(Value x, double number);
Value operator-(Value x, double number);
Value operator*(Value x, double number);
Value operator/(Value x, double number);
Value operator+(double number, Value x);
Value operator-(double number, Value x);
Value operator*(double number, Value x);
Value operator/(double number, Value x);

}  // namespace hone::nn
