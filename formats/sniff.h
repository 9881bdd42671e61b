// What a file is, by its first bytes: for messages about a file that is not what it should be.
#pragma once

#include <cstddef>
#include <span>
#include <string>

namespace hone {

/// "a zip archive, perhaps a PyTorch .pt file", "text", "a NumPy .npy file", "empty", ...; empty when nothing is recognized.
std::string describe_content(std::span<const std::byte> bytes);

/// A note that tells what to do about such a file where an ONNX model is wanted; may be empty.
std::string onnx_advice(std::span<const std::byte> bytes);

}  // namespace hone
