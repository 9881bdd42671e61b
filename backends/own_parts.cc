#include "backends/own_parts.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "backends/llvm/reduction.h"
#include "backends/parts.h"
#include "base/check.h"
#include "base/text.h"
#include "ir/kernel/rebuild.h"

namespace hone {

namespace {

using plan::AllReduceStep;
using plan::Buffer;
using plan::Entry;
using plan::KernelStep;
using plan::Persistent;
using plan::Step;

constexpr std::int64_t kGatheredBytes = 25 << 20;  // as of a bucket of gradients: large enough that latency does not count, small enough to travel while updates go on

/// Is each of the kernel's buffers touched at the kernel's own point alone, element i of it at point i? None of a contraction's, which is worked out in tiles: a share of its points is a share
/// of the tiles, which reach beyond them.
std::vector<bool> touched_at_own_point(const Kernel& kernel) {
  std::vector<bool> own(kernel.buffers.size(), not has_contraction(kernel));
  const auto note = [&](std::uint32_t buffer, const std::vector<ExprId>& index) {
    const Shape& shape = kernel.buffers[buffer].shape;
    bool is_own = index.size() == kernel.outer_count and shape.size() == kernel.outer_count;
    for (std::uint32_t axis = 0; is_own and axis < kernel.outer_count; ++axis) {
      const Expr& along = kernel.exprs[index[axis]];
      is_own = along.op == ScalarOp::kIndex and along.slot == axis and shape[axis] == kernel.axes[axis].extent;
    }
    own[buffer] = own[buffer] and is_own;
  };
  const std::vector<bool> live = reachable(kernel);
  for (std::size_t i = 0; i < live.size(); ++i)
    if (const Expr& expr = kernel.exprs[ExprId(i)]; live[i] and expr.op == ScalarOp::kLoad) note(expr.slot, expr.index);
  for (const Phase& phase : kernel.phases)
    for (const Store& store : phase.stores) note(store.buffer, store.index), own[store.buffer] = own[store.buffer] and not phase.scatter;
  return own;
}

/// What replicas may share of the updates: everything at first, then less and less, until all that is shared fits together in all entries.
class Sharing {
 public:
  Sharing(const std::vector<Entry>& entries, const std::vector<Persistent>& persistents, const KernelSet& kernels) : persistents_(persistents), in_parts_(persistents.size()), because_(persistents.size()) {
    for (const Entry& entry : entries) {
      const bool updates = entry.name == plan::replica_entry(plan::kTrainStep) or entry.name == plan::replica_entry(plan::kTrainStepNorms) or entry.name == plan::idle_entry(plan::kTrainStep) or
                           entry.name == plan::idle_entry(plan::kTrainStepNorms);
      if (updates) updates_.push_back(look_at(entry, kernels));
    }
    for (const Update& update : updates_)
      for (std::size_t step = 0; step < update.steps.size(); ++step)
        for (const Touch& touch : update.steps[step].touches)
          if (const auto p = persistent_of(update, touch.root); p and touch.writes and can_be_in_parts(persistents[*p])) in_parts_[*p] = true;
    for (const Entry& entry : entries)
      if (not is_replaced(entry)) keep_states_whole(entry);
    while (restrict()) {}
  }

  bool any() const { return not updates_.empty(); }
  /// Of a weight: some kernels write a replica's part of it. Of a state: all do.
  bool in_parts(std::size_t persistent) const { return in_parts_[persistent]; }
  const std::string& because(std::size_t persistent) const { return because_[persistent]; }

  std::vector<Entry> entries() const {
    std::set<std::pair<std::string, std::int64_t>> whole;  // buckets, with the entry's end: with samples and without, replicas exchange alike
    for (const Update& update : updates_)
      for (std::size_t i = 0; i < update.steps.size(); ++i)
        if (const auto* exchange = exchange_at(update, i); exchange != nullptr and not can_scatter(update, i)) whole.emplace(kind_of(update), exchange->bucket);
    const std::vector<std::vector<std::uint32_t>> gathers = gathered_together();
    std::vector<Entry> made;
    for (const Update& update : updates_) made.push_back(entry_of(update, whole, gathers));
    return made;
  }

 private:
  struct Touch {
    std::uint32_t root = 0;
    bool reads = false, writes = false;
    bool at_own_point = false;  ///< by a kernel
  };
  struct StepInfo {
    std::vector<Touch> touches;
    bool shared = false;  ///< a kernel that runs over the replica's part of its points
    std::string because;  ///< if not
  };
  struct Update {
    const Entry* entry = nullptr;
    std::vector<StepInfo> steps;
    std::vector<std::size_t> first_maker = {};  ///< by buffer: the first shared kernel that writes it; kNone
  };
  static constexpr std::size_t kNone = SIZE_MAX;

  static bool can_be_in_parts(const Persistent& persistent) {
    const bool is_moment = persistent.role == Persistent::Role::kState and not persistent.in_model, is_weight = persistent.role == Persistent::Role::kWeight;
    return (is_moment or is_weight) and persistent.initial.element_count() > 1;
  }

  /// A replica that shares the optimizer's work runs another entry in its place.
  static bool is_replaced(const Entry& entry) {
    for (const char* name : {plan::kTrainStep, plan::kTrainStepNorms})
      if (entry.name == name or entry.name == plan::replica_entry(name) or entry.name == plan::idle_entry(name)) return true;
    return false;
  }

  Update look_at(const Entry& entry, const KernelSet& kernels) {
    Update update{&entry, {}};
    bool exchanged = false;
    for (const Step& step : entry.steps) {
      StepInfo& info = update.steps.emplace_back();
      exchanged = exchanged or std::holds_alternative<AllReduceStep>(step.what);
      if (const auto* call = std::get_if<KernelStep>(&step.what)) {
        std::vector<bool>& own = own_points_[call->symbol];
        if (own.empty()) own = touched_at_own_point(kernels.find(call->symbol));
        info.shared = exchanged;
        for (std::uint32_t i = 0; i < call->buffers.size(); ++i) {
          const bool writes = i >= call->read_only;
          info.touches.push_back({plan::root_of(entry, call->buffers[i]), true, writes, own[i]});
          info.shared = info.shared and (not writes or own[i]);
        }
        if (not info.shared) info.because = fmt::format("{} is not done element by element", step.origin);
        continue;
      }
      plan::for_each_buffer(step, [&](std::uint64_t buffer, plan::Access access) {
        info.touches.push_back({plan::root_of(entry, buffer), access != plan::Access::kWrite, access != plan::Access::kRead, false});
      });
      info.because = fmt::format("{} needs all of it", step.origin);
    }
    return update;
  }

  std::optional<std::uint32_t> persistent_of(const Update& update, std::uint32_t root) const {
    const Buffer& buffer = update.entry->buffers[root];
    return buffer.storage == Buffer::Storage::kPersistent ? std::optional(buffer.index) : std::nullopt;
  }
  bool is_arena(const Update& update, std::uint32_t root) const { return update.entry->buffers[root].storage == Buffer::Storage::kArena; }
  bool is_weight(std::uint32_t persistent) const { return persistents_[persistent].role == Persistent::Role::kWeight; }

  void keep_states_whole(const Entry& entry) {
    for (const Buffer& buffer : entry.buffers)
      if (buffer.storage == Buffer::Storage::kPersistent and not is_weight(buffer.index)) keep_whole(buffer.index, fmt::format("{} needs all of it", entry.name));
    for (const Step& step : entry.steps)
      if (const auto* region = std::get_if<plan::RegionStep>(&step.what))
        for (const Entry& body : region->bodies) keep_states_whole(body);  // the verifier limits the depth
  }

  bool keep_whole(std::uint32_t persistent, const std::string& because) {
    if (not in_parts_[persistent]) return false;
    in_parts_[persistent] = false;
    because_[persistent] = because;
    return true;
  }

  static bool run_whole(StepInfo& step, const std::string& because) {
    if (not step.shared) return false;
    step.shared = false;
    step.because = because;
    return true;
  }

  /// Takes away what does not fit; true if there was something.
  bool restrict() {
    bool changed = false;
    for (Update& update : updates_) {
      find_makers(update);
      for (std::size_t i = 0; i < update.steps.size(); ++i) changed = (update.steps[i].shared ? check_shared(update, i) : check_whole(update, i)) or changed;
      changed = drop_useless(update) or changed;
    }
    return changed;
  }

  /// A shared kernel writes nothing that is whole, and reads no part but its own.
  bool check_shared(Update& update, std::size_t number) {
    StepInfo& step = update.steps[number];
    for (const Touch& touch : step.touches) {
      const auto persistent = persistent_of(update, touch.root);
      if (touch.writes and persistent and not in_parts_[*persistent])
        return run_whole(step, because_[*persistent].empty() ? fmt::format("{} is updated with it, which no replica has a part of", quoted(persistents_[*persistent].name)) : because_[*persistent]);
      if (touch.writes and not persistent and not is_arena(update, touch.root)) return run_whole(step, "it writes elsewhere");
      if (touch.at_own_point) continue;
      if (persistent and in_parts_[*persistent] and (not is_weight(*persistent) or is_written_before(update, touch.root, number)))
        return run_whole(step, fmt::format("{} needs all of it", update.entry->steps[number].origin));
      if (is_arena(update, touch.root) and is_made_in_parts(update, touch.root)) return keep_makers_whole(update, touch.root, number);
    }
    return false;
  }

  /// What is not shared needs all of what it touches.
  bool check_whole(Update& update, std::size_t number) {
    bool changed = false;
    const std::string because = update.steps[number].because;
    for (const Touch& touch : update.steps[number].touches) {
      const auto persistent = persistent_of(update, touch.root);
      if (not persistent) {
        if (is_made_in_parts(update, touch.root)) changed = keep_makers_whole(update, touch.root, number) or changed;
      } else if (in_parts_[*persistent] and (not is_weight(*persistent) or touch.writes)) {
        changed = keep_whole(*persistent, because) or changed;
      } else if (in_parts_[*persistent] and is_written_before(update, touch.root, number)) {
        changed = keep_whole(*persistent, because) or changed;  // a weight that is read again when it is new
      }
    }
    return changed;
  }

  static void find_makers(Update& update) {
    update.first_maker.assign(update.entry->buffers.size(), kNone);
    for (std::size_t i = update.steps.size(); i-- > 0;)
      for (const Touch& touch : update.steps[i].touches)
        if (update.steps[i].shared and touch.writes) update.first_maker[touch.root] = i;
  }
  static bool is_written_before(const Update& update, std::uint32_t root, std::size_t number) { return update.first_maker[root] < number; }
  static bool is_made_in_parts(const Update& update, std::uint32_t root) { return update.first_maker[root] != kNone; }
  static bool writes(const StepInfo& step, std::uint32_t root) {
    return std::ranges::any_of(step.touches, [root](const Touch& touch) { return touch.root == root and touch.writes; });
  }
  static bool touches(const StepInfo& step, std::uint32_t root) { return std::ranges::find(step.touches, root, &Touch::root) != step.touches.end(); }

  bool keep_makers_whole(Update& update, std::uint32_t root, std::size_t reader) {
    bool changed = false;
    for (StepInfo& step : update.steps)
      if (step.shared and writes(step, root)) changed = run_whole(step, fmt::format("{} needs all of it", update.entry->steps[reader].origin)) or changed;
    return changed;
  }

  /// A kernel that spares no state, itself or together with those that hand it something or get something from it, had better not wait for other replicas.
  bool drop_useless(Update& update) {
    find_makers(update);
    std::set<std::uint32_t> useful_buffers;
    std::vector<bool> useful(update.steps.size());
    for (bool more = true; more;) {
      more = false;
      for (std::size_t i = 0; i < update.steps.size(); ++i) {
        const StepInfo& step = update.steps[i];
        if (not step.shared or useful[i]) continue;
        useful[i] = std::ranges::any_of(step.touches, [&](const Touch& touch) {
          const auto persistent = persistent_of(update, touch.root);
          return persistent ? in_parts_[*persistent] and not is_weight(*persistent) : useful_buffers.contains(touch.root);
        });
        if (not useful[i]) continue;
        more = true;
        for (const Touch& touch : step.touches)
          if (is_arena(update, touch.root) and is_made_in_parts(update, touch.root)) useful_buffers.insert(touch.root);
      }
    }
    bool changed = false;
    for (std::size_t i = 0; i < update.steps.size(); ++i)
      if (not useful[i]) changed = run_whole(update.steps[i], "it needs no state") or changed;
    return changed;
  }

  const AllReduceStep* exchange_at(const Update& update, std::size_t step) const { return std::get_if<AllReduceStep>(&update.entry->steps[step].what); }
  /// Entries with samples and without meet in the same exchanges.
  static std::string kind_of(const Update& update) { return update.entry->name.substr(update.entry->name.find('_')); }

  /// Is everything that is exchanged there read by shared kernels at their own points alone, and by something?
  bool can_scatter(const Update& update, std::size_t number) const {
    for (const std::uint32_t buffer : exchange_at(update, number)->buffers) {
      const std::uint32_t root = plan::root_of(*update.entry, buffer);
      for (const plan::Result& result : update.entry->results)
        if (plan::root_of(*update.entry, result.buffer) == root) return false;
      bool read = false;
      for (std::size_t i = number + 1; i < update.steps.size(); ++i)
        for (const Touch& touch : update.steps[i].touches) {
          if (touch.root != root) continue;
          if (not update.steps[i].shared or not touch.at_own_point) return false;
          read = true;
        }
      if (not read) return false;
    }
    return true;
  }

  /// The weights that are written in parts, in the order in which the first entry does, those together that travel together.
  std::vector<std::vector<std::uint32_t>> gathered_together() const {
    std::vector<std::vector<std::uint32_t>> groups;
    std::set<std::uint32_t> seen;
    std::int64_t bytes = kGatheredBytes;
    for (const StepInfo& step : updates_.front().steps)
      for (const Touch& touch : step.touches) {
        const auto weight = persistent_of(updates_.front(), touch.root);
        if (not step.shared or not touch.writes or not weight or not is_weight(*weight) or not seen.insert(*weight).second) continue;
        if (bytes >= kGatheredBytes) groups.emplace_back(), bytes = 0;
        groups.back().push_back(*weight);
        bytes += static_cast<std::int64_t>(persistents_[*weight].initial.byte_count());
      }
    return groups;
  }

  Entry entry_of(const Update& update, const std::set<std::pair<std::string, std::int64_t>>& whole, const std::vector<std::vector<std::uint32_t>>& gathers) const {
    Entry entry = *update.entry;
    entry.name = plan::sharded_entry(entry.name);
    std::size_t last = 0;  // of the exchanges: all replicas have them in one order
    for (std::size_t i = 0; i < entry.steps.size(); ++i) {
      if (auto* call = std::get_if<KernelStep>(&entry.steps[i].what)) call->own_part = update.steps[i].shared;
      auto* exchange = std::get_if<AllReduceStep>(&entry.steps[i].what);
      if (exchange == nullptr) continue;
      last = i;
      if (not whole.contains({kind_of(update), exchange->bucket})) exchange->operation = AllReduceStep::Operation::kReduceScatter;
    }
    std::multimap<std::size_t, Step> behind;  // by the step behind which it goes
    for (std::size_t group = 0; group < gathers.size(); ++group) {
      AllReduceStep gather{.buffers = {}, .bucket = static_cast<std::int64_t>(group), .operation = AllReduceStep::Operation::kAllGather};
      for (const std::uint32_t weight : gathers[group]) {
        const std::uint32_t buffer = buffer_of(entry, weight);
        gather.buffers.push_back(buffer);
        for (std::size_t i = last; i < update.steps.size(); ++i)
          if (touches(update.steps[i], buffer)) last = i;
      }
      behind.emplace(last, Step{std::move(gather), "all_gather: weights of all replicas"});
    }
    std::vector<Step> steps;
    for (std::size_t i = 0; i < entry.steps.size(); ++i) {
      steps.push_back(std::move(entry.steps[i]));
      for (auto [next, end] = behind.equal_range(i); next != end; ++next) steps.push_back(std::move(next->second));
    }
    entry.steps = std::move(steps);
    find_live_ranges(entry);
    return entry;
  }

  static std::uint32_t buffer_of(const Entry& entry, std::uint32_t persistent) {
    const auto found = std::ranges::find_if(entry.buffers, [persistent](const Buffer& buffer) { return buffer.storage == Buffer::Storage::kPersistent and buffer.index == persistent; });
    HONE_CHECK(found != entry.buffers.end(), "a weight that one entry updates and another does not have");
    return static_cast<std::uint32_t>(found - entry.buffers.begin());
  }

  const std::vector<Persistent>& persistents_;
  std::vector<bool> in_parts_;
  std::vector<std::string> because_;
  std::vector<Update> updates_;
  std::map<std::string, std::vector<bool>> own_points_;  // by kernel
};

}  // namespace

std::vector<std::string> share_updates(std::vector<Entry>& entries, std::vector<Persistent>& persistents, const KernelSet& kernels) {
  const Sharing sharing(entries, persistents, kernels);
  if (not sharing.any()) return {};
  std::vector<std::string> lines;
  for (std::size_t i = 0; i < persistents.size(); ++i) {
    Persistent& persistent = persistents[i];
    if (persistent.role != Persistent::Role::kState) continue;
    persistent.in_parts = sharing.in_parts(i);
    persistent.whole_because = persistent.in_parts ? "" : sharing.because(i);
    if (persistent.in_parts) lines.push_back(fmt::format("{}: each of several replicas can hold a part of it", printable(persistent.name)));
    else if (not persistent.whole_because.empty()) lines.push_back(fmt::format("{}: whole on each replica, because {}", printable(persistent.name), persistent.whole_because));
  }
  std::vector<Entry> shared = sharing.entries();  // of the entries, which are about to move
  std::ranges::move(shared, std::back_inserter(entries));
  return lines;
}

}  // namespace hone
