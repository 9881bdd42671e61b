// Attention heads that come packed in the last axis.
#pragma once

#include "frontend/onnx/node.h"

namespace hone::onnx {

/// The attribute `name`, a number of heads. Throws kBadAttribute when it is missing.
std::int64_t heads_of(const ImportNode& node, std::string_view name);
/// x[B,S,H*D] as [B,H,S,D].
Val split_heads(const ImportNode& node, Val x, std::int64_t heads);
/// x[B,H,S,D] as [B,S,H*D].
Val join_heads(Val x);

/// x[...,first], x[...,first+step], ...: `count` of them.
Val features(Val x, Dim first, Dim count, std::int64_t step = 1);
/// The positions of a sequence, 0, 1, ... along `axis` of a tensor of four axes.
Val sequence_positions(Builder& builder, Dim count, std::size_t axis);

/// A rotary embedding of x[B,H,S,D]: features of each head are turned in pairs, neighbours if the attribute `interleaved` says so, else one of each half; those beyond the attribute
/// rotary_embedding_dim stay. `cosine` and `sine` of the angles broadcast to [B,H,S,angles].
Val turn_pairs(const ImportNode& node, Val x, Val cosine, Val sine);

}  // namespace hone::onnx
