// The data set pipeline: what each step gives, the same for any number of threads, from any place of an epoch.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <fstream>
#include <numeric>
#include <set>
#include <thread>

#include "formats/npy.h"
#include "runtime/pipeline/dataset.h"
#include "runtime/pipeline/text.h"
#include "tests/support/temp_folder.h"

namespace hone {
namespace {

using test::expect_error;
using test::TempFolder;
using Numbers = std::vector<std::int64_t>;

Dataset counted(std::int64_t count) {
  Numbers values(static_cast<std::size_t>(count));
  std::iota(values.begin(), values.end(), 0);
  return Dataset::from_tensor_slices({{"i", Tensor::of<std::int64_t>({count}, std::span<const std::int64_t>(values))}});
}
std::int64_t number_of(const Example& example) { return tensor_of(example, "i").int_at(0); }
Example number(std::int64_t value) { return {{"i", Tensor::scalar(value)}}; }

/// What an epoch gives from example `first` on: all elements of the tensor "i".
Numbers numbers(const Dataset& data, std::int64_t epoch = 0, std::int64_t first = 0) {
  Numbers result;
  ExampleIterator examples = data.iterate(epoch, first);
  for (const Example& example : examples) {
    const Tensor& tensor = tensor_of(example, "i");
    for (std::int64_t i = 0; i < tensor.element_count(); ++i) result.push_back(tensor.int_at(i));
  }
  return result;
}
Numbers up_to(std::int64_t count) { return numbers(counted(count)); }
Dataset::Map plus(std::int64_t addend) {
  return [addend](Example example) { return number(number_of(example) + addend); };
}
Example slowly(Example example) {  // the first of several takes longest
  std::this_thread::sleep_for(std::chrono::microseconds(number_of(example) % 4 == 0 ? 500 : 10));
  return number(number_of(example) * 2);
}

TEST(Dataset, SlicesTensorsIntoExamples) {
  const Dataset data = Dataset::from_tensor_slices(
      {{"x", Tensor::of<float>({2, 3}, std::vector<float>{1, 2, 3, 4, 5, 6})}, {"y", Tensor::of<std::int64_t>({2}, std::vector<std::int64_t>{7, 8})}});
  EXPECT_EQ(data.length(), 2);
  Example example;
  ExampleIterator examples = data.iterate(0, 1);
  ASSERT_TRUE(examples.next(&example));
  EXPECT_EQ(tensor_of(example, "x").shape(), (Numbers{3}));
  EXPECT_EQ(tensor_of(example, "x").at(2), 6);
  EXPECT_EQ(tensor_of(example, "y").int_at(0), 8);
  EXPECT_FALSE(examples.next(&example));
  expect_error(Code::kDataName, "no \"z\"", [&] { tensor_of(data.iterate().next(&example) ? example : Example{}, "z"); });
}

TEST(Dataset, RefusesTensorsThatDoNotGoTogether) {
  const auto zeros = [](std::vector<std::int64_t> shape) { return Tensor::zeros(DType::kF32, std::move(shape)); };
  expect_error(Code::kDataLength, "x has 2 rows, and y has 3", [&] { Dataset::from_tensor_slices({{"x", zeros({2})}, {"y", zeros({3})}}); });
  expect_error(Code::kDataLength, "no rows", [&] { Dataset::from_tensor_slices({{"x", zeros({})}}); });
  expect_error(Code::kDataName, "given twice", [&] { Dataset::from_tensor_slices({{"x", zeros({2})}, {"x", zeros({2})}}); });
  expect_error(Code::kDataName, "no arrays", [&] { Dataset::from_tensor_slices({}); });
}

TEST(Dataset, ReadsFilesLinesAndGenerators) {
  const TempFolder folder;
  write_npy(folder / "i.npy", Tensor::of<std::int64_t>({3}, std::vector<std::int64_t>{5, 6, 7}));
  EXPECT_EQ(numbers(Dataset::from_files({"i=" + (folder / "i.npy")})), (Numbers{5, 6, 7}));
  expect_error(Code::kFileOpen, "j.npy", [&] { Dataset::from_files({"i=" + (folder / "j.npy")}); });
  expect_error(Code::kUsage, "expected NAME=FILE", [&] { Dataset::from_files({"i.npy"}); });

  folder.write("a.txt", "one two\r\n\nthree");
  folder.write("b.txt", "");
  folder.write("c.txt", "four\n" + std::string(700'000, 'x') + "\nlast");
  std::vector<std::string> lines;
  ExampleIterator examples = Dataset::from_lines({folder / "a.txt", folder / "b.txt", folder / "c.txt"}).iterate();
  for (const Example& example : examples) lines.emplace_back(text_of(tensor_of(example, "line")));
  EXPECT_EQ(lines, (std::vector<std::string>{"one two", "", "three", "four", std::string(700'000, 'x'), "last"}));
  expect_error(Code::kFileOpen, "d.txt", [&] { Dataset::from_lines({folder / "d.txt"}); });

  const Dataset generated = Dataset::from_generator([] { return [i = 0]() mutable { return i < 4 ? std::optional(number(i++)) : std::nullopt; }; });
  EXPECT_EQ(numbers(generated), up_to(4));
  EXPECT_EQ(numbers(generated, 1, 2), (Numbers{2, 3}));
  EXPECT_EQ(generated.length(), std::nullopt);
}

TEST(Dataset, BatchesEndWithTheirSourceEvenIfThatWouldBeginAnew) {
  const auto rewinds = [] { return [i = 0]() mutable { return i < 9 ? std::optional(number(i++)) : (i = 0, std::nullopt); }; };
  for (const std::int64_t size : {3, 4, 9, 20})
    for (const bool drop : {false, true}) {
      std::int64_t examples = 0, batches = 0;
      ExampleIterator all = Dataset::from_generator(rewinds).batch(size, drop).iterate();
      for (const Example& batch : all) {
        examples += batch[0].second.shape()[0];
        ASSERT_LE(++batches, 3) << size;
      }
      EXPECT_EQ(examples, drop ? 9 / size * size : 9) << size;
    }
}

TEST(Dataset, MapKeepsTheOrderForAnyNumberOfThreads) {
  Numbers doubled;
  for (std::int64_t i = 0; i < 50; ++i) doubled.push_back(2 * i);
  for (const int threads : {1, 2, 8}) EXPECT_EQ(numbers(counted(50).map(slowly, {.threads = threads})), doubled) << threads;
}

TEST(Dataset, RandomMapDrawsTheSameForAnyNumberOfThreads) {
  const Dataset::RandomMap noise = [](Example example, RandomWords& words) {
    return number(number_of(example) + static_cast<std::int64_t>(words.below(1'000'000)));
  };
  const auto with = [&](int threads, std::int64_t seed) { return counted(40).map(noise, {.threads = threads, .seed = seed}); };
  for (const int threads : {2, 8}) EXPECT_EQ(numbers(with(threads, 3), 5), numbers(with(1, 3), 5));
  EXPECT_NE(numbers(with(1, 3), 5), numbers(with(1, 3), 6));
  EXPECT_NE(numbers(with(1, 3), 5), numbers(with(1, 4), 5));
  const Numbers all = numbers(with(1, 3), 5);
  EXPECT_EQ(numbers(with(8, 3), 5, 13), Numbers(all.begin() + 13, all.end()));
}

TEST(Dataset, ErrorInAFunctionNamesTheExample) {
  const auto fails_at = [](std::int64_t bad) {
    return [bad](Example example) -> Example {
      if (number_of(example) == bad) throw std::runtime_error("cannot read the picture");
      return slowly(std::move(example));
    };
  };
  for (const int threads : {1, 2, 8}) {
    const Dataset data = counted(30).map(fails_at(17), {.threads = threads});
    Example example;
    ExampleIterator examples = data.iterate();
    for (int i = 0; i < 17; ++i) ASSERT_TRUE(examples.next(&example));
    expect_error(Code::kDataFormat, "map: example 17: cannot read the picture", [&] { examples.next(&example); });
    ExampleIterator later = data.prefetch().iterate(0, 15);
    ASSERT_TRUE(later.next(&example) and later.next(&example));
    expect_error(Code::kDataFormat, "map: example 17:", [&] { later.next(&example); });
  }
  const auto hone_error = [](Example) -> Example { throw Error(Code::kDataRange, "too dark", {}, {"more light"}); };
  expect_error(Code::kDataRange, "map: example 0: too dark\n  note: more light", [&] { numbers(counted(3).map(hone_error, {.threads = 2})); });
  expect_error(Code::kDataFormat, "filter: example 2",
               [&] { numbers(counted(3).filter([](const Example& example) { return number_of(example) < 2 ? true : throw std::runtime_error("no"); })); });
  expect_error(Code::kDataFormat, "from_generator: example 0: no",
               [&] { numbers(Dataset::from_generator([] { return []() -> std::optional<Example> { throw std::runtime_error("no"); }; })); });
}

TEST(Dataset, ErrorInAFunctionEndsThePass) {
  const auto fails = [](const Example& example) -> bool { return number_of(example) == 1 ? throw std::runtime_error("no") : true; };
  const auto mapped = [&](Example example) { return fails(example), example; };
  const auto fails_once = [] {
    return [i = 0]() mutable -> std::optional<Example> { return ++i == 2 ? throw std::runtime_error("no") : number(i); };
  };
  const std::vector<Dataset> all = {counted(5).map(mapped), counted(5).map(mapped, {.threads = 2}), counted(5).map(mapped).prefetch(), counted(5).filter(fails), Dataset::from_generator(fails_once),
                                    counted(5).interleave([&](const Example& example) { return fails(example), counted(1); }, 1)};
  for (std::size_t i = 0; i < all.size(); ++i) {
    SCOPED_TRACE(i);
    Example example;
    ExampleIterator examples = all[i].iterate();
    ASSERT_TRUE(examples.next(&example));
    for (int asked = 0; asked < 3; ++asked) expect_error(Code::kDataFormat, "example 1: no", [&] { examples.next(&example); });
    expect_error(Code::kDataFormat, "example 1: no", [&] { examples.skip(1); });
    ExampleIterator moved = std::move(examples);
    expect_error(Code::kDataFormat, "example 1: no", [&] { moved.next(&example); });
  }
}

TEST(Dataset, WhateverAFunctionThrowsNamesTheExample) {
  const auto number_thrown = [](Example) -> Example { throw 42; };
  for (const int threads : {1, 2}) expect_error(Code::kDataFormat, "map: example 0: something was thrown that is no std::exception", [&] { numbers(counted(3).map(number_thrown, {.threads = threads})); });
  const auto text_thrown = [](const Example&) -> bool { throw std::string("no"); };
  expect_error(Code::kDataFormat, "filter: example 0: something was thrown", [&] { numbers(counted(3).filter(text_thrown)); });
  expect_error(Code::kDataFormat, "from_generator: example 0: no connection", [] { numbers(Dataset::from_generator([]() -> Generator { throw std::runtime_error("no connection"); })); });
  expect_error(Code::kUsage, "from_generator: example 0: what begins a pass gave no function", [] { numbers(Dataset::from_generator([] { return Generator(); })); });
}

TEST(Dataset, RefusesFunctionsThatAreEmpty) {
  expect_error(Code::kUsage, "from_generator: the function is empty", [] { Dataset::from_generator({}); });
  expect_error(Code::kUsage, "map: the function is empty", [] { counted(3).map(Dataset::Map()); });
  expect_error(Code::kUsage, "map: the function is empty", [] { counted(3).map(Dataset::RandomMap()); });
  expect_error(Code::kUsage, "filter: the function is empty", [] { counted(3).filter({}); });
  expect_error(Code::kUsage, "interleave: the function is empty", [] { counted(3).interleave({}, 1); });
}

TEST(Dataset, AFunctionMayNotGiveANameTwice) {
  const auto twice = [](const Example& example) -> Example { return {{"x", example[0].second}, {"y", example[0].second}, {"x", example[0].second}}; };
  for (const int threads : {1, 2}) expect_error(Code::kDataName, "map: example 0: two tensors are called \"x\"", [&] { numbers(counted(3).map(twice, {.threads = threads})); });
  expect_error(Code::kDataName, "from_generator: example 0: two tensors are called \"x\"",
               [&] { numbers(Dataset::from_generator([&] { return [&] { return std::optional(twice(number(1))); }; })); });
}

TEST(Dataset, AnIteratorThatWasMovedFromSaysSo) {
  ExampleIterator examples = counted(3).iterate();
  const ExampleIterator moved = std::move(examples);
  Example example;
  expect_error(Code::kUsage, "an iterator that was moved from", [&] { examples.next(&example); });  // NOLINT(bugprone-use-after-move)
}

TEST(Dataset, IteratorsMayBeLeftInTheMiddle) {
  Example example;
  for (int i = 0; i < 20; ++i) {
    ExampleIterator examples = counted(1000).map(slowly, {.threads = 3}).prefetch(2).iterate();
    ASSERT_TRUE(examples.next(&example));
  }
}

TEST(Dataset, FilterTakeSkipAndShard) {
  EXPECT_EQ(numbers(counted(10).filter([](const Example& example) { return number_of(example) % 3 == 0; })), (Numbers{0, 3, 6, 9}));
  EXPECT_EQ(numbers(counted(10).take(3)), (Numbers{0, 1, 2}));
  EXPECT_EQ(numbers(counted(10).skip(8)), (Numbers{8, 9}));
  EXPECT_EQ(numbers(counted(2).take(5)), (Numbers{0, 1}));
  EXPECT_EQ(numbers(counted(2).skip(5)), Numbers{});
  EXPECT_EQ(numbers(counted(10).skip(2).take(3)), (Numbers{2, 3, 4}));
  EXPECT_EQ(numbers(counted(10).shard(1, 3)), (Numbers{1, 4, 7}));
  EXPECT_EQ(numbers(counted(10).shard(0, 3)), (Numbers{0, 3, 6, 9}));
}

TEST(Dataset, MinusOneStandsForAllAsInTfData) {
  EXPECT_EQ(numbers(counted(3).take(-1)), up_to(3));
  EXPECT_EQ(numbers(counted(3).skip(-1)), Numbers{});
  EXPECT_EQ(counted(3).skip(-1).length(), 0);
  EXPECT_TRUE(counted(3).repeat(-1).is_endless());
  EXPECT_TRUE(counted(3).repeat().take(-1).is_endless());
  EXPECT_EQ(numbers(counted(3).repeat(-1).take(5)), (Numbers{0, 1, 2, 0, 1}));
  EXPECT_EQ(numbers(counted(3).repeat().skip(-1)), Numbers{});
}

TEST(Dataset, LengthIsKnownWhereItFollows) {
  EXPECT_EQ(counted(10).take(3).length(), 3);
  EXPECT_EQ(counted(10).skip(8).length(), 2);
  EXPECT_EQ(counted(2).skip(5).length(), 0);
  EXPECT_EQ(counted(10).shard(0, 3).length(), 4);
  EXPECT_EQ(counted(10).shard(1, 3).length(), 3);
  EXPECT_EQ(counted(10).repeat(3).batch(4).length(), 8);
  EXPECT_EQ(counted(10).batch(4, true).map(plus(0)).shuffle(5).prefetch().length(), 2);
  EXPECT_EQ(counted(10).repeat().length(), std::nullopt);
  EXPECT_EQ(counted(10).filter([](const Example&) { return true; }).length(), std::nullopt);
  EXPECT_EQ(counted(10).shuffle(4).repeat().take(25).batch(4).length(), 7);
  EXPECT_EQ(counted(10).repeat().batch(4).map(plus(0)).prefetch().take(25).length(), 25);
  EXPECT_EQ(counted(10).repeat().repeat(2).cache().skip(3).shard(1, 3).take(25).length(), 25);
  EXPECT_EQ(counted(10).repeat().skip(3).length(), std::nullopt);
  EXPECT_EQ(counted(10).take(0).repeat().take(25).length(), 0);
}

/// What may be empty is repeated for ever, or not at all.
TEST(Dataset, LengthIsNotKnownWhereWhatIsRepeatedMayBeEmpty) {
  const auto none = [](const Example&) { return false; };
  for (const Dataset& data : {counted(3).filter(none).repeat(), counted(3).filter(none).repeat().shuffle(2)}) {
    EXPECT_TRUE(data.is_endless());
    EXPECT_EQ(data.take(5).length(), std::nullopt);
    EXPECT_EQ(numbers(data.take(5)), Numbers{});
  }
  EXPECT_EQ(counted(3).repeat().filter(none).take(5).length(), std::nullopt);
}

TEST(Dataset, ShuffleIsAFunctionOfSeedAndEpoch) {
  const Dataset data = counted(100).shuffle(10, 7);
  const Numbers third = numbers(data, 3);
  EXPECT_EQ(std::set<std::int64_t>(third.begin(), third.end()).size(), 100u);
  EXPECT_NE(third, up_to(100));
  EXPECT_EQ(numbers(data, 3), third);
  EXPECT_NE(numbers(data, 4), third);
  EXPECT_NE(numbers(counted(100).shuffle(10, 8), 3), third);
  for (std::int64_t i = 0; i < 100; ++i) EXPECT_LE(third[static_cast<std::size_t>(i)], i + 9);
  const Numbers all = numbers(counted(100).shuffle(1000, 7));
  EXPECT_EQ(std::set<std::int64_t>(all.begin(), all.end()).size(), 100u);
  EXPECT_EQ(numbers(counted(5).shuffle(1)), up_to(5));
}

TEST(Dataset, OrderStaysTheSameFromVersionToVersion) { EXPECT_EQ(numbers(counted(8).shuffle(3, 1), 2), (Numbers{2, 3, 1, 4, 5, 0, 6, 7})); }

TEST(Dataset, RepeatsPassOverWholePassesAtOnce) {
  const Dataset pass = counted(100).shuffle(10, 1);
  constexpr std::int64_t kPasses = 1'000'000'000;  // nobody could draw them one by one
  for (const Dataset& all : {pass.repeat(), pass.repeat(kPasses + 3)}) {
    ExampleIterator examples = all.batch(25).iterate(0, 4 * kPasses + 3);
    Example batch;
    ASSERT_TRUE(examples.next(&batch));
    const Numbers last = numbers(pass, kPasses, 75);
    for (std::int64_t i = 0; i < 25; ++i) EXPECT_EQ(tensor_of(batch, "i").int_at(i), last[static_cast<std::size_t>(i)]);
    EXPECT_EQ(examples.skip(5), 5);
  }
  EXPECT_EQ(pass.repeat(kPasses).iterate().skip(101 * kPasses), 100 * kPasses);
  EXPECT_EQ(pass.repeat(3).batch(7).iterate().skip(100), 43);
  EXPECT_EQ(pass.repeat(3).batch(7, true).iterate().skip(100), 42);
}

TEST(Dataset, KnowsItsBatchesAndWhetherItEnds) {
  const Dataset endless = counted(10).repeat().batch(4).prefetch();
  EXPECT_EQ(endless.batch_size(), 4);
  EXPECT_TRUE(endless.is_endless());
  EXPECT_FALSE(endless.take(3).is_endless());
  EXPECT_EQ(endless.take(3).skip(1).batch_size(), 4);
  EXPECT_FALSE(counted(10).repeat(3).is_endless());
  EXPECT_EQ(counted(10).batch_size(), std::nullopt);
  const Dataset others = endless.interleave([](const Example&) { return counted(2); }, 1);
  EXPECT_EQ(others.batch_size(), std::nullopt);
  EXPECT_FALSE(others.is_endless());
}

TEST(Dataset, MovesAreCopies) {
  Dataset data = counted(3);
  const Dataset other = std::move(data);
  EXPECT_EQ(numbers(data), numbers(other));  // NOLINT(bugprone-use-after-move)
  EXPECT_EQ(data.length(), 3);
}

TEST(Dataset, BatchStacksAndMayDropTheRemainder) {
  Example batch;
  ExampleIterator batches = counted(5).batch(2).iterate();
  ASSERT_TRUE(batches.next(&batch));
  EXPECT_EQ(tensor_of(batch, "i").shape(), (Numbers{2}));
  ASSERT_TRUE(batches.next(&batch) and batches.next(&batch));
  EXPECT_EQ(tensor_of(batch, "i").shape(), (Numbers{1}));
  EXPECT_FALSE(batches.next(&batch));
  EXPECT_EQ(numbers(counted(5).batch(2, true)), up_to(4));
  EXPECT_EQ(numbers(counted(5).batch(2), 0, 1), (Numbers{2, 3, 4}));
  EXPECT_EQ(numbers(counted(5).batch(2), 0, 3), Numbers{});
  EXPECT_EQ(numbers(counted(5).batch(2, true), 0, 2), Numbers{});
}

/// The second half, as the last of two processes gets it.
BatchPart second_half(std::int64_t samples) { return {.begin = (samples + 1) / 2, .end = samples}; }

TEST(Dataset, BatchesInPartsMakeNoOtherExamples) {
  Numbers made;
  const Dataset::Map note = [&made](Example example) {
    made.push_back(number_of(example));
    return number(number_of(example) + 100);
  };
  const Dataset whole = counted(9).map(note).batch(4);
  for (const Dataset& parts : {whole.in_parts(second_half), whole.prefetch(1).in_parts(second_half)}) {
    made.clear();
    EXPECT_EQ(numbers(parts), (Numbers{0, 0, 102, 103, 0, 0, 106, 107, 108})) << "of a batch of one, whose half is nothing, one is made: it says what there is";
    EXPECT_EQ(made, (Numbers{2, 3, 6, 7, 8}));
    EXPECT_EQ(numbers(parts, 0, 1), (Numbers{0, 0, 106, 107, 108}));
    EXPECT_EQ(parts.length(), 3);
    EXPECT_EQ(parts.order(), whole.order());
  }
  EXPECT_EQ(numbers(counted(9).batch(4, true).in_parts(second_half)), (Numbers{0, 0, 2, 3, 0, 0, 6, 7}));
  EXPECT_EQ(numbers(counted(8).shuffle(3, 1).batch(8).in_parts(second_half), 2), (Numbers{0, 0, 0, 0, 5, 0, 6, 7})) << "the same order";
}

TEST(Dataset, BatchesAreWholeWhereTheirSizesAreNotKnownOrOthersFollow) {
  const auto all = [](const Example&) { return true; };
  for (const Dataset& data : {counted(9).filter(all).batch(4), counted(9).batch(4).filter(all), counted(9).batch(3).repeat(1), counted(9)}) EXPECT_EQ(numbers(data.in_parts(second_half)), up_to(9));
}

TEST(Dataset, BatchRefusesExamplesOfDifferentKinds) {
  const auto growing = [](Example example) -> Example { return {{"i", Tensor::zeros(DType::kI64, {number_of(example)})}}; };
  const auto changing = [](const Example& example, auto other) {
    const bool first = tensor_of(example, "i").int_at(0) == 0;
    return Example{{"i", first ? Tensor::zeros(DType::kF32, {2, 3}) : Tensor(other)}};
  };
  const auto with = [&](const Tensor& other) { return [=] { numbers(counted(5).map([=](Example example) { return changing(example, other); }).batch(2)); }; };
  expect_error(Code::kDataType, "map cast() over them", with(Tensor::zeros(DType::kF64, {2, 3})));
  expect_error(Code::kDataShape, "map pad_sequence() over", with(Tensor::zeros(DType::kF32, {4, 3})));
  expect_error(Code::kDataShape, "all examples of a batch need the same shape", with(Tensor::zeros(DType::kF32, {2, 4})));
  expect_error(Code::kDataShape, "batch: example 1: \"i\" is i64[1], and that of example 0 is i64[0]", [&] { numbers(counted(5).map(growing).batch(2)); });
  const auto renamed = [](Example example) { return number_of(example) == 3 ? Example{{"j", Tensor::scalar(1.0f)}} : example; };
  expect_error(Code::kDataName, "batch: example 3 has \"j\" where example 2 has \"i\"", [&] { numbers(counted(5).map(renamed).batch(2)); });
  const auto more = [](Example example) { return number_of(example) == 1 ? Example{example[0], {"j", Tensor::scalar(1.0f)}} : example; };
  expect_error(Code::kDataName, "has 2 tensors, and example 0 has 1", [&] { numbers(counted(5).map(more).batch(2)); });
}

TEST(Dataset, RepeatShufflesEachPassAnew) {
  const Dataset once = counted(6).shuffle(6, 1);
  Numbers two = numbers(once, 0);
  const Numbers second = numbers(once, 1);
  two.insert(two.end(), second.begin(), second.end());
  EXPECT_EQ(numbers(once.repeat(2), 0), two);
  EXPECT_EQ(numbers(once.repeat(1), 3), numbers(once, 3));
  EXPECT_EQ(numbers(once.repeat().take(12)), two);
  EXPECT_EQ(numbers(once.repeat(2), 0, 8), Numbers(two.begin() + 8, two.end()));
  EXPECT_EQ(numbers(counted(3).filter([](const Example&) { return false; }).repeat()), Numbers{});  // no endless search
}

TEST(Dataset, InterleaveTakesBlocksInTurn) {
  const auto tens = [](const Example& example) { return counted(number_of(example) + 1).map(plus(10 * number_of(example))); };
  EXPECT_EQ(numbers(counted(4).interleave(tens, 2)), (Numbers{0, 10, 11, 20, 21, 30, 22, 31, 32, 33}));
  EXPECT_EQ(numbers(counted(4).interleave(tens, 2, 2)), (Numbers{0, 10, 11, 20, 21, 22, 30, 31, 32, 33}));
  EXPECT_EQ(numbers(counted(4).interleave(tens, 1)), (Numbers{0, 10, 11, 20, 21, 22, 30, 31, 32, 33}));
  EXPECT_EQ(numbers(counted(0 + 1).interleave(tens, 5)), (Numbers{0}));
}

/// What makes examples ahead, on threads, ends before the data set that it goes through.
TEST(Dataset, StreamsEndBeforeTheirStages) {
  const auto ahead = [](const Example&) { return counted(100).map(plus(1), {.threads = 2}).prefetch(8).take(3); };
  for (int i = 0; i < 20; ++i) EXPECT_EQ(numbers(counted(3).interleave(ahead, 2)), (Numbers{1, 1, 2, 2, 3, 3, 1, 2, 3}));
  ExampleIterator examples = ahead({}).iterate();
  Example example;
  ASSERT_TRUE(examples.next(&example));
  examples = ahead({}).iterate();
  EXPECT_TRUE(examples.next(&example));
}

TEST(Dataset, CacheInMemoryCallsWhatLiesBeforeOnce) {
  auto calls = std::make_shared<int>(0);
  const Dataset data = counted(5).map([calls](Example example) { return ++*calls, example; }).cache();
  Example example;
  data.iterate().next(&example);  // a pass that is not whole keeps nothing
  EXPECT_EQ(numbers(data), up_to(5));
  EXPECT_EQ(*calls, 6);
  EXPECT_EQ(numbers(data, 1), up_to(5));
  EXPECT_EQ(numbers(data, 2, 3), (Numbers{3, 4}));
  EXPECT_EQ(*calls, 6);
}

TEST(Dataset, CacheGivesTheSameWhateverEpochFillsIt) {
  const auto shuffled = [] { return counted(20).shuffle(20, 2).cache(); };
  const Dataset data = shuffled();
  const Numbers late = numbers(data, 7);
  EXPECT_EQ(late, numbers(shuffled(), 0));
  EXPECT_EQ(late, numbers(data, 8));
  EXPECT_NE(numbers(data.shuffle(20, 3), 1), numbers(data.shuffle(20, 3), 2));
}

TEST(Dataset, CacheInAFileIsFoundAgain) {
  const TempFolder folder;
  auto calls = std::make_shared<int>(0);
  const auto data = [&] {
    return counted(5)
        .map([calls](Example example) {
          return ++*calls, Example{example[0], {"flag", Tensor::scalar(true)}, {"m", Tensor::zeros(DType::kF16, {2, 0, 3})}};
        })
        .cache(folder / "c");
  };
  Example example;
  {
    ExampleIterator part = data().iterate();
    part.next(&example);
  }
  EXPECT_EQ(folder.names(), std::vector<std::string>{});  // half a pass leaves nothing
  EXPECT_EQ(numbers(data()), up_to(5));
  EXPECT_EQ(folder.names(), std::vector<std::string>{"c"});
  EXPECT_EQ(*calls, 6);
  EXPECT_EQ(numbers(data(), 1, 2), (Numbers{2, 3, 4}));
  EXPECT_EQ(*calls, 6);
  EXPECT_EQ(data().length(), 5);
  data().iterate().next(&example);
  EXPECT_EQ(tensor_of(example, "m").shape(), (Numbers{2, 0, 3}));
  EXPECT_EQ(tensor_of(example, "flag").int_at(0), 1);
}

TEST(Dataset, CacheFileOfOtherStepsIsRefused) {
  const TempFolder folder;
  const auto cached = [&](const Dataset& data) { return data.cache(folder / "c"); };
  numbers(cached(counted(5).map(plus(1))));
  EXPECT_EQ(numbers(cached(counted(5).map(plus(2)))), (Numbers{1, 2, 3, 4, 5})) << "nobody can tell functions apart";
  expect_error(Code::kDataFormat, "they are of 5 rows, map", [&] { numbers(cached(counted(6).map(plus(1)))); });
  expect_error(Code::kDataFormat, "this one is 5 rows, map, batch(2)", [&] { numbers(cached(counted(5).map(plus(1)).batch(2))); });
  expect_error(Code::kDataFormat, "holds the examples of another data set", [&] { (void)cached(counted(6)).length(); });
}

TEST(Dataset, DamagedCacheFileIsRefused) {
  const TempFolder folder;
  const Dataset data = counted(5).cache(folder / "c");
  numbers(data);
  const std::string good = folder.read("c");
  for (std::size_t cut = 0; cut < good.size(); ++cut) {
    folder.write("c", good.substr(0, cut));
    EXPECT_THROW(numbers(data), Error) << cut;
  }
  for (std::size_t at = 0; at < good.size(); ++at) {
    std::string bad = good;
    bad[at] = static_cast<char>(bad[at] ^ 0x80);
    folder.write("c", bad);
    try {
      numbers(data);
      ADD_FAILURE() << at;
    } catch (const Error& error) { EXPECT_EQ(error.exit_code() == 4 or error.exit_code() == 3, true) << error.what(); }
  }
  folder.write("c", "words");
  expect_error(Code::kDataFormat, "no file of cached examples", [&] { numbers(data); });
}

TEST(Dataset, PrefetchGivesTheSame) {
  for (const auto& examples : {std::optional<std::int64_t>(), std::optional<std::int64_t>(1), std::optional<std::int64_t>(100)}) {
    const Dataset data = counted(60).shuffle(10, 3).map(slowly, {.threads = 2}).batch(7).prefetch(examples);
    const Numbers all = numbers(counted(60).shuffle(10, 3).map(slowly).batch(7), 2);
    EXPECT_EQ(numbers(data, 2), all);
    EXPECT_EQ(numbers(data, 2, 3), Numbers(all.begin() + 21, all.end()));
  }
}

TEST(Dataset, EpochIsEnteredAnywhere) {
  const Dataset data = counted(40)
                           .shuffle(9, 5)
                           .filter([](const Example& example) { return number_of(example) % 5 != 0; })
                           .repeat(2)
                           .skip(3)
                           .shard(1, 2)
                           .map(plus(1), {.threads = 2})
                           .take(20)
                           .prefetch();
  const Numbers all = numbers(data, 4);
  ASSERT_EQ(all.size(), 20u);
  for (std::size_t first = 0; first <= 21; ++first)
    EXPECT_EQ(numbers(data, 4, static_cast<std::int64_t>(first)),
              Numbers(all.begin() + static_cast<std::ptrdiff_t>(std::min<std::size_t>(first, 20)), all.end()))
        << first;
}

TEST(Dataset, RefusesNumbersThatMakeNoSense) {
  const Dataset data = counted(3);
  expect_error(Code::kUsage, "batch: the size is 0", [&] { data.batch(0); });
  expect_error(Code::kUsage, "shuffle: the buffer is -1", [&] { data.shuffle(-1); });
  expect_error(Code::kUsage, "repeat", [&] { data.repeat(0); });
  expect_error(Code::kUsage, "repeat", [&] { data.repeat(-2); });
  expect_error(Code::kUsage, "take", [&] { data.take(-2); });
  expect_error(Code::kUsage, "skip", [&] { data.skip(-2); });
  expect_error(Code::kUsage, "skip: the number of examples is -3", [&] { data.iterate().skip(-3); });
  expect_error(Code::kUsage, "no shard 3 of 3", [&] { data.shard(3, 3); });
  expect_error(Code::kUsage, "threads", [&] { data.map(plus(1), {.threads = 0}); });
  expect_error(Code::kUsage, "prefetch", [&] { data.prefetch(0); });
  expect_error(Code::kUsage, "cycle", [&] { data.interleave([&](const Example&) { return data; }, 0); });
  expect_error(Code::kUsage, "epoch", [&] { data.iterate(-1); });
}

}  // namespace
}  // namespace hone
