#include "tools/output_file.h"

#include <fmt/format.h>
#include <fnmatch.h>

#include <filesystem>

#include "base/diag.h"
#include "base/text.h"

namespace hone {

namespace {

bool is_same_file(const std::string& a, const std::string& b) {
  std::error_code error;
  const auto plain = [](const std::string& path) { return std::filesystem::path(path).lexically_normal(); };
  return plain(a) == plain(b) or (std::filesystem::equivalent(a, b, error) and not error);
}

}  // namespace

void check_is_no_input(std::string_view flag, const std::string& path, std::span<const std::string> inputs) {
  for (const std::string& input : inputs)
    if (not input.empty() and path != "-" and (is_same_file(path, input) or fnmatch(input.c_str(), path.c_str(), FNM_PATHNAME) == 0))
      throw Error(Code::kUsage, fmt::format("{} {}: that is a file which this command reads, and it would be lost", flag, quoted(path)), {}, {"write to another name"});
}

void check_differ(std::span<const std::pair<std::string_view, std::string>> outputs) {
  for (std::size_t i = 0; i < outputs.size(); ++i)
    for (std::size_t k = 0; k < i; ++k)
      if (const auto& [flag, path] = outputs[i]; not path.empty() and path != "/dev/null" and is_same_file(path, outputs[k].second))
        throw Error(Code::kUsage, fmt::format("{} {}: that is also what {} writes, and one of the two would be lost", flag, quoted(path), outputs[k].first), {}, {"write to another name"});
}

}  // namespace hone
