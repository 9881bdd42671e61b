// The rows cudnn.attention and cudnn.attention_grad: what their attributes and sizes say, and how the host plays them for tests.
#pragma once

#include "runtime/library/rows.h"

namespace hone {

/// Of queries [batches,heads,queries,features], keys [..,keys,features] and values [..,keys,value_features].
struct AttentionCase {
  std::int64_t batches = 0, heads = 0, queries = 0, keys = 0, features = 0, value_features = 0;
  float scale = 1;
  bool causal = false;
  std::optional<TensorType> bias;
};
/// Of a call of either row that LibraryRow::why_not() says nothing of.
AttentionCase attention_of(const LibrarySpec& spec);

AttentionCase one_head(AttentionCase of);
/// What cuDNN's gradient takes whose sums come in one order: for each query a sum, and the gradient of the scores, in tiles.
std::size_t shared_scratch(const AttentionCase& of);
std::size_t gradient_scratch(const AttentionCase& of);

std::unique_ptr<LibraryCall> create_attention(const LibrarySpec& spec);
std::unique_ptr<LibraryCall> create_attention_gradient(const LibrarySpec& spec);

}  // namespace hone
