// Arrays in files and the inputs that they feed.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "formats/npy.h"
#include "formats/npz.h"
#include "runtime/data/bound_arrays.h"
#include "tests/runtime/written_feeds.h"
#include "tests/support/temp_folder.h"

namespace hone {
namespace {

using test::expect_error;
using test::TempFolder;
using namespace test::feeds;
using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

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

}  // namespace
}  // namespace hone
