#include "backends/llvm/gpu_blocks.h"

#include <algorithm>
#include <map>

#include "backends/llvm/gpu_scatter.h"
#include "backends/llvm/gpu_schedule.h"
#include "backends/llvm/phase_code.h"

namespace hone {

namespace {

using llvm::Value;

/// Bytes of shared memory that every GPU gives a block without being asked.
constexpr std::int64_t kSharedBytes = 48 * 1024;
constexpr std::int64_t kLargestElement = 8;

/// Inner points whose loads a thread begins at a time.
constexpr std::int64_t kUnrolled = 4;

/// Where the partial results of a reduction lie, one of each thread, and its results, one of each column.
struct SharedReduction {
  Value *partials = nullptr, *partial_positions = nullptr;  ///< positions of arg kinds only
  Value *result = nullptr, *result_position = nullptr;
};

class Blocks {
 public:
  Blocks(llvm::Module& module, const Kernel& kernel, const Nest& nest, Point& point, const GpuLaunch& launch)
      : kernel_(kernel), nest_(nest), point_(point), ir_(point.ir), loops_(point), code_(point, kernel, nest), launch_(launch), threads_(module, point, launch.shape.threads), scatter_(kernel, nest, point, code_, threads_) {}

  void run() {
    point_.make_temps();
    const Phases all{0, kernel_.phases.size()};
    if (launch_.schedule == GpuSchedule::kPoints) return points(all);
    share_memory();
    Value *block = threads_.block(), *blocks = threads_.blocks();
    if (launch_.schedule == GpuSchedule::kRows) {
      Value* columns = number(launch_.columns);
      loops_.strided(ir_.CreateNSWAdd(point_.begin(), ir_.CreateNSWMul(block, columns)), point_.end(), ir_.CreateNSWMul(blocks, columns), {.unroll = 1}, [&](Value* row) { some_rows(all, row); });
    } else {
      const auto border = [&](Value* i) { return ir_.CreateNSWAdd(point_.begin(), ir_.CreateUDiv(ir_.CreateNUWMul(ir_.CreateNSWSub(point_.end(), point_.begin()), i), blocks)); };
      scatter({border(block), border(ir_.CreateNSWAdd(block, number(1)))});
    }
  }

 private:
  struct Phases {
    std::size_t first, last;
  };
  /// Outer points [begin, end).
  struct Rows {
    Value *begin, *end;
  };

  Value* number(std::int64_t value) { return ir_.getInt64(static_cast<std::uint64_t>(value)); }
  Value* extent(std::uint32_t axis) { return point_.size(nest_.extents[axis]); }
  void set_indices(std::span<const std::uint32_t> axes, Value* flat) { loops_.go_to(nest_, axes, flat); }

  // ---- a thread a point

  void points(Phases phases) {
    threads_.each([&](Value* thread) {
      Value* count = number(threads_.count());
      Value *first = ir_.CreateNSWAdd(ir_.CreateNSWMul(threads_.block(), count), thread), *step = ir_.CreateNSWMul(threads_.blocks(), count);
      Value* rest = launch_.lanes == 1 ? point_.begin() : neighbours(phases, first, step);
      loops_.strided(ir_.CreateNSWAdd(rest, first), point_.end(), step, {.unroll = 1}, [&](Value* at) { one_point(phases, at); });
    });
  }

  /// Neighbours at a time, from number `first` of them on; the point where what is left begins: the last few, or all where memory or range begin in between.
  Value* neighbours(Phases phases, Value* first, Value* step) {
    Value *lanes = number(launch_.lanes), *begin = point_.begin();
    Value* is_aligned = ir_.CreateAnd(point_.begins_at_multiples_of(kGpuVectorBytes), ir_.CreateICmpEQ(ir_.CreateURem(begin, lanes), number(0)));
    Value* count = ir_.CreateSelect(is_aligned, ir_.CreateUDiv(ir_.CreateNSWSub(point_.end(), begin), lanes), number(0));
    loops_.strided(first, count, step, {.unroll = 1}, [&](Value* i) {
      point_.set_grid({.lane_axis = nest_.outer.back(), .lanes = launch_.lanes, .are_aligned = true});
      one_point(phases, ir_.CreateNSWAdd(begin, ir_.CreateNSWMul(i, lanes)));
      point_.set_grid({});
    });
    return ir_.CreateNSWAdd(begin, ir_.CreateNSWMul(count, lanes));
  }

  void one_point(Phases phases, Value* at) {
    set_indices(nest_.outer, at);
    for (std::size_t phase = phases.first; phase < phases.last; ++phase) {
      point_.enter();
      code_.start(phase);
      inner_loops(phase, 0);
      point_.leave();
    }
  }

  void inner_loops(std::size_t phase, std::size_t depth) {
    const std::vector<std::uint32_t>& axes = nest_.inner[phase];
    if (depth == axes.size()) return code_.run(phase, PhaseCode::Order::kAsWritten);
    loops_.loop(number(0), extent(axes[depth]), {}, [&](Value* i) {
      point_.set_index(axes[depth], i);
      inner_loops(phase, depth + 1);
    });
  }

  // ---- a block some neighbouring points

  /// A thread of the block, which of the block's points it works on, and which share of that one's inner points is its own.
  struct Seat {
    Value *thread, *column, *slice;
  };

  /// The launch's columns, of which the first is outer point number `row`; those behind the range are left out.
  void some_rows(Phases phases, Value* row) {
    if (launch_.columns == 1) set_indices(nest_.outer, row);
    for (std::size_t phase = phases.first; phase < phases.last; ++phase) {
      each_seat(row, {phases.first, phase}, [&](Seat seat) { share_of(phase, seat); });
      if (kernel_.phases[phase].reductions.empty()) continue;
      for (std::int64_t half = launch_.slices() / 2; half > 0; half /= 2) each_seat(row, {phases.first, phase}, [&](Seat seat) { meet(phase, seat, half); });
    }
  }

  /// body(seat) in each thread that has a point, where the results of the phases `before` can be read.
  template <typename Body>
  void each_seat(Value* row, Phases before, Body body) {
    threads_.each([&](Value* thread) {
      const bool is_one = launch_.columns == 1;
      Value* columns = number(launch_.columns);
      const Seat seat = {thread, is_one ? number(0) : ir_.CreateURem(thread, columns), is_one ? thread : ir_.CreateUDiv(thread, columns)};
      Value* at = is_one ? row : ir_.CreateNSWAdd(row, seat.column);
      point_.when(is_one ? nullptr : ir_.CreateICmpSLT(at, point_.end()), [&] {
        if (not is_one) set_indices(nest_.outer, at);
        for (std::size_t phase = before.first; phase < before.last; ++phase)
          for (const Reduction& reduction : kernel_.phases[phase].reductions) read_result(reduction, seat.column);
        body(seat);
      });
    });
  }

  /// What a thread does of a phase: every so many inner points, and then it leaves its partial results to the others.
  void share_of(std::size_t phase, Seat seat) {
    const std::vector<std::uint32_t>& axes = nest_.inner[phase];
    code_.start(phase);
    loops_.strided(seat.slice, loops_.points(nest_, axes), number(launch_.slices()), {.unroll = kUnrolled}, [&](Value* at) {
      set_indices(axes, at);
      code_.run(phase, PhaseCode::Order::kAsWritten);
    });
    for (const Reduction& reduction : kernel_.phases[phase].reductions) {
      const Point::Temp& temp = point_.temp(reduction.temp);
      const SharedReduction& memory = shared_[reduction.temp];
      point_.write(element(memory.partials, temp.dtype, seat.thread), point_.read(temp.cells[0], temp.dtype));
      if (not temp.positions.empty()) point_.write(element(memory.partial_positions, DType::kI64, seat.thread), point_.read(temp.positions[0], DType::kI64));
    }
  }

  /// Of each point the threads of the first half take up the partial results of the second.
  void meet(std::size_t phase, Seat seat, std::int64_t half) {
    point_.when(ir_.CreateICmpSLT(seat.slice, number(half)), [&] {
      Value* other = ir_.CreateNSWAdd(seat.thread, number(half * launch_.columns));
      for (const Reduction& reduction : kernel_.phases[phase].reductions) {
        const SharedReduction& memory = shared_[reduction.temp];
        const DType dtype = point_.temp(reduction.temp).dtype;
        const auto partial = [&](Value* of) {
          Value* position = memory.partial_positions == nullptr ? nullptr : point_.read(element(memory.partial_positions, DType::kI64, of), DType::kI64);
          return PhaseCode::Partial{point_.read(element(memory.partials, dtype, of), dtype), position};
        };
        const PhaseCode::Partial both = code_.combined(reduction, partial(seat.thread), partial(other));
        const bool is_last = half == 1;
        point_.write(is_last ? element(memory.result, dtype, seat.column) : element(memory.partials, dtype, seat.thread), both.value);
        if (both.position != nullptr) point_.write(is_last ? element(memory.result_position, DType::kI64, seat.column) : element(memory.partial_positions, DType::kI64, seat.thread), both.position);
      }
    });
  }

  Value* element(Value* array, DType dtype, Value* i) { return ir_.CreateInBoundsGEP(point_.cell_type(dtype), array, i); }

  /// From here on the temporary is what the block has found for that point.
  void read_result(const Reduction& reduction, Value* column) {
    Point::Temp& temp = point_.temp(reduction.temp);
    const SharedReduction& memory = shared_[reduction.temp];
    temp.cells[0] = element(memory.result, temp.dtype, column);
    if (not temp.positions.empty()) temp.positions[0] = element(memory.result_position, DType::kI64, column);
  }

  /// Reductions of different phases take turns in the memory for partial results; results stay for later phases.
  void share_memory() {
    shared_.resize(point_.temp_count());
    std::map<std::pair<DType, std::size_t>, Value*> arrays;
    for (const Phase& phase : kernel_.phases) {
      std::map<DType, std::size_t> taken;
      const auto array = [&](DType dtype) {
        Value*& memory = arrays[{dtype, taken[dtype]++}];
        if (memory == nullptr) memory = threads_.shared(point_.cell_type(dtype), threads_.count());
        return memory;
      };
      for (const Reduction& reduction : phase.reductions) {
        const Point::Temp& temp = point_.temp(reduction.temp);
        SharedReduction& made = shared_[reduction.temp];
        made = {.partials = array(temp.dtype), .result = threads_.shared(point_.cell_type(temp.dtype), launch_.columns)};
        if (temp.positions.empty()) continue;
        made.partial_positions = array(DType::kI64);
        made.result_position = threads_.shared(ir_.getInt64Ty(), launch_.columns);
      }
    }
  }

  // ---- a block some rows of a destination

  void scatter(Rows rows) {
    for (std::size_t phase = 0; phase < kernel_.phases.size();) {
      if (kernel_.phases[phase].scatter) {
        scatter_.run(phase++, rows.begin, rows.end);
        continue;
      }
      std::size_t last = phase;
      while (last < kernel_.phases.size() and not kernel_.phases[last].scatter) ++last;
      own_rows({phase, last}, rows);
      phase = last;
    }
  }

  void own_rows(Phases phases, Rows rows) {
    const bool is_leaf = std::all_of(nest_.inner.begin() + static_cast<std::ptrdiff_t>(phases.first), nest_.inner.begin() + static_cast<std::ptrdiff_t>(phases.last),
                                     [](const std::vector<std::uint32_t>& inner) { return inner.empty(); });
    if (not is_leaf) return loops_.loop(rows.begin, rows.end, {.unroll = 1}, [&](Value* row) { some_rows(phases, row); });
    threads_.each([&](Value* thread) {
      loops_.strided(ir_.CreateNSWAdd(rows.begin, thread), rows.end, number(threads_.count()), {.unroll = 1}, [&](Value* row) { one_point(phases, row); });
    });
  }

  const Kernel& kernel_;
  const Nest& nest_;
  Point& point_;
  llvm::IRBuilder<>& ir_;
  LoopBuilder loops_;
  PhaseCode code_;
  const GpuLaunch launch_;
  BlockThreads threads_;
  BlockScatter scatter_;
  std::vector<SharedReduction> shared_;  // by temporary
};

/// Kernels with many reductions at a time have fewer threads, so that what they share fits.
void make_fit(const Kernel& kernel, GpuLaunch& launch) {
  std::int64_t results = 0, at_a_time = 0;
  for (const Phase& phase : kernel.phases) {
    const auto count = 2 * static_cast<std::int64_t>(phase.reductions.size());  // with positions
    results += count;
    at_a_time = std::max(at_a_time, count);
  }
  while (launch.shape.threads > 2 and (at_a_time * launch.shape.threads + results * launch.columns) * kLargestElement > kSharedBytes) {
    launch.shape.threads /= 2;
    if (launch.slices() < 2) launch.columns /= 2, launch.shape.points /= 2;
  }
}

void add_launch_shape(llvm::Module& module, const std::string& kernel, plan::LaunchShape shape, bool on_gpu) {
  constexpr unsigned kGlobalMemory = 1;
  auto* i32 = llvm::Type::getInt32Ty(module.getContext());
  auto* type = llvm::ArrayType::get(i32, 2);
  const auto number = [&](std::int32_t value) { return llvm::ConstantInt::get(i32, static_cast<std::uint64_t>(value)); };
  auto* constant = new llvm::GlobalVariable(module, type, true, llvm::GlobalValue::ExternalLinkage, llvm::ConstantArray::get(type, {number(shape.threads), number(shape.points)}),
                                            plan::launch_symbol(kernel), nullptr, llvm::GlobalValue::NotThreadLocal, on_gpu ? kGlobalMemory : 0U);
  constant->setAlignment(llvm::Align(8));
}

/// ptxas gives a thread as many registers as a block of that size can have.
void bound_threads(llvm::Module& module, llvm::Function* function, std::int64_t threads) {
  llvm::LLVMContext& context = module.getContext();
  llvm::Metadata* const fields[] = {llvm::ConstantAsMetadata::get(function), llvm::MDString::get(context, "maxntidx"),
                                    llvm::ConstantAsMetadata::get(llvm::ConstantInt::get(llvm::Type::getInt32Ty(context), static_cast<std::uint64_t>(threads)))};
  module.getOrInsertNamedMetadata("nvvm.annotations")->addOperand(llvm::MDNode::get(context, fields));
}

}  // namespace

void emit_in_blocks(llvm::Module& module, const Kernel& kernel, const Nest& nest, Point& point) {
  GpuLaunch launch = gpu_launch(kernel, nest);
  if (launch.schedule != GpuSchedule::kPoints) make_fit(kernel, launch);
  Blocks(module, kernel, nest, point, launch).run();
  const bool on_gpu = point.signature() == Signature::kLaunch;
  add_launch_shape(module, kernel.name, launch.shape, on_gpu);
  if (on_gpu) bound_threads(module, point.function(), launch.shape.threads);
}

}  // namespace hone
