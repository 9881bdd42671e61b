#include "backends/llvm/matrix_tiles.h"

#include <llvm/IR/IntrinsicsX86.h>

#include <algorithm>
#include <array>

namespace hone {

namespace {

using llvm::Value;

constexpr std::int64_t kSide = MatrixTiles::kSide, kDepth = MatrixTiles::kDepth, kParts = MatrixTiles::kParts;
constexpr std::int64_t kMatrixBytes = 1024, kRowBytes = 64;
constexpr std::uint32_t kUpperHalf = 0xffff0000;  ///< of f32: a bf16
constexpr std::int64_t kFactorBytes = kParts * kMatrixBytes;  ///< of 16 rows or columns, `kDepth` terms deep

// Matrix registers: four of sums, two of the rows' factor, two of the columns'.
constexpr std::int64_t kRowMatrix = 4, kColumnMatrix = 6;

/// Which parts are multiplied: those whose product is not below 2^-25.
struct PartPair {
  std::int64_t of_rows, of_columns;
};
constexpr std::array<PartPair, MatrixTiles::kProducts> kPairs = {{{0, 0}, {1, 0}, {2, 0}, {0, 1}, {1, 1}, {0, 2}}};

/// What ldtilecfg loads (Intel's manual, volume 1, 18.2.1): palette 1, registers of 16 rows of 64 bytes.
std::array<std::uint8_t, 64> configuration() {
  std::array<std::uint8_t, 64> bytes = {1};
  for (std::size_t i = 0; i < 8; ++i) bytes[16 + 2 * i] = kRowBytes, bytes[48 + i] = kSide;
  return bytes;
}

std::int64_t matrices(std::int64_t rows) { return (rows + kSide - 1) / kSide; }

}  // namespace

void MatrixTiles::begin() {
  const std::array<std::uint8_t, 64> bytes = configuration();
  call(llvm::Intrinsic::x86_ldtilecfg, {table("tile_configuration", llvm::ConstantDataArray::get(ir_.getContext(), llvm::ArrayRef<std::uint8_t>(bytes)))});
}

void MatrixTiles::end() { call(llvm::Intrinsic::x86_tilerelease, {}); }

/// Numbers that all kernels of the module share.
llvm::GlobalVariable* MatrixTiles::table(const char* name, llvm::Constant* content) {
  llvm::Module& module = *point_.function()->getParent();
  if (llvm::GlobalVariable* made = module.getNamedGlobal(name)) return made;
  auto* global = new llvm::GlobalVariable(module, content->getType(), true, llvm::GlobalValue::InternalLinkage, content, name);
  global->setAlignment(llvm::Align(kRowBytes));
  return global;
}

/// Where the parts of each pair lie, of the rows and of the columns: bytes behind the first part.
llvm::GlobalVariable* MatrixTiles::pair_offsets() {
  std::vector<std::uint64_t> bytes;
  for (const PartPair& pair : kPairs)
    for (const std::int64_t part : {pair.of_rows, pair.of_columns}) bytes.push_back(static_cast<std::uint64_t>(part * kMatrixBytes));
  return table("pairs_of_parts", llvm::ConstantDataArray::get(ir_.getContext(), bytes));
}

std::int64_t MatrixTiles::column_bytes() const { return blocking_.sum_block / kDepth * blocking_.column_count * kFactorBytes; }
std::int64_t MatrixTiles::row_bytes() const { return blocking_.sum_block / kDepth * matrices(blocking_.row_count) * kFactorBytes; }

/// Is the sum known to be a whole number of depths?
bool MatrixTiles::fills_matrices() const {
  Size points = 1;
  for (const std::uint32_t axis : nest_.inner[0]) points = points * nest_.extents[axis];
  return std::ranges::all_of(points.terms(), [](const auto& term) { return term.second % kDepth == 0; });
}

/// The factor at `kSide` points of the sum from `point` on; 0 where they are not there.
Value* MatrixTiles::along_sum(const Factor& factor, Value* index, Value* point, Value* left) {
  PointGrid grid;
  grid.column_axis = factor.axis;
  grid.columns = {index};
  grid.lane_axis = nest_.inner[0].back();
  grid.lanes = kSide;
  Value* mask = left == nullptr ? nullptr : lanes_below(left, kSide);
  if (mask != nullptr) grid.masks = {mask};
  point_.set_grid(grid);
  point_.enter();
  set_point(factor, point);
  Value* vector = point_.spread(point_.value(factor.value));
  point_.leave();
  point_.set_grid({});
  return mask == nullptr ? vector : ir_.CreateSelect(mask, vector, llvm::Constant::getNullValue(vector_type()));
}

/// What is loaded for the factor at the current cell will be wanted.
void MatrixTiles::ask_for(const Factor& factor) {
  for (const auto& [load, offset] : nest_.loads)
    if (offset.values.empty() and offset.axes.contains(factor.axis) and offset.axes.contains(nest_.inner[0].back())) point_.prefetch(kernel_.exprs[load].slot, offset, false);
}

/// Of joined inner axes only the columns' factor is not linear across them.
void MatrixTiles::set_point(const Factor& factor, Value* point) {
  const std::vector<std::uint32_t>& inner = nest_.inner[0];
  const bool apart = inner.size() > 1 and factor.axis == blocking_.columns;
  if (inner.size() > 1) point_.set_index(inner.front(), apart ? ir_.CreateUDiv(point, extent(inner.back())) : number(0));
  point_.set_index(inner.back(), apart ? ir_.CreateURem(point, extent(inner.back())) : point);
}

/// `kSide` points of the sum from `point` on at as many indices of the factor's axis: a vector along the sum for each index, or one along the axis for each point. What is not there of the sum is 0.
std::vector<Value*> MatrixTiles::square(const Factor& factor, bool lanes_along_sum, Value* index, Value* point, Value* left) {
  PointGrid grid;
  grid.column_axis = factor.axis;
  grid.lanes = kSide;
  std::vector<Value*> vectors;
  const std::int64_t in_tile = factor.axis == blocking_.columns ? blocking_.width() : blocking_.row_count;
  const bool is_whole = is_constant(factor.axis) and nest_.extents[factor.axis].value() % in_tile == 0;
  if (factor.along_sum) {
    const TileSide side{index, kSide, nullptr};
    for (Value* one : is_whole ? indices(side, factor.axis) : inside(side, factor.axis)) vectors.push_back(along_sum(factor, one, point, left));
  } else {
    grid.lane_axis = factor.axis;
    grid.columns = {index};
    if (not is_whole) grid.masks = {lanes_below(ir_.CreateNSWSub(extent(factor.axis), index), kSide)};
    point_.set_grid(grid);
    for (std::int64_t i = 0; i < kSide; ++i) {
      Value* reached = left == nullptr ? number(i) : smaller(number(i), ir_.CreateNSWSub(left, number(1)));
      set_point(factor, ir_.CreateNSWAdd(point, reached));
      point_.enter();
      Value* vector = point_.spread(point_.value(factor.value));
      point_.leave();
      set_point(factor, ir_.CreateNSWAdd(point, number(i + kSide)));
      point_.enter();
      ask_for(factor);  // rows far apart, which no processor foresees
      vectors.push_back(left == nullptr ? vector : ir_.CreateSelect(ir_.CreateICmpSLT(number(i), left), vector, llvm::Constant::getNullValue(vector_type())));
      point_.leave();
    }
    point_.set_grid({});
  }
  return lanes_along_sum == factor.along_sum ? vectors : transposed(std::move(vectors));
}

/// The parts of a vector of f32, largest first, each as words whose upper halves are bf16: rounded to nearest, away from zero where two are; what that leaves over is exact, and behind the second it is the third.
std::vector<Value*> MatrixTiles::parts_of(Value* vector) {
  auto* words = llvm::FixedVectorType::get(ir_.getInt32Ty(), kSide);
  std::vector<Value*> parts;
  for (std::int64_t i = 0; i + 1 < kParts; ++i) {
    parts.push_back(ir_.CreateAnd(ir_.CreateAdd(ir_.CreateBitCast(vector, words), in_all_lanes(0x8000)), in_all_lanes(kUpperHalf)));
    vector = ir_.CreateFSub(vector, ir_.CreateBitCast(parts.back(), vector_type()));
  }
  parts.push_back(ir_.CreateBitCast(vector, words));
  return parts;
}

/// The upper halves of a vector of words.
Value* MatrixTiles::upper_halves(Value* words) {
  std::vector<int> odd;
  for (int i = 0; i < kSide; ++i) odd.push_back(2 * i + 1);
  return ir_.CreateShuffleVector(ir_.CreateBitCast(words, llvm::FixedVectorType::get(ir_.getInt16Ty(), 2 * kSide)), odd);
}

/// By depth, then vectors of columns, then parts: pairs of points, each a row of the columns' pairs.
void MatrixTiles::pack_columns(Value* first, const SumPart& part, const Pieces& pieces, Value* to) {
  const Factor factor = columns_factor();
  loops_.loop(pieces.from, pieces.to, {.unroll = 1}, [&](Value* piece) {
    Value *vector = ir_.CreateURem(piece, number(blocking_.column_count)), *step = ir_.CreateUDiv(piece, number(blocking_.column_count)), *point = point_at(part, step);
    const std::vector<Value*> points = square(factor, false, ir_.CreateNSWAdd(first, scaled(vector, kSide)), point, left_at(part, point));
    Value* place = at(to, ir_.CreateNSWAdd(bytes_before(step, blocking_.column_count, kMatrixBytes), scaled(vector, kFactorBytes)));
    for (std::size_t pair = 0; pair < points.size() / 2; ++pair) {
      const std::vector<Value*> even = parts_of(points[2 * pair]), odd = parts_of(points[2 * pair + 1]);
      for (std::size_t p = 0; p < even.size(); ++p) {
        Value* both = ir_.CreateOr(ir_.CreateLShr(even[p], 16), ir_.CreateAnd(odd[p], in_all_lanes(kUpperHalf)));
        ir_.CreateAlignedStore(both, at(place, number(static_cast<std::int64_t>(p) * kMatrixBytes + static_cast<std::int64_t>(pair) * kRowBytes)), llvm::Align(kRowBytes));
      }
    }
  });
}

Value* MatrixTiles::row_pieces(Value* above, Value* below, const SumPart& part) {
  Value* tiles = ir_.CreateNSWSub(below, above);
  if (rows_factor().along_sum) return scaled(tiles, blocking_.row_count);
  return ir_.CreateNSWMul(scaled(tiles, matrices(blocking_.row_count)), scaled(depths(part), kStepsOfDepth));
}

/// Tile by tile, then by depth, 16 rows, parts: rows of points. In the order of the memory: along each row, or, where rows lie side by side, along all tiles.
void MatrixTiles::pack_rows(Value* above, Value* below, const SumPart& part, const Pieces& pieces, Value* to) {
  const Factor factor = rows_factor();
  const std::int64_t height = blocking_.row_count, in_tile = matrices(height);
  Value* first = scaled(above, height);
  loops_.loop(pieces.from, pieces.to, {.unroll = 1}, [&](Value* piece) {
    if (factor.along_sum) {
      Value *tile = ir_.CreateUDiv(piece, number(height)), *row = ir_.CreateURem(piece, number(height));
      Value* matrix = scaled(ir_.CreateUDiv(row, number(kSide)), kFactorBytes);
      Value* place = at(to, ir_.CreateNSWAdd(scaled(tile, row_bytes()), ir_.CreateNSWAdd(matrix, scaled(ir_.CreateURem(row, number(kSide)), kRowBytes))));
      Value* index = inside({ir_.CreateNSWAdd(first, piece), 1, nullptr}, factor.axis).front();
      loops_.loop(number(0), scaled(depths(part), kStepsOfDepth), {.unroll = 1}, [&](Value* step) {
        Value* point = point_at(part, step);
        store_row(along_sum(factor, index, point, left_at(part, point)), step, place);
      });
      return;
    }
    Value* matrices_down = scaled(ir_.CreateNSWSub(below, above), in_tile);
    Value *matrix = ir_.CreateURem(piece, matrices_down), *step = ir_.CreateUDiv(piece, matrices_down), *point = point_at(part, step);
    const std::vector<Value*> rows = square(factor, true, ir_.CreateNSWAdd(first, scaled(matrix, kSide)), point, left_at(part, point));
    Value* tile = scaled(ir_.CreateUDiv(matrix, number(in_tile)), row_bytes());
    Value* place = at(to, ir_.CreateNSWAdd(tile, scaled(ir_.CreateURem(matrix, number(in_tile)), kFactorBytes)));
    for (std::size_t row = 0; row < rows.size(); ++row) store_row(rows[row], step, at(place, number(static_cast<std::int64_t>(row) * kRowBytes)));
  });
}

/// Where a step begins of a factor that fills `count` matrices a part: behind the depths before it, and in its own behind the steps before it, which share `bytes`.
Value* MatrixTiles::bytes_before(Value* step, std::int64_t count, std::int64_t bytes) {
  Value* depth = scaled(ir_.CreateUDiv(step, number(kStepsOfDepth)), count * kFactorBytes);
  return ir_.CreateNSWAdd(depth, scaled(ir_.CreateURem(step, number(kStepsOfDepth)), bytes / kStepsOfDepth));
}

/// A row's `kSide` points; `place` is where the row begins.
void MatrixTiles::store_row(Value* row, Value* step, Value* place) {
  Value* deep = bytes_before(step, matrices(blocking_.row_count), kRowBytes);
  const std::vector<Value*> parts = parts_of(row);
  for (std::size_t p = 0; p < parts.size(); ++p)
    ir_.CreateAlignedStore(upper_halves(parts[p]), at(place, ir_.CreateNSWAdd(deep, number(static_cast<std::int64_t>(p) * kMatrixBytes))), llvm::Align(kRowBytes / kStepsOfDepth));
}

void MatrixTiles::multiply(Value* rows, Value* columns, const SumPart& part, Value* sums, const std::function<void(Value* step)>& between) {
  const std::int64_t down = matrices(blocking_.row_count), across = blocking_.column_count;
  Value* row_of_sums = number(across * kRowBytes);
  const auto each_sum = [&](const auto& body) {
    for (std::int64_t i = 0; i < down; ++i)
      for (std::int64_t j = 0; j < across; ++j) body(i * across + j, at(sums, number(i * kSide * across * kRowBytes + j * kRowBytes)));
  };
  loops_.branch(ir_.CreateICmpEQ(part.from, number(0)), [&] { each_sum([&](std::int64_t sum, Value*) { call(llvm::Intrinsic::x86_tilezero, {matrix(sum)}); }); },
                [&] { each_sum([&](std::int64_t sum, Value* place) { call(llvm::Intrinsic::x86_tileloadd64, {matrix(sum), place, row_of_sums}); }); });
  llvm::GlobalVariable* offsets = pair_offsets();
  llvm::Type* pair_type = llvm::FixedVectorType::get(ir_.getInt64Ty(), 2);
  loops_.loop(number(0), steps(part), {.unroll = 1}, [&](Value* step) {
    Value *depth = ir_.CreateUDiv(step, number(kProducts)), *pair = ir_.CreateLoad(pair_type, ir_.CreateInBoundsGEP(pair_type, offsets, ir_.CreateURem(step, number(kProducts))));
    const auto load = [&](std::int64_t first, std::int64_t count, Value* packed, std::uint64_t side) {
      Value* from = at(packed, ir_.CreateNSWAdd(scaled(depth, count * kFactorBytes), ir_.CreateExtractElement(pair, side)));
      for (std::int64_t i = 0; i < count; ++i) call(llvm::Intrinsic::x86_tileloadd64, {matrix(first + i), at(from, number(i * kFactorBytes)), number(kRowBytes)});
    };
    load(kColumnMatrix, across, columns, 1);
    load(kRowMatrix, down, rows, 0);
    for (std::int64_t i = 0; i < down; ++i)
      for (std::int64_t j = 0; j < across; ++j) call(llvm::Intrinsic::x86_tdpbf16ps, {matrix(i * across + j), matrix(kRowMatrix + i), matrix(kColumnMatrix + j)});
    between(step);
  });
  each_sum([&](std::int64_t sum, Value* place) { call(llvm::Intrinsic::x86_tilestored64, {matrix(sum), place, row_of_sums}); });
}

}  // namespace hone
