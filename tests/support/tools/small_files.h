// Small models, recipes and data for tests of the tools: each is written under a fixed name into a folder.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "tests/support/temp_folder.h"

namespace hone::test {

/// mlp.onnx: x f32[N,4] -> logits f32[N,3], weights dense/kernel, dense/bias, dense_1/kernel, dense_1/bias; train.toml; x.npy (10 samples) and y.npy (their
/// classes).
void write_mlp(const TempFolder& folder);
/// write_mlp() and mlp.hone, compiled from it.
void write_mlp_plan(const TempFolder& folder);

/// As keras_reuters_cnn is made: ids.onnx with ids i32[N,12] -> embedding of 50 words -> conv -> global pooling -> 4 classes; train.toml, ids.npy, y.npy (10
/// samples), ids.hone.
void write_ids_plan(const TempFolder& folder);

/// conv.onnx: image f32[N,1,8,8] -> conv, batch_norm, relu, max_pool, dense -> logits f32[N,3]; train.toml, x.npy and y.npy (50 samples that can be learned).
void write_conv_net(const TempFolder& folder);
/// write_conv_net() and conv.hone, compiled from it.
void write_conv_plan(const TempFolder& folder);

/// Softmax cross-entropy, adam, accuracy, batches of 4, as train.toml.
void write_recipe(const TempFolder& folder);

/// What a run that is resumed or split could get wrong, as train.toml: dropout, shuffling in 5 epochs, adam with warm-up, accuracy. `model` stands before it, `train` behind [train].
void write_demanding_recipe(const TempFolder& folder, int batch_size, const std::string& train = "", const std::string& model = "");

/// f32 values around 0 that differ from each other.
void write_floats(const TempFolder& folder, const std::string& name, std::vector<std::int64_t> shape);
/// i64: 0 to classes - 1, again and again.
void write_classes(const TempFolder& folder, const std::string& name, std::int64_t count, std::int64_t classes);
/// i64 values.
void write_integers(const TempFolder& folder, const std::string& name, std::vector<std::int64_t> values);

}  // namespace hone::test
