// Tensors whose bytes stand in a file beside the model. For formats/onnx_*.cc only.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "base/diag.h"
#include "base/files.h"
#include "formats/onnx.pb.h"

namespace hone {

bool is_external(const onnx::TensorProto& proto);

/// "initializer "fc1.weight"": what messages call a tensor.
std::string tensor_label(const onnx::TensorProto& proto);

/// The bytes of an external tensor; `needed` of them, when that is known, else what the model says or all from the offset on. The location must be a relative
/// path without "..", through no symbolic link, to a regular file. Throws kBadWeight.
struct ExternalBytes {
  MappedFile file;
  std::span<const std::byte> bytes;
};
ExternalBytes read_external(const onnx::TensorProto& proto, const std::string& model_folder, std::optional<std::uint64_t> needed, const Loc& loc);

/// Makes `proto` refer to bytes in `location`, instead of whatever form was there.
void set_external(onnx::TensorProto* proto, const std::string& location, std::uint64_t offset, std::uint64_t length);

/// Removes the values, whatever form they have.
void clear_values(onnx::TensorProto* proto);

}  // namespace hone
