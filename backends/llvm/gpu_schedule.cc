#include "backends/llvm/gpu_schedule.h"

#include <algorithm>
#include <bit>
#include <optional>

#include "backends/cost_model.h"
#include "backends/llvm/reduction.h"

namespace hone {

namespace {

constexpr std::int32_t kWarp = 32, kThreads = 256, kMostThreads = 1024;
/// Inner points of an outer one from which on a warp does them together. Fewer would leave most of its threads idle.
constexpr std::int64_t kWorthAWarp = 32;
/// Destination rows of a block: each block looks at all indices, and few rows leave little to share.
constexpr std::int32_t kScatterRows = 16;
/// Bytes would allow more, but what is worked out of them is four times as wide.
constexpr std::uint32_t kMostLanes = 8;
/// Operations a point, as cost_of() counts them, from which on memory is not what a kernel waits for. A function beyond the polynomials is as much, and one of them, the remainder, has no
/// vector form in blocks (own_math.h).
constexpr int kCostly = 100;
/// Points that are too few to keep a GPU busy: there a thread each is as fast.
constexpr std::int64_t kFewPoints = 1 << 14;
/// Of 50,257 elements: a softmax and its gradient take 1.8 ms on an H200 with 1024 threads, 2.3 with 256. (Of 768, with 64 threads instead of 256, a norm takes 1.2 to 1.3 times as long.)
constexpr std::int64_t kLongRow = 8192;
/// A thread each is enough to do for outer points from this number on; fewer share out their inner points, of which a thread should have some left.
constexpr std::int64_t kManyPoints = 1 << 17, kInnerOfAThread = 4;
constexpr std::int32_t kThreadsOfColumns = 512;
/// Where a warp's width leaves fewer blocks than this, half of it: two bytes each are still what memory is read by.
constexpr std::int64_t kManyBlocks = 256;
constexpr std::int32_t kFewColumns = 16;

/// The most inner points of a phase; nothing where that is not known when compiling.
std::optional<std::int64_t> most_inner_points(const Kernel& kernel) {
  std::int64_t most = 1;
  for (const Phase& phase : kernel.phases) {
    const Dim points = inner_points(kernel, phase);
    if (not points.is_constant()) return std::nullopt;
    most = std::max(most, points.value());
  }
  return most;
}

/// Is it, whatever its arguments are?
bool is_multiple(const Size& size, std::int64_t of) {
  return std::ranges::all_of(size.terms(), [of](const auto& term) { return term.second % of == 0; });
}

/// Which neighbouring points a thread can do at once.
class Neighbours {
 public:
  Neighbours(const Kernel& kernel, const Nest& nest) : kernel_(kernel), nest_(nest), axes_of_(axes_of_expressions(kernel)), axis_(nest.outer.empty() ? 0 : nest.outer.back()) {}

  std::uint32_t most() {
    if (nest_.outer.empty() or has_few_points()) return 1;
    for (std::size_t phase = 0; phase < kernel_.phases.size(); ++phase)
      if (not is_elementwise(kernel_.phases[phase]) or not goes_along(phase)) return 1;
    if (cost_ >= kCostly) return 1;
    std::uint32_t lanes = std::min(kMostLanes, kGpuVectorBytes / static_cast<std::uint32_t>(largest_));
    while (lanes > 1 and not begins_at_multiples_of(lanes)) lanes /= 2;
    return lanes;
  }

 private:
  bool has_few_points() const {
    Size points = 1;
    for (const std::uint32_t axis : nest_.outer) points = points * nest_.extents[axis];
    return points.is_constant() and points.value() < kFewPoints;
  }

  static bool is_elementwise(const Phase& phase) {
    return phase.inner.empty() and phase.reductions.empty() and std::ranges::all_of(phase.stores, [](const Store& store) { return store.combine == Combine::kReplace; });
  }

  /// Stores must go with the axis and loads go with it or stay, all of them under conditions that stay.
  bool goes_along(std::size_t phase) {
    for (const ExprId id : expressions_of(kernel_, phase)) {
      const Expr& e = kernel_.exprs[id];
      if (differs(id)) cost_ += cost_of(e.op);
      if (e.op != ScalarOp::kLoad) continue;
      const Stride stride = stride_along(nest_.loads.at(id), axis_, axes_of_);
      if (stride == Stride::kOther or differs(e.guard)) return false;
      if (stride == Stride::kOne) add(e.slot, nest_.loads.at(id));
    }
    for (std::size_t s = 0; s < kernel_.phases[phase].stores.size(); ++s) {
      const Store& store = kernel_.phases[phase].stores[s];
      if (stride_along(nest_.stores[phase][s], axis_, axes_of_) != Stride::kOne or differs(store.guard)) return false;
      add(store.buffer, nest_.stores[phase][s]);
    }
    return true;
  }
  bool differs(ExprId id) const { return id.valid() and (axes_of_[id.index] >> axis_ & 1) != 0; }
  void add(std::uint32_t buffer, const Offset& offset) {
    largest_ = std::max(largest_, size_of(kernel_.buffers[buffer].dtype));
    along_.push_back(&offset);
  }

  bool begins_at_multiples_of(std::uint32_t lanes) const {
    if (nest_.outer.size() > 1 and not is_multiple(nest_.extents[axis_], lanes)) return false;
    return std::ranges::all_of(along_, [&](const Offset* offset) {
      const auto fits = [&](const auto& term) { return is_multiple(term.second, lanes); };
      return is_multiple(offset->constant, lanes) and std::ranges::all_of(offset->values, fits) and
             std::ranges::all_of(offset->axes, [&](const auto& term) { return term.first == axis_ or fits(term); });
    });
  }

  const Kernel& kernel_;
  const Nest& nest_;
  const std::vector<std::uint64_t> axes_of_;
  const std::uint32_t axis_;
  std::vector<const Offset*> along_;  ///< accesses that go with the axis
  std::size_t largest_ = 1;           ///< of their elements, in bytes
  int cost_ = 0;                      ///< of what differs from point to point
};

/// A power of two: halves meet in the reduction. Many for a long row, so that fewer rows are worked on at a time, and what later phases read again is still in the cache.
std::int32_t threads_of_row(std::optional<std::int64_t> inner_points) {
  if (inner_points and *inner_points >= kLongRow) return kMostThreads;
  if (not inner_points or *inner_points >= kThreads) return kThreads;
  return std::max(kWarp, static_cast<std::int32_t>(std::bit_ceil(static_cast<std::uint64_t>(*inner_points))));
}

/// Blocks of neighbouring outer points whose inner ones are worth sharing; nothing if they are not, or if there are enough outer points.
std::optional<GpuLaunch> in_columns(const Kernel& kernel) {
  const std::int64_t outer = expected_size(kernel.outer_size());
  std::int64_t inner = 1;
  for (const Phase& phase : kernel.phases) inner = std::max(inner, expected_size(inner_points(kernel, phase)));
  if (outer >= kManyPoints or inner < kWorthAWarp) return std::nullopt;
  const std::int32_t most_columns = outer < kManyBlocks * kWarp ? kFewColumns : kWarp;
  const auto columns = static_cast<std::int32_t>(std::min<std::uint64_t>(std::bit_ceil(static_cast<std::uint64_t>(std::max<std::int64_t>(outer, 1))), static_cast<std::uint64_t>(most_columns)));
  const auto slices = static_cast<std::int32_t>(std::bit_ceil(static_cast<std::uint64_t>(inner / kInnerOfAThread)));
  return GpuLaunch{.schedule = GpuSchedule::kRows, .shape = {.threads = std::min(columns * slices, kThreadsOfColumns), .points = columns}, .columns = columns};
}

}  // namespace

GpuLaunch gpu_launch(const Kernel& kernel, const Nest& nest) {
  const std::optional<std::int64_t> inner_points = most_inner_points(kernel);
  if (std::ranges::any_of(kernel.phases, &Phase::scatter)) return {GpuSchedule::kScatter, {.threads = kThreads, .points = kScatterRows}};
  // Of a contraction, and where the inner loops walk with a stride that neighbouring points do not have, threads side by side touch memory side by side.
  const bool walks_apart = has_contraction(kernel) or runs_across_outer(kernel, nest);
  if (const std::optional<GpuLaunch> columns = walks_apart ? in_columns(kernel) : std::nullopt) return *columns;
  if (walks_apart or (inner_points and *inner_points < kWorthAWarp)) {
    const std::uint32_t lanes = Neighbours(kernel, nest).most();
    return {GpuSchedule::kPoints, {.threads = kThreads, .points = kThreads * static_cast<std::int32_t>(lanes)}, lanes};
  }
  return {.schedule = GpuSchedule::kRows, .shape = {.threads = threads_of_row(inner_points), .points = 1}};
}

}  // namespace hone
