#include "base/output_kind.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/diag.h"
#include "base/text.h"

namespace hone {

namespace {

/// Of the files that Hone reads or writes, and of other frameworks' models.
constexpr std::string_view kKnownEndings[] = {".onnx", ".safetensors", ".hone", ".hir", ".toml", ".json", ".npy", ".npz", ".csv", ".tsv", ".gz", ".idx", ".tar", ".bin", ".h5", ".hdf5", ".keras", ".pt", ".pth", ".ckpt", ".pb", ".tflite"};

}  // namespace

void check_ending(std::string_view flag, const std::string& path, const OutputKind& kind) {
  const std::string name = lower_case(path);
  const std::vector<std::string> own = split(std::string(kind.endings), ' ');
  if (std::ranges::any_of(own, [&](const std::string& ending) { return name.ends_with(ending); })) return;
  const auto* const other = std::ranges::find_if(kKnownEndings, [&](std::string_view ending) { return name.ends_with(ending); });
  if (other == std::end(kKnownEndings)) return;
  throw Error(Code::kUsage, fmt::format("{} {}: {}", flag, quoted(path), kind.what), {}, {fmt::format("write to another name: Hone writes no {} file here", *other)});
}

}  // namespace hone
