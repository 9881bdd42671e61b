// A pipeline bound to an entry: fed and checked as arrays are.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "runtime/data/batches.h"
#include "runtime/pipeline/dataset_batches.h"
#include "tests/support/temp_folder.h"

namespace hone {
namespace {

using test::expect_error;
using ::testing::HasSubstr;
using Numbers = std::vector<std::int64_t>;

plan::Entry batched_classifier(Dim batch = Dim::symbol("N")) {
  plan::Entry entry;
  entry.name = "train_step";
  entry.feeds = {{"image", plan::Feed::Kind::kModelInput, DType::kF32, {batch, 4}, std::nullopt, std::nullopt},
                 {"labels", plan::Feed::Kind::kTarget, DType::kI64, {batch}, std::pair<std::int64_t, std::int64_t>(0, 3), std::nullopt},
                 {"learning_rate", plan::Feed::Kind::kLearningRate, DType::kF64, {}, std::nullopt, std::nullopt}};
  return entry;
}
BindOptions batched_options(std::map<std::string, double> scale = {}, std::string symbol = "N") {
  return {.flag = "the data set", .batch_symbol = std::move(symbol), .pre_batched = false, .scale = std::move(scale)};
}
NamedTensors samples(std::int64_t count) {
  std::vector<std::uint8_t> pixels;
  std::vector<std::int32_t> classes;
  for (std::int64_t i = 0; i < count; ++i) {
    for (int j = 0; j < 4; ++j) pixels.push_back(static_cast<std::uint8_t>(4 * i + j));
    classes.push_back(static_cast<std::int32_t>(i % 3));
  }
  return {{"x", Tensor::of<std::uint8_t>({count, 4}, std::span<const std::uint8_t>(pixels))},
          {"y", Tensor::of<std::int32_t>({count}, std::span<const std::int32_t>(classes))}};
}
std::vector<std::byte> bytes_of(const TensorView& view) {
  const auto* data = static_cast<const std::byte*>(view.data);
  return {data, data + static_cast<std::size_t>(checked_element_count(view.shape)) * size_of(view.dtype)};
}
void run(BatchSource& source) {
  source.start_epoch(0);
  while (source.next()) continue;
}

/// Each batch is made by then, so it does not matter that an exporter gave the samples of both inputs axes of their own.
TEST(DatasetBatches, InputsMayHaveAxesOfTheirOwn) {
  plan::Entry entry;
  entry.feeds = {{"a", plan::Feed::Kind::kModelInput, DType::kI32, {Dim::symbol("N")}, std::nullopt, std::nullopt},
                 {"b", plan::Feed::Kind::kModelInput, DType::kI32, {Dim::symbol("M")}, std::nullopt, std::nullopt}};
  const std::vector<std::int32_t> numbers = {1, 2, 3, 4};
  const Tensor tensor = Tensor::of<std::int32_t>({4}, std::span<const std::int32_t>(numbers));
  DatasetBatches batches(entry, Dataset::from_tensor_slices({{"a", tensor}, {"b", tensor}}).batch(2), batched_options());
  batches.start_epoch(0);
  for (int i = 0; i < 2; ++i) {
    ASSERT_TRUE(batches.next());
    for (const auto& [name, view] : batches.feeds()) EXPECT_EQ(bytes_of(view), bytes_of({DType::kI32, {2}, numbers.data() + 2 * i})) << name;
  }
  EXPECT_FALSE(batches.next());
}

TEST(DatasetBatches, FeedsWhatArraysFeed) {
  const plan::Entry entry = batched_classifier();
  NamedTensors tensors = samples(7);
  std::vector<std::pair<std::string, Array>> arrays;
  for (const auto& [name, tensor] : tensors) arrays.emplace_back(name, Array(name, tensor));
  const BoundArrays bound(entry, std::move(arrays), batched_options({{"image", 0.5}}));
  BatchReader expected(bound, 3, {.shuffle = false});
  DatasetBatches found(entry, Dataset::from_tensor_slices(tensors).batch(3), batched_options({{"image", 0.5}}));
  const double rate = 0.25;
  found.add_feed("learning_rate", {DType::kF64, {}, &rate});
  EXPECT_EQ(found.known_batch_count(), expected.known_batch_count());
  for (const std::int64_t first : {0, 1, 2, 3}) {
    expected.start_epoch(0, first);
    found.start_epoch(0, first);
    while (expected.next()) {
      ASSERT_TRUE(found.next());
      EXPECT_EQ(found.size(), expected.size());
      ASSERT_EQ(found.feeds().size(), 3u);
      EXPECT_EQ(found.feeds()[2].second.data, &rate);
      for (std::size_t i = 0; i < 2; ++i) {
        EXPECT_EQ(found.feeds()[i].first, expected.feeds()[i].first);
        EXPECT_EQ(found.feeds()[i].second.shape, expected.feeds()[i].second.shape);
        EXPECT_EQ(bytes_of(found.feeds()[i].second), bytes_of(expected.feeds()[i].second));
      }
    }
    EXPECT_FALSE(found.next());
  }
}

/// All batches from `first` on, `most` of them at most, each with its size.
std::vector<std::vector<std::byte>> batches_of(DatasetBatches& source, std::int64_t epoch, std::int64_t first, std::size_t most) {
  std::vector<std::vector<std::byte>> batches;
  source.start_epoch(epoch, first);
  while (batches.size() < most and source.next()) {
    batches.emplace_back(static_cast<std::size_t>(source.size()));
    for (const auto& [name, view] : source.feeds()) std::ranges::copy(bytes_of(view), std::back_inserter(batches.back()));
  }
  return batches;
}

TEST(DatasetBatches, RowsOfArraysAreGatheredAsExamplesAreStacked) {
  const plan::Entry entry = batched_classifier();
  const std::vector<std::function<Dataset(const Dataset&)>> steps = {
      [](const Dataset& data) { return data.batch(3); },
      [](const Dataset& data) { return data.batch(100); },
      [](const Dataset& data) { return data.shuffle(1000, 4).batch(4, true).prefetch(); },
      [](const Dataset& data) { return data.shuffle(5, 1).batch(4); },
      [](const Dataset& data) { return data.skip(2).take(19).shuffle(3, 2).batch(2); },
      [](const Dataset& data) { return data.shuffle(7, 3).shard(1, 3).batch(2); },
      [](const Dataset& data) { return data.shuffle(4, 5).repeat(3).batch(5); },
      [](const Dataset& data) { return data.repeat(2).shuffle(9, 6).take(31).batch(6, true); },
      [](const Dataset& data) { return data.shuffle(6, 7).repeat().batch(5); },
      [](const Dataset& data) { return data.take(17).cache().shuffle(8, 8).batch(4).prefetch(); },
      [](const Dataset& data) { return data.shuffle(30, 9).cache().batch(4); },
      [](const Dataset& data) { return data.repeat().take(33).shuffle(5, 1).batch(4); },
      [](const Dataset& data) { return data.repeat().shard(1, 4).batch(3); },
      [](const Dataset& data) { return data.repeat().take(0).repeat().batch(3); },
      [](const Dataset& data) { return data.take(0).batch(5); }};
  constexpr std::size_t kMost = 20;
  for (std::size_t i = 0; i < steps.size(); ++i) {
    const Dataset rows = Dataset::from_tensor_slices(samples(23));
    const Dataset gathered = steps[i](rows), stacked = steps[i](rows.map([](Example example) { return example; }));
    ASSERT_TRUE(gathered.row_batches().has_value()) << i;
    ASSERT_FALSE(stacked.row_batches().has_value()) << i;
    DatasetBatches found(entry, gathered, batched_options({{"image", 0.5}}), {.threads = 2}), expected(entry, stacked, batched_options({{"image", 0.5}}));
    EXPECT_EQ(found.known_batch_count(), expected.known_batch_count()) << i;
    EXPECT_EQ(found.is_endless(), expected.is_endless()) << i;
    DatasetBatches ahead(entry, gathered, batched_options({{"image", 0.5}}), {.ahead = Ahead::kAlways});
    for (const std::int64_t epoch : {0, 1, 5})
      for (const std::int64_t first : {0, 1, 4, 11}) {
        const auto batches = batches_of(expected, epoch, first, kMost);
        EXPECT_EQ(batches_of(found, epoch, first, kMost), batches) << "steps " << i << ", epoch " << epoch << " from " << first;
        EXPECT_EQ(batches_of(ahead, epoch, first, kMost), batches) << "steps " << i << ", epoch " << epoch << " from " << first;
      }
  }
}

TEST(DatasetBatches, WhatACacheHoldsIsGatheredOnceItIsFull) {
  const plan::Entry entry = batched_classifier();
  int made = 0;
  const auto brighter = [&made](Example example) {
    ++made;
    return example;
  };
  const std::vector<std::function<Dataset(const Dataset&)>> steps = {
      [](const Dataset& data) { return data.shuffle(9, 3).batch(4); },
      [](const Dataset& data) { return data.repeat(2).shuffle(30, 1).batch(5, true).prefetch(); }};
  for (std::size_t i = 0; i < steps.size(); ++i) {
    const Dataset rows = Dataset::from_tensor_slices(samples(23)).filter([](const Example&) { return true; });
    const Dataset cached = steps[i](rows.map(brighter).cache());
    DatasetBatches found(entry, cached, batched_options({{"image", 0.5}}), {.threads = 2}, Passes::kSeveral), expected(entry, steps[i](rows), batched_options({{"image", 0.5}}));
    made = 0;
    EXPECT_FALSE(cached.row_batches().has_value()) << i;
    for (const std::int64_t epoch : {0, 1, 2}) {
      EXPECT_EQ(batches_of(found, epoch, 0, 100), batches_of(expected, epoch, 0, 100)) << "steps " << i << ", epoch " << epoch;
      EXPECT_EQ(made, 23) << "steps " << i << ", epoch " << epoch;
      EXPECT_TRUE(cached.row_batches().has_value()) << i;
    }
    EXPECT_EQ(batches_of(found, 1, 2, 100), batches_of(expected, 1, 2, 100)) << i;
  }
}

TEST(DatasetBatches, ACacheOfExamplesThatDifferGivesThemAsTheyAre) {
  const Dataset data = Dataset::from_tensor_slices(samples(5)).map([n = 0](Example example) mutable {
    if (n++ % 2 == 1) example[0].second = Tensor::zeros(DType::kF32, {7});
    return example;
  }).cache();
  for (const std::int64_t epoch : {0, 1}) {
    ExampleIterator examples = data.iterate(epoch);
    Example example;
    for (int i = 0; i < 5; ++i) {
      ASSERT_TRUE(examples.next(&example)) << epoch;
      EXPECT_EQ(example[0].second.shape() == std::vector<std::int64_t>{7}, i % 2 == 1) << i;
    }
    EXPECT_FALSE(examples.next(&example));
  }
}

TEST(DatasetBatches, PixelsAsFloatsAreTheSameInEachOfSeveralPasses) {
  const plan::Entry entry = batched_classifier();
  std::vector<float> pixels;
  for (int i = 0; i < 23 * 4; ++i) pixels.push_back(static_cast<float>(i % 19 * 13) / 255);
  const Dataset rows = Dataset::from_tensor_slices({{"x", Tensor::of<float>({23, 4}, std::span<const float>(pixels))}, samples(23)[1]});
  for (const std::int64_t repeats : {1, 3}) {
    const Dataset order = rows.shuffle(9, 2).repeat(repeats);
    DatasetBatches found(entry, order.batch(4), batched_options(), {.threads = 2}, repeats == 1 ? Passes::kSeveral : Passes::kOne);
    DatasetBatches expected(entry, order.map([](Example example) { return example; }).batch(4), batched_options());
    for (const std::int64_t epoch : {0, 1}) EXPECT_EQ(batches_of(found, epoch, 0, 100), batches_of(expected, epoch, 0, 100)) << repeats << " times, epoch " << epoch;
  }
}

TEST(DatasetBatches, APartOfABatchLiesWhereAllOfItWould) {
  const plan::Entry entry = batched_classifier();
  const Dataset data = Dataset::from_tensor_slices(samples(11)).shuffle(20, 3).batch(4);
  DatasetBatches whole(entry, data, batched_options());
  DatasetBatches second_half(entry, data.in_parts([](std::int64_t count) { return BatchPart{.begin = count / 2, .end = count}; }), batched_options());
  whole.start_epoch(1);
  second_half.start_epoch(1);
  while (whole.next()) {
    ASSERT_TRUE(second_half.next());
    ASSERT_EQ(second_half.size(), whole.size());
    for (std::size_t i = 0; i < whole.feeds().size(); ++i) {
      const std::vector<std::byte> all = bytes_of(whole.feeds()[i].second), part = bytes_of(second_half.feeds()[i].second);
      const auto begin = static_cast<std::ptrdiff_t>(all.size()) / whole.size() * (whole.size() / 2);
      EXPECT_TRUE(std::equal(all.begin() + begin, all.end(), part.begin() + begin, part.end()));
    }
  }
  EXPECT_FALSE(second_half.next());
}

TEST(DatasetBatches, AnEpochIsBegunBeforeItsBatches) {
  const plan::Entry entry = batched_classifier();
  for (const Dataset& data : {Dataset::from_tensor_slices(samples(6)), Dataset::from_tensor_slices(samples(6)).map([](Example example) { return example; })}) {
    DatasetBatches batches(entry, data.batch(2), batched_options());
    const auto too_early = [&] { expect_error(Code::kUsage, "batches are asked for before an epoch was begun", [&] { batches.next(); }); };
    too_early();
    expect_error(Code::kUsage, "iterate: the epoch is -1", [&] { batches.start_epoch(-1); });
    expect_error(Code::kUsage, "iterate: the first example is -2", [&] { batches.start_epoch(0, -2); });
    too_early();
  }
}

TEST(DatasetBatches, RowsThatAreNotChosenMayHoldAnything) {
  const plan::Entry entry = batched_classifier();
  NamedTensors bad = samples(6);
  const std::vector<std::int32_t> classes = {0, 1, 2, 0, 7, 1};
  bad[1].second = Tensor::of<std::int32_t>({6}, std::span<const std::int32_t>(classes));
  DatasetBatches good(entry, Dataset::from_tensor_slices(bad).take(4).batch(2), batched_options());
  EXPECT_EQ(batches_of(good, 0, 0, 10).size(), 2u);
  DatasetBatches all(entry, Dataset::from_tensor_slices(bad).batch(2), batched_options());
  all.start_epoch(0);
  EXPECT_TRUE(all.next());
  EXPECT_TRUE(all.next());
  expect_error(Code::kDataRange, "row 4 holds 7", [&] { all.next(); });
}

TEST(DatasetBatches, ErrorsAreThoseOfArraysAndNameTheRowOfTheEpoch) {
  const plan::Entry entry = batched_classifier();
  const auto feed = [&](Dataset data) {
    return [&entry, data] {
      DatasetBatches batches(entry, data, batched_options());
      run(batches);
    };
  };
  NamedTensors bad = samples(8);
  std::vector<std::int32_t> classes = {0, 1, 2, 0, 1, 7, 0, 1};
  bad[1].second = Tensor::of<std::int32_t>({8}, std::span<const std::int32_t>(classes));
  expect_error(Code::kDataRange, "y of the data set: row 5 holds 7, and \"labels\" takes 0 to 2", feed(Dataset::from_tensor_slices(bad).batch(2)));
  DatasetBatches later(entry, Dataset::from_tensor_slices(bad).batch(2), batched_options());
  later.start_epoch(0, 2);
  expect_error(Code::kDataRange, "row 5 holds 7", [&] { later.next(); });
  expect_error(Code::kDataShape, "\"image\" takes f32[N,4]", feed(Dataset::from_tensor_slices(samples(8))));  // not batched
  NamedTensors misnamed = samples(8);
  misnamed[0].first = "imgae";
  expect_error(Code::kDataName, "the data set: the model has no input \"imgae\"", feed(Dataset::from_tensor_slices(misnamed).batch(2)));
  NamedTensors lone = samples(8);
  lone.pop_back();
  expect_error(Code::kDataName, "nothing feeds the target", feed(Dataset::from_tensor_slices(lone).batch(2)));
  NamedTensors floats = samples(8);
  floats[1].second = Tensor::zeros(DType::kF32, {8});
  expect_error(Code::kDataType, "floats are never made integers", feed(Dataset::from_tensor_slices(floats).batch(2)));
}

TEST(DatasetBatches, ModelOfFixedBatchTakesWholeBatchesOnly) {
  const plan::Entry entry = batched_classifier(Dim(3));
  DatasetBatches whole(entry, Dataset::from_tensor_slices(samples(7)).batch(3, true), batched_options({}, ""));
  run(whole);
  DatasetBatches endless(entry, Dataset::from_tensor_slices(samples(7)).repeat().batch(3), batched_options({}, ""));
  EXPECT_EQ(batches_of(endless, 0, 0, 10).size(), 10u);
  DatasetBatches ragged(entry, Dataset::from_tensor_slices(samples(8)).batch(3), batched_options({}, ""));
  try {
    run(ragged);
    FAIL();
  } catch (const Error& error) { EXPECT_THAT(error.what(), HasSubstr("exactly 3 at a time")); }
}

TEST(DatasetBatches, AnEpochBeginsWithTheBatchThatWasLookedAt) {
  std::int64_t made = 0;
  const Dataset data = Dataset::from_tensor_slices(samples(6)).map([&](Example example) { return ++made, example; });
  const plan::Entry entry = batched_classifier();
  DatasetBatches peeked(entry, data.batch(4), batched_options()), gathered(entry, Dataset::from_tensor_slices(samples(6)).batch(4), batched_options());
  for (DatasetBatches* batches : {&peeked, &gathered}) {
    for (int epoch = 0; epoch < 2; ++epoch) {
      EXPECT_TRUE(batches->peek());
      batches->start_epoch(0);
      std::vector<std::int64_t> sizes;
      while (batches->next()) sizes.push_back(batches->size());
      EXPECT_EQ(sizes, (std::vector<std::int64_t>{4, 2}));
    }
    EXPECT_TRUE(batches->peek());
    batches->start_epoch(1, 1);
    EXPECT_TRUE(batches->next());
    EXPECT_EQ(batches->size(), 2) << "another epoch has its own beginning";
  }
  EXPECT_EQ(made, 6 + 6 + 4 + 2);
  EXPECT_FALSE(DatasetBatches(entry, data.take(0).batch(4), batched_options()).peek());
}

TEST(DatasetBatches, LeavesOutWhatAnEntryDoesNotTake) {
  plan::Entry entry = batched_classifier();
  entry.feeds.erase(entry.feeds.begin() + 1);  // the labels
  BindOptions options = batched_options();
  options.left_out = {"y", "x"};  // x is the image, and stays
  for (const Dataset& data : {Dataset::from_tensor_slices(samples(6)), Dataset::from_tensor_slices(samples(6)).map([](Example example) { return example; })}) {
    DatasetBatches batches(entry, data.batch(4), options);
    batches.start_epoch(0);
    ASSERT_TRUE(batches.next());
    ASSERT_EQ(batches.feeds().size(), 1u);
    EXPECT_EQ(batches.feeds()[0].first, "image");
  }
}

TEST(DatasetBatches, NotesOtherGroupingsAndBytesThatAreNotScaled) {
  NamedTensors square = samples(4);
  square[0].second = square[0].second.reshaped({4, 2, 2});
  const plan::Entry entry = batched_classifier();
  DatasetBatches batches(entry, Dataset::from_tensor_slices(square).batch(2), batched_options());
  run(batches);
  ASSERT_EQ(batches.notes().size(), 2u);
  EXPECT_THAT(batches.notes()[0], HasSubstr("read as f32[4]"));
  EXPECT_THAT(batches.notes()[1], AllOf(HasSubstr("holds bytes"), HasSubstr("; data.scale.image=0.00392156862745098 in the recipe makes them 0 to 1")));
  expect_error(Code::kUsage, "pre-batched",
               [&] { DatasetBatches(entry, Dataset::from_tensor_slices(square), {.flag = "", .batch_symbol = "N", .pre_batched = true, .scale = {}}); });
}

}  // namespace
}  // namespace hone
