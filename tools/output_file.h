// Names of files that a command writes: a slip must not cost what it reads.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace hone {

/// A kind of file that commands write, and what is no name for one: the endings of what else there is.
struct OutputKind {
  std::string_view what;     ///< "a trained model is written as .onnx, or its weights alone as .safetensors"
  std::string_view endings;  ///< those that it may have, with blanks between
};
inline constexpr OutputKind kPlanFile = {"a plan's name ends in .hone", ".hone"};
inline constexpr OutputKind kTrainedFile = {"a trained model is written as .onnx, or its weights alone as .safetensors", ".onnx .safetensors"};

/// Throws Error kUsage where `path`, which `flag` names, has the ending of another kind of file.
void check_ending(std::string_view flag, const std::string& path, const OutputKind& kind);

/// Throws Error kUsage where `path`, which `flag` names, is one of the files that the command reads: it would be lost. Their names may have "*" and "?".
void check_is_no_input(std::string_view flag, const std::string& path, std::span<const std::string> inputs);

}  // namespace hone
