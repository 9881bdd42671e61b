#include "runtime/library/arena.h"

#include <algorithm>

#include "base/alignment.h"
#include "base/checked.h"
#include "runtime/library/check_calls.h"
#include "runtime/library/step_spec.h"

namespace hone {

namespace {

using plan::Buffer;

bool is_known(const Dim& size, const DimBindings& sizes) {
  const std::vector<std::string> symbols = size.symbols();
  return std::all_of(symbols.begin(), symbols.end(), [&](const std::string& symbol) { return sizes.contains(symbol); });
}

std::int64_t placed_bytes(std::int64_t bytes) { return round_up(bytes, kTensorAlignment, "the arena"); }

template <typename Call>
LibrarySpec spec_of(const plan::Entry& entry, const Call& step, const DimBindings& sizes) {
  return library_spec(step, sizes, [&](std::uint32_t buffer) { return TensorType{.dtype = entry.buffers[buffer].dtype, .shape = evaluate(entry.buffers[buffer].shape, sizes)}; });
}

LibraryDescription describe(const plan::Entry& entry, const plan::LibraryStep& step, const DimBindings& sizes) {
  const LibraryRow& row = row_of_plan(step.row, "");
  const LibrarySpec spec = spec_of(entry, step, sizes);
  check_call(row, spec, "");
  return row.describe(spec);
}

class Measure {
 public:
  Measure(const plan::Entry& entry, const DimBindings& sizes) : entry_(entry), sizes_(sizes) {}

  std::optional<ArenaNeeds> run() {
    for (const Buffer& buffer : entry_.buffers) {
      if (not std::all_of(buffer.shape.begin(), buffer.shape.end(), [&](const Dim& dim) { return is_known(dim, sizes_); })) return std::nullopt;
      needs_.buffers.push_back(buffer.opaque ? 0 : element_count(buffer.shape).evaluate(sizes_) * static_cast<std::int64_t>(size_of(buffer.dtype)));
    }
    needs_.steps.resize(entry_.steps.size());
    for (std::uint32_t i = 0; i < entry_.steps.size(); ++i) {
      if (const auto* library = std::get_if<plan::LibraryStep>(&entry_.steps[i].what)) size_workspaces(*library);
      if (const auto* region = std::get_if<plan::RegionStep>(&entry_.steps[i].what); region != nullptr and not add_region(*region, i)) return std::nullopt;
    }
    return std::move(needs_);
  }

 private:
  /// What is opaque is as large as the call that writes it says.
  void size_workspaces(const plan::LibraryStep& step) {
    const auto is_opaque = [&](std::uint32_t result) { return entry_.buffers[result].opaque; };
    if (std::none_of(step.results.begin(), step.results.end(), is_opaque)) return;
    const LibraryDescription description = describe(entry_, step, sizes_);
    for (std::size_t i = 0; i < step.results.size(); ++i) {
      std::int64_t& bytes = needs_.buffers[step.results[i]];
      if (is_opaque(step.results[i])) bytes = std::max(bytes, checked_cast<std::int64_t>(description.result_bytes[i], "a workspace"));
    }
  }

  /// A loop's states, twice, live during its step; its body has an arena of its own. That of a call takes nothing where the call is made.
  bool add_region(const plan::RegionStep& step, std::uint32_t number) {
    if (step.kind == plan::RegionStep::Kind::kCall) return true;
    const std::size_t first = step.kind == plan::RegionStep::Kind::kScan ? 0 : 1;
    std::int64_t states = 0;
    for (std::size_t i = 0; i < step.states; ++i) states += placed_bytes(needs_.buffers[static_cast<std::size_t>(step.operands[first + i])]);
    needs_.steps[number] = 2 * states;
    for (const plan::Entry& body : step.bodies) {
      const auto size = arena_size(body, sizes_);
      if (not size) return false;
      needs_.bodies.bytes += size->bytes, needs_.bodies.lower_bound += size->lower_bound;
    }
    return true;
  }

  const plan::Entry& entry_;
  const DimBindings& sizes_;
  ArenaNeeds needs_;
};

}  // namespace

DimBindings sizes_for(const std::string& batch_symbol, std::int64_t batch) {
  DimBindings sizes;
  if (not batch_symbol.empty()) sizes[batch_symbol] = batch;
  return sizes;
}

std::optional<ArenaNeeds> arena_needs(const plan::Entry& entry, const DimBindings& sizes) { return Measure(entry, sizes).run(); }

std::optional<ArenaSize> arena_size(const plan::Entry& entry, const DimBindings& sizes) {
  const std::optional<ArenaNeeds> needs = arena_needs(entry, sizes);
  if (not needs) return std::nullopt;
  std::vector<plan::Interval> intervals;
  for (std::size_t i = 0; i < entry.buffers.size(); ++i)
    if (const Buffer& buffer = entry.buffers[i]; buffer.storage == Buffer::Storage::kArena) intervals.push_back({buffer.first_step, buffer.last_step, needs->buffers[i]});
  for (std::uint32_t i = 0; i < entry.steps.size(); ++i)
    if (std::holds_alternative<plan::RegionStep>(entry.steps[i].what)) intervals.push_back({i, i, needs->steps[i]});
  const plan::Placement placement = plan::place_buffers(intervals);
  return ArenaSize{placement.total + needs->bodies.bytes, placement.lower_bound + needs->bodies.lower_bound};
}

std::int64_t library_scratch(const plan::Entry& entry, const DimBindings& sizes) {
  std::int64_t bytes = 0, bodies = 0;
  for (const plan::Step& step : entry.steps) {
    const auto* region = std::get_if<plan::RegionStep>(&step.what);
    if (region != nullptr and region->kind == plan::RegionStep::Kind::kCall)
      bytes = std::max(bytes, placed_bytes(checked_cast<std::int64_t>(device_scratch(row_of_plan(region->row, step.origin), spec_of(entry, plan::library_call(*region), sizes)), "library scratch") + kDeviceScratchAlignment));
    else if (region != nullptr)
      for (const plan::Entry& body : region->bodies) bodies = checked_add(bodies, library_scratch(body, sizes), "library scratch");  // plan::check limits the depth
    if (const auto* library = std::get_if<plan::LibraryStep>(&step.what)) {
      const LibraryRow& row = row_of_plan(library->row, step.origin);
      const bool on_device = not row.device_library.empty();
      const std::size_t both = library->epilogue ? device_scratch(row_of_plan(library->epilogue->row, step.origin), spec_of(entry, *library->epilogue, sizes)) : 0;
      const std::size_t scratch = on_device ? std::max(both, device_scratch(row, spec_of(entry, *library, sizes))) + kDeviceScratchAlignment : describe(entry, *library, sizes).scratch_bytes;
      bytes = std::max(bytes, placed_bytes(checked_cast<std::int64_t>(scratch, "library scratch")));
    }
  }
  return bytes + bodies;
}

std::int64_t fed_bytes(const plan::Entry& entry, const DimBindings& sizes) {
  std::int64_t bytes = 0;
  for (const plan::Feed& feed : entry.feeds) bytes = checked_add(bytes, placed_bytes(element_count(feed.shape).evaluate(sizes) * static_cast<std::int64_t>(size_of(feed.dtype))), "the feeds");
  return bytes;
}

double library_operations(const plan::Entry& entry, const plan::LibraryStep& step, const DimBindings& sizes) {
  return row_of_plan(step.row, "").operations(spec_of(entry, step, sizes));
}

std::int64_t persistent_bytes(std::span<const plan::Persistent> persistents) {
  std::int64_t bytes = 0;
  for (const plan::Persistent& persistent : persistents) bytes = checked_add(bytes, placed_bytes(static_cast<std::int64_t>(persistent.initial.byte_count())), "the weights");
  return bytes;
}

}  // namespace hone
