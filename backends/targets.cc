#include "backends/targets.h"

#include <fmt/format.h>

#include "backends/cpu/cpu_target.h"
#include "backends/cuda/cuda_target.h"
#include "base/diag.h"
#include "base/other_names.h"
#include "base/text.h"

namespace hone {

std::span<const Backend* const> all_backends() {
  static const CpuTarget cpu;
  static const CudaTarget cuda;
  static const SimTarget sim;
  static const Backend* const all[] = {&cpu, &cuda, &sim};
  return all;
}

const Backend& find_backend(std::string_view name) {
  std::vector<std::string> names;
  for (const Backend* backend : all_backends()) {
    if (backend->name() == name) return *backend;
    names.emplace_back(backend->name());
  }
  const std::string other = hint_for_other_name("--target", name);
  throw Error(Code::kUsage, fmt::format("--target {}: there is no such target", quoted(name)), {}, {other.empty() ? did_you_mean(name, names) : other, "targets: " + quoted_list(names)});
}

}  // namespace hone
