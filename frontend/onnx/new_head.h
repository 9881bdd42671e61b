// A fresh last layer for other classes: what fine-tuning begins with.
#pragma once

#include <cstdint>
#include <string>

#include "base/diag.h"
#include "formats/onnx.pb.h"

namespace hone::onnx {

struct NewHead {
  std::int64_t classes = 0;  ///< 0: the head stays
  std::string output = {};   ///< the one that it is behind; "": the only one
  std::uint64_t seed = 0;    ///< of its weights
};

/// Draws the weight of the last layer (Gemm, MatMul or Conv, with pooling, Softmax and the like behind it) anew for so many classes, Glorot-uniform, with a bias of zeros, under
/// the names that they had; sizes that are written out behind it follow; a warning tells. Throws kRecipeModel where no such layer is found, others use its weight, or sizes are
/// ambiguous.
void replace_head(ModelProto& model, const NewHead& wanted, Diags& diags);

}  // namespace hone::onnx
