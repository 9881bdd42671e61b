#include "backends/memory_use.h"

#include <algorithm>

#include "backends/llvm/emit.h"
#include "backends/parts.h"
#include "base/checked.h"
#include "runtime/library/arena.h"

namespace hone {

namespace {

using plan::Buffer;

constexpr std::int64_t kAlignment = 64;  // of what place_buffers() places

void add_once(std::vector<std::uint32_t>& list, std::uint32_t number) {
  if (std::ranges::find(list, number) == list.end()) list.push_back(number);
}

/// Arithmetic of all steps, in additions.
std::vector<double> operations_of(const plan::Entry& entry, const KernelSet& kernels, const DimBindings& sizes) {
  std::vector<double> list;
  for (const plan::Step& step : entry.steps) {
    double& operations = list.emplace_back(0);
    if (const auto* kernel = std::get_if<plan::KernelStep>(&step.what)) operations = static_cast<double>(kernel->work.evaluate(sizes)) * arithmetic_share(kernels.find(kernel->symbol));
    else if (const auto* library = std::get_if<plan::LibraryStep>(&step.what)) {
      operations = library_operations(entry, *library, sizes);
      if (library->epilogue) operations += static_cast<double>(library->epilogue->kernel.work.evaluate(sizes)) * arithmetic_share(kernels.find(library->epilogue->kernel.symbol));
    }
    else if (const auto* region = std::get_if<plan::RegionStep>(&step.what))
      for (const plan::Entry& body : region->bodies)  // the verifier limits the depth
        for (const double each : operations_of(body, kernels, sizes)) operations += each * static_cast<double>(region->trips.evaluate(sizes));
  }
  return list;
}

class Analysis {
 public:
  Analysis(const plan::Entry& entry, const KernelSet& kernels, const DimBindings& sizes, const ArenaNeeds& needs) : entry_(entry), kernels_(kernels), needs_(needs), may_be_shared_(entry.buffers.size(), true) {
    use_.roots.resize(entry.buffers.size());
    use_.changes.resize(entry.buffers.size());
    use_.bodies = needs.bodies.bytes;
    writers_.resize(entry.buffers.size());
    const std::vector<double> operations = operations_of(entry, kernels, sizes);
    for (std::uint32_t i = 0; i < entry.steps.size(); ++i) {
      add_step(i);
      use_.steps[i].operations = operations[i];
      use_.operations += operations[i];
    }
  }

  MemoryUse run() {
    keep_to_the_end();
    for (std::uint32_t r = 0; r < use_.roots.size(); ++r) {
      MemoryUse::Root& root = use_.roots[r];
      std::ranges::sort(root.steps);
      root.steps.erase(std::ranges::unique(root.steps).begin(), root.steps.end());
      root.first_interval = use_.intervals;
      use_.intervals += root.steps.size();
    }
    for (std::uint32_t i = 0; i < entry_.steps.size(); ++i) find_in_place(i);
    for (std::uint32_t i = 0; i < entry_.steps.size(); ++i) {
      if (not can_run_again(i)) continue;
      for (const std::uint32_t written : use_.steps[i].writes) use_.roots[written].can_be_made_again = is_plain(written);
    }
    return std::move(use_);
  }

 private:
  bool is_in_arena(std::uint32_t root) const { return entry_.buffers[root].storage == Buffer::Storage::kArena; }

  void add_step(std::uint32_t number) {
    MemoryUse::Step& step = use_.steps.emplace_back();
    step.bytes = needs_.steps[number];
    for_each_root(entry_, entry_.steps[number], [&](std::uint32_t root, bool reads, bool writes) {
      if (is_in_arena(root)) {
        MemoryUse::Root& used = use_.roots[root];
        const bool makes = used.steps.empty() or used.steps.front() == number;
        used.bytes = checked_add(needs_.buffers[root], kAlignment - 1, "the arena") / kAlignment * kAlignment;
        used.steps.push_back(number);
        if (writes) add_once(writers_[root], number), add_once(step.writes, root);
        if (reads and not(writes and makes)) add_once(step.reads, root);
        return;
      }
      if (entry_.buffers[root].storage != Buffer::Storage::kPersistent) return;
      if (writes) add_once(use_.changes[root], number);
      if (reads) add_once(step.states, root);
    });
  }

  /// Results live to the last step, and what is exchanged until the exchange has ended; neither is made again.
  void keep_to_the_end() {
    const auto keep = [&](std::uint64_t buffer, std::uint32_t step) {
      const std::uint32_t root = plan::root_of(entry_, buffer);
      if (not is_in_arena(root)) return;
      may_be_shared_[root] = false;
      use_.roots[root].steps.push_back(step);
    };
    const auto end = static_cast<std::uint32_t>(entry_.steps.size());
    for (const plan::Result& result : entry_.results)
      if (end > 0) keep(result.buffer, end - 1);
    for (std::uint32_t i = 0; i < end; ++i) {
      const auto* exchange = std::get_if<plan::AllReduceStep>(&entry_.steps[i].what);
      if (exchange == nullptr) continue;
      const std::uint32_t last = exchange->collects ? i : plan::end_of_exchange(entry_, i) - 1;
      for (const std::uint32_t buffer : exchange->buffers) keep(buffer, last);
    }
  }

  /// Is it made by one step, and nobody's but the steps' that read it?
  bool is_plain(std::uint32_t root) const { return may_be_shared_[root] and writers_[root].size() == 1 and writers_[root][0] == use_.roots[root].steps.front(); }

  /// Does the step change nothing but what it makes, and is what it reads the same later?
  bool can_run_again(std::uint32_t number) const {
    const plan::Step& what = entry_.steps[number];
    const bool is_call = std::holds_alternative<plan::KernelStep>(what.what) or std::holds_alternative<plan::LibraryStep>(what.what) or
                         std::holds_alternative<plan::HostStep>(what.what) or std::holds_alternative<plan::CopyStep>(what.what);
    const MemoryUse::Step& step = use_.steps[number];
    const auto changes_it = [&](const std::vector<std::uint32_t>& steps) { return std::ranges::binary_search(steps, number); };
    return is_call and std::ranges::none_of(use_.changes, changes_it) and std::ranges::all_of(step.writes, [&](std::uint32_t root) { return is_plain(root); }) and
           std::ranges::all_of(step.reads, [&](std::uint32_t root) { return writers_[root].back() < number; });
  }

  /// Where a kernel's results may lie where its operands do.
  void find_in_place(std::uint32_t number) {
    const auto* call = std::get_if<plan::KernelStep>(&entry_.steps[number].what);
    if (call == nullptr) return;
    const Kernel& kernel = kernels_.find(call->symbol);
    std::vector<std::uint32_t> roots;
    for (const std::uint32_t buffer : call->buffers) roots.push_back(plan::root_of(entry_, buffer));
    for (std::uint32_t to = call->read_only; to < roots.size(); ++to) {
      if (not is_in_arena(roots[to]) or not is_plain(roots[to]) or std::ranges::count(roots, roots[to]) > 1) continue;
      for (std::uint32_t from = 0; from < call->read_only; ++from) {
        const std::uint32_t read = roots[from];
        if (not is_in_arena(read) or not is_plain(read) or use_.roots[read].bytes != use_.roots[roots[to]].bytes) continue;
        bool fits = true;
        for (std::uint32_t i = 0; fits and i < roots.size(); ++i) fits = roots[i] != read or may_share_memory(kernel, to, i);
        if (fits) use_.steps[number].in_place.emplace_back(roots[to], read);
      }
    }
  }

  const plan::Entry& entry_;
  const KernelSet& kernels_;
  const ArenaNeeds& needs_;
  MemoryUse use_;
  std::vector<std::vector<std::uint32_t>> writers_;  // by root: the steps that write to it
  std::vector<bool> may_be_shared_;                      // by root: may its memory be another's before and after
};

}  // namespace

std::size_t MemoryUse::interval_at(std::uint32_t root, std::uint32_t step) const {
  const Root& used = roots[root];
  const auto next = std::ranges::lower_bound(used.steps, step);
  return used.first_interval + static_cast<std::size_t>(next - used.steps.begin()) - 1;
}

std::optional<MemoryUse> memory_use(const plan::Entry& entry, const KernelSet& kernels, const DimBindings& sizes) {
  const bool reads_sizes = std::ranges::any_of(entry.steps, [](const plan::Step& step) { return std::holds_alternative<plan::ReadSizesStep>(step.what); });
  const std::optional<ArenaNeeds> needs = arena_needs(entry, sizes);
  if (not needs or reads_sizes) return std::nullopt;
  return Analysis(entry, kernels, sizes, *needs).run();
}

}  // namespace hone
