// Floats that were bytes, kept as such.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>
#include <vector>

#include "formats/npy.h"
#include "runtime/data/as_bytes.h"
#include "runtime/data/batches.h"
#include "tests/support/temp_folder.h"

namespace hone {
namespace {

constexpr std::int64_t kPixelRows = 200, kPixelsOfRow = 37;

/// The bytes 0 to 255 in some order, each as `number` makes it.
template <typename Number>
std::vector<float> made(const Number& number) {
  std::vector<float> values(kPixelRows * kPixelsOfRow);
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = number(static_cast<int>(i * 2654435761U >> 16 & 255));
  return values;
}
float pixel(int byte) { return static_cast<float>(byte) / 255; }

Array array_of(const std::vector<float>& values) { return {"x", Tensor::of<float>({kPixelRows, kPixelsOfRow}, std::span<const float>(values))}; }

BoundArrays bound(Array x) {
  plan::Entry entry;
  entry.name = "train_step";
  entry.feeds.push_back({"x", plan::Feed::Kind::kModelInput, DType::kF32, {Dim::symbol("N"), kPixelsOfRow}, std::nullopt, std::nullopt});
  std::vector<std::pair<std::string, Array>> arrays;
  arrays.emplace_back("x", std::move(x));
  return {entry, std::move(arrays), {.flag = "--train", .batch_symbol = "N", .pre_batched = false}};
}

/// All batches of an epoch, bit by bit.
std::vector<std::uint32_t> epoch_of(const BoundArrays& data) {
  BatchReader batches(data, 24, {.shuffle = true, .seed = 7});
  std::vector<std::uint32_t> bits;
  for (batches.start_epoch(3); batches.next();) {
    const TensorView& x = batches.feeds()[0].second;
    const auto* const numbers = static_cast<const float*>(x.data);
    for (std::int64_t i = 0; i < batches.size() * kPixelsOfRow; ++i) bits.push_back(std::bit_cast<std::uint32_t>(numbers[i]));
  }
  return bits;
}

bool has_fast_way() { return factor_for_bytes(1 / 255.0).has_value(); }

TEST(AsBytes, BatchesStayTheSameBitByBit) {
  if (not has_fast_way()) GTEST_SKIP() << "this processor scales bytes by a table";
  const std::vector<std::vector<float>> ways = {
      made(pixel),                                                        // numpy's and torchvision's
      made([](int byte) { return static_cast<float>(byte / 255.0); }),    // divided as f64
      made([](int byte) { return static_cast<float>(byte) * (1.0F / 255); }),
      made([](int byte) { return static_cast<float>(byte) / 256; }),
      made([](int byte) { return static_cast<float>(byte); }),            // never scaled
      made([](int byte) { return static_cast<float>(byte % 17); }),       // as the digits of scikit-learn
      made([](int byte) { return static_cast<float>(byte % 2); }),        // as one-hot rows
      made([](int byte) { return pixel(byte % 200); })};                  // none is white
  for (std::size_t way = 0; way < ways.size(); ++way) {
    BoundArrays data = bound(array_of(ways[way]));
    const std::vector<std::uint32_t> before = epoch_of(data);
    ASSERT_EQ(before.size(), ways[way].size());
    data.keep_as_bytes();
    EXPECT_EQ(data.columns()[0].array.dtype(), DType::kU8) << way;
    EXPECT_EQ(data.columns()[0].array.label(), "x");
    EXPECT_EQ(epoch_of(data), before) << way;
  }
}

TEST(AsBytes, OtherFloatsStayAsTheyAre) {
  const auto with = [](std::size_t at, float value) {
    std::vector<float> values = made(pixel);
    values[at] = value;
    return values;
  };
  const std::size_t last = kPixelRows * kPixelsOfRow - 1;
  const std::vector<std::vector<float>> others = {
      with(last, std::nextafter(pixel(100), 1.0F)), with(last, -0.0F), with(0, -0.0F), with(last, -pixel(1)), with(last, 256.0F / 255), with(last, 1e30F), with(last, std::numeric_limits<float>::infinity()),
      with(last, std::numeric_limits<float>::quiet_NaN()), with(0, std::numeric_limits<float>::quiet_NaN()), with(0, std::numeric_limits<float>::denorm_min()),
      made([](int byte) { return pixel(byte) * 2 - 1; }), made([](int byte) { return std::sqrt(pixel(byte)); }), made([](int) { return 0.0F; }), made([](int) { return 1.0F; })};
  for (std::size_t other = 0; other < others.size(); ++other) {
    BoundArrays data = bound(array_of(others[other]));
    const std::vector<std::uint32_t> before = epoch_of(data);
    data.keep_as_bytes();
    EXPECT_EQ(data.columns()[0].array.dtype(), DType::kF32) << other;
    EXPECT_EQ(epoch_of(data), before) << other;
  }
}

TEST(AsBytes, RowsOfAFileKeepTheirNumbers) {
  if (not has_fast_way()) GTEST_SKIP() << "this processor scales bytes by a table";
  const test::TempFolder folder;
  const std::vector<float> values = made(pixel);
  write_npy(folder / "x.npy", Tensor::of<float>({kPixelRows, kPixelsOfRow}, std::span<const float>(values)));
  const std::vector<std::string> items = {"x=" + (folder / "x.npy") + "[50:150]"};
  BoundArrays data = bound(Array::open(parse_data("--train", items)[0]));
  data.keep_as_bytes();
  const Array& kept = data.columns()[0].array;
  ASSERT_EQ(kept.dtype(), DType::kU8);
  EXPECT_EQ(kept.row_count(), 100);
  EXPECT_EQ(kept.first_row(), 50);
  std::vector<float> row(kPixelsOfRow);
  std::vector<std::byte> scratch;
  data.columns()[0].converter.convert(kept.rows(99, 1, scratch), reinterpret_cast<std::byte*>(row.data()), kPixelsOfRow);
  EXPECT_TRUE(std::ranges::equal(row, std::span(values).subspan(149 * kPixelsOfRow, kPixelsOfRow)));
}

}  // namespace
}  // namespace hone
