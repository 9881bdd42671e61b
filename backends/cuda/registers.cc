#include "backends/cuda/registers.h"

#include <fmt/format.h>

#include <algorithm>
#include <tuple>
#include <utility>

namespace hone {

namespace {

/// Blocks that must be able to run at a time, each a weaker demand than the one before. A multiprocessor has 65,536 registers, and 256 threads of a block make
/// it 64, 128 and 255 for each.
constexpr int kBlocksAtATime[] = {4, 2, 1};

/// What lies between the two words, or nothing.
std::string_view between(std::string_view text, std::string_view first, std::string_view last) {
  const std::size_t begin = text.find(first);
  if (begin == std::string_view::npos) return {};
  text.remove_prefix(begin + first.size());
  return text.substr(0, std::min(text.find(last), text.size()));
}

}  // namespace

std::vector<std::string> spilling_kernels(std::string_view report) {
  std::vector<std::string> kernels;
  std::string_view kernel;
  for (std::string_view rest = report; not rest.empty();) {
    const std::string_view line = rest.substr(0, rest.find('\n'));
    rest.remove_prefix(std::min(line.size() + 1, rest.size()));
    if (const std::string_view name = between(line, "Compiling entry function '", "'"); not name.empty()) kernel = name;
    const std::string_view spilled = between(line, "stack frame, ", " bytes spill stores");
    if (not spilled.empty() and spilled != "0") kernels.emplace_back(kernel);
  }
  return kernels;
}

std::string with_blocks_at_a_time(std::string_view ptx, const std::map<std::string, int, std::less<>>& kernels) {
  constexpr std::string_view kEntry = ".entry ", kBody = "\n{";
  std::string result;
  while (true) {
    const std::size_t entry = ptx.find(kEntry);
    const std::size_t body = entry == std::string_view::npos ? entry : ptx.find(kBody, entry);
    if (body == std::string_view::npos) return result.append(ptx);
    const std::string_view name = between(ptx.substr(entry), kEntry, "(");
    result.append(ptx.substr(0, body));
    if (const auto kernel = kernels.find(name); kernel != kernels.end()) result += fmt::format("\n.minnctapersm {}", kernel->second);
    result.append(kBody);
    ptx.remove_prefix(body + kBody.size());
  }
}

Roomy without_spills(const std::string& ptxas, std::string ptx, std::span<const std::string> gpus) {
  std::map<std::string, int, std::less<>> kernels;
  const auto assembled = [&] {
    Roomy roomy{.ptx = with_blocks_at_a_time(ptx, kernels), .assembled = {}};
    std::vector<std::string> spilling;
    for (const std::string& gpu : gpus) {
      Assembled now = assemble(ptxas, roomy.ptx, gpu);
      for (std::string& kernel : spilling_kernels(now.report)) spilling.push_back(std::move(kernel));
      if (&gpu == &gpus.front()) roomy.assembled = std::move(now);
    }
    return std::pair(std::move(roomy), std::move(spilling));
  };
  auto [roomy, spilling] = assembled();
  for (const int blocks : kBlocksAtATime) {
    if (spilling.empty()) break;
    for (std::string& kernel : spilling) kernels[std::move(kernel)] = blocks;
    std::tie(roomy, spilling) = assembled();
  }
  return std::move(roomy);
}

}  // namespace hone
