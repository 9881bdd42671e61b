#include "backends/llvm/gpu_scatter.h"

#include <algorithm>
#include <bit>

namespace hone {

namespace {

/// Positions that a thread marks at a time: bits of a word.
constexpr std::int64_t kMarked = 64;
/// Indices that a thread begins to load at a time.
constexpr std::int64_t kUnrolledMarks = 4;
/// Rows of which slices keep partial sums at a time.
constexpr std::int64_t kRowsOfSlices = 16;
/// Elements that a slice loads before it adds the first of them. Each takes as long to come as it takes to add many, and words of a text are not alike: more than half of a batch may go to one block's rows.
constexpr std::int64_t kLoadedAtATime = 8;

}  // namespace

using llvm::Value;

BlockScatter::BlockScatter(const Kernel& kernel, const Nest& nest, Point& point, PhaseCode& code, BlockThreads& threads)
    : kernel_(kernel), nest_(nest), axes_of_(axes_of_expressions(kernel)), point_(point), ir_(point.ir), loops_(point), code_(code), threads_(threads) {}

void BlockScatter::run(std::size_t phase, Value* begin, Value* end) {
  const Phase& p = kernel_.phases[phase];
  const bool along_row = walks_along_row(phase);
  for (std::size_t s = 0; s < p.stores.size(); ++s) {
    Scattered scattered = {p.stores[s], nest_.stores[phase][s], nest_.inner[phase], {}};
    if (along_row) scattered.along = scattered.positions.back(), scattered.positions.pop_back();
    if (const std::optional<std::int64_t> width = short_row(scattered)) add_in_slices(scattered, *width, {begin, end});
    else
      each_hits(scattered, {begin, end}, 1, 1, [&](Value* thread, Value*, const std::vector<Hit>& hits) {
        go_to(scattered, hits[0]);
        store_hit(scattered, thread);
      });
  }
}

/// Is the row the same along the innermost axis, and each of the destination's other coordinates an axis by itself, that one among them?
bool BlockScatter::walks_along_row(std::size_t phase) const {
  const std::vector<std::uint32_t>& axes = nest_.inner[phase];
  const Phase& p = kernel_.phases[phase];
  if (axes.empty() or p.stores.size() != 1) return false;
  const std::vector<ExprId>& index = p.stores[0].index;
  if (axes_of_[index[0].index] >> axes.back() & 1) return false;
  bool has_innermost = false;
  for (std::size_t i = 1; i < index.size(); ++i) {
    const Expr& e = kernel_.exprs[index[i]];
    if (e.op != ScalarOp::kIndex or std::find(index.begin() + 1, index.begin() + static_cast<std::ptrdiff_t>(i), index[i]) != index.begin() + static_cast<std::ptrdiff_t>(i)) return false;
    has_innermost = has_innermost or e.slot == axes.back();
  }
  return has_innermost;
}

/// Elements of a row, where a sum goes into rows that leave threads for several slices.
std::optional<std::int64_t> BlockScatter::short_row(const Scattered& scattered) const {
  if (not scattered.along or scattered.store.combine != Combine::kAdd or scattered.store.index.size() != 2 or nest_.outer.empty()) return std::nullopt;
  const Size& width = nest_.extents[*scattered.along];
  if (not width.is_constant() or 2 * width.value() > threads_.count()) return std::nullopt;
  return width.value();
}

void BlockScatter::add_in_slices(const Scattered& scattered, std::int64_t width, Rows rows) {
  const auto columns = static_cast<std::int64_t>(std::bit_ceil(static_cast<std::uint64_t>(width)));
  const std::int64_t slices = threads_.count() / columns, of_slice = kRowsOfSlices * columns;
  const DType dtype = kernel_.exprs[scattered.store.value].dtype;
  Value*& partials = partials_[dtype];
  if (partials == nullptr) partials = threads_.shared(point_.cell_type(dtype), kRowsOfSlices * threads_.count());
  std::vector<Value*> terms;
  for (std::int64_t i = 0; i < kLoadedAtATime; ++i) terms.push_back(point_.variable(point_.cell_type(dtype)));
  Value* const nothing = is_float(dtype) ? llvm::ConstantFP::get(point_.cell_type(dtype), -0.0) : llvm::Constant::getNullValue(point_.cell_type(dtype));  // of which a sum with anything is that
  loops_.strided(rows.begin, rows.end, number(kRowsOfSlices), {.unroll = 1}, [&](Value* first) {
    Value* last = ir_.CreateBinaryIntrinsic(llvm::Intrinsic::smin, ir_.CreateNSWAdd(first, number(kRowsOfSlices)), rows.end);
    threads_.each([&](Value* thread) {
      loops_.strided(thread, number(kRowsOfSlices * threads_.count()), number(threads_.count()), {}, [&](Value* i) { point_.write(element(partials, dtype, i), nothing); });
    });
    each_hits(scattered, {first, last}, slices, kLoadedAtATime, [&](Value* thread, Value* slice, const std::vector<Hit>& hits) {
      Value* column = ir_.CreateURem(thread, number(columns));
      point_.when(ir_.CreateICmpSLT(column, number(width)), [&] {
        point_.set_index(*scattered.along, column);
        std::vector<Value*> places, conditions;
        for (const Hit& hit : hits) {
          point_.enter();
          go_to(scattered, hit);
          Value* row = ir_.CreateNSWSub(point_.value(scattered.store.index[0]), first);
          places.push_back(ir_.CreateNSWAdd(ir_.CreateNSWMul(slice, number(of_slice)), ir_.CreateNSWAdd(ir_.CreateNSWMul(row, number(columns)), column)));
          Value* guard = scattered.store.guard.valid() ? point_.value(scattered.store.guard) : ir_.getTrue();
          conditions.push_back(ir_.CreateAnd(hit.is_one, guard));
          point_.leave();
        }
        for (std::size_t i = 0; i < hits.size(); ++i)
          point_.when(conditions[i], [&] {
            go_to(scattered, hits[i]);
            point_.write(terms[i], point_.value(scattered.store.value));
          });
        for (std::size_t i = 0; i < hits.size(); ++i)
          point_.when(conditions[i], [&] {
            Value* sum = element(partials, dtype, places[i]);
            Value* const both[] = {point_.read(sum, dtype), point_.read(terms[i], dtype)};
            point_.write(sum, emit_operation(ir_, ScalarOp::kAdd, dtype, dtype, both));
          });
      });
    });
    const std::uint32_t row_axis = nest_.outer.front();
    const Offset place = {.constant = {}, .axes = {{row_axis, Size(width)}, {*scattered.along, Size(1)}}, .values = {}};
    threads_.each([&](Value* thread) {
      loops_.strided(thread, number(of_slice), number(threads_.count()), {.unroll = 1}, [&](Value* i) {
        Value *row = ir_.CreateNSWAdd(first, ir_.CreateUDiv(i, number(columns))), *column = ir_.CreateURem(i, number(columns));
        point_.when(ir_.CreateAnd(ir_.CreateICmpSLT(row, last), ir_.CreateICmpSLT(column, number(width))), [&] {
          Value* sum = point_.read(element(partials, dtype, i), dtype);
          for (std::int64_t slice = 1; slice < slices; ++slice) {
            Value* const both[] = {sum, point_.read(element(partials, dtype, ir_.CreateNSWAdd(i, number(slice * of_slice))), dtype)};
            sum = emit_operation(ir_, ScalarOp::kAdd, dtype, dtype, both);
          }
          point_.set_index(row_axis, row);
          point_.set_index(*scattered.along, column);
          point_.store(scattered.store, place, sum, nullptr);
        });
      });
    });
  });
}

void BlockScatter::go_to(const Scattered& scattered, const Hit& hit) { loops_.go_to(nest_, scattered.positions, hit.position); }

/// add(thread, slice, hits) in each thread of a slice, for its positions whose row is the block's, `at_a_time` of them.
template <typename Add>
void BlockScatter::each_hits(const Scattered& scattered, Rows rows, std::int64_t slices, std::int64_t at_a_time, Add add) {
  if (marks_ == nullptr) marks_ = threads_.shared(ir_.getInt64Ty(), threads_.count());
  Value* count = loops_.points(nest_, scattered.positions);
  Value* left = point_.variable(ir_.getInt64Ty());
  const std::int64_t of_slice = threads_.count() / slices;
  const Order order = slices == 1 ? Order::kAsTheyAre : Order::kSpread;
  loops_.strided(number(0), count, number(kMarked * threads_.count()), {.unroll = 1}, [&](Value* tile) {
    threads_.each([&](Value* thread) { mark(scattered, rows, count, tile, order, thread); });
    threads_.each([&](Value* thread) {
      Value *slice = ir_.CreateUDiv(thread, number(of_slice)), *first = ir_.CreateNSWMul(slice, number(of_slice));
      loops_.loop(first, ir_.CreateNSWAdd(first, number(of_slice)), {.unroll = 1}, [&](Value* word) {
        Value* marked = point_.read(element(marks_, DType::kI64, word), DType::kI64);
        point_.write(left, marked);
        Value* hits = ir_.CreateUnaryIntrinsic(llvm::Intrinsic::ctpop, marked);
        loops_.strided(number(0), hits, number(at_a_time), {.unroll = 1}, [&](Value*) {
          std::vector<Hit> taken;
          for (std::int64_t i = 0; i < at_a_time; ++i) {
            Value* bits = point_.read(left, DType::kI64);
            Value* is_one = i == 0 ? ir_.getTrue() : ir_.CreateICmpNE(bits, number(0));
            Value* position = position_of(order, tile, word, ir_.CreateBinaryIntrinsic(llvm::Intrinsic::cttz, bits, ir_.getTrue()));
            taken.push_back({i == 0 ? position : ir_.CreateSelect(is_one, position, taken[0].position), is_one});
            point_.write(left, ir_.CreateAnd(bits, ir_.CreateSub(bits, number(1))));
          }
          add(thread, slice, taken);
        });
      });
    });
  });
}

/// What a bit of a thread's word stands for.
Value* BlockScatter::position_of(Order order, Value* tile, Value* thread, Value* bit) {
  Value* within = order == Order::kSpread ? ir_.CreateNSWAdd(ir_.CreateNSWMul(bit, number(threads_.count())), thread) : ir_.CreateNSWAdd(ir_.CreateNSWMul(thread, number(kMarked)), bit);
  return ir_.CreateNSWAdd(tile, within);
}

/// A bit for each of the thread's positions in the tile.
void BlockScatter::mark(const Scattered& scattered, Rows rows, Value* count, Value* tile, Order order, Value* thread) {
  Value* marked = point_.variable(ir_.getInt64Ty());
  point_.write(marked, number(0));
  const std::int64_t apart = order == Order::kSpread ? threads_.count() : 1;
  Value* left = ir_.CreateNSWSub(count, position_of(order, tile, thread, number(0)));  // none, or fewer, for some of the last tile's threads
  Value* mine = ir_.CreateBinaryIntrinsic(llvm::Intrinsic::smin, ir_.CreateSDiv(ir_.CreateNSWAdd(left, number(apart - 1)), number(apart)), number(kMarked));
  loops_.loop(number(0), mine, {.unroll = kUnrolledMarks}, [&](Value* bit) {
    loops_.go_to(nest_, scattered.positions, position_of(order, tile, thread, bit));
    Value* row = point_.value(scattered.store.index[0]);
    Value* owned = ir_.CreateAnd(ir_.CreateICmpSGE(row, rows.begin), ir_.CreateICmpSLT(row, rows.end));
    point_.write(marked, ir_.CreateOr(point_.read(marked, DType::kI64), ir_.CreateShl(ir_.CreateZExt(owned, ir_.getInt64Ty()), bit)));
  });
  point_.write(element(marks_, DType::kI64, thread), point_.read(marked, DType::kI64));
}

void BlockScatter::store_hit(const Scattered& scattered, Value* thread) {
  if (not scattered.along) {
    Value* row = point_.value(scattered.store.index[0]);
    return code_.perform(scattered.store, scattered.offset, ir_.CreateICmpEQ(ir_.CreateURem(row, number(threads_.count())), thread));
  }
  loops_.strided(thread, extent(*scattered.along), number(threads_.count()), {.unroll = 1}, [&](Value* i) {
    point_.set_index(*scattered.along, i);
    code_.perform(scattered.store, scattered.offset, nullptr);
  });
}

}  // namespace hone
