#include "runtime/library/arena.h"

#include <algorithm>

#include "base/checked.h"
#include "runtime/library/step_spec.h"

namespace hone {

namespace {

using plan::Buffer;

constexpr std::int64_t kAlignment = 64;  // of a loop state, as of everything that is placed

bool is_known(const Dim& size, const DimBindings& sizes) {
  const std::vector<std::string> symbols = size.symbols();
  return std::all_of(symbols.begin(), symbols.end(), [&](const std::string& symbol) { return sizes.contains(symbol); });
}

class Measure {
 public:
  Measure(const plan::Entry& entry, const DimBindings& sizes) : entry_(entry), sizes_(sizes) {}

  std::optional<ArenaSize> run() {
    for (const Buffer& buffer : entry_.buffers) {
      if (not std::all_of(buffer.shape.begin(), buffer.shape.end(), [&](const Dim& dim) { return is_known(dim, sizes_); })) return std::nullopt;
      bytes_.push_back(buffer.opaque ? 0 : element_count(buffer.shape).evaluate(sizes_) * static_cast<std::int64_t>(size_of(buffer.dtype)));
    }
    for (std::uint32_t i = 0; i < entry_.steps.size(); ++i) {
      if (const auto* library = std::get_if<plan::LibraryStep>(&entry_.steps[i].what)) size_workspaces(*library);
      if (const auto* region = std::get_if<plan::RegionStep>(&entry_.steps[i].what); region != nullptr and not add_region(*region, i)) return std::nullopt;
    }
    for (std::size_t i = 0; i < bytes_.size(); ++i)
      if (const Buffer& buffer = entry_.buffers[i]; buffer.storage == Buffer::Storage::kArena)
        intervals_.push_back({buffer.first_step, buffer.last_step, bytes_[i]});
    const plan::Placement placement = plan::place_buffers(intervals_);
    return ArenaSize{placement.total + bodies_.bytes, placement.lower_bound + bodies_.lower_bound};
  }

 private:
  TensorType type_of(std::uint32_t buffer) const {
    const Buffer& b = entry_.buffers[buffer];
    return {.dtype = b.dtype, .shape = evaluate(b.shape, sizes_)};
  }

  /// What is opaque is as large as the call that writes it says.
  void size_workspaces(const plan::LibraryStep& step) {
    const auto is_opaque = [&](std::uint32_t result) { return entry_.buffers[result].opaque; };
    if (std::none_of(step.results.begin(), step.results.end(), is_opaque)) return;
    const auto call = find_library_row(step.row)->make(library_spec(step, sizes_, [this](std::uint32_t buffer) { return type_of(buffer); }));
    for (std::size_t i = 0; i < step.results.size(); ++i)
      if (is_opaque(step.results[i]))
        bytes_[step.results[i]] = std::max(bytes_[step.results[i]], checked_cast<std::int64_t>(call->description().result_bytes[i], "a workspace"));
  }

  /// A loop's states, twice, live during its step; its body has an arena of its own.
  bool add_region(const plan::RegionStep& step, std::uint32_t number) {
    const std::size_t first = step.kind == plan::RegionStep::Kind::kScan ? 0 : 1;
    std::int64_t states = 0;
    for (std::size_t i = 0; i < step.states; ++i) {
      const std::int64_t bytes = bytes_[static_cast<std::size_t>(step.operands[first + i])];
      states += (bytes + kAlignment - 1) / kAlignment * kAlignment;
    }
    intervals_.push_back({number, number, 2 * states});
    for (const plan::Entry& body : step.bodies) {
      const auto size = arena_size(body, sizes_);
      if (not size) return false;
      bodies_.bytes += size->bytes, bodies_.lower_bound += size->lower_bound;
    }
    return true;
  }

  const plan::Entry& entry_;
  const DimBindings& sizes_;
  std::vector<std::int64_t> bytes_;  // by buffer
  std::vector<plan::Interval> intervals_;
  ArenaSize bodies_;
};

}  // namespace

std::optional<ArenaSize> arena_size(const plan::Entry& entry, const DimBindings& sizes) { return Measure(entry, sizes).run(); }

}  // namespace hone
