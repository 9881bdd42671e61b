#include "backends/replay.h"

#include <algorithm>
#include <limits>
#include <map>

#include "backends/parts.h"

namespace hone {

namespace {

using plan::Buffer;
using Placed = Replay::Placed;
using Version = Replay::Version;

constexpr std::uint32_t kNone = std::numeric_limits<std::uint32_t>::max();

class Player {
 public:
  Player(const MemoryUse& use, const Kept& kept) : use_(use), kept_(kept), current_(use.roots.size(), kNone), is_there_(use.roots.size()), uses_(use.roots.size()), begins_(use.steps.size(), kNone) {}

  Replay run() {
    for (time_ = 0; time_ < use_.steps.size(); ++time_) {
      for (const std::uint32_t root : use_.steps[time_].reads)
        if (not is_there_[root] and current_[root] != kNone) make_again(root);
      place(time_, Placed::Kind::kFirst);
    }
    keep_to_the_end();
    for (const auto& [state, copy] : copies_) begin_copy(copy);
    share_memory();
    measure();
    return std::move(replay_);
  }

 private:
  /// With all that is wanted for it and is not there.
  void make_again(std::uint32_t root) {
    std::vector<std::uint32_t> open = {maker(root)};
    while (not open.empty()) {
      const std::vector<std::uint32_t>& reads = use_.steps[open.back()].reads;
      const auto missing = std::ranges::find_if(reads, [this](std::uint32_t read) { return not is_there_[read]; });
      if (missing != reads.end()) {
        open.push_back(maker(*missing));
        continue;
      }
      place(open.back(), Placed::Kind::kAgain);
      open.pop_back();
    }
  }
  std::uint32_t maker(std::uint32_t root) const { return use_.roots[root].steps.front(); }

  void place(std::uint32_t number, Placed::Kind kind) {
    const MemoryUse::Step& step = use_.steps[number];
    const auto position = static_cast<std::uint32_t>(replay_.placed.size());
    Placed& placed = replay_.placed.emplace_back(Placed{number, kind, time_});
    const bool is_again = kind == Placed::Kind::kAgain;
    if (is_again) replay_.again += step.operations;
    else begins_[number] = position;
    const auto use = [&](std::uint32_t version) {
      replay_.versions[version].last = position;
      placed.versions.push_back(version);
    };
    for (const std::uint32_t read : step.reads) use(current_[read] == kNone ? make(read, position) : current_[read]);
    for (const std::uint32_t written : step.writes) {
      if (std::ranges::find(step.reads, written) != step.reads.end()) continue;
      const bool is_new = is_again or current_[written] == kNone;
      const std::uint32_t version = is_new ? make(written, position) : current_[written];
      if (is_again and not is_there_[written]) current_[written] = version, is_there_[written] = true;
      use(version);
    }
    if (is_again) read_states(number, position);
    else count_uses(number);
  }

  std::uint32_t make(std::uint32_t root, std::uint32_t position) {
    const auto version = static_cast<std::uint32_t>(replay_.versions.size());
    replay_.versions.push_back({root, position, position, version});
    if (current_[root] == kNone) current_[root] = version, is_there_[root] = true;
    return version;
  }

  /// What was used is there until its next use, or not.
  void count_uses(std::uint32_t number) {
    const auto count = [&](std::uint32_t root) {
      const MemoryUse::Root& used = use_.roots[root];
      std::size_t& k = uses_[root];
      while (k < used.steps.size() and used.steps[k] <= number) ++k;
      is_there_[root] = kept_[used.first_interval + k - 1] or not used.can_be_made_again;
    };
    std::ranges::for_each(use_.steps[number].reads, count);
    std::ranges::for_each(use_.steps[number].writes, count);
  }

  /// A state that has changed since the step ran first was copied before.
  void read_states(std::uint32_t number, std::uint32_t position) {
    for (const std::uint32_t state : use_.steps[number].states) {
      const auto change = std::ranges::upper_bound(use_.changes[state], number);
      if (change == use_.changes[state].end() or *change >= time_) continue;
      const auto [copy, is_new] = copies_.try_emplace({state, *change}, kNone);
      if (is_new) copy->second = make(state, begins_[*change]);
      replay_.versions[copy->second].last = position;
      replay_.placed.back().versions.push_back(copy->second);
    }
  }

  /// Results, and what is exchanged, live beyond the steps that use them.
  void keep_to_the_end() {
    for (Version& version : replay_.versions) {
      const MemoryUse::Root& used = use_.roots[version.root];
      if (not used.can_be_made_again and not used.steps.empty()) version.last = std::max(version.last, begins_[used.steps.back()]);
    }
  }

  /// Puts the copy where its version begins, before the step that is there.
  void begin_copy(std::uint32_t copy) {
    const std::uint32_t position = replay_.versions[copy].first;
    const Placed& next = replay_.placed[position];
    replay_.placed.insert(replay_.placed.begin() + position, Placed{next.step, Placed::Kind::kCopy, next.time, {copy}});
    for (std::uint32_t i = 0; i < replay_.versions.size(); ++i) {
      Version& version = replay_.versions[i];
      if (i != copy) version.first += version.first >= position;
      version.last += version.last >= position;
    }
  }

  /// A result takes over the memory of an operand that nobody wants any more.
  void share_memory() {
    std::vector<std::uint32_t> used(use_.roots.size(), kNone);  // by root: the version that the step at hand uses
    for (std::uint32_t position = 0; position < replay_.placed.size(); ++position) {
      const Placed& placed = replay_.placed[position];
      const auto& in_place = use_.steps[placed.step].in_place;
      if (in_place.empty() or placed.kind == Placed::Kind::kCopy) continue;
      for (const std::uint32_t version : placed.versions) used[replay_.versions[version].root] = version;
      std::vector<std::uint32_t> taken;
      for (const auto& [written, read] : in_place) {
        Version &to = replay_.versions[used[written]], &from = replay_.versions[used[read]];
        const bool is_over = from.last == position and from.first < position and to.first == position;
        if (not is_over or to.shares != used[written] or std::ranges::find(taken, used[read]) != taken.end()) continue;
        to.shares = from.shares;
        taken.push_back(used[read]);
      }
    }
  }

  void measure() {
    std::vector<Version> memory = replay_.versions;
    for (const Version& version : replay_.versions) memory[version.shares].last = std::max(memory[version.shares].last, version.last);
    std::vector<std::int64_t> change(replay_.placed.size() + 1);
    for (std::uint32_t i = 0; i < memory.size(); ++i) {
      if (memory[i].shares != i) continue;
      change[memory[i].first] += bytes_of(memory[i].root);
      change[memory[i].last + 1] -= bytes_of(memory[i].root);
    }
    std::int64_t live = 0;
    for (std::size_t i = 0; i < replay_.placed.size(); ++i) {
      live += change[i];
      const bool is_copy = replay_.placed[i].kind == Placed::Kind::kCopy;
      replay_.live.push_back(use_.bodies + live + (is_copy ? 0 : use_.steps[replay_.placed[i].step].bytes));
      replay_.peak = std::max(replay_.peak, replay_.live.back());
    }
  }
  std::int64_t bytes_of(std::uint32_t root) const { return use_.roots[root].bytes; }

  const MemoryUse& use_;
  const Kept& kept_;
  Replay replay_;
  std::uint32_t time_ = 0;
  std::vector<std::uint32_t> current_;  // by root: the version that readers get
  std::vector<bool> is_there_;          // by root: that version
  std::vector<std::size_t> uses_;       // by root: how many of its uses are over
  std::vector<std::uint32_t> begins_;   // by step: its position
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::uint32_t> copies_;  // of a state before a step that changes it
};

/// Writes down an entry whose steps and buffers a Replay names.
class Writer {
 public:
  Writer(const plan::Entry& entry, const Replay& replay) : entry_(entry), replay_(replay), made_{.name = entry.name, .feeds = entry.feeds, .results = entry.results, .buffers = entry.buffers, .steps = {}, .equations = entry.equations}, buffers_(replay.versions.size(), kNone) {}

  plan::Entry run() {
    std::vector<bool> seen(entry_.buffers.size());
    for (std::uint32_t i = 0; i < replay_.versions.size(); ++i) {
      const std::uint32_t root = replay_.versions[i].root;
      const bool is_first = not seen[root] and entry_.buffers[root].storage == Buffer::Storage::kArena;
      buffers_[i] = is_first ? root : copy_of(root);
      seen[root] = true;
    }
    for (std::uint32_t i = 0; i < replay_.versions.size(); ++i) {
      if (replay_.versions[i].shares == i) continue;
      made_.buffers[buffers_[i]].storage = Buffer::Storage::kView;
      made_.buffers[buffers_[i]].index = buffers_[replay_.versions[i].shares];
    }
    for (const Placed& placed : replay_.placed) add_step(placed);
    find_live_ranges(made_);
    return std::move(made_);
  }

 private:
  std::uint32_t copy_of(std::uint32_t root) {
    Buffer buffer = entry_.buffers[root];
    buffer.storage = Buffer::Storage::kArena;
    buffer.index = 0;
    made_.buffers.push_back(std::move(buffer));
    return static_cast<std::uint32_t>(made_.buffers.size() - 1);
  }

  void add_step(const Placed& placed) {
    if (placed.kind == Placed::Kind::kCopy) {
      const std::uint32_t version = placed.versions[0], state = replay_.versions[version].root;
      made_.steps.push_back({plan::CopyStep{state, buffers_[version]}, "as it was, for what is made again: " + entry_.buffers[state].name});
      return;
    }
    plan::Step step = entry_.steps[placed.step];
    if (placed.kind == Placed::Kind::kAgain) step.origin = "again, " + step.origin;
    std::map<std::uint32_t, std::uint32_t> versions;  // by root
    for (const std::uint32_t version : placed.versions) versions[replay_.versions[version].root] = version;
    renumber(step, [&](std::uint64_t buffer) {
      const auto version = versions.find(plan::root_of(entry_, buffer));
      return version == versions.end() ? static_cast<std::uint32_t>(buffer) : shown(static_cast<std::uint32_t>(buffer), version->second);
    });
    made_.steps.push_back(std::move(step));
  }

  /// The buffer that shows the version as `buffer` shows its root.
  std::uint32_t shown(std::uint32_t buffer, std::uint32_t version) {
    const std::uint32_t root = replay_.versions[version].root;
    if (buffer == root or buffers_[version] == root) return buffer == root ? buffers_[version] : buffer;
    const auto [view, is_new] = views_.try_emplace({buffer, version}, static_cast<std::uint32_t>(made_.buffers.size()));
    if (not is_new) return view->second;
    Buffer copy = entry_.buffers[buffer];
    copy.index = buffers_[version];
    made_.buffers.push_back(std::move(copy));
    return view->second;
  }

  const plan::Entry& entry_;
  const Replay& replay_;
  plan::Entry made_;
  std::vector<std::uint32_t> buffers_;  // by version
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::uint32_t> views_;  // by view and version
};

}  // namespace

Kept all_kept(const MemoryUse& use) {
  constexpr std::int64_t kSmall = 2048;  // such parts of everything
  std::int64_t all = 0;
  for (const MemoryUse::Root& root : use.roots) all += root.bytes;
  Kept kept(use.intervals, true);
  for (const MemoryUse::Root& root : use.roots)
    if (root.can_be_made_again and root.bytes > all / kSmall) kept[root.first_interval + root.steps.size() - 1] = false;
  return kept;
}

Replay replay(const MemoryUse& use, const Kept& kept) { return Player(use, kept).run(); }

plan::Entry replayed(const plan::Entry& entry, const Replay& replay) { return Writer(entry, replay).run(); }

}  // namespace hone
