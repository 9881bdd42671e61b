#include "backends/llvm/loops.h"

#include <algorithm>

namespace hone {

namespace {

using llvm::Value;

/// What may be said of a loop to LLVM.
struct LoopTraits {
  bool parallel = false;    ///< innermost, and its iterations touch memory independently: it may become vector code without run-time checks
  bool no_unroll = false;
};

/// A loop whose trip count is at least this may sum in vector lanes. Shorter ones are unrolled instead, in their order.
constexpr std::int64_t kVectorReduction = 16;
/// Bytes of accumulators that a block of points keeps in registers; a block of at least 32 points reads whole cache lines.
constexpr std::int64_t kBlockBytes = 256;

class KernelEmitter {
 public:
  KernelEmitter(llvm::Module& module, const Kernel& kernel, HalfConversion half)
      : kernel_(kernel), nest_(make_nest(kernel)), axes_of_(axes_of_expressions(kernel)), point_(module, kernel, nest_, half, lane_count()), ir_(point_.ir) {}

  /// Runs of phases that go point by point, and scatter phases between them.
  void run() {
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
    ir_.CreateRetVoid();
  }

 private:
  struct Phases {
    std::size_t first, last;
  };

  /// How many points of the innermost outer axis are computed side by side.
  std::int64_t lane_count() const {
    if (not runs_across_outer(kernel_, nest_)) return 1;
    std::int64_t bytes = 0;
    for (const Phase& phase : kernel_.phases)
      for (const Reduction& reduction : phase.reductions) bytes += static_cast<std::int64_t>(size_of(accumulator_type(kernel_, reduction)));
    const std::int64_t lanes = std::clamp<std::int64_t>(kBlockBytes / std::max<std::int64_t>(bytes, 4), 32, 64);
    const Size& extent = nest_.extents[nest_.outer.back()];
    return extent.is_constant() ? std::min(lanes, extent.value()) : lanes;
  }

  // ---- outer points

  void outer_points(Phases phases) {
    if (nest_.outer.empty()) return loop(point_.begin(), point_.end(), {}, [&](Value*) { one_point(phases); });
    if (nest_.outer.size() == 1) return row(phases, point_.begin(), point_.end());
    llvm::BasicBlock *start = point_.new_block("start"), *rows = point_.new_block("rows"), *done = point_.new_block("done");
    ir_.CreateCondBr(ir_.CreateICmpSLT(point_.begin(), point_.end()), start, done);
    ir_.SetInsertPoint(start);
    const std::vector<Value*> first = coordinates(point_.begin());
    ir_.CreateBr(rows);
    ir_.SetInsertPoint(rows);
    llvm::PHINode* at = ir_.CreatePHI(ir_.getInt64Ty(), 2, "at");
    at->addIncoming(point_.begin(), start);
    std::vector<llvm::PHINode*> now;
    for (Value* value : first) {
      now.push_back(ir_.CreatePHI(ir_.getInt64Ty(), 2));
      now.back()->addIncoming(value, start);
    }
    for (std::size_t i = 0; i + 1 < now.size(); ++i) point_.set_index(nest_.outer[i], now[i]);
    Value* left = ir_.CreateNSWSub(extent(nest_.outer.back()), now.back());
    Value* count = ir_.CreateBinaryIntrinsic(llvm::Intrinsic::smin, left, ir_.CreateNSWSub(point_.end(), at));
    row(phases, now.back(), ir_.CreateNSWAdd(now.back(), count));
    Value* next = ir_.CreateNSWAdd(at, count);
    advance(now);
    at->addIncoming(next, ir_.GetInsertBlock());
    ir_.CreateCondBr(ir_.CreateICmpSLT(next, point_.end()), rows, done);
    ir_.SetInsertPoint(done);
  }

  /// The index on each outer axis of the outer point number `flat`.
  std::vector<Value*> coordinates(Value* flat) {
    std::vector<Value*> result(nest_.outer.size());
    for (std::size_t i = result.size(); i-- > 1;) {
      result[i] = ir_.CreateURem(flat, extent(nest_.outer[i]));
      flat = ir_.CreateUDiv(flat, extent(nest_.outer[i]));
    }
    result[0] = flat;
    return result;
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
    if (point_.lanes() > 1) return blocks(phases, from, to);
    bool leaf = true;
    for (std::size_t p = phases.first; p < phases.last; ++p) leaf = leaf and nest_.inner[p].empty();
    loop(from, to, {.parallel = leaf, .no_unroll = not leaf}, [&](Value* i) {
      point_.set_index(axis, i);
      one_point(phases);
    });
  }

  void one_point(Phases phases) {
    for (std::size_t p = phases.first; p < phases.last; ++p) {
      point_.enter();
      start_reductions(kernel_.phases[p]);
      inner_loops(p, 0, [&] { body(p); });
      point_.leave();
    }
  }

  // ---- blocks of points side by side

  void blocks(Phases phases, Value* from, Value* to) {
    Value* lanes = ir_.getInt64(static_cast<std::uint64_t>(point_.lanes()));
    strided_loop(from, to, lanes, {.no_unroll = true}, [&](Value* start) {
      Value* left = ir_.CreateNSWSub(to, start);
      llvm::BasicBlock *full = point_.new_block("full"), *part = point_.new_block("part"), *done = point_.new_block("done");
      ir_.CreateCondBr(ir_.CreateICmpSGE(left, lanes), full, part);
      ir_.SetInsertPoint(full);  // a constant count: the accumulators become registers
      block(phases, start, lanes);
      ir_.CreateBr(done);
      ir_.SetInsertPoint(part);
      block(phases, start, left);
      ir_.CreateBr(done);
      ir_.SetInsertPoint(done);
    });
  }

  void block(Phases phases, Value* start, Value* count) {
    const auto each_lane = [&](auto function) {
      loop(ir_.getInt64(0), count, {.parallel = true}, [&](Value* lane) {
        point_.set_lane(lane);
        point_.set_index(nest_.outer.back(), ir_.CreateNSWAdd(start, lane));
        function();
      });
    };
    for (std::size_t p = phases.first; p < phases.last; ++p) {
      if (not kernel_.phases[p].reductions.empty()) each_lane([&] { start_reductions(kernel_.phases[p]); });
      inner_loops(p, 0, [&] { each_lane([&] { body(p); }); });
    }
  }

  // ---- one phase

  template <typename Leaf>
  void inner_loops(std::size_t phase, std::size_t depth, Leaf leaf) {
    const std::vector<std::uint32_t>& axes = nest_.inner[phase];
    if (depth == axes.size()) return leaf();
    const bool innermost = depth + 1 == axes.size() and point_.lanes() == 1;
    const LoopTraits traits{.parallel = innermost and stores_apart(phase, axes[depth]), .no_unroll = innermost and sums_in_lanes(phase)};
    loop(ir_.getInt64(0), extent(axes[depth]), traits, [&](Value* i) {
      point_.set_index(axes[depth], i);
      inner_loops(phase, depth + 1, leaf);
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
    if (point_.lanes() > 1 or nest_.inner[phase].empty() or kernel_.phases[phase].reductions.empty()) return false;
    const Size& size = nest_.extents[nest_.inner[phase].back()];
    return not size.is_constant() or size.value() >= kVectorReduction;
  }

  /// One point of the phase's inner space. All values are computed before anything is stored: a store may overwrite an operand.
  void body(std::size_t phase) {
    const Phase& p = kernel_.phases[phase];
    point_.enter();
    for (const Reduction& reduction : p.reductions) accumulate(reduction, phase);
    for (const Store& store : p.stores) {
      point_.value(store.value);
      if (store.guard.valid()) point_.value(store.guard);
    }
    for (std::size_t s = 0; s < p.stores.size(); ++s) perform(p.stores[s], nest_.stores[phase][s], nullptr);
    point_.leave();
  }

  void perform(const Store& store, const Offset& offset, Value* owned) {
    Value* guard = store.guard.valid() ? point_.value(store.guard) : nullptr;
    if (owned != nullptr) guard = guard == nullptr ? owned : ir_.CreateAnd(owned, guard);
    for (const auto& [id, coefficient] : offset.values) point_.value(id);
    Value* value = point_.value(store.value);
    point_.when(guard, [&] { point_.store(store, offset, value); });
  }

  // ---- reductions

  void start_reductions(const Phase& phase) {
    for (const Reduction& reduction : phase.reductions) {
      const Point::Temp& temp = point_.temp(reduction.temp);
      point_.write(temp.value, temp.dtype, reduction_start(ir_, reduction.kind, temp.dtype));
      if (temp.position != nullptr) point_.write(temp.position, DType::kI64, ir_.getInt64(0));
    }
  }

  void accumulate(const Reduction& reduction, std::size_t phase) {
    const Point::Temp& temp = point_.temp(reduction.temp);
    Value* value = point_.value(reduction.value);
    if (temp.dtype != temp.result) value = ir_.CreateFPExt(value, ir_.getDoubleTy());
    Value* const operands[] = {point_.read(temp.value, temp.dtype), value};
    if (temp.position != nullptr) return accumulate_position(reduction, phase, operands[0], operands[1]);
    constexpr ScalarOp kOps[] = {ScalarOp::kAdd, ScalarOp::kMul, ScalarOp::kMax, ScalarOp::kMin};
    const llvm::IRBuilder<>::FastMathFlagGuard guard(ir_);
    llvm::FastMathFlags flags = ir_.getFastMathFlags();
    flags.setAllowReassoc(sums_in_lanes(phase));
    ir_.setFastMathFlags(flags);
    point_.write(temp.value, temp.dtype, emit_operation(ir_, kOps[static_cast<std::size_t>(reduction.kind)], temp.dtype, temp.dtype, operands));
  }

  void accumulate_position(const Reduction& reduction, std::size_t phase, Value* best, Value* value) {
    const Point::Temp& temp = point_.temp(reduction.temp);
    const ScalarOp compare = reduction.kind == ReduceKind::kArgMax ? ScalarOp::kGt : ScalarOp::kLt;
    Value* const operands[] = {value, best};
    Value* better = emit_operation(ir_, compare, temp.dtype, DType::kBool, operands);
    if (is_float(temp.dtype)) better = ir_.CreateOr(better, ir_.CreateAnd(ir_.CreateFCmpUNO(value, value), ir_.CreateFCmpORD(best, best)));  // the first NaN wins
    Value* position = ir_.getInt64(0);
    for (const std::uint32_t axis : nest_.inner[phase]) position = ir_.CreateNSWAdd(ir_.CreateNSWMul(position, extent(axis)), point_.index(axis));
    point_.write(temp.value, temp.dtype, ir_.CreateSelect(better, value, best));
    point_.write(temp.position, DType::kI64, ir_.CreateSelect(better, position, point_.read(temp.position, DType::kI64)));
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
      return loop(ir_.getInt64(0), extent(axes[depth]), {}, [&](Value* i) {
        point_.set_index(axes[depth], i);
        scatter_loops(phase, depth + 1, test_depth);
      });
    }
    for (std::size_t s = 0; s < p.stores.size(); ++s) {
      Value* row = point_.value(p.stores[s].index[0]);
      Value* owned = ir_.CreateAnd(ir_.CreateICmpSGE(row, point_.begin()), ir_.CreateICmpSLT(row, point_.end()));
      point_.when(owned, [&] {
        if (test_depth == axes.size()) return perform(p.stores[s], nest_.stores[phase][s], nullptr);
        loop(ir_.getInt64(0), extent(axes.back()), {.parallel = steps_apart(nest_.stores[phase][s], axes.back())}, [&](Value* i) {
          point_.set_index(axes.back(), i);
          perform(p.stores[s], nest_.stores[phase][s], nullptr);
        });
      });
    }
  }

  // ---- loops

  Value* extent(std::uint32_t axis) { return point_.size(nest_.extents[axis]); }

  template <typename Body>
  void loop(Value* from, Value* to, LoopTraits traits, Body body) {
    strided_loop(from, to, ir_.getInt64(1), traits, body);
  }

  template <typename Body>
  void strided_loop(Value* from, Value* to, Value* step, LoopTraits traits, Body body) {
    llvm::BasicBlock *before = ir_.GetInsertBlock(), *head = point_.new_block("loop"), *inside = point_.new_block("inside"), *after = point_.new_block("after");
    ir_.CreateBr(head);
    ir_.SetInsertPoint(head);
    llvm::PHINode* i = ir_.CreatePHI(ir_.getInt64Ty(), 2, "i");
    i->addIncoming(from, before);
    ir_.CreateCondBr(ir_.CreateICmpSLT(i, to), inside, after);
    ir_.SetInsertPoint(inside);
    llvm::MDNode* group = traits.parallel ? llvm::MDNode::getDistinct(ir_.getContext(), {}) : nullptr;
    point_.set_access_group(group);
    point_.enter();
    body(i);
    point_.leave();
    point_.set_access_group(nullptr);
    i->addIncoming(ir_.CreateNSWAdd(i, step), ir_.GetInsertBlock());
    ir_.CreateBr(head)->setMetadata(llvm::LLVMContext::MD_loop, loop_metadata(traits, group));
    ir_.SetInsertPoint(after);
  }

  llvm::MDNode* loop_metadata(LoopTraits traits, llvm::MDNode* group) {
    llvm::LLVMContext& context = ir_.getContext();
    const auto property = [&context](const char* name, llvm::Metadata* value) {
      std::vector<llvm::Metadata*> fields = {llvm::MDString::get(context, name)};
      if (value != nullptr) fields.push_back(value);
      return llvm::MDNode::get(context, fields);
    };
    std::vector<llvm::Metadata*> properties = {nullptr, property("llvm.loop.mustprogress", nullptr)};
    if (group != nullptr) properties.push_back(property("llvm.loop.parallel_accesses", group));
    if (traits.no_unroll) properties.push_back(property("llvm.loop.unroll.disable", nullptr));
    llvm::MDNode* loop = llvm::MDNode::getDistinct(context, properties);
    loop->replaceOperandWith(0, loop);
    return loop;
  }

  const Kernel& kernel_;
  const Nest nest_;
  const std::vector<std::uint64_t> axes_of_;
  Point point_;
  llvm::IRBuilder<>& ir_;
};

}  // namespace

void emit_kernel(llvm::Module& module, const Kernel& kernel, HalfConversion half) { KernelEmitter(module, kernel, half).run(); }

}  // namespace hone
