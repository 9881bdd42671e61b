#include "backends/llvm/matrix_tiles.h"

#include <llvm/IR/IntrinsicsX86.h>

#include <algorithm>
#include <array>

namespace hone {

namespace {

using llvm::Value;

constexpr std::int64_t kSide = MatrixTiles::kSide, kDepth = MatrixTiles::kDepth, kParts = MatrixTiles::kParts;
constexpr std::int64_t kMatrixBytes = 1024, kRowBytes = 64;
constexpr std::int64_t kFactorBytes = kParts * kMatrixBytes;  ///< of 16 rows or columns, `kDepth` terms deep

// Matrix registers: four of sums, two of the rows' factor, two of the columns'.
constexpr std::int64_t kRowMatrix = 4, kColumnMatrix = 6;

/// Which parts are multiplied: those whose product is not below 2^-25. In an order in which few are loaded again.
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

std::int64_t halves(std::int64_t rows) { return (rows + kSide - 1) / kSide; }

}  // namespace

void MatrixTiles::begin() {
  constexpr const char* kName = "tile_configuration";
  llvm::Module& module = *point_.function()->getParent();
  llvm::GlobalVariable* global = module.getNamedGlobal(kName);
  if (global == nullptr) {
    const std::array<std::uint8_t, 64> content = configuration();
    llvm::Constant* bytes = llvm::ConstantDataArray::get(ir_.getContext(), llvm::ArrayRef<std::uint8_t>(content));
    global = new llvm::GlobalVariable(module, bytes->getType(), true, llvm::GlobalValue::InternalLinkage, bytes, kName);
  }
  call(llvm::Intrinsic::x86_ldtilecfg, {global});
}

void MatrixTiles::end() { call(llvm::Intrinsic::x86_tilerelease, {}); }

/// Of a tile's rows, all of a part of the sum.
std::int64_t MatrixTiles::tile_bytes() const { return blocking_.sum_block / kDepth * halves(blocking_.row_count) * kFactorBytes; }

Value* MatrixTiles::depth_blocks(const SumPart& part) { return ceil_div(ir_.CreateNSWSub(part.to, part.from), number(kDepth)); }

/// body(point, left) for every `kSide` points of the part, and for what fills up a matrix behind them; `left`: so many of them are there (nullptr: all), none if it is negative.
void MatrixTiles::each_step(const SumPart& part, const std::function<void(Value* point, Value* left)>& body) {
  Value* count = ir_.CreateNSWSub(part.to, part.from);
  Value* whole = ir_.CreateNSWAdd(part.from, ir_.CreateAnd(count, number(-kSide)));
  loops_.strided(part.from, whole, number(kSide), {.unroll = 1}, [&](Value* point) { body(point, nullptr); });
  const auto* rest = llvm::dyn_cast<llvm::ConstantInt>(ir_.CreateURem(all_points().to, number(kDepth)));
  if (rest != nullptr and rest->isZero()) return;
  Value* end = ir_.CreateNSWAdd(part.from, scaled(depth_blocks(part), kDepth));
  loops_.strided(whole, end, number(kSide), {.unroll = 1}, [&](Value* point) { body(point, ir_.CreateNSWSub(part.to, point)); });
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
  const bool is_whole = is_constant(factor.axis) and nest_.extents[factor.axis].value() % kSide == 0;
  if (factor.along_sum) {
    const Side side{index, kSide, nullptr};
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
  const auto splat = [&](std::uint32_t word) { return llvm::ConstantVector::getSplat(llvm::ElementCount::getFixed(kSide), ir_.getInt32(word)); };
  std::vector<Value*> parts;
  for (std::int64_t i = 0; i + 1 < kParts; ++i) {
    parts.push_back(ir_.CreateAnd(ir_.CreateAdd(ir_.CreateBitCast(vector, words), splat(0x8000)), splat(0xffff0000)));
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
void MatrixTiles::columns(const Side& columns, const SumPart& part) {
  columns_ = point_.array(ir_.getInt8Ty(), blocking_.sum_block / kDepth * columns.count * kFactorBytes);
  const Factor factor = columns_factor();
  Value* upper = llvm::ConstantVector::getSplat(llvm::ElementCount::getFixed(kSide), ir_.getInt32(0xffff0000));
  each_step(part, [&](Value* point, Value* left) {
    Value* step = ir_.CreateUDiv(ir_.CreateNSWSub(point, part.from), number(kSide));  // two to a depth
    Value* deep = ir_.CreateNSWAdd(scaled(ir_.CreateUDiv(step, number(2)), columns.count * kFactorBytes), scaled(ir_.CreateURem(step, number(2)), kMatrixBytes / 2));
    loops_.loop(number(0), number(columns.count), {.unroll = 1}, [&](Value* vector) {
      const std::vector<Value*> points = square(factor, false, ir_.CreateNSWAdd(columns.first, scaled(vector, kSide)), point, left);
      Value* place = at(columns_, ir_.CreateNSWAdd(deep, scaled(vector, kFactorBytes)));
      for (std::size_t pair = 0; pair < points.size() / 2; ++pair) {
        const std::vector<Value*> even = parts_of(points[2 * pair]), odd = parts_of(points[2 * pair + 1]);
        for (std::size_t p = 0; p < even.size(); ++p) {
          Value* both = ir_.CreateOr(ir_.CreateLShr(even[p], 16), ir_.CreateAnd(odd[p], upper));
          ir_.CreateAlignedStore(both, at(place, number(static_cast<std::int64_t>(p) * kMatrixBytes + static_cast<std::int64_t>(pair) * kRowBytes)), llvm::Align(kRowBytes));
        }
      }
    });
  });
}

/// Tile by tile, then by depth, 16 rows, parts: rows of points.
void MatrixTiles::rows(Value* above, Value* below, const SumPart& part) {
  rows_ = point_.array(ir_.getInt8Ty(), blocking_.panel_rows * tile_bytes());
  const Factor factor = rows_factor();
  const std::int64_t matrices = halves(blocking_.row_count);
  const auto each_matrix = [&](const auto& body) {  // body(its first row, where it lies)
    loops_.loop(above, below, {.unroll = 1}, [&](Value* block) {
      loops_.loop(number(0), number(matrices), {.unroll = 1}, [&](Value* matrix) {
        Value* tile = at(rows_, scaled(ir_.CreateNSWSub(block, above), tile_bytes()));
        body(ir_.CreateNSWAdd(scaled(block, blocking_.row_count), scaled(matrix, kSide)), at(tile, scaled(matrix, kFactorBytes)));
      });
    });
  };
  const auto store = [&](Value* row, Value* place, Value* point) {
    Value* step = ir_.CreateUDiv(ir_.CreateNSWSub(point, part.from), number(kSide));  // two to a depth
    Value* deep = ir_.CreateNSWAdd(scaled(ir_.CreateUDiv(step, number(2)), matrices * kFactorBytes), scaled(ir_.CreateURem(step, number(2)), kRowBytes / 2));
    const std::vector<Value*> parts = parts_of(row);
    for (std::size_t p = 0; p < parts.size(); ++p)
      ir_.CreateAlignedStore(upper_halves(parts[p]), at(place, ir_.CreateNSWAdd(deep, number(static_cast<std::int64_t>(p) * kMatrixBytes))), llvm::Align(kRowBytes / 2));
  };
  // In the order of the memory: along each row, or, where rows lie side by side, along all tiles.
  if (factor.along_sum) {
    return each_matrix([&](Value* first, Value* matrix) {
      loops_.loop(number(0), number(kSide), {.unroll = 1}, [&](Value* row) {
        Value* index = inside({ir_.CreateNSWAdd(first, row), 1, nullptr}, factor.axis).front();
        each_step(part, [&](Value* point, Value* left) { store(along_sum(factor, index, point, left), at(matrix, scaled(row, kRowBytes)), point); });
      });
    });
  }
  each_step(part, [&](Value* point, Value* left) {
    each_matrix([&](Value* first, Value* matrix) {
      const std::vector<Value*> rows = square(factor, true, first, point, left);
      for (std::size_t row = 0; row < rows.size(); ++row) store(rows[row], at(matrix, number(static_cast<std::int64_t>(row) * kRowBytes)), point);
    });
  });
}

void MatrixTiles::multiply(Value* tile, const Side& columns, const SumPart& part, Value* sums, const std::function<void(Value* depth)>& between) {
  const std::int64_t down = halves(blocking_.row_count), across = columns.count;
  Value* row_bytes = number(across * kRowBytes);
  const auto each_sum = [&](const auto& body) {
    for (std::int64_t i = 0; i < down; ++i)
      for (std::int64_t j = 0; j < across; ++j) body(i * across + j, at(sums, number(i * kSide * across * kRowBytes + j * kRowBytes)));
  };
  loops_.branch(ir_.CreateICmpEQ(part.from, number(0)), [&] { each_sum([&](std::int64_t sum, Value*) { call(llvm::Intrinsic::x86_tilezero, {matrix(sum)}); }); },
                [&] { each_sum([&](std::int64_t sum, Value* place) { call(llvm::Intrinsic::x86_tileloadd64, {matrix(sum), place, row_bytes}); }); });
  loops_.loop(number(0), depth_blocks(part), {.unroll = 1}, [&](Value* depth) {
    between(depth);
    Value* of_rows = at(rows_, ir_.CreateNSWAdd(scaled(tile, tile_bytes()), scaled(depth, halves(blocking_.row_count) * kFactorBytes)));
    Value* of_columns = at(columns_, scaled(depth, across * kFactorBytes));
    const auto load = [&](std::int64_t first, std::int64_t count, Value* from, std::int64_t part_number) {
      for (std::int64_t i = 0; i < count; ++i) call(llvm::Intrinsic::x86_tileloadd64, {matrix(first + i), at(from, number(i * kFactorBytes + part_number * kMatrixBytes)), number(kRowBytes)});
    };
    PartPair loaded = {-1, -1};
    for (const PartPair& pair : kPairs) {
      if (pair.of_columns != loaded.of_columns) load(kColumnMatrix, across, of_columns, pair.of_columns);
      if (pair.of_rows != loaded.of_rows) load(kRowMatrix, down, of_rows, pair.of_rows);
      loaded = pair;
      for (std::int64_t i = 0; i < down; ++i)
        for (std::int64_t j = 0; j < across; ++j) call(llvm::Intrinsic::x86_tdpbf16ps, {matrix(i * across + j), matrix(kRowMatrix + i), matrix(kColumnMatrix + j)});
    }
  });
  each_sum([&](std::int64_t sum, Value* place) { call(llvm::Intrinsic::x86_tilestored64, {matrix(sum), place, row_bytes}); });
}

}  // namespace hone
