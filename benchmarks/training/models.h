// The networks of the comparison, built as a user would: one input "x", one output "y". Sizes and layers are those of the peers' models.
#pragma once

#include <cstdint>
#include <vector>

#include "frontend/builder.h"

namespace hone::benchmarks {

/// Layers of `units`, ReLU between them: f32[N,sample...] -> f32[N,last of units].
void build_mlp(nn::Model& model, const Shape& sample, const std::vector<std::int64_t>& units);

/// Two convolutions with max pooling and two dense layers: f32[N,1,28,28] -> f32[N,10].
void build_mnist_cnn(nn::Model& model);

struct Words {
  std::int64_t vocabulary, length, size, classes;
};
/// An embedding and two one-dimensional convolutions with max pooling: i32[N,length] -> f32[N,classes].
void build_text_cnn(nn::Model& model, const Words& words);
/// An embedding and an LSTM whose last state is classified: i32[N,length] -> f32[N,classes].
void build_text_lstm(nn::Model& model, const Words& words, std::int64_t units);

struct Residual {
  std::int64_t extent, classes;      ///< of the images; classes
  std::vector<std::int64_t> widths;  ///< channels of the stages
  std::int64_t depth;                ///< blocks of a stage
  bool large_stem;                   ///< 7x7 with stride 2 and max pooling, as for ImageNet; else 3x3
};
/// A ResNet of basic blocks with 1x1 projection shortcuts (He et al. 2015): f32[N,3,extent,extent] -> f32[N,classes].
void build_resnet(nn::Model& model, const Residual& size);

/// A ResNet of bottleneck blocks (1x1, 3x3, 1x1 with four times the channels), each stage as deep as `depths` says: f32[N,3,extent,extent] -> f32[N,classes].
void build_bottleneck_resnet(nn::Model& model, std::int64_t extent, std::int64_t classes, const std::vector<std::int64_t>& depths);

struct Gpt {
  std::int64_t layers, heads, width, context, vocabulary;
};
/// A decoder without biases whose head is its embedding, transposed: i32[N,context] -> f32[N,context,vocabulary].
void build_gpt(nn::Model& model, const Gpt& size);

}  // namespace hone::benchmarks
