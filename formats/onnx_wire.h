// A look at the bytes of an ONNX file before protobuf builds objects from them: where the file is damaged, in words, and
// whether it was made to exhaust memory (an empty message takes two bytes in the file and hundreds in memory).
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>

namespace hone {

/// What is wrong with the bytes as an ONNX model, such as "it ends inside graph.initializer 3, 512 bytes too early"; nothing if all
/// lengths fit. Throws kTooLarge, beginning with `name`, beyond limits::kNodes, kProtobufParts or kProtobufDepth.
std::optional<std::string> find_wire_damage(std::span<const std::byte> bytes, const std::string& name);

}  // namespace hone
