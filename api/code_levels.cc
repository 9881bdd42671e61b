#include "api/code_levels.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/diag.h"
#include "base/text.h"
#include "runtime/device/cpu.h"

namespace hone {

CodeLevels code_levels(std::span<const std::string> names) {
  static constexpr std::string_view kGpus[] = {"sm_80", "sm_86", "sm_87", "sm_89", "sm_90"};
  CodeLevels named{.cpu = {}, .gpu = {}};
  for (const std::string& name : names) {
    if (name == kNativeLevel) named.cpu.emplace_back(to_string(host_cpu_level()));
    else if (cpu_level_from_name(name)) named.cpu.push_back(name);
    else if (std::ranges::find(kGpus, name) != std::end(kGpus)) named.gpu.push_back(name);
    else throw Error(Code::kUsage, fmt::format("--levels {}: no such level", quoted(name)), {}, {fmt::format("levels: {}, {}; of GPUs {}", fmt::join(cpu_level_names(), ", "), kNativeLevel, fmt::join(kGpus, ", "))});
  }
  const CodeLevels usual;
  return {.cpu = named.cpu.empty() ? usual.cpu : named.cpu, .gpu = named.gpu.empty() ? usual.gpu : named.gpu};
}

}  // namespace hone
