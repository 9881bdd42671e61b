// Floats that were bytes, kept as such.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
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

bool can_scale() { return factor_for_bytes(1 / 255.0).has_value(); }
/// Are arrays of both types fed the same?
void expect_kept_as(DType dtype, const std::vector<std::vector<float>>& all) {
  for (std::size_t i = 0; i < all.size(); ++i) {
    BoundArrays data = bound(array_of(all[i]));
    const std::vector<std::uint32_t> before = epoch_of(data);
    ASSERT_EQ(before.size(), all[i].size());
    data.keep_as_bytes();
    EXPECT_EQ(data.columns()[0].array.dtype(), dtype) << i;
    EXPECT_EQ(data.columns()[0].array.label(), "x");
    EXPECT_EQ(epoch_of(data), before) << i;
  }
}

std::vector<float> pixels_with(std::size_t at, float value) {
  std::vector<float> values = made(pixel);
  values[at] = value;
  return values;
}
constexpr std::size_t kLast = kPixelRows * kPixelsOfRow - 1;

TEST(AsBytes, BatchesStayTheSameBitByBit) {
  if (not can_scale()) GTEST_SKIP() << "this processor scales bytes one by one";
  expect_kept_as(DType::kU8, {
      made(pixel),                                                        // numpy's and torchvision's
      made([](int byte) { return static_cast<float>(byte / 255.0); }),    // divided as f64
      made([](int byte) { return static_cast<float>(byte) * (1.0F / 255); }),
      made([](int byte) { return static_cast<float>(byte) / 256; }),
      made([](int byte) { return static_cast<float>(byte); }),            // never scaled
      made([](int byte) { return static_cast<float>(byte % 17); }),       // as the digits of scikit-learn
      made([](int byte) { return static_cast<float>(byte % 2); }),        // as one-hot rows
      made([](int byte) { return pixel(byte % 200); })});                 // none is white
}

TEST(AsBytes, SoDoOthersOfWhichFewDiffer) {
  std::vector<float> with_both_zeros = made([](int byte) { return pixel(byte % 255); });
  with_both_zeros[kLast] = -0.0F;
  expect_kept_as(ByteTable::is_fast_here() ? DType::kU8 : DType::kF32, {
      with_both_zeros,
      made([](int byte) { return (pixel(byte) - 0.1307F) / 0.3081F; }),   // as PyTorch's examples take MNIST
      made([](int byte) { return pixel(byte) * 2 - 1; }), made([](int byte) { return std::sqrt(pixel(byte)); }),
      made([](int byte) { return std::bit_cast<float>(static_cast<std::uint32_t>(byte) * 2654435761U); }),  // anything at all, NaN of several kinds among them
      made([](int byte) { return std::bit_cast<float>(static_cast<std::uint32_t>(byte) << 24); }),          // that differ in few bits
      made([](int) { return 0.0F; }), made([](int) { return 1.0F; }), made([](int) { return -1.5F; })});
}

TEST(AsBytes, OtherFloatsStayAsTheyAre) {
  std::vector<std::vector<float>> others = {
      pixels_with(kLast, std::nextafter(pixel(100), 1.0F)), pixels_with(kLast, -0.0F), pixels_with(0, -0.0F), pixels_with(kLast, -pixel(1)), pixels_with(kLast, 256.0F / 255), pixels_with(kLast, 1e30F), pixels_with(kLast, std::numeric_limits<float>::infinity()),
      pixels_with(kLast, std::numeric_limits<float>::quiet_NaN()), pixels_with(0, std::numeric_limits<float>::quiet_NaN()), pixels_with(0, std::numeric_limits<float>::denorm_min())};
  std::vector<float> all_differ = made(pixel);
  for (std::size_t i = 0; i < all_differ.size(); ++i) all_differ[i] = static_cast<float>(i);
  others.push_back(all_differ);
  expect_kept_as(DType::kF32, others);
}

TEST(ByteTable, LooksUpAnyNumberOfBytes) {
  if (not ByteTable::is_fast_here()) GTEST_SKIP() << "this processor looks bytes up one by one";
  std::array<float, 256> values{};
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = std::bit_cast<float>(static_cast<std::uint32_t>(i) * 2654435761U + 12345);
  const ByteTable table(values);
  std::vector<std::uint8_t> bytes(200);
  for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<std::uint8_t>(i * 77 + 3);
  for (std::size_t count = 0; count <= bytes.size(); ++count) {
    std::vector<std::uint32_t> bits(count + 1, 0xdeadbeef);
    table.look_up(bytes.data() + bytes.size() - count, reinterpret_cast<float*>(bits.data()), count);
    for (std::size_t i = 0; i < count; ++i) ASSERT_EQ(bits[i], std::bit_cast<std::uint32_t>(values[bytes[bytes.size() - count + i]])) << count << ", " << i;
    ASSERT_EQ(bits[count], 0xdeadbeef) << count;
  }
}

TEST(AsBytes, RowsOfAFileKeepTheirNumbers) {
  if (not can_scale()) GTEST_SKIP() << "this processor scales bytes one by one";
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
