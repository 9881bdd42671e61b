#include "benchmarks/training/models.h"

namespace hone::benchmarks {

void build_mlp(nn::Model& model, const Shape& sample, const std::vector<std::int64_t>& units) {
  nn::Value x = model.input("x", sample);
  if (sample.size() > 1) x = nn::flatten(x);
  for (std::size_t i = 0; i < units.size(); ++i) {
    x = nn::dense(x, units[i]);
    if (i + 1 < units.size()) x = nn::relu(x);
  }
  model.output("y", x);
}

void build_mnist_cnn(nn::Model& model) {
  nn::Value x = model.input("x", {1, 28, 28});
  x = nn::max_pool(nn::relu(nn::conv(x, 32, 3)), 2);
  x = nn::max_pool(nn::relu(nn::conv(x, 64, 3)), 2);
  x = nn::relu(nn::dense(nn::flatten(x), 128));
  model.output("y", nn::dense(x, 10));
}

void build_text_cnn(nn::Model& model, const Words& words) {
  nn::Value x = nn::embedding(model.input("x", {words.length}, DType::kI32), words.vocabulary, words.size);
  x = nn::permute(x, {2, 1});  // channels first
  x = nn::max_pool(nn::relu(nn::conv(x, 64, 5)), 2);
  x = nn::max_pool(nn::relu(nn::conv(x, 32, 3)), 2);
  model.output("y", nn::dense(nn::flatten(x), words.classes));
}

void build_text_lstm(nn::Model& model, const Words& words, std::int64_t units) {
  const nn::Value x = nn::embedding(model.input("x", {words.length}, DType::kI32), words.vocabulary, words.size);
  model.output("y", nn::dense(nn::lstm(x, units), words.classes));
}

namespace {

/// Two convolutions around which the input goes, projected where it would not fit.
nn::Value residual_block(nn::Value x, std::int64_t channels, std::int64_t stride) {
  nn::Value y = nn::conv(x, channels, 3, {.stride = stride, .padding = 1, .use_bias = false});
  y = nn::conv(nn::relu(nn::batch_norm(y)), channels, 3, {.padding = 1, .use_bias = false});
  y = nn::batch_norm(y);
  if (stride != 1 or x.shape()[1] != Dim(channels)) x = nn::batch_norm(nn::conv(x, channels, 1, {.stride = stride, .use_bias = false}));
  return nn::relu(y + x);
}

}  // namespace

void build_resnet(nn::Model& model, const Residual& size) {
  nn::Value x = model.input("x", {3, size.extent, size.extent});
  const nn::ConvOptions stem = {.stride = size.large_stem ? 2 : 1, .padding = size.large_stem ? 3 : 1, .use_bias = false};
  x = nn::relu(nn::batch_norm(nn::conv(x, size.widths[0], size.large_stem ? 7 : 3, stem)));
  if (size.large_stem) x = nn::max_pool(x, 3, {.stride = 2, .padding = 1});
  for (std::size_t stage = 0; stage < size.widths.size(); ++stage)
    for (std::int64_t block = 0; block < size.depth; ++block) x = residual_block(x, size.widths[stage], stage > 0 and block == 0 ? 2 : 1);
  model.output("y", nn::dense(nn::global_average_pool(x), size.classes));
}

namespace {

nn::Value convolved(nn::Value x, std::int64_t channels, std::int64_t kernel, std::int64_t stride) {
  return nn::batch_norm(nn::conv(x, channels, kernel, {.stride = stride, .padding = kernel / 2, .use_bias = false}));
}

/// The 3x3 convolution has the stride, as in PyTorch's networks.
nn::Value bottleneck_block(nn::Value x, std::int64_t channels, std::int64_t stride) {
  nn::Value y = nn::relu(convolved(x, channels, 1, 1));
  y = convolved(nn::relu(convolved(y, channels, 3, stride)), 4 * channels, 1, 1);
  if (x.shape()[1] != Dim(4 * channels)) x = convolved(x, 4 * channels, 1, stride);
  return nn::relu(y + x);
}

}  // namespace

void build_bottleneck_resnet(nn::Model& model, std::int64_t extent, std::int64_t classes, const std::vector<std::int64_t>& depths) {
  nn::Value x = nn::relu(convolved(model.input("x", {3, extent, extent}), 64, 7, 2));
  x = nn::max_pool(x, 3, {.stride = 2, .padding = 1});
  for (std::size_t stage = 0; stage < depths.size(); ++stage)
    for (std::int64_t block = 0; block < depths[stage]; ++block) x = bottleneck_block(x, 64 << stage, stage > 0 and block == 0 ? 2 : 1);
  model.output("y", nn::dense(nn::global_average_pool(x), classes));
}

void build_gpt(nn::Model& model, const Gpt& size) {
  const nn::Initializer normal = nn::Initializer::normal(0.02);
  const nn::DenseOptions linear = {.use_bias = false, .kernel_initializer = normal};
  const nn::AttentionOptions attention = {.is_causal = true, .use_bias = false, .kernel_initializer = normal};
  const nn::Value words = model.weight("wte", {size.vocabulary, size.width}, normal);
  const nn::Value positions = model.weight("wpe", {size.context, size.width}, normal);
  const auto norm = [](nn::Value x) { return nn::layer_norm(x, {.use_bias = false}); };
  nn::Value x = nn::embedding(model.input("x", {size.context}, DType::kI32), words) + positions;
  for (std::int64_t i = 0; i < size.layers; ++i) {
    x = x + nn::self_attention(norm(x), size.heads, attention);
    x = x + nn::dense(nn::gelu(nn::dense(norm(x), 4 * size.width, linear)), size.width, linear);
  }
  model.output("y", nn::matmul(norm(x), words, true));
}

}  // namespace hone::benchmarks
