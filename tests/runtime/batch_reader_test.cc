// From arrays to batches.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <numeric>
#include <set>
#include <string>
#include <vector>

#include "formats/npy.h"
#include "runtime/data/batches.h"
#include "tests/runtime/written_feeds.h"
#include "tests/support/temp_folder.h"

namespace hone {
namespace {

using test::expect_error;
using test::TempFolder;
using namespace test::feeds;
using ::testing::Each;
using ::testing::ElementsAre;

TEST(BatchReader, LastBatchIsSmallerAndMemoryIsUsedAgain) {
  const BoundArrays data(classifier(), pair_of(counted("x.npy", {5, 4}), array<std::int64_t>("y.npy", {5}, {0, 1, 2, 0, 1})), options());
  BatchReader batches(data, 2, {.shuffle = false});
  EXPECT_EQ(batches.batch_count(), 3);
  std::vector<std::int64_t> sizes;
  std::set<const void*> memory;
  for (const int epoch : {0, 1}) {
    batches.start_epoch(epoch);
    while (batches.next()) {
      sizes.push_back(batches.feeds()[0].second.shape[0]);
      memory.insert(batches.feeds()[0].second.data);
    }
  }
  EXPECT_EQ(sizes, (std::vector<std::int64_t>{2, 2, 1, 2, 2, 1}));
  EXPECT_EQ(memory.size(), 1u);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(*memory.begin()) % 64, 0u);
}

/// A process that takes the last third of a batch.
TEST(BatchReader, ReadsThePartThatIsWanted) {
  const BoundArrays data(classifier(), pair_of(counted("x.npy", {8, 4}), array<std::int64_t>("y.npy", {8}, {0, 1, 2, 0, 1, 2, 0, 1})), options());
  const auto part = [](std::int64_t samples) { return BatchPart{.begin = samples * 2 / 3, .end = samples}; };
  for (const int threads : {1, 2})
    for (const Ahead ahead : {Ahead::kNever, Ahead::kAlways}) {
      BatchReader whole(data, 3, {.shuffle = true, .seed = 4}), last(data, 3, {.shuffle = true, .seed = 4}, {.ahead = ahead, .threads = threads, .part = part});
      whole.start_epoch(0);
      last.start_epoch(0);
      while (whole.next()) {
        ASSERT_TRUE(last.next());
        EXPECT_EQ(last.feeds()[0].second.shape, whole.feeds()[0].second.shape);
        const auto wanted = values_of<float>(whole.feeds()[0].second), got = values_of<float>(last.feeds()[0].second);
        const auto begin = part(whole.size()).begin * 4;
        for (std::int64_t i = 0; i < whole.size() * 4; ++i) {
          const auto at = static_cast<std::size_t>(i);
          if (i >= begin) EXPECT_EQ(got[at], wanted[at]);
          else if (whole.size() == 3) EXPECT_EQ(got[at], 0) << "read, though nobody wanted it";
        }
      }
      EXPECT_FALSE(last.next());
    }
}

TEST(BatchReader, EpochIsEnteredAtAnyBatch) {
  const BoundArrays data(classifier(), pair_of(counted("x.npy", {5, 4}), array<std::int64_t>("y.npy", {5}, {0, 1, 2, 0, 1})), options());
  for (const Ahead ahead : {Ahead::kNever, Ahead::kAlways}) {
    BatchReader whole(data, 2, {.shuffle = true, .seed = 4}, {.ahead = ahead}), part(data, 2, {.shuffle = true, .seed = 4}, {.ahead = ahead});
    for (std::int64_t first = 0; first <= 4; ++first) {
      whole.start_epoch(7);
      part.start_epoch(7, first);
      for (std::int64_t i = 0; i < first; ++i) whole.next();
      while (part.next()) {
        ASSERT_TRUE(whole.next());
        EXPECT_EQ(values_of<float>(part.feeds()[0].second), values_of<float>(whole.feeds()[0].second));
        EXPECT_EQ(part.size(), whole.size());
      }
      EXPECT_FALSE(whole.next());
    }
  }
}

TEST(BatchReader, KnowsWhichRowOfTheDataARowOfABatchIs) {
  Array x = counted("x.npy", {9, 4}), y = array<std::int64_t>("y.npy", {9}, {0, 1, 2, 0, 1, 2, 0, 1, 2});
  x.keep_rows(3, 8);
  y.keep_rows(3, 8);
  const BoundArrays data(classifier(), pair_of(x, y), options());
  for (const Ahead ahead : {Ahead::kNever, Ahead::kAlways}) {
    BatchReader batches(data, 2, {.shuffle = true, .seed = 4}, {.ahead = ahead});
    batches.start_epoch(2);
    while (batches.next()) {
      const std::vector<float> values = values_of<float>(batches.feeds()[0].second);
      for (std::int64_t row = 0; row < batches.size(); ++row) {
        EXPECT_EQ(batches.place_of("image", row), fmt::format("row {} of x.npy", values[static_cast<std::size_t>(row) * 4] / 4));
        EXPECT_EQ(batches.place_of("rate", row), "");
      }
    }
  }
  BindOptions slices = options();
  slices.pre_batched = true;
  const BoundArrays pre_batched(entry_with({input("image", DType::kF32, {Dim::symbol("N"), 4})}), {{"x", counted("x.npy", {3, 2, 4})}}, slices);
  BatchReader batches(pre_batched, 1, {});
  batches.start_epoch(0, 1);
  ASSERT_TRUE(batches.next());
  EXPECT_EQ(batches.place_of("image", 1), "row 1 of batch 1 of x.npy");
}

TEST(BatchReader, GatheringAheadGivesTheSameBatches) {
  const auto x = [] {
    return array<std::uint8_t>("x.npy", {7, 4},
                               std::vector<std::uint8_t>{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27});
  };
  const BoundArrays data(classifier(), pair_of(x(), array<std::int64_t>("y.npy", {7}, {0, 1, 2, 0, 1, 2, 0})), options({{"image", 0.5}}));
  BatchReader plain(data, 3, {.shuffle = true, .seed = 4}, {.ahead = Ahead::kNever}), ahead(data, 3, {.shuffle = true, .seed = 4}, {.ahead = Ahead::kAlways});
  for (const std::int64_t epoch : {0, 1, 5, 1}) {
    plain.start_epoch(epoch);
    ahead.start_epoch(epoch);
    while (plain.next()) {
      ASSERT_TRUE(ahead.next());
      EXPECT_EQ(values_of<float>(plain.feeds()[0].second), values_of<float>(ahead.feeds()[0].second));
      EXPECT_EQ(values_of<std::int64_t>(plain.feeds()[1].second), values_of<std::int64_t>(ahead.feeds()[1].second));
    }
    EXPECT_FALSE(ahead.next());
  }
  ahead.start_epoch(9);  // and may be left in the middle
  ahead.next();
}

TEST(BatchReader, RowsOfAllInputsStayTogether) {
  const BoundArrays data(classifier(), pair_of(counted("x.npy", {3, 4}), array<std::int64_t>("y.npy", {3}, {0, 1, 2})), options());
  BatchReader batches(data, 2, {.shuffle = true, .buffer = 0, .seed = 11});
  batches.start_epoch(2);
  while (batches.next()) {
    const auto x = values_of<float>(batches.feeds()[0].second);
    const auto y = values_of<std::int64_t>(batches.feeds()[1].second);
    for (std::size_t i = 0; i < y.size(); ++i) EXPECT_EQ(x[4 * i], 4 * static_cast<float>(y[i]));
  }
}

/// Each copy of what is fed.
std::vector<std::vector<float>> copies_of(TensorView view) {
  std::vector<std::vector<float>> copies;
  for (int copy = 0; copy < view.copies; ++copy) {
    copies.push_back(values_of<float>(view));
    view.data = static_cast<const std::byte*>(view.data) + view.copy_bytes;
  }
  return copies;
}

/// Also where a batch is gathered from several files, where two threads have a copy each, and where numbers are denormal: threads that compute take those for zero.
TEST(BatchReader, AnyNumberOfThreadsGathersTheSame) {
  constexpr std::int64_t kRows = 300;
  for (const std::int64_t elements : {1000, 4000}) {
    const bool has_copies = elements == 1000;  // of 148 KB; more is for both threads
    plan::Entry entry;
    entry.feeds = {{"x", plan::Feed::Kind::kModelInput, DType::kF32, {Dim::symbol("N"), elements}, std::nullopt, std::nullopt}};
    std::vector<double> numbers(static_cast<std::size_t>(kRows * elements));
    for (std::size_t i = 0; i < numbers.size(); ++i) numbers[i] = static_cast<double>(i) * (i % 3 == 0 ? 1e-44 : 1);
    const Tensor doubles = Tensor::of<double>({kRows, elements}, std::span<const double>(numbers));
    for (const DType dtype : {DType::kF32, DType::kF64, DType::kI32}) {
      std::vector<std::pair<std::string, Array>> arrays;
      arrays.emplace_back("x", join_arrays("x", {Array("a", doubles.cast(dtype)), Array("b", doubles.cast(dtype))}));
      const BoundArrays data(entry, std::move(arrays), options());
      const ShuffleOptions shuffle = {.shuffle = true, .seed = 3};
      BatchReader alone(data, 37, shuffle, {.threads = 1}), two(data, 37, shuffle, {.threads = 2}), eight(data, 37, shuffle, {.threads = 8}), late(data, 37, shuffle, {.late = true, .threads = 2});
      for (const std::int64_t epoch : {0, 1}) {
        for (BatchReader* batches : {&alone, &two, &eight, &late}) batches->start_epoch(epoch);
        while (alone.next()) {
          const std::vector<std::vector<float>> expected = copies_of(alone.feeds()[0].second);
          ASSERT_EQ(expected.size(), 1u);
          for (BatchReader* batches : {&two, &eight, &late}) {
            ASSERT_TRUE(batches->next());
            const TensorView& x = batches->feeds()[0].second;
            EXPECT_EQ(x.copies, has_copies and batches != &eight ? 2 : 1);
            if (x.copies > 1) { EXPECT_GT(x.copy_bytes, 37 * 1000 * sizeof(float) + 16 * 1000 * sizeof(float)) << "whoever walks down a column does not see the other copy"; }
            EXPECT_EQ(x.maker != nullptr, has_copies and batches == &late);
            if (x.maker != nullptr)
              for (int member = 0; member <= epoch; ++member) x.maker->make(member, static_cast<int>(epoch) + 1);  // one thread makes both, or each its own
            for (const std::vector<float>& copy : copies_of(x)) EXPECT_EQ(copy, expected[0]) << to_string(dtype);
          }
        }
        for (BatchReader* batches : {&two, &eight, &late}) EXPECT_FALSE(batches->next());
      }
    }
  }
}

TEST(BatchReader, ACopyForEachThreadAndOneForAllFeedTheSame) {  // both are tried after some hundred batches
  plan::Entry entry;
  entry.feeds = {{"x", plan::Feed::Kind::kModelInput, DType::kF32, {Dim::symbol("N"), 1000}, std::nullopt, std::nullopt}};
  std::vector<std::pair<std::string, Array>> arrays;
  arrays.emplace_back("x", counted("x", {300, 1000}));
  const BoundArrays data(entry, std::move(arrays), options());
  BatchReader alone(data, 37, {.shuffle = true}, {.threads = 1}), late(data, 37, {.shuffle = true}, {.late = true, .threads = 2});
  std::set<int> seen;
  for (std::int64_t epoch = 0; epoch < 16; ++epoch) {
    alone.start_epoch(epoch), late.start_epoch(epoch);
    while (alone.next() and late.next()) {
      const TensorView& x = late.feeds()[0].second;
      EXPECT_EQ(x.maker != nullptr, x.copies == 2) << "what is for all is there at once";
      if (x.maker != nullptr) x.maker->make(0, 1);
      for (const std::vector<float>& copy : copies_of(x)) EXPECT_EQ(copy, values_of<float>(alone.feeds()[0].second));
      seen.insert(x.copies);
    }
  }
  EXPECT_THAT(seen, ElementsAre(1, 2));
}

/// Labels and ids are looked at before a run, so they are there.
TEST(BatchReader, WhatHasBoundsIsNotGatheredLate) {
  plan::Entry entry;
  entry.feeds = {{"ids", plan::Feed::Kind::kModelInput, DType::kI64, {Dim::symbol("N"), 1000}, std::pair<std::int64_t, std::int64_t>(0, 8), std::nullopt}};
  std::vector<std::int64_t> ids(50 * 1000, 7);
  std::vector<std::pair<std::string, Array>> arrays;
  arrays.emplace_back("ids", Array("ids", Tensor::of<std::int64_t>({50, 1000}, ids)));
  const BoundArrays data(entry, std::move(arrays), options());
  BatchReader batches(data, 20, {.shuffle = true}, {.late = true, .threads = 2});
  batches.start_epoch(0);
  ASSERT_TRUE(batches.next());
  const TensorView& fed = batches.feeds()[0].second;
  EXPECT_EQ(fed.copies, 2);
  EXPECT_EQ(fed.maker, nullptr);
  EXPECT_THAT(values_of<std::int64_t>(fed), Each(7));
}

TEST(BatchReader, PreBatchedSlicesAreFedAsTheyAreInOrder) {
  auto with = options();
  with.pre_batched = true;
  const BoundArrays data(classifier(), pair_of(counted("x.npy", {3, 2, 4}), array<std::int64_t>("y.npy", {3, 2}, {0, 1, 2, 0, 1, 2})), with);
  BatchReader batches(data, 32, {.shuffle = true});
  EXPECT_EQ(batches.batch_count(), 3);
  batches.start_epoch(0);
  for (std::int64_t i = 0; i < 3; ++i) {
    ASSERT_TRUE(batches.next());
    EXPECT_EQ(batches.size(), 2);
    EXPECT_EQ(batches.feeds()[0].second.shape, (std::vector<std::int64_t>{2, 4}));
    EXPECT_EQ(values_of<float>(batches.feeds()[0].second)[0], static_cast<float>(8 * i));
  }
  EXPECT_FALSE(batches.next());
  expect_error(Code::kDataRange, "batch 1, element [0] holds 3", [&] {
    BoundArrays(classifier(), pair_of(counted("x.npy", {2, 2, 4}), array<std::int64_t>("y.npy", {2, 2}, {0, 1, 3, 0})), with);
  });
}

double resident_mib() {
  std::ifstream statm("/proc/self/statm");
  double pages = 0, resident = 0;
  statm >> pages >> resident;
  return resident * static_cast<double>(::sysconf(_SC_PAGESIZE)) / (1 << 20);
}

TEST(BatchReader, FileLargerThanMayStayInMemoryIsReadAsItIsWanted) {
  const TempFolder folder;
  constexpr std::int64_t kRows = 150'000;  // 450 MiB, of which the disk holds nothing
  const std::string path = folder.write("x.bin", "");
  std::filesystem::resize_file(path, kRows * 784 * 4);
  const auto entry = entry_with({input("x", DType::kF32, {Dim::symbol("N"), 784})});
  const std::vector<std::string> items = {"x=" + path + ":f32:150000x784"};
  const double before = resident_mib();
  const BoundArrays data(entry, parse_data("--train", items), options());
  BatchReader batches(data, 256, {.shuffle = true, .buffer = 1000});
  batches.start_epoch(0);
  std::int64_t samples = 0;
  while (batches.next()) samples += batches.size();
  EXPECT_EQ(samples, kRows);
  EXPECT_LT(resident_mib() - before, 100);
}

TEST(Converter, AgreesWithTensorCast) {
  const Tensor source = Tensor::of<std::int16_t>({4}, std::vector<std::int16_t>{-300, -1, 0, 1000});
  for (const DType to : {DType::kF32, DType::kF64, DType::kF16, DType::kBF16, DType::kI64, DType::kI32}) {
    const Tensor expected = source.cast(to);
    std::vector<std::byte> bytes(expected.byte_count());
    Converter(DType::kI16, to, 1).convert(source.bytes().data(), bytes.data(), 4);
    EXPECT_TRUE(std::equal(bytes.begin(), bytes.end(), expected.bytes().begin())) << to_string(to);
  }
}

TEST(Converter, ScaledBytesHaveTheBitsOfOneRounding) {
  std::vector<std::uint8_t> bytes(256 + 13);  // whole vectors, half of one, and a rest
  std::iota(bytes.begin(), bytes.end(), std::uint8_t{0});
  for (const double scale : {1.0, 1 / 255.0, 0.5, 1 / 127.5, 0.00392156862745098, -3.7, 1e-40, 1e38, 0.1, 1 / 3.0}) {
    std::vector<float> found(bytes.size());
    Converter(DType::kU8, DType::kF32, scale)
        .convert(reinterpret_cast<const std::byte*>(bytes.data()), reinterpret_cast<std::byte*>(found.data()), bytes.size());
    for (std::size_t i = 0; i < bytes.size(); ++i) EXPECT_EQ(found[i], static_cast<float>(bytes[i] * scale)) << scale << " " << i;
  }
}

TEST(Grouping, MergesAndSplitsNeighboursOnly) {
  const auto same = [](std::vector<std::int64_t> a, std::vector<std::int64_t> b) { return is_same_but_for_grouping(a, b); };
  EXPECT_TRUE(same({28, 28}, {784}));
  EXPECT_TRUE(same({784}, {28, 28, 1}));
  EXPECT_TRUE(same({1, 3, 32, 32}, {3, 1024}));
  EXPECT_TRUE(same({}, {1, 1}));
  EXPECT_FALSE(same({28, 14}, {14, 28}));
  EXPECT_FALSE(same({3, 4}, {2, 6}));
  EXPECT_FALSE(same({2}, {}));
  EXPECT_FALSE(same({0}, {0, 5}));
  EXPECT_TRUE(same({0, 5}, {0, 1, 5}));
}

}  // namespace
}  // namespace hone
