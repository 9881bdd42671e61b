// Trained weights out into the model that came in, and back from such a file.
#pragma once

#include <cstddef>
#include <span>
#include <string>

#include "base/tensor.h"
#include "formats/onnx_file.h"
#include "runtime/plan/plan.h"
#include "runtime/session.h"
#include "runtime/train/weights.h"

namespace hone {

/// The model in the bytes of Plan::onnx_model with the values of every persistent that stands in it (Persistent::in_model), each in the model's own
/// element type and shape. Everything else is as it came: names, opset, nodes, fields that Hone does not know. Throws kPlanFormat when the plan's model
/// lacks one of them, or has a tensor without values that is none of them.
onnx::ModelProto trained_model(std::span<const std::byte> onnx_model, const plan::Program& program, const ReadWeight& read);

/// That trained_model() will find its tensors: what is wrong with a plan is said before it is trained. Throws what that throws.
void check_model(std::span<const std::byte> onnx_model, const plan::Program& program);

/// Writes it to `path`, atomically, with the session's weights as read_for_others() gives them. Throws kFileOpen, kFileWrite too, and what the reader throws.
void export_onnx(std::span<const std::byte> onnx_model, Session& session, const std::string& path, const StateReader& reader = {});

/// Every tensor with a name in an .onnx file, as export_onnx() writes it. Throws what load_model() throws.
StoredWeights weights_in_onnx(const std::string& path);

}  // namespace hone
