// RNN, LSTM, GRU.
#include "frontend/onnx/ops.h"
#include "ir/ops/ops.h"

namespace hone::onnx {

std::span<const Importer> recurrent_importers() {
  return {};
}

}  // namespace hone::onnx
