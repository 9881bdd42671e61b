#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/text.h"

#include "backends/schedule.h"

namespace hone {

namespace {

using plan::Buffer;

std::string name_of(const plan::Entry& entry, std::uint32_t buffer) {
  const Buffer& b = entry.buffers[buffer];
  return b.name.empty() ? fmt::format("b{}", buffer) : fmt::format("b{}:{}", buffer, b.name);
}

template <typename Ids>
std::string names_of(const plan::Entry& entry, const Ids& buffers) {
  std::string text;
  for (const auto buffer : buffers) text += (text.empty() ? "" : ", ") + (static_cast<std::int64_t>(buffer) < 0 ? std::string("-") : name_of(entry, static_cast<std::uint32_t>(buffer)));
  return text;
}

struct StepPrinter {
  const plan::Entry& entry;
  std::uint32_t number;
  std::string operator()(const plan::KernelStep& step) const { return fmt::format("kernel {}({}) over {}{}", step.symbol, names_of(entry, step.buffers), step.own_part ? "its part of " : "", step.range.text()); }
  std::string operator()(const plan::LibraryStep& step) const {
    const std::string otherwise = step.own_kernel ? fmt::format(", or kernel {}", step.own_kernel->symbol) : "";
    const std::string call = fmt::format("call {}({}) -> {}{}", step.row, names_of(entry, step.operands), names_of(entry, step.results), otherwise);
    if (not step.epilogue) return call;
    const plan::LibraryStep::Epilogue& both = *step.epilogue;
    return fmt::format("{}; then {}; or both as call {}({}) -> {}", call, (*this)(both.kernel), both.row, names_of(entry, both.operands), names_of(entry, both.results));
  }
  std::string operator()(const plan::HostStep& step) const { return fmt::format("host {}({}) -> {}", step.function, names_of(entry, step.operands), names_of(entry, step.results)); }
  std::string operator()(const plan::ReadSizesStep& step) const { return fmt::format("read {} from {}", fmt::join(step.symbols, ", "), name_of(entry, step.buffer)); }
  std::string operator()(const plan::RegionStep& step) const {
    if (step.kind == plan::RegionStep::Kind::kCall) return fmt::format("call {}({}) -> {}, or its body", step.row, names_of(entry, step.operands), names_of(entry, step.results));
    constexpr std::string_view kKinds[] = {"scan", "while", "branch"};
    std::string text = fmt::format("{}({}) -> {}", kKinds[static_cast<int>(step.kind)], names_of(entry, step.operands), names_of(entry, step.results));
    if (step.kind != plan::RegionStep::Kind::kBranch) text += fmt::format(", {}{} times", step.reverse ? "backwards, " : "", step.trips.text());
    return text;
  }
  std::string operator()(const plan::CopyStep& step) const { return fmt::format("copy {} -> {}", name_of(entry, step.from), name_of(entry, step.to)); }
  std::string operator()(const plan::AllReduceStep& step) const {
    if (step.collects) return fmt::format("collect {} (bucket {})", names_of(entry, step.buffers), step.bucket);
    return fmt::format("{} {} (bucket {}, until step {})", plan::to_string(step.operation), names_of(entry, step.buffers), step.bucket, plan::end_of_exchange(entry, number));
  }
};

std::string storage_of(const plan::Entry& entry, const Buffer& buffer, const std::vector<plan::Persistent>& persistents) {
  switch (buffer.storage) {
    case Buffer::Storage::kArena: return fmt::format("arena, steps {}..{}{}", buffer.first_step, buffer.last_step, buffer.opaque ? ", layout of its library call" : "");
    case Buffer::Storage::kPersistent: return fmt::format("persistent \"{}\"", persistents[buffer.index].name);
    case Buffer::Storage::kFeed: return fmt::format("feed \"{}\"", entry.feeds[buffer.index].name);
    case Buffer::Storage::kView: return "view of " + name_of(entry, buffer.index);
  }
  return "";
}

}  // namespace

std::string print(const plan::Entry& entry, const std::vector<plan::Persistent>& persistents) {
  std::string text = fmt::format("entry {}: {} steps, {} buffers\n", entry.name, entry.steps.size(), entry.buffers.size());
  for (std::uint32_t i = 0; i < entry.steps.size(); ++i) {
    text += fmt::format("  {:4}  {:<60}  // {}\n", i, std::visit(StepPrinter{entry, i}, entry.steps[i].what), entry.steps[i].origin);
    const auto* region = std::get_if<plan::RegionStep>(&entry.steps[i].what);
    if (region == nullptr) continue;
    for (const plan::Entry& body : region->bodies)
      for (const std::string& line : split(print(body, persistents), '\n')) text += line.empty() ? "" : "      | " + line + "\n";
  }
  for (const plan::Result& result : entry.results) text += fmt::format("  result \"{}\" = {}\n", result.name, name_of(entry, result.buffer));
  for (std::size_t i = 0; i < entry.buffers.size(); ++i) {
    const Buffer& buffer = entry.buffers[i];
    text += fmt::format("  {}: {}[{}]  {}\n", name_of(entry, static_cast<std::uint32_t>(i)), to_string(buffer.dtype), to_string(buffer.shape), storage_of(entry, buffer, persistents));
  }
  return text;
}

}  // namespace hone
