#include "formats/csv.h"

#include <gtest/gtest.h>

#include <cstring>
#include <limits>

#include "tests/support/temp_folder.h"

namespace hone {
namespace {

using test::expect_error;
using test::TempFolder;

/// The chosen columns, row by row, as doubles.
std::vector<double> numbers(const std::string& text, const std::string& columns = "", DType expected = DType::kF64) {
  const TempFolder folder;
  const StreamedFile file(folder.write("a.csv", text));
  const CsvTable table(file, columns);
  EXPECT_EQ(to_string(table.dtype()), to_string(expected));
  std::vector<double> result;
  table.read([&](std::span<const std::byte> block) {
    for (std::size_t at = 0; at < block.size(); at += 8) {
      double real = 0;
      std::int64_t whole = 0;
      std::memcpy(&real, block.data() + at, 8);
      std::memcpy(&whole, block.data() + at, 8);
      result.push_back(expected == DType::kI64 ? static_cast<double>(whole) : real);
    }
  });
  EXPECT_EQ(result.size(), static_cast<std::size_t>(table.row_count()) * table.columns().size());
  return result;
}
using Numbers = std::vector<double>;

void refuse(Code code, std::string_view part, const std::string& text, const std::string& columns = "") {
  const TempFolder folder;
  const StreamedFile file(folder.write("a.csv", text));
  expect_error(code, part, [&] { CsvTable(file, columns); });
}

TEST(Csv, ColumnsAreChosenByNumberNameAndRange) {
  const std::string text = "age,height,weight,class\n1,1.5,2.5,0\n2,1.75,3.5,1\n";
  EXPECT_EQ(numbers(text, "3", DType::kI64), (Numbers{0, 1}));
  EXPECT_EQ(numbers(text, "-1", DType::kI64), (Numbers{0, 1}));
  EXPECT_EQ(numbers(text, "weight,age"), (Numbers{2.5, 1, 3.5, 2}));
  EXPECT_EQ(numbers(text, "height..weight"), (Numbers{1.5, 2.5, 1.75, 3.5}));
  EXPECT_EQ(numbers(text, "1..-2"), (Numbers{1.5, 2.5, 1.75, 3.5}));
  EXPECT_EQ(numbers(text), (Numbers{1, 1.5, 2.5, 0, 2, 1.75, 3.5, 1}));
}

TEST(Csv, FirstLineIsAHeaderOnlyIfItHoldsNoNumbers) {
  EXPECT_EQ(numbers("1,2\n3,4\n", "", DType::kI64), (Numbers{1, 2, 3, 4}));
  EXPECT_EQ(numbers("a,b\n3,4\n", "", DType::kI64), (Numbers{3, 4}));
  EXPECT_EQ(numbers("1,setosa\n3,virginica\n", "0", DType::kI64), (Numbers{1, 3}));
}

TEST(Csv, NumbersThatCountTheColumnsBesideAWordAreAHeader) {
  EXPECT_EQ(numbers("label,0,1,2\n7,4,5,6\n", "1..-1", DType::kI64), (Numbers{4, 5, 6}));
  EXPECT_EQ(numbers(",1,2\n0,4,5\n1,6,7\n", "1..2", DType::kI64), (Numbers{4, 5, 6, 7}));  // pandas: above its row numbers is nothing
  EXPECT_EQ(numbers("cat,0,1,2\ndog,4,5,6\n", "1..3", DType::kI64), (Numbers{0, 1, 2, 4, 5, 6}));  // words in both lines: no header
  refuse(Code::kDataFormat, "line 1: column 1 holds \"x\"", "5,x,7\n8,9,10\n");
  refuse(Code::kDataFormat, "line 1: column 0 holds \"?\"", "?\n9\n");
}

TEST(Csv, TellsThatItsFirstRowMayBeAHeader) {
  const TempFolder folder;
  const auto counts = [&](const std::string& text) {
    const StreamedFile file(folder.write("a.csv", text));
    return CsvTable(file, "").begins_with_count();
  };
  EXPECT_TRUE(counts("0,1,2\n5,6,7\n"));
  EXPECT_FALSE(counts("0,1\n5,6\n"));
  EXPECT_FALSE(counts("0,1,3\n5,6,7\n"));
  EXPECT_FALSE(counts("2,3,4\n5,6,7\n"));
  EXPECT_FALSE(counts("a,b,c\n0,1,2\n"));
}

TEST(Csv, TakesQuotesLineEndsByteOrderMarkAndOtherSeparators) {
  EXPECT_EQ(numbers("\xef\xbb\xbf\"a\",\"b,\"\"c\"\"\nd\"\r\n\"1.5\", 2 \r\n\r\n+3,4e1", ""), (Numbers{1.5, 2, 3, 40}));
  EXPECT_EQ(numbers("1;2\n3;4\n", "", DType::kI64), (Numbers{1, 2, 3, 4}));
  EXPECT_EQ(numbers("1\t2\n3\t4\n", "1", DType::kI64), (Numbers{2, 4}));
}

TEST(Csv, TheSeparatorIsThatOfTheFirstLineWithAnythingInItOutsideOfQuotes) {
  EXPECT_EQ(numbers("\n\r\n1;2\n3;4\n", "", DType::kI64), (Numbers{1, 2, 3, 4}));
  EXPECT_EQ(numbers("\"a;b;c\",d\n1,2\n", "", DType::kI64), (Numbers{1, 2}));
}

TEST(Csv, IntegersStayExactAndOneRealMakesAllReal) {
  EXPECT_EQ(numbers("9007199254740993\n", "", DType::kI64).size(), 1u);
  EXPECT_EQ(numbers("1\n2\n0.5\n", "", DType::kF64), (Numbers{1, 2, 0.5}));
  EXPECT_EQ(numbers("1\n99999999999999999999\n", "", DType::kF64), (Numbers{1, 1e20}));
}

TEST(Csv, WhatF64CannotHoldIsZeroOrInfinity) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  const std::string zeros(400, '0');
  EXPECT_EQ(numbers("1e-400\n-1E+400\n1e400\n0." + zeros + "1\n1" + zeros + "\n1" + zeros + "e-900\n1e99999999999999999999\n"), (Numbers{0, -kInfinity, kInfinity, 0, kInfinity, 0, kInfinity}));
}

TEST(Csv, BlankLinesAreSkippedInOneColumnToo) {
  EXPECT_EQ(numbers("\n1\n\n2\n\r\n3\n\n", "", DType::kI64), (Numbers{1, 2, 3}));
  refuse(Code::kDataFormat, "line 2: column 0 is empty", "1\n\"\"\n2\n");
}

TEST(Csv, AMissingValueIsNoWordToNumber) {
  for (const char* missing : {"NA", "", "null", "N/A", " ?"}) refuse(Code::kDataFormat, "frame.fillna(0) or frame.dropna()", "a,b\n1,2\n3," + std::string(missing) + "\n");
  refuse(Code::kDataFormat, "cat.codes", "a,b\n1,2\n3,setosa\n");
}

TEST(Csv, LongFilesGoThroughBlockByBlock) {
  std::string text;
  double sum = 0;
  for (int i = 0; i < 100'000; ++i) text += std::to_string(i) + "," + std::to_string(i % 7) + "\n", sum += i + i % 7;
  double found = 0;
  for (const double number : numbers(text, "", DType::kI64)) found += number;
  EXPECT_EQ(found, sum);
}

TEST(Csv, NamesTheLineOfWhatIsWrong) {
  refuse(Code::kDataFormat, "line 3 has 1 fields, and the first line has 2", "a,b\n1,2\n3\n4,5\n");
  refuse(Code::kDataFormat, "line 4 has 3 fields", "a,b\n1,2\n\n3,4,5\n");
  refuse(Code::kDataFormat, "line 3: column 1 (\"b\") holds \"x\", which is no number", "a,b\n1,2\n3,x\n");
  refuse(Code::kDataFormat, "line 1: column 1 holds \"x\"", "1,x\n3,4\n");
  refuse(Code::kDataFormat, "line 2: column 0 (\"a\") is empty", "a,b\n,2\n");
  refuse(Code::kDataFormat, "line 4: column 0", "a\n\"1\"\n\"2\"\n\"x\ny\"\n");
  refuse(Code::kDataFormat, "line 2: a quote that is never closed", "a,b\n1,\"2\n3,4\n");
  refuse(Code::kDataFormat, "line 2: text behind the closing quote", "a,b\n1,\"2\"3\n");
}

TEST(Csv, NamesColumnsThatAreNotThere) {
  refuse(Code::kDataName, "has 2 columns, and number 2", "a,b\n1,2\n", "2");
  refuse(Code::kDataName, "did you mean \"weight\"?", "height,weight\n1,2\n", "wieght");
  refuse(Code::kDataName, "two dots, both ends included: a..b", "a,b\n1,2\n", "a-b");
  refuse(Code::kDataName, "two dots, both ends included: 0..1", "a,b\n1,2\n", "0:1");
  refuse(Code::kDataName, "run backwards", "a,b\n1,2\n", "b..a");
  refuse(Code::kDataName, "has 2 columns \"a\": the numbers 0, 2", "a,b,a\n1,2,3\n", "a");
  refuse(Code::kDataName, "a.csv:0", "a,b,a\n1,2,3\n", "b..a");
  EXPECT_EQ(numbers("a,b,a\n1,2,3\n", "2,b", DType::kI64), (Numbers{3, 2}));
  refuse(Code::kDataName, "no column \"\"", "a,b\n1,2\n", "0,");
}

TEST(Csv, SaysThatTextIsUtf16) {
  refuse(Code::kDataFormat, "is text in UTF-16", std::string("\xff\xfe" "a\0\n\0" "1\0", 8));
}

TEST(Csv, RefusesFilesWithoutRowsAndEndlessRecords) {
  refuse(Code::kDataLength, "no rows", "");
  refuse(Code::kDataLength, "no rows", "a,b\n");
  refuse(Code::kTooLarge, "line 2 is longer than 16 MiB", "a\n\"" + std::string((17 << 20), 'x'));
  refuse(Code::kTooLarge, "line 1 is longer than 16 MiB", std::string((17 << 20), '1'));
  refuse(Code::kTooLarge, "line 1 has more than 1048576 fields", std::string((2 << 20), ','));
}

}  // namespace
}  // namespace hone
