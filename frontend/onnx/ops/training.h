// The rows of domain ai.onnx.preview.training.
#pragma once

#include "frontend/onnx/ops.h"

namespace hone::onnx {

std::span<const Importer> training_importers();

}  // namespace hone::onnx
