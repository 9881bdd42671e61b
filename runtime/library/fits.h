// What the rows' tables say of types, ranks and attributes, and how the sizes of their calls must go together.
#pragma once

#include <string>

#include "base/call_rules.h"
#include "runtime/library/rows.h"

namespace hone::fits {

extern const CallRules kMatmul, kConv, kConvInputGrad, kConvWeightGrad, kMaxPool, kMaxPoolGrad, kAvgPool, kAvgPoolGrad;
extern const CallRules kDeviceMatmul, kMatmulBias, kMatmulBiasGrad, kDeviceConv, kDeviceConvInputGrad, kDeviceConvWeightGrad, kAttention, kAttentionGrad, kRecurrent, kRecurrentGrad;

// For calls that the rules allow: "", or which sizes do not go together.
std::string matmul(const LibrarySpec& spec);
std::string matmul_bias(const LibrarySpec& spec);
std::string matmul_bias_grad(const LibrarySpec& spec);
std::string conv(const LibrarySpec& spec);
std::string conv_input_grad(const LibrarySpec& spec);
std::string conv_weight_grad(const LibrarySpec& spec);
std::string attention(const LibrarySpec& spec);
std::string attention_grad(const LibrarySpec& spec);
std::string recurrent(const LibrarySpec& spec);
std::string recurrent_grad(const LibrarySpec& spec);
std::string pool(const LibrarySpec& spec);
std::string pool_grad(const LibrarySpec& spec);

}  // namespace hone::fits
