// Data sets put together, batches of examples of different shapes, and batches taken apart.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>

#include "formats/npy.h"
#include "runtime/pipeline/dataset.h"
#include "runtime/pipeline/text.h"
#include "tests/support/temp_folder.h"

namespace hone {
namespace {

using test::expect_error;
using Numbers = std::vector<std::int64_t>;

/// first, first + 1, ...
Tensor rising(Numbers shape, std::int64_t first = 0) {
  Numbers values(static_cast<std::size_t>(std::accumulate(shape.begin(), shape.end(), std::int64_t{1}, std::multiplies<>())));
  std::iota(values.begin(), values.end(), first);
  return Tensor::of<std::int64_t>(std::move(shape), std::span<const std::int64_t>(values));
}
Dataset counted(const std::string& name, std::int64_t count, std::int64_t first = 0) { return Dataset::from_tensor_slices({{name, rising({count}, first)}}); }

Numbers elements(const Tensor& tensor) {
  Numbers all;
  for (std::int64_t i = 0; i < tensor.element_count(); ++i) all.push_back(tensor.int_at(i));
  return all;
}
/// All elements of the tensors called `name`, from example `first` of an epoch on.
Numbers numbers(const Dataset& data, const std::string& name, std::int64_t epoch = 0, std::int64_t first = 0) {
  Numbers all;
  ExampleIterator examples = data.iterate(epoch, first);
  for (const Example& example : examples)
    for (const std::int64_t number : elements(tensor_of(example, name))) all.push_back(number);
  return all;
}
/// What an epoch gives from each of its examples on is the rest of it.
void expect_same_from_anywhere(const Dataset& data, const std::string& name) {
  const Numbers all = numbers(data, name, 2);
  for (std::size_t first = 0; first <= all.size() + 1; ++first)
    EXPECT_EQ(numbers(data, name, 2, static_cast<std::int64_t>(first)), Numbers(all.begin() + static_cast<std::ptrdiff_t>(std::min(first, all.size())), all.end())) << first;
}
Dataset of_unknown_length(const Dataset& data) {
  return data.filter([](const Example&) { return true; });
}
/// 1, 2, 3, 1, 2, 3, ... steps: [i], [i, i + 1], ...
Dataset sequences(std::int64_t count) {
  return counted("x", count).map([](const Example& example) -> Example {
    const std::int64_t i = tensor_of(example, "x").int_at(0);
    return {{"x", rising({i % 3 + 1}, i)}, {"y", Tensor::scalar(i)}};
  });
}

TEST(Zip, JoinsExamplesUntilTheFirstEnds) {
  const Dataset zipped = Dataset::zip({of_unknown_length(counted("x", 7)), counted("y", 5, 10).shuffle(5, 1), counted("z", 9).repeat()});
  EXPECT_EQ(zipped.length(), std::nullopt);
  EXPECT_FALSE(zipped.is_endless());
  EXPECT_EQ(numbers(zipped, "x"), (Numbers{0, 1, 2, 3, 4}));
  EXPECT_EQ(numbers(zipped, "y"), numbers(counted("y", 5, 10).shuffle(5, 1), "y"));
  EXPECT_EQ(Dataset::zip({counted("y", 5).shuffle(5, 1), counted("z", 9).repeat()}).length(), 5);
  EXPECT_TRUE(Dataset::zip({counted("y", 5).repeat(), counted("z", 9).repeat()}).is_endless());
  for (const char* name : {"x", "y", "z"}) expect_same_from_anywhere(zipped, name);
}

TEST(Zip, OfArraysIsRowsOfAllOfThem) {
  const Dataset zipped = Dataset::zip({counted("x", 6), counted("y", 6, 10)}).shuffle(6, 3).batch(4);
  EXPECT_TRUE(zipped.row_batches().has_value()) << "no example is made";
  EXPECT_EQ(zipped.order(), "zip(6 rows; 6 rows), shuffle(6, seed 3), batch(4)");
  Numbers expected = numbers(zipped, "x");
  for (std::int64_t& number : expected) number += 10;
  EXPECT_EQ(numbers(zipped, "y"), expected);
  EXPECT_EQ(numbers(Dataset::zip({counted("x", 6), counted("y", 4)}), "x"), (Numbers{0, 1, 2, 3})) << "where one is shorter they are not";
  const test::TempFolder folder;
  write_npy(folder / "y.npy", rising({6}, 20));
  EXPECT_EQ(numbers(Dataset::zip({counted("x", 6), Dataset::from_files({"y=" + (folder / "y.npy")})}), "y"), (Numbers{20, 21, 22, 23, 24, 25}));
}

TEST(Zip, RefusesWhatDoesNotGoTogether) {
  expect_error(Code::kDataName, "\"x\" is given twice", [] { Dataset::zip({counted("x", 3), counted("x", 3)}); });
  expect_error(Code::kDataName, "zip: example 0: two tensors are called \"x\"", [] { numbers(Dataset::zip({counted("x", 3), sequences(3)}), "x"); });
  expect_error(Code::kUsage, "zip: no data sets", [] { Dataset::zip({}); });
}

TEST(Concatenate, GivesOneBehindTheOther) {
  const Dataset both = counted("x", 4).shuffle(4, 2).concatenate(counted("x", 3, 10));
  EXPECT_EQ(both.length(), 7);
  const Numbers all = numbers(both, "x");
  EXPECT_THAT(Numbers(all.begin(), all.begin() + 4), testing::UnorderedElementsAre(0, 1, 2, 3));
  EXPECT_EQ(Numbers(all.begin() + 4, all.end()), (Numbers{10, 11, 12}));
  EXPECT_NE(numbers(both, "x", 1), all) << "the first is shuffled anew";
  expect_same_from_anywhere(both, "x");
  EXPECT_EQ(of_unknown_length(counted("x", 4)).concatenate(counted("x", 3)).length(), std::nullopt);
  EXPECT_TRUE(counted("x", 4).concatenate(counted("x", 3).repeat()).is_endless());
  EXPECT_EQ(counted("x", 4).batch(2).concatenate(counted("x", 4).batch(2)).batch_size(), 2);
  EXPECT_EQ(counted("x", 4).batch(2).concatenate(counted("x", 4).batch(3)).batch_size(), std::nullopt);
  expect_error(Code::kDataName, "batch: example 4 has \"y\" where example 0 has \"x\"", [] { numbers(counted("x", 4).concatenate(counted("y", 3)).batch(7), "x"); });
}

TEST(Unbatch, GivesTheRows) {
  for (const std::int64_t size : {1, 3, 20}) {
    const Dataset rows = counted("x", 10).map([](Example example) { return example; }).batch(size).unbatch();
    EXPECT_EQ(numbers(rows, "x"), numbers(counted("x", 10), "x"));
    EXPECT_EQ(rows.batch_size(), std::nullopt);
    expect_same_from_anywhere(rows, "x");
  }
  const Dataset pictures = Dataset::from_tensor_slices({{"x", rising({2, 3, 2})}}).unbatch();
  Example row;
  ASSERT_TRUE(pictures.iterate(0, 4).next(&row));
  EXPECT_EQ(row[0].second.shape(), (Numbers{2}));
  EXPECT_EQ(elements(row[0].second), (Numbers{8, 9}));
}

TEST(Unbatch, RefusesWhatIsNoBatch) {
  expect_error(Code::kDataShape, "unbatch: example 0: \"x\" is a single number", [] { numbers(counted("x", 3).unbatch(), "x"); });
  expect_error(Code::kDataLength, "unbatch: example 0: \"x\" has 3 rows, and \"y\" has 2", [] { numbers(Dataset::from_tensor_slices({{"x", rising({1, 3})}, {"y", rising({1, 2})}}).unbatch(), "x"); });
}

TEST(PaddedBatch, FillsUpToTheLargest) {
  const Dataset batches = sequences(5).padded_batch(3, {{"x", -1}});
  ExampleIterator all = batches.iterate();
  Example batch;
  ASSERT_TRUE(all.next(&batch));
  EXPECT_EQ(tensor_of(batch, "x").shape(), (Numbers{3, 3}));
  EXPECT_EQ(elements(tensor_of(batch, "x")), (Numbers{0, -1, -1, 1, 2, -1, 2, 3, 4}));
  EXPECT_EQ(elements(tensor_of(batch, "y")), (Numbers{0, 1, 2}));
  ASSERT_TRUE(all.next(&batch));
  EXPECT_EQ(tensor_of(batch, "x").shape(), (Numbers{2, 2})) << "each batch as far as it needs";
  EXPECT_EQ(elements(tensor_of(batch, "x")), (Numbers{3, -1, 4, 5}));
  EXPECT_EQ(batches.length(), 2);
  EXPECT_EQ(batches.batch_size(), 3);
  EXPECT_EQ(sequences(5).padded_batch(3, {}, true).length(), 1);
  EXPECT_EQ(elements(tensor_of(*sequences(2).padded_batch(2).iterate().begin(), "x")), (Numbers{0, 0, 1, 2})) << "with zeros, if nothing is said";
}

TEST(PaddedBatch, FillsUpEveryAxis) {
  std::vector<Tensor> pictures = {rising({1, 2, 2}), rising({2, 1, 3}, 10), rising({2, 0, 1})};
  const Dataset data = counted("i", 3).map([pictures](const Example& example) -> Example { return {{"x", pictures[static_cast<std::size_t>(example[0].second.int_at(0))]}}; });
  const Tensor batch = tensor_of(*data.padded_batch(3, {{"x", 9}}).iterate().begin(), "x");
  EXPECT_EQ(batch.shape(), (Numbers{3, 2, 2, 3}));
  EXPECT_EQ(elements(batch), (Numbers{0, 1, 9, 2, 3, 9, 9, 9, 9, 9, 9, 9, 10, 11, 12, 9, 9, 9, 13, 14, 15, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9}));
}

TEST(PaddedBatch, OfRowsIsABatch) {
  EXPECT_TRUE(counted("x", 6).padded_batch(2).row_batches().has_value());
  const PartOfBatch second_half = [](std::int64_t samples) { return BatchPart{.begin = samples / 2, .end = samples}; };
  EXPECT_EQ(numbers(sequences(4).padded_batch(4).in_parts(second_half), "x"), numbers(sequences(4).padded_batch(4), "x")) << "how far a part is padded depends on the rest";
}

TEST(PaddedBatch, RefusesWhatPaddingDoesNotMakeAlike) {
  expect_error(Code::kDataName, "an example has no \"z\", whose padding is given", [] { numbers(sequences(3).padded_batch(3, {{"z", 1}}), "x"); });
  expect_error(Code::kUsage, "padded_batch: 0.5 is no i64", [] { numbers(sequences(3).padded_batch(3, {{"x", 0.5}}), "x"); });
  const Dataset of_two_ranks = counted("i", 2).map([](const Example& example) -> Example { return {{"x", rising(Numbers(static_cast<std::size_t>(example[0].second.int_at(0)) + 1, 1))}}; });
  expect_error(Code::kDataShape, "batch: example 1: \"x\" is i64[1,1], and that of example 0 is i64[1]", [&] { numbers(of_two_ranks.padded_batch(2), "x"); });
}

}  // namespace
}  // namespace hone
