#include "backends/choose_kept.h"

#include <algorithm>
#include <limits>
#include <optional>
#include <vector>

namespace hone {

namespace {

/// A choice, and how much of it is above the limit.
struct Attempt {
  KeptChoice choice;
  double excess = 0;  ///< bytes above the limit, over all steps
  Replay replay;
};

/// A value that lies in memory across the turn from the forward to the backward pass, or is wanted there by what could be made again.
struct Crossing {
  std::uint32_t root;
  std::uint32_t made, last_early;  ///< the step that makes it, and the last one before the turn that uses it
  std::size_t interval;
};

class Search {
 public:
  Search(const MemoryUse& use, std::int64_t bytes) : use_(use), bytes_(bytes) {}

  KeptChoice run() {
    Attempt start = attempt(all_kept(use_));
    consider(start);
    if (start.choice.fits(bytes_)) return best_->choice;
    find_crossings(start.replay);
    std::vector<Attempt> starts;
    for (std::size_t segments = 1; segments <= std::min<std::size_t>(kMostSegments, crossings_.size()); ++segments) starts.push_back(attempt(segmented(segments, start.choice.kept)));
    std::ranges::stable_sort(starts, [this](const Attempt& a, const Attempt& b) { return is_better(a, b); });
    starts.resize(std::min<std::size_t>(starts.size(), kStarts));
    starts.insert(starts.begin(), std::move(start));
    for (Attempt& each : starts) improve(std::move(each));
    return best_->choice;
  }

 private:
  static constexpr std::size_t kMostSegments = 64, kStarts = 3, kCandidates = 24;

  Attempt attempt(Kept kept) const {
    Attempt made{.choice = {.kept = std::move(kept)}, .excess = 0, .replay = {}};
    made.replay = replay(use_, made.choice.kept);
    made.choice.peak = made.replay.peak;
    made.choice.again = made.replay.again;
    for (const std::int64_t live : made.replay.live) made.excess += static_cast<double>(std::max<std::int64_t>(0, live - bytes_));
    return made;
  }

  /// What fits before what does not; of two that fit the cheaper one, of two that do not the one of which less is too much.
  bool is_better(const Attempt& a, const Attempt& b) const {
    const bool fits = a.choice.fits(bytes_), other_fits = b.choice.fits(bytes_);
    if (fits != other_fits) return fits;
    return fits ? a.choice.again < b.choice.again : a.excess < b.excess;
  }

  void consider(const Attempt& made) {
    if (not best_) return void(best_ = made);
    const bool fits = made.choice.fits(bytes_), other_fits = best_->choice.fits(bytes_);
    const bool better = fits or other_fits ? is_better(made, *best_) : made.choice.peak < best_->choice.peak;
    if (better) best_ = made;
  }

  // --- Segments ---

  /// The turn is where the most is in memory.
  void find_crossings(const Replay& plain) {
    const auto top = std::ranges::max_element(plain.live) - plain.live.begin();
    const std::uint32_t turn = plain.placed[static_cast<std::size_t>(top)].step;
    for (std::uint32_t root = 0; root < use_.roots.size(); ++root) {
      const MemoryUse::Root& used = use_.roots[root];
      if (not used.can_be_made_again or used.steps.front() >= turn) continue;
      const auto behind = std::ranges::upper_bound(used.steps, turn) - used.steps.begin();
      crossings_.push_back({root, used.steps.front(), used.steps[static_cast<std::size_t>(behind) - 1], used.first_interval + static_cast<std::size_t>(behind) - 1});
    }
    std::ranges::sort(crossings_, {}, &Crossing::made);
  }

  /// What to keep with the forward pass cut into so many segments, of about equal bytes, each cut where the least would have to be kept.
  Kept segmented(std::size_t segments, const Kept& all) const {
    std::vector<std::uint32_t> cuts;  // steps that begin a segment
    std::int64_t total = 0, sum = 0;
    for (const Crossing& crossing : crossings_) total += use_.roots[crossing.root].bytes;
    const std::int64_t part = total / static_cast<std::int64_t>(segments);
    constexpr std::int64_t kNothing = std::numeric_limits<std::int64_t>::max();
    std::int64_t least = kNothing;  // bytes across
    std::uint32_t cut = 0;
    for (const Crossing& crossing : crossings_) {
      sum += use_.roots[crossing.root].bytes;
      const std::int64_t in_part = sum - part * static_cast<std::int64_t>(cuts.size());
      if (cuts.size() + 1 >= segments) break;
      if (in_part < part * 3 / 4) continue;
      if (const std::int64_t across = bytes_across(crossing.made + 1); across < least) least = across, cut = crossing.made + 1;
      if (in_part < part * 5 / 4) continue;
      cuts.push_back(cut);
      least = kNothing;
    }
    Kept kept = all;
    for (const Crossing& crossing : crossings_) {
      const auto segment = [&](std::uint32_t step) { return std::ranges::upper_bound(cuts, step) - cuts.begin(); };
      kept[crossing.interval] = kept[crossing.interval] and is_small(crossing.root);
      if (segment(crossing.made) != segment(crossing.last_early)) kept[crossing.interval] = true;
    }
    return kept;
  }
  bool is_small(std::uint32_t root) const { return all_kept_[use_.roots[root].first_interval + use_.roots[root].steps.size() - 1]; }

  std::int64_t bytes_across(std::uint32_t cut) const {
    std::int64_t bytes = 0;
    for (const Crossing& crossing : crossings_)
      if (crossing.made < cut and crossing.last_early >= cut) bytes += use_.roots[crossing.root].bytes;
    return bytes;
  }

  // --- One value at a time ---

  void improve(Attempt made) {
    while (not made.choice.fits(bytes_)) {
      std::optional<Attempt> next = with_less(made);
      if (not next) break;
      made = std::move(*next);
      consider(made);
    }
    if (not made.choice.fits(bytes_)) return;
    make_less_again(made);
    consider(made);
  }

  /// Drops the value that takes the most away from what is too much for the least work.
  std::optional<Attempt> with_less(const Attempt& made) const {
    std::optional<Attempt> best;
    double best_gain = 0;
    for (const std::size_t interval : droppable(made)) {
      Kept kept = made.choice.kept;
      kept[interval] = false;
      Attempt next = attempt(std::move(kept));
      const double less = made.excess - next.excess, more_work = std::max(next.choice.again - made.choice.again, 0.0) + use_.operations * 1e-6;
      if (less > 0 and less / more_work > best_gain) best_gain = less / more_work, best = std::move(next);
    }
    return best;
  }

  /// What is kept, but not used, where the most is in memory; the largest first.
  std::vector<std::size_t> droppable(const Attempt& made) const {
    const Replay& r = made.replay;
    const auto top = static_cast<std::uint32_t>(std::ranges::max_element(r.live) - r.live.begin());
    const Replay::Placed& placed = r.placed[top];
    std::vector<std::pair<std::int64_t, std::size_t>> found;
    for (const Replay::Version& version : r.versions) {
      const MemoryUse::Root& used = use_.roots[version.root];
      if (not used.can_be_made_again or version.first >= top or version.last <= top) continue;
      if (std::ranges::any_of(placed.versions, [&](std::uint32_t other) { return &r.versions[other] == &version; })) continue;
      const std::size_t interval = use_.interval_at(version.root, placed.kind == Replay::Placed::Kind::kFirst ? placed.step : placed.time);
      if (made.choice.kept[interval]) found.emplace_back(-used.bytes, interval);
    }
    std::ranges::sort(found);
    found.resize(std::min(found.size(), kCandidates));
    std::vector<std::size_t> intervals;
    for (const auto& [bytes, interval] : found) intervals.push_back(interval);
    return intervals;
  }

  /// Keeps what need not be made again, what is dear first.
  void make_less_again(Attempt& made) const {
    std::vector<std::pair<double, std::size_t>> dropped;
    for (const MemoryUse::Root& used : use_.roots)
      for (std::size_t k = 0; k < used.steps.size(); ++k)
        if (not made.choice.kept[used.first_interval + k]) dropped.emplace_back(-use_.steps[used.steps.front()].operations / static_cast<double>(used.bytes), used.first_interval + k);
    std::ranges::sort(dropped);
    for (const auto& [cost, interval] : dropped) {
      Kept kept = made.choice.kept;
      kept[interval] = true;
      Attempt next = attempt(std::move(kept));
      if (next.choice.fits(bytes_) and next.choice.again < made.choice.again) made = std::move(next);
    }
  }

  const MemoryUse& use_;
  const std::int64_t bytes_;
  const Kept all_kept_ = all_kept(use_);
  std::vector<Crossing> crossings_;
  std::optional<Attempt> best_;
};

}  // namespace

KeptChoice choose_kept(const MemoryUse& use, std::int64_t bytes) { return Search(use, bytes).run(); }

}  // namespace hone
