#include "tools/output_file.h"

#include <fmt/format.h>
#include <fnmatch.h>

#include <algorithm>
#include <filesystem>

#include "base/diag.h"
#include "base/text.h"

namespace hone {

namespace {

/// Of the files that commands read or write, and of other frameworks' models.
constexpr std::string_view kKnownEndings[] = {".onnx", ".safetensors", ".hone", ".hir", ".toml", ".json", ".npy", ".npz", ".csv", ".tsv", ".gz", ".idx", ".tar", ".bin", ".h5", ".hdf5", ".keras", ".pt", ".pth", ".ckpt", ".pb", ".tflite"};

bool is_same_file(const std::string& a, const std::string& b) {
  std::error_code error;
  return a == b or (std::filesystem::equivalent(a, b, error) and not error);
}

}  // namespace

void check_ending(std::string_view flag, const std::string& path, const OutputKind& kind) {
  const std::string name = lower_case(path);
  const std::vector<std::string> own = split(std::string(kind.endings), ' ');
  if (std::ranges::any_of(own, [&](const std::string& ending) { return name.ends_with(ending); })) return;
  const auto* const other = std::ranges::find_if(kKnownEndings, [&](std::string_view ending) { return name.ends_with(ending); });
  if (other == std::end(kKnownEndings)) return;
  throw Error(Code::kUsage, fmt::format("{} {}: {}", flag, quoted(path), kind.what), {}, {fmt::format("write to another name: Hone writes no {} file here", *other)});
}

void check_is_no_input(std::string_view flag, const std::string& path, std::span<const std::string> inputs) {
  for (const std::string& input : inputs)
    if (not input.empty() and path != "-" and (is_same_file(path, input) or fnmatch(input.c_str(), path.c_str(), FNM_PATHNAME) == 0))
      throw Error(Code::kUsage, fmt::format("{} {}: that is a file which this command reads, and it would be lost", flag, quoted(path)), {}, {"write to another name"});
}

}  // namespace hone
