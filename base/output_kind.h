// Names of files that are written: one that says another kind of file is a slip, which whoever reads it by its name would pay for.
#pragma once

#include <string>
#include <string_view>

namespace hone {

/// A kind of file that Hone writes, and what is no name for one: the endings of what else there is.
struct OutputKind {
  std::string_view what;     ///< "a trained model is written as .onnx, or its weights alone as .safetensors"
  std::string_view endings;  ///< those that it may have, with blanks between
};
inline constexpr OutputKind kPlanFile = {"a plan's name ends in .hone", ".hone"};
inline constexpr OutputKind kModelFile = {"a model is written as .onnx", ".onnx"};
inline constexpr OutputKind kTrainedFile = {"a trained model is written as .onnx, or its weights alone as .safetensors", ".onnx .safetensors"};

/// Throws Error kUsage where `path`, which `flag` (or a function) was given, has the ending of another kind of file.
void check_ending(std::string_view flag, const std::string& path, const OutputKind& kind);

}  // namespace hone
