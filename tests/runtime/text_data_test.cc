// Text as numbers, as Keras's users know it.
#include <gtest/gtest.h>

#include "base/files.h"
#include "formats/npy.h"
#include "runtime/pipeline/dataset.h"
#include "runtime/pipeline/text.h"
#include "tests/support/temp_folder.h"

namespace hone {
namespace {

using test::expect_error;
using test::TempFolder;
using Numbers = std::vector<std::int64_t>;

Numbers values(const Tensor& tensor) {
  Numbers result;
  for (std::int64_t i = 0; i < tensor.element_count(); ++i) result.push_back(static_cast<std::int64_t>(tensor.at(i)));
  return result;
}
Tensor sequence(Numbers steps) { return Tensor::of<std::int64_t>({static_cast<std::int64_t>(steps.size())}, std::span<const std::int64_t>(steps)); }

TEST(Text, WordsAreWhatLiesBetweenBlanks) {
  EXPECT_EQ(split_words(" a  bc\td\r\ne "), (std::vector<std::string_view>{"a", "bc", "d", "e"}));
  EXPECT_TRUE(split_words(" \n").empty());
  EXPECT_EQ(text_of(text_tensor("h\xc3\xa4")), "h\xc3\xa4");
  expect_error(Code::kDataType, "text is u8[bytes], and this is f32[2]", [] { text_of(Tensor::zeros(DType::kF32, {2})); });
}

TEST(Vocabulary, FrequentWordsComeFirstAndEqualOnesByTheAlphabet) {
  const TempFolder folder;
  const Dataset lines = Dataset::from_lines({folder.write("a.txt", "the cat the dog\na dog the bird\n")});
  const Vocabulary words = Vocabulary::count(lines);
  EXPECT_EQ(words.words(), (std::vector<std::string>{"the", "dog", "a", "bird", "cat"}));
  EXPECT_EQ(values(words.tokenize("the cat sat")), (Numbers{2, 6, 1}));
  EXPECT_EQ(words.tokenize("").shape(), (Numbers{0}));
  EXPECT_EQ(words.size(), 7);
  const Vocabulary two = Vocabulary::count(lines, "line", {.unknown_id = 0, .first_id = 1, .most_words = 2});
  EXPECT_EQ(values(two.tokenize("the dog a")), (Numbers{1, 2, 0}));
  expect_error(Code::kDataName, "no \"text\"", [&] { Vocabulary::count(lines, "text"); });
  expect_error(Code::kDataName, "\"a\" twice", [] { Vocabulary({"a", "b", "a"}); });
  EXPECT_EQ(Vocabulary({"a"}, {.unknown_id = 50}).size(), 51);
  EXPECT_EQ(Vocabulary({"a"}, {.unknown_id = 3}).size(), 4);
  expect_error(Code::kUsage, "unknown words have the id 3, which is that of \"b\"", [] { Vocabulary({"a", "b"}, {.unknown_id = 3}); });
  expect_error(Code::kUsage, "ids from -2 on", [] { Vocabulary({"a"}, {.first_id = -2}); });
  expect_error(Code::kUsage, "and unknown ones -1", [] { Vocabulary({"a"}, {.unknown_id = -1}); });
}

// Expected values: keras.utils.pad_sequences.
TEST(PadSequences, PadsAndCutsAsKerasDoes) {
  const std::vector<Tensor> sequences = {sequence({1, 2, 3}), sequence({4}), sequence({})};
  EXPECT_EQ(values(pad_sequences(sequences)), (Numbers{1, 2, 3, 0, 0, 4, 0, 0, 0}));
  EXPECT_EQ(values(pad_sequences(sequences, {.length = 2})), (Numbers{2, 3, 0, 4, 0, 0}));
  EXPECT_EQ(values(pad_sequences(sequences, {.length = 2, .truncating = Side::kPost})), (Numbers{1, 2, 0, 4, 0, 0}));
  EXPECT_EQ(values(pad_sequences(sequences, {.length = 4, .padding = Side::kPost, .value = 9})), (Numbers{1, 2, 3, 9, 4, 9, 9, 9, 9, 9, 9, 9}));
  EXPECT_EQ(values(pad_sequence(sequence({5, 6}), 3)), (Numbers{0, 5, 6}));
  EXPECT_EQ(pad_sequence(sequence({5, 6}), 3).shape(), (Numbers{3}));
}

TEST(PadSequences, StepsMayBeVectors) {
  const std::vector<Tensor> sequences = {Tensor::of<float>({1, 2}, std::vector<float>{1, 2}), Tensor::of<float>({2, 2}, std::vector<float>{3, 4, 5, 6})};
  const Tensor padded = pad_sequences(sequences, {.padding = Side::kPost, .value = -1});
  EXPECT_EQ(padded.shape(), (Numbers{2, 2, 2}));
  EXPECT_EQ(values(padded), (Numbers{1, 2, -1, -1, 3, 4, 5, 6}));
}

TEST(PadSequences, RefusesSequencesOfDifferentKinds) {
  expect_error(Code::kDataType, "sequence 1 is f32[2], and the first is i64[1]", [] {
    pad_sequences(std::vector{sequence({1}), Tensor::zeros(DType::kF32, {2})});
  });
  expect_error(Code::kDataShape, "sequence 0 is i64[], a single number", [] { pad_sequences(std::vector{Tensor::scalar<std::int64_t>(1)}); });
  expect_error(Code::kDataLength, "no sequences", [] { pad_sequences({}); });
  expect_error(Code::kUsage, "a length of -1", [] { pad_sequence(sequence({1}), -1); });
}

/// The newswires were prepared by a script in Python, from the same text: topic, tab, words.
TEST(Text, NewswiresBecomeTheArraysThatPythonMade) {
  const std::string folder = std::string(HONE_SHARED_DIR) + "/data/reuters-r8/";
  if (not is_folder(folder)) GTEST_SKIP() << "the shared data sets are not here";
  const auto words_only = [](Example example) -> Example {
    const std::string_view line = text_of(tensor_of(example, "line"));
    return {{"text", text_tensor(line.substr(line.find('\t') + 1))}};
  };
  const Dataset train = Dataset::from_lines({folder + "train.txt"}).map(words_only), test = Dataset::from_lines({folder + "test.txt"}).map(words_only);
  const Vocabulary words = Vocabulary::count(train, "text", {.unknown_id = 2, .first_id = 3});
  const auto ids = [&](Example example) -> Example {
    const Tensor tokens = words.tokenize(text_of(tensor_of(example, "text")));
    Numbers with_start = {1};
    for (std::int64_t i = 0; i < tokens.element_count(); ++i) with_start.push_back(tokens.int_at(i));
    return {{"x", pad_sequence(sequence(with_start), 300)}};
  };
  const Tensor expected = read_npy(folder + "x_test.npy");
  Example batch;
  ExampleIterator batches = test.map(ids, {.threads = 2}).batch(4000).iterate();
  ASSERT_TRUE(batches.next(&batch));
  const Tensor found = tensor_of(batch, "x").cast(DType::kI32);
  ASSERT_EQ(found.shape(), expected.shape());
  EXPECT_TRUE(std::equal(found.bytes().begin(), found.bytes().end(), expected.bytes().begin()));
}

}  // namespace
}  // namespace hone
