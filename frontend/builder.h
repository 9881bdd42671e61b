// Models built in C++:
//
//   nn::Model model("digits");
//   nn::Value x = model.input("image", {28, 28, 1});          // f32[N,28,28,1]
//   x = nn::relu(nn::dense(nn::flatten(x), 256));
//   model.output("logits", nn::dense(x, 10));
//   onnx::save(model.graph(), "digits.onnx");
//
// Weights are drawn when a layer is built (Glorot uniform for matrices and convolutions as in Keras, zeros for biases) from the model's seed and
// the weight's number, so the same program gives the same model. Wrong shapes throw Error with the layer's name.
#pragma once

#include <string>
#include <vector>

#include "ir/builder.h"

namespace hone::nn {

class Model;

/// The output of a layer. Small, copied freely; lives no longer than its Model.
class Value {
 public:
  Value(Model& model, Val val) : model_(&model), val_(val) {}
  Model& model() const { return *model_; }
  Val val() const { return val_; }
  const Shape& shape() const { return val_.shape(); }

 private:
  Model* model_;
  Val val_;
};

class Model {
 public:
  explicit Model(std::string name, std::uint64_t seed = 0);
  Model(const Model&) = delete;
  Model& operator=(const Model&) = delete;

  /// An input of `batch` samples of the given shape.
  Value input(const std::string& name, Shape sample, DType dtype = DType::kF32);
  void output(const std::string& name, Value value);
  const Graph& graph() const { return graph_; }
  Builder& builder() { return builder_; }

  /// "dense", then "dense_1", ...: Keras's layer names.
  std::string layer_name(const std::string& kind);
  enum class Init { kGlorotUniform, kZeros, kOnes };
  /// A trainable weight. Fans are computed from the shape: [in, out], or [out, in, window...].
  Val weight(const std::string& name, std::vector<std::int64_t> shape, Init init);

 private:
  Graph graph_;
  Builder builder_;
  std::uint64_t seed_;
  std::uint64_t weights_ = 0;
  std::map<std::string, int> layers_;
};

/// x[..., in] times a weight [in, units], plus a bias [units].
Value dense(Value x, std::int64_t units, bool use_bias = true);

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

/// Windows of extent `size`, side by side unless a stride is given; elements that fill no window are dropped.
Value max_pool(Value x, std::int64_t size, std::int64_t stride = 0);
Value average_pool(Value x, std::int64_t size, std::int64_t stride = 0);
/// x[N,C,...] -> [N,C]
Value global_average_pool(Value x);
/// Per channel (axis 1), with running statistics.
Value batch_norm(Value x, double momentum = 0.9, double epsilon = 1e-5);
/// i32 or i64 x[...] -> rows of a weight [vocabulary, size]: [..., size]
Value embedding(Value x, std::int64_t vocabulary, std::int64_t size);
/// x[N,...] -> [N, product of the rest]
Value flatten(Value x);
/// x[N,...] -> [N, sample...]
Value reshape(Value x, Shape sample);
/// x[N, a, b, ...] with its sample axes reordered: permute(x, {2, 1}) is [N, b, a]. Axes count from 1.
Value permute(Value x, std::vector<std::int64_t> axes);

Value relu(Value x);
Value sigmoid(Value x);
Value tanh(Value x);
/// Over the last axis.
Value softmax(Value x);

Value operator+(Value a, Value b);
Value operator-(Value a, Value b);
Value operator*(Value a, Value b);

}  // namespace hone::nn
