#include "backends/llvm/loops.h"

#include <algorithm>
#include <optional>

#include "backends/llvm/blocks.h"
#include "backends/llvm/gpu_blocks.h"
#include "backends/llvm/kept_rows.h"
#include "backends/llvm/loop_builder.h"
#include "backends/llvm/phase_code.h"

namespace hone {

namespace {

using llvm::Value;

/// A loop whose trip count is at least this may sum in vector lanes. Shorter ones are unrolled instead, in their order.
constexpr std::int64_t kVectorReduction = 16;

/// Rows of a known number of points, up to this, are never shared, so that their loops have a known number of steps: vectors without rests.
constexpr std::int64_t kLongestWholeRow = 1024;
/// Those of at least so many points are vectors. Unrolled, which LLVM would do first, they would be scalars.
constexpr std::int64_t kShortestVectorRow = 8;

/// Vectors whose functions are worked out side by side, at most: each is a chain of some twenty operations that wait for one another.
constexpr std::uint32_t kVectorsOfFunctions = 4;
constexpr std::int64_t kMostLanes = 16;  ///< of a vector

/// One point after the other.
class PointByPoint {
 public:
  PointByPoint(const Kernel& kernel, const Nest& nest, Point& point)
      : kernel_(kernel), nest_(nest), axes_of_(axes_of_expressions(kernel)), has_functions_(has_functions(kernel)), point_(point), ir_(point.ir), loops_(point), code_(point, kernel, nest), kept_(kernel, nest, point) {}

  /// Runs of phases that go point by point, and scatter phases between them.
  void run() {
    point_.make_temps();
    for (std::size_t phase = 0; phase < kernel_.phases.size();) {
      if (kernel_.phases[phase].scatter) {
        scatter(phase++);
        continue;
      }
      std::size_t last = phase;
      while (last < kernel_.phases.size() and not kernel_.phases[last].scatter) ++last;
      outer_points({phase, last});
      phase = last;
    }
  }

 private:
  struct Phases {
    std::size_t first, last;
  };

  // ---- outer points

  void outer_points(Phases phases) {
    if (nest_.outer.empty()) return loops_.loop(point_.begin(), point_.end(), {}, [&](Value*) { one_point(phases); });
    if (nest_.outer.size() == 1) return row(phases, point_.begin(), point_.end());
    const bool whole = works_by_whole_rows(phases);
    Value *begin = whole ? next_row(point_.begin()) : point_.begin(), *end = whole ? next_row(point_.end()) : point_.end();
    llvm::BasicBlock *start = point_.new_block("start"), *rows = point_.new_block("rows"), *done = point_.new_block("done");
    ir_.CreateCondBr(ir_.CreateICmpSLT(begin, end), start, done);
    ir_.SetInsertPoint(start);
    const std::vector<Value*> first = loops_.coordinates(nest_, nest_.outer, begin);
    ir_.CreateBr(rows);
    ir_.SetInsertPoint(rows);
    llvm::PHINode* at = ir_.CreatePHI(ir_.getInt64Ty(), 2, "at");
    at->addIncoming(begin, start);
    std::vector<llvm::PHINode*> now;
    for (Value* value : first) {
      now.push_back(ir_.CreatePHI(ir_.getInt64Ty(), 2));
      now.back()->addIncoming(value, start);
    }
    for (std::size_t i = 0; i + 1 < now.size(); ++i) point_.set_index(nest_.outer[i], now[i]);
    Value* count = extent(nest_.outer.back());
    if (whole) {
      row(phases, ir_.getInt64(0), count);
    } else {
      count = ir_.CreateBinaryIntrinsic(llvm::Intrinsic::smin, ir_.CreateNSWSub(count, now.back()), ir_.CreateNSWSub(end, at));
      row(phases, now.back(), ir_.CreateNSWAdd(now.back(), count));
    }
    Value* next = ir_.CreateNSWAdd(at, count);
    advance(now);
    at->addIncoming(next, ir_.GetInsertBlock());
    ir_.CreateCondBr(ir_.CreateICmpSLT(next, end), rows, done);
    ir_.SetInsertPoint(done);
  }

  /// Is a row the work of the call in whose range its first point lies? Only without inner loops, where a row is soon done.
  bool works_by_whole_rows(Phases phases) const {
    const Size& points = nest_.extents[nest_.outer.back()];
    return nest_.outer.size() > 1 and is_leaf(phases) and points.is_constant() and points.value() > 0 and points.value() <= kLongestWholeRow;
  }
  bool is_leaf(Phases phases) const {
    return std::all_of(nest_.inner.begin() + static_cast<std::ptrdiff_t>(phases.first), nest_.inner.begin() + static_cast<std::ptrdiff_t>(phases.last),
                       [](const std::vector<std::uint32_t>& inner) { return inner.empty(); });
  }

  /// The first point of the first row that begins at this point or behind it.
  Value* next_row(Value* point) {
    Value* length = extent(nest_.outer.back());
    Value* up = ir_.CreateNSWAdd(point, ir_.CreateNSWSub(length, ir_.getInt64(1)));
    return ir_.CreateNSWSub(up, ir_.CreateURem(up, length));
  }

  /// To the start of the next row: one more on the last axis but one, with carry.
  void advance(const std::vector<llvm::PHINode*>& now) {
    std::vector<Value*> next(now.size());
    next.back() = ir_.getInt64(0);
    Value* carry = ir_.getInt64(1);
    for (std::size_t i = now.size() - 1; i-- > 0;) {
      Value* sum = ir_.CreateNSWAdd(now[i], carry);
      if (i > 0) {
        Value* wraps = ir_.CreateICmpEQ(sum, extent(nest_.outer[i]));
        carry = ir_.CreateZExt(wraps, ir_.getInt64Ty());
        sum = ir_.CreateSelect(wraps, ir_.getInt64(0), sum);
      }
      next[i] = sum;
    }
    for (std::size_t i = 0; i < now.size(); ++i) now[i]->addIncoming(next[i], ir_.GetInsertBlock());
  }

  /// The points [from, to) of the innermost outer axis.
  void row(Phases phases, Value* from, Value* to) {
    const std::uint32_t axis = nest_.outer.back();
    const bool leaf = is_leaf(phases);
    const bool is_vectors = works_by_whole_rows(phases) and nest_.extents[axis].value() >= kShortestVectorRow;
    loops_.loop(from, to, {.parallel = leaf, .unroll = leaf and not is_vectors ? 0 : 1, .vectors = leaf ? vectors_at_once(axis) : 0}, [&](Value* i) {
      point_.set_index(axis, i);
      one_point(phases);
    });
  }

  void one_point(Phases phases) {
    for (std::size_t p = phases.first; p < phases.last; ++p) {
      point_.enter();
      kept_.begin(p);
      code_.start(p);
      inner_loops(p, 0);
      point_.leave();
    }
  }

  // ---- one phase

  void inner_loops(std::size_t phase, std::size_t depth) {
    const std::vector<std::uint32_t>& axes = nest_.inner[phase];
    if (depth == axes.size()) return code_.run(phase, sums_in_lanes(phase) ? PhaseCode::Order::kAny : PhaseCode::Order::kAsWritten);
    const bool innermost = depth + 1 == axes.size();
    const LoopTraits traits{.parallel = innermost and stores_apart(phase, axes[depth]), .unroll = innermost and sums_in_lanes(phase) ? 1 : 0, .vectors = innermost ? vectors_at_once(axes[depth]) : 0};
    loops_.loop(ir_.getInt64(0), extent(axes[depth]), traits, [&](Value* i) {
      point_.set_index(axes[depth], i);
      inner_loops(phase, depth + 1);
    });
  }

  /// Does each step along `axis` store to elements of its own?
  bool stores_apart(std::size_t phase, std::uint32_t axis) const {
    return std::ranges::all_of(nest_.stores[phase], [&](const Offset& offset) { return steps_apart(offset, axis); });
  }
  bool steps_apart(const Offset& offset, std::uint32_t axis) const {
    const auto moves = [&](const auto& value) { return (axes_of_[value.first.index] >> axis & 1) != 0; };
    return offset.axes.contains(axis) and std::ranges::none_of(offset.values, moves);
  }

  /// Are the phase's sums taken in vector lanes along the innermost inner axis?
  bool sums_in_lanes(std::size_t phase) const {
    if (nest_.inner[phase].empty() or kernel_.phases[phase].reductions.empty()) return false;
    const Size& size = nest_.extents[nest_.inner[phase].back()];
    return not size.is_constant() or size.value() >= kVectorReduction;
  }

  /// How many a loop along `axis` had better work on at a time, so that little is left over for its end; 0: as LLVM likes.
  std::uint32_t vectors_at_once(std::uint32_t axis) const {
    if (not has_functions_) return 0;
    const Size& points = nest_.extents[axis];
    std::uint32_t vectors = kVectorsOfFunctions;
    while (points.is_constant() and vectors > 0 and points.value() % (kMostLanes * vectors) > points.value() / 4) vectors /= 2;
    return vectors;
  }
  static bool has_functions(const Kernel& kernel) {
    for (std::size_t i = 0; i < kernel.exprs.size(); ++i)
      if (is_long_chain(kernel.exprs[ExprId(i)].op)) return true;
    return false;
  }

  // ---- scatter

  /// The whole inner space once; rows outside [begin, end) are another call's.
  void scatter(std::size_t phase) {
    const std::vector<std::uint32_t>& axes = nest_.inner[phase];
    const Phase& p = kernel_.phases[phase];
    const ExprId row = p.stores[0].index[0];
    const bool row_first = p.stores.size() == 1 and not axes.empty() and (axes_of_[row.index] >> axes.back() & 1) == 0;
    scatter_loops(phase, 0, row_first ? axes.size() - 1 : axes.size());
  }

  /// Tests the row's owner at `test_depth`: once a row rather than once an element, where the innermost loop runs along it.
  void scatter_loops(std::size_t phase, std::size_t depth, std::size_t test_depth) {
    const std::vector<std::uint32_t>& axes = nest_.inner[phase];
    const Phase& p = kernel_.phases[phase];
    if (depth < test_depth) {
      return loops_.loop(ir_.getInt64(0), extent(axes[depth]), {}, [&](Value* i) {
        point_.set_index(axes[depth], i);
        scatter_loops(phase, depth + 1, test_depth);
      });
    }
    for (std::size_t s = 0; s < p.stores.size(); ++s) {
      Value* row = point_.value(p.stores[s].index[0]);
      Value* owned = ir_.CreateAnd(ir_.CreateICmpSGE(row, point_.begin()), ir_.CreateICmpSLT(row, point_.end()));
      point_.when(owned, [&] {
        if (test_depth == axes.size()) return code_.perform(p.stores[s], nest_.stores[phase][s], nullptr);
        loops_.loop(ir_.getInt64(0), extent(axes.back()), {.parallel = steps_apart(nest_.stores[phase][s], axes.back())}, [&](Value* i) {
          point_.set_index(axes.back(), i);
          code_.perform(p.stores[s], nest_.stores[phase][s], nullptr);
        });
      });
    }
  }

  Value* extent(std::uint32_t axis) { return point_.size(nest_.extents[axis]); }

  const Kernel& kernel_;
  const Nest& nest_;
  const std::vector<std::uint64_t> axes_of_;
  const bool has_functions_;
  Point& point_;
  llvm::IRBuilder<>& ir_;
  LoopBuilder loops_;
  PhaseCode code_;
  KeptRows kept_;
};

}  // namespace

void emit_kernel(llvm::Module& module, const Kernel& kernel, const EmitTarget& target) {
  const Nest nest = make_nest(kernel);
  Point point(module, kernel, nest, target.half, target.multiply_add, target.signature);
  if (target.signature != Signature::kRange) emit_in_blocks(module, kernel, nest, point);
  else if (const std::optional<Blocking> blocking = choose_blocking(kernel, nest, target.vectors)) emit_blocks(kernel, nest, *blocking, point);
  else PointByPoint(kernel, nest, point).run();
  point.ir.CreateRetVoid();
}

}  // namespace hone
