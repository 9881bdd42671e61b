// From arrays in files to batches.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <numeric>
#include <set>

#include "formats/npy.h"
#include "formats/npz.h"
#include "runtime/data/batches.h"
#include "tests/support/temp_folder.h"

namespace hone {
namespace {

using test::expect_error;
using test::TempFolder;
using ::testing::AllOf;
using ::testing::Contains;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

plan::Feed input(const std::string& name, DType dtype, Shape shape) {
  return {name, plan::Feed::Kind::kModelInput, dtype, std::move(shape), std::nullopt, std::nullopt};
}
plan::Feed labels(std::int64_t classes) {
  return {"labels", plan::Feed::Kind::kTarget, DType::kI64, {Dim::symbol("N")}, std::pair<std::int64_t, std::int64_t>(0, classes), std::nullopt};
}
plan::Entry entry_with(std::vector<plan::Feed> feeds) {
  plan::Entry entry;
  entry.name = "train_step";
  feeds.push_back({"learning_rate", plan::Feed::Kind::kLearningRate, DType::kF64, {}, std::nullopt, std::nullopt});
  entry.feeds = std::move(feeds);
  return entry;
}
plan::Entry classifier() { return entry_with({input("image", DType::kF32, {Dim::symbol("N"), 4}), labels(3)}); }

template <typename T>
Array array(const std::string& label, std::vector<std::int64_t> shape, std::vector<T> values) {
  return {label, Tensor::of<T>(std::move(shape), std::span<const T>(values))};
}
Array counted(const std::string& label, std::vector<std::int64_t> shape) {
  std::vector<float> values(static_cast<std::size_t>(checked_element_count(shape)));
  std::iota(values.begin(), values.end(), 0.0f);
  return array<float>(label, std::move(shape), values);
}
BindOptions options(std::map<std::string, double> scale = {}) {
  return {.flag = "--train", .batch_symbol = "N", .pre_batched = false, .scale = std::move(scale)};
}
std::vector<std::pair<std::string, Array>> pair_of(Array x, Array y) {
  std::vector<std::pair<std::string, Array>> arrays;
  arrays.emplace_back("x", std::move(x));
  arrays.emplace_back("y", std::move(y));
  return arrays;
}
template <typename T>
std::vector<T> values_of(const TensorView& view) {
  const auto* data = static_cast<const T*>(view.data);
  return {data, data + checked_element_count(view.shape)};
}

/// As exporters make it that were not told that the samples of all inputs are the same; or the memory that an attention looks at, which all samples share.
TEST(BoundArrays, AnAxisOfItsOwnIsNotThatOfTheSamples) {
  const plan::Entry entry = entry_with({input("x", DType::kF32, {Dim::symbol("N"), 2}), input("y", DType::kF32, {Dim::symbol("M"), 2})});
  expect_error(Code::kDataShape, "has a row for each of the 4 samples, and the model's first axis of \"y\" is another one, M, than that of its samples, N",
               [&] { BoundArrays(entry, pair_of(counted("x.npy", {4, 2}), counted("y.npy", {4, 2})), options()); });
  BindOptions of_program = options();
  expect_error(Code::kDataShape, "say when compiling that they are one: --dim M=N", [&] { BoundArrays(entry, pair_of(counted("x.npy", {4, 2}), counted("y.npy", {4, 2})), of_program); });
  of_program.files = false;
  expect_error(Code::kDataShape, R"(say when compiling that they are one: .equal_dims = {{"M", "N"}})", [&] { BoundArrays(entry, pair_of(counted("x.npy", {4, 2}), counted("y.npy", {4, 2})), of_program); });
  const BoundArrays shared(entry, pair_of(counted("x.npy", {4, 2}), counted("y.npy", {3, 2})), options());
  EXPECT_EQ(shared.length(), 4);
  EXPECT_THAT(shared.notes(), ElementsAre(HasSubstr("y.npy is f32[3,2], and goes to every batch as it is: its first axis, M, is not that of the samples")));
}

/// Of a model that gives steps first, or the words of all samples in one row: equal numbers would be read otherwise than they are meant.
TEST(BoundArrays, ATargetWhoseSamplesAreNotItsFirstAxisIsRefused) {
  const Dim samples = Dim::symbol("N");
  for (const Shape& shape : {Shape{4, samples, 2}, Shape{samples * 4, 2}}) {
    plan::Feed target = labels(3);
    target.dtype = DType::kF32;
    target.shape = shape;
    const plan::Entry entry = entry_with({input("x", DType::kF32, {samples, 2}), target});
    BindOptions how = options();
    expect_error(Code::kDataShape, "whose first axis is not that of the samples, N", [&] { BoundArrays(entry, pair_of(counted("x.npy", {4, 2}), counted("y.npy", {4, 4, 2})), how); });
    expect_error(Code::kDataShape, "--pre-batched", [&] { BoundArrays(entry, pair_of(counted("x.npy", {4, 2}), counted("y.npy", {16, 2})), how); });
    how.pre_batched = true;
    std::vector<std::int64_t> batches = {6};
    for (const Dim& extent : shape) batches.push_back(extent.evaluate({{"N", 4}}));
    EXPECT_EQ(BoundArrays(entry, pair_of(counted("x.npy", {6, 4, 2}), counted("y.npy", batches)), how).length(), 6);
  }
}

/// Where nodes compute how many samples an output has (a loop over them, a shape of several parts), its target's first axis has a name of its own.
TEST(BoundArrays, ATargetWithARowForEachSampleBelongsToThem) {
  plan::Feed target = labels(3);
  target.shape = {Dim::symbol("trips"), 2};
  const plan::Entry entry = entry_with({input("x", DType::kF32, {Dim::symbol("N"), 2}), target});
  const auto bound = [&](std::int64_t rows) {
    std::vector<std::pair<std::string, Array>> arrays;
    arrays.emplace_back("x", counted("x.npy", {3, 2}));
    arrays.emplace_back("labels", array<std::int64_t>("y.npy", {rows, 2}, std::vector<std::int64_t>(static_cast<std::size_t>(2 * rows), 1)));
    return BoundArrays(entry, std::move(arrays), options());
  };
  const BoundArrays data = bound(3);
  EXPECT_THAT(data.notes(), IsEmpty());
  BatchReader batches(data, 2, {.shuffle = false});
  batches.start_epoch(0);
  std::vector<std::vector<std::int64_t>> shapes;
  while (batches.next())
    for (const auto& [name, view] : batches.feeds())
      if (name == "labels") shapes.emplace_back(view.shape.begin(), view.shape.end());
  EXPECT_THAT(shapes, ElementsAre(ElementsAre(2, 2), ElementsAre(1, 2)));
  EXPECT_THAT(bound(4).notes(), Contains(HasSubstr("y.npy is i64[4,2], and goes to every batch as it is")));
}

TEST(BoundArrays, ReadsEachKindOfFile) {
  const TempFolder folder;
  const Tensor rows = Tensor::of<std::uint8_t>({3, 2}, std::vector<std::uint8_t>{0, 1, 2, 3, 254, 255});
  write_npy(folder / "a.npy", rows);
  write_npz(folder / "b.npz", {{"other", Tensor::scalar(1.0f)}, {"x", rows}});
  folder.write("c.idx", std::string("\0\0\x08\x02\0\0\0\x03\0\0\0\x02\x00\x01\x02\x03\xfe\xff", 18));
  folder.write("d.bin", std::string("\x00\x01\x02\x03\xfe\xff", 6));
  const auto entry = entry_with({input("x", DType::kF32, {Dim::symbol("N"), 2})});
  for (const std::string file : {"a.npy", "b.npz", "b.npz:x", "c.idx", "d.bin:u8:3x2"}) {
    const std::vector<std::string> items = {"x=" + (folder / file)};
    const BoundArrays data(entry, parse_data("--train", items), options());
    BatchReader batches(data, 8, {.shuffle = false});
    batches.start_epoch(0);
    ASSERT_TRUE(batches.next()) << file;
    EXPECT_EQ(values_of<float>(batches.feeds()[0].second), (std::vector<float>{0, 1, 2, 3, 254, 255})) << file;
  }
  const std::vector<std::string> some = {"x=" + (folder / "a.npy") + "[1:3]"};
  EXPECT_EQ(BoundArrays(entry, parse_data("--train", some), options()).length(), 2);
  const std::vector<std::string> many = {"x=" + (folder / "a.npy") + "[1:4]"};
  expect_error(Code::kDataLength, "has 3 rows", [&] { BoundArrays(entry, parse_data("--train", many), options()); });
  const std::vector<std::string> wrong = {"x=" + (folder / "d.bin") + ":u8:3x3"};
  expect_error(Code::kDataFormat, "has 6 bytes", [&] { BoundArrays(entry, parse_data("--train", wrong), options()); });
  const std::vector<std::string> missing = {"x=" + (folder / "b.npz") + ":z"};
  expect_error(Code::kDataName, "z", [&] { BoundArrays(entry, parse_data("--train", missing), options()); });
}

/// Of several arrays the one that is called as what is given, or as the input that it stands for.
TEST(BoundArrays, AnArrayOfSeveralMayBeCalledAsItsInput) {
  const TempFolder folder;
  write_npz(folder / "all.npz", {{"other", Tensor::scalar(1.0f)}, {"image", Tensor::of<float>({2, 4}, std::vector<float>(8, 0.5F))}, {"labels", Tensor::of<std::int64_t>({2}, std::vector<std::int64_t>{0, 2})}});
  for (const char* target : {"y", "target", "labels"}) {
    const std::vector<std::string> items = {"x=" + (folder / "all.npz") + "," + target + "=" + (folder / "all.npz")};
    const BoundArrays data(classifier(), parse_data("--train", items), options());
    EXPECT_EQ(data.length(), 2) << target;
  }
}

TEST(BoundArrays, ReadsMnistDigitsInPart) {
  const std::string folder = std::string(HONE_SHARED_DIR) + "/data/mnist-10k";
  if (not is_folder(folder)) GTEST_SKIP() << "the shared data sets are not here";
  const std::vector<std::string> items = {"x=" + folder + "/images-idx3-ubyte.gz[8000:10000],y=" + folder + "/labels-idx1-ubyte.gz[8000:]"};
  const auto entry = entry_with({input("image", DType::kF32, {Dim::symbol("N"), 784}), labels(10)});
  const BoundArrays data(entry, parse_data("--valid", items), options({{"x", 1 / 255.0}}));
  EXPECT_EQ(data.length(), 2000);
  BatchReader batches(data, 64, {.shuffle = false});
  batches.start_epoch(0);
  ASSERT_TRUE(batches.next());
  const auto pixels = values_of<float>(batches.feeds()[0].second);
  EXPECT_EQ(*std::max_element(pixels.begin(), pixels.end()), 1.0f);
  EXPECT_EQ(*std::min_element(pixels.begin(), pixels.end()), 0.0f);
}

TEST(BoundArrays, ScalesIntegersThatBecomeFloats) {
  const BoundArrays data(classifier(), pair_of(array<std::uint8_t>("x.npy", {2, 4}, {0, 51, 102, 255, 1, 2, 3, 4}), array<std::int32_t>("y.npy", {2}, {0, 2})),
                         options({{"image", 1 / 255.0}}));
  BatchReader batches(data, 1, {.shuffle = false});
  batches.start_epoch(0);
  ASSERT_TRUE(batches.next());
  EXPECT_EQ(values_of<float>(batches.feeds()[0].second), (std::vector<float>{0, 0.2f, 0.4f, 1}));
  EXPECT_EQ(values_of<std::int64_t>(batches.feeds()[1].second), (std::vector<std::int64_t>{0}));
}

TEST(BoundArrays, TakesOtherGroupingsOfTheAxesWithANote) {
  const auto y = [] { return array<std::int64_t>("y.npy", {2, 1}, {0, 1}); };
  const BoundArrays data(classifier(), pair_of(counted("x.npy", {2, 2, 1, 2}), y()), options());
  ASSERT_EQ(data.notes().size(), 2u);
  EXPECT_THAT(data.notes()[0], HasSubstr("x.npy is f32[2,2,1,2]; its rows are read as f32[4] for \"image\""));
  expect_error(Code::kDataShape, "x.npy is f32[2,5], and \"image\" takes f32[N,4]", [&] {
    BoundArrays(classifier(), pair_of(counted("x.npy", {2, 5}), y()), options());
  });
  const auto wide = entry_with({input("image", DType::kF32, {Dim::symbol("N"), 2, 6}), labels(3)});
  expect_error(Code::kDataShape, "takes f32[N,2,6]", [&] { BoundArrays(wide, pair_of(counted("x.npy", {2, 3, 4}), y()), options()); });
}

TEST(BoundArrays, SaysOnceWhatIsOddAboutAFile) {
  Array x = counted("a.tar:npy", {2, 4}), y = array<std::int64_t>("a.tar:cls", {2}, {0, 1});
  for (Array* one : {&x, &y}) one->add_note("a.tar is odd");
  y.add_note("so are its classes");
  EXPECT_THAT(BoundArrays(classifier(), pair_of(std::move(x), std::move(y)), options()).notes(), ElementsAre("a.tar is odd", "so are its classes"));
}

TEST(BoundArrays, HintsAtChannelsThatLieElsewhere) {
  const auto y = [] { return array<std::int64_t>("y.npy", {2}, {0, 1}); };
  const Dim n = Dim::symbol("N");
  const auto refused = [&](Shape wanted, std::vector<std::int64_t> given, const char* hint) {
    const plan::Entry entry = entry_with({input("image", DType::kF32, std::move(wanted)), labels(3)});
    expect_error(Code::kDataShape, hint, [&] { BoundArrays(entry, pair_of(counted("x.npy", given), y()), options()); });
  };
  refused({n, 3, 8, 9}, {2, 8, 9, 3}, "numpy.moveaxis(x, -1, 1)");
  refused({n, 8, 9, 3}, {2, 3, 8, 9}, "numpy.moveaxis(x, 1, -1)");
  refused({n, 8, 9, 3}, {2, 8, 9, 4}, "a row of it is [8,9,4], and [8,9,3] is wanted");
  refused({n, 8, 9, 3}, {8, 9, 3}, "one sample: numpy.expand_dims(x, 0)");
}

TEST(BoundArrays, NotesBytesThatNobodyScales) {
  const auto notes = [](BindOptions with, DType wanted = DType::kF32) {
    const auto entry = entry_with({input("image", wanted, {Dim::symbol("N"), 4}), labels(3)});
    return BoundArrays(entry, pair_of(array<std::uint8_t>("x.npy", {2, 4}, {0, 51, 102, 255, 1, 2, 3, 4}), array<std::uint8_t>("y.npy", {2}, {0, 2})), std::move(with)).notes();
  };
  EXPECT_THAT(notes(options()), ElementsAre(AllOf(HasSubstr("x.npy holds bytes"), HasSubstr("--set data.scale.image=0.00392"))));
  EXPECT_THAT(notes(options({{"image", 1 / 255.0}})), IsEmpty());
  EXPECT_THAT(notes(options({{"image", 1}})), IsEmpty());
  EXPECT_THAT(notes(options(), DType::kI64), IsEmpty()) << "ids";
}

TEST(BoundArrays, HintsAtOneHotLabels) {
  expect_error(Code::kDataShape, "one-hot", [] {
    BoundArrays(classifier(), pair_of(counted("x.npy", {2, 4}), array<std::int64_t>("y.npy", {2, 3}, {0, 0, 1, 0, 1, 0})), options());
  });
  expect_error(Code::kDataShape, "one-hot", [] {
    BoundArrays(classifier(), pair_of(counted("x.npy", {2, 4}), array<float>("y.npy", {2, 3}, {0, 0, 1, 0, 1, 0})), options());
  });
}

TEST(BoundArrays, NeverMakesFloatsIntegers) {
  expect_error(Code::kDataType, "y.npy holds f32, and \"labels\" takes i64", [] {
    BoundArrays(classifier(), pair_of(counted("x.npy", {2, 4}), array<float>("y.npy", {2}, {0, 1})), options());
  });
}

TEST(BoundArrays, SaysWhatFitsTheFileOfATypeThatDoesNotFit) {
  const auto bind = [](Array x, Array y) { return [x, y] { BoundArrays(classifier(), pair_of(x, y), options()); }; };
  const Array x = counted("x.npy", {2, 4});
  expect_error(Code::kDataType, "with pandas, frame[\"y\"].astype(\"int64\")", bind(x, array<float>("a.csv:y", {2}, {0, 1})));
  expect_error(Code::kDataType, "numpy.save(", bind(x, array<float>("y.npy", {2}, {0, 1})));
  expect_error(Code::kDataType, "x.safetensors holds f8e4m3fn, and \"image\" takes f32; elements of fewer than 8 bits, and floats of 8, are for weights alone",
               bind(Array("x.safetensors", Tensor::zeros(DType::kF8E4M3FN, {2, 4})), array<std::int64_t>("y.npy", {2}, {0, 1})));
}

TEST(BoundArrays, NamesTheRowOfALabelOutOfRange) {
  const auto with = [](std::vector<std::int32_t> y) {
    return [y] { BoundArrays(classifier(), pair_of(counted("x.npy", {3, 4}), array<std::int32_t>("y.npy", {3}, y)), options()); };
  };
  with({0, 1, 2})();
  expect_error(Code::kDataRange, "y.npy: row 2 holds 3, and \"labels\" takes 0 to 2", with({0, 1, 3}));
  expect_error(Code::kDataRange, "y.npy: row 1 holds -1", with({0, -1, 5}));
}

TEST(BoundArrays, IgnoredLabelIsNoLabelOutOfRange) {
  auto entry = classifier();
  entry.feeds[1].ignored = -100;
  BoundArrays(entry, pair_of(counted("x.npy", {2, 4}), array<std::int64_t>("y.npy", {2}, {-100, 2})), options());
}

TEST(BoundArrays, ChecksIdsAndWhatATypeHolds) {
  auto ids = input("ids", DType::kI32, {Dim::symbol("N"), 2});
  const auto big = [] {
    std::vector<std::pair<std::string, Array>> arrays;
    arrays.emplace_back("x", array<std::int64_t>("x.npy", {2, 2}, {1, 2, 3, std::int64_t{1} << 31}));
    return arrays;
  };
  expect_error(Code::kDataRange, "row 1, element [1] holds 2147483648", [&] { BoundArrays(entry_with({ids}), big(), options()); });
  auto wide = input("ids", DType::kI64, {Dim::symbol("N")});
  const auto bound = [](const plan::Feed& feed, std::vector<std::uint64_t> values) {
    std::vector<std::pair<std::string, Array>> arrays;
    arrays.emplace_back("x", array<std::uint64_t>("x.npy", {2}, std::move(values)));
    BoundArrays(entry_with({feed}), std::move(arrays), options());
  };
  constexpr std::uint64_t kMost = std::numeric_limits<std::int64_t>::max();
  expect_error(Code::kDataRange, "row 1 holds 9223372036854775813, and \"ids\" takes -9223372036854775808 to 9223372036854775807", [&] { bound(wide, {kMost, kMost + 6}); });
  wide.dtype = DType::kU64;
  bound(wide, {kMost, kMost + 6});
  ids.bounds = {0, 3};
  expect_error(Code::kDataRange, "row 1, element [0] holds 3, and \"ids\" takes 0 to 2", [&] { BoundArrays(entry_with({ids}), big(), options()); });
}

TEST(BoundArrays, NamesWhatIsMissingUnknownOrTooShort) {
  expect_error(Code::kDataLength, "differ in length", [] {
    BoundArrays(classifier(), pair_of(counted("x.npy", {3, 4}), array<std::int64_t>("y.npy", {2}, {0, 1})), options());
  });
  expect_error(Code::kDataLength, "has no rows", [] {
    BoundArrays(classifier(), pair_of(counted("x.npy", {0, 4}), array<std::int64_t>("y.npy", {0}, {})), options());
  });
  std::vector<std::pair<std::string, Array>> arrays;
  arrays.emplace_back("imgae", counted("x.npy", {3, 4}));
  try {
    BoundArrays(classifier(), std::move(arrays), options());
    FAIL();
  } catch (const Error& error) {
    ASSERT_EQ(error.diags().size(), 3u) << error.what();  // unknown, and neither the image nor the target is fed
    EXPECT_THAT(error.what(), HasSubstr("did you mean \"image\"?"));
    EXPECT_THAT(error.what(), HasSubstr("add y=FILE"));
  }
  expect_error(Code::kDataName, "data.scale names \"imgae\"", [] {
    BoundArrays(classifier(), pair_of(counted("x.npy", {2, 4}), array<std::int64_t>("y.npy", {2}, {0, 1})), options({{"imgae", 2}}));
  });
}

TEST(BoundArrays, ModelOfFixedBatchTakesWholeBatchesOnly) {
  const auto entry = entry_with({input("x", DType::kF32, {4, 2})});
  std::vector<std::pair<std::string, Array>> arrays;
  arrays.emplace_back("x", counted("x.npy", {10, 2}));
  const BoundArrays data(entry, std::move(arrays), {.flag = "--train", .batch_symbol = "", .pre_batched = false, .scale = {}});
  BatchReader batches(data, 32, {.shuffle = false});
  EXPECT_EQ(batches.batch_count(), 2);
  EXPECT_EQ(batches.sample_count(), 8);
}

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
