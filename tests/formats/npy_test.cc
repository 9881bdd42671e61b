#include "formats/npy.h"

#include <gtest/gtest.h>

#include <cstring>

#include "tests/support/bytes.h"
#include "tests/support/temp_folder.h"

namespace hone {
namespace {

using test::bytes_of;
using test::expect_error;
using test::TempFolder;
using Shape = std::vector<std::int64_t>;


/// A .npy file with this header dictionary, unpadded, and these data.
std::string npy(const std::string& dictionary, const std::string& data, char version = 1) {
  std::string text = "\x93NUMPY";
  text += {version, '\0'};
  const auto length = static_cast<std::uint32_t>(dictionary.size());
  text.append(reinterpret_cast<const char*>(&length), version == 1 ? 2 : 4);
  return text + dictionary + data;
}

std::string header(const std::string& type, const std::string& shape, const std::string& fortran = "False") {
  return "{'descr': '" + type + "', 'fortran_order': " + fortran + ", 'shape': " + shape + ", }";
}

/// The bytes of the values; of int unless a type is named.
template <typename T = int>
std::string raw(const std::vector<T>& values) {
  return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T)};
}

Tensor parse_array(const std::string& text) { return parse_npy(bytes_of(text), "x.npy"); }

template <typename T>
std::vector<T> values(const Tensor& tensor) {
  return {tensor.data<T>().begin(), tensor.data<T>().end()};
}

TEST(Npy, RoundTripOfEveryType) {
  const TempFolder folder;
  for (int i = 0; i < kDTypeCount; ++i) {
    const auto dtype = static_cast<DType>(i);
    if (is_storage_only(dtype) and dtype != DType::kF16) continue;  // NumPy has no name for it
    const std::vector<int> numbers = {0, 1, 2, 3, 4, 5};
    const Tensor tensor = Tensor::of<int>({2, 3}, numbers).cast(dtype);
    write_npy(folder / "x.npy", tensor);
    const Tensor read = read_npy(folder / "x.npy");
    EXPECT_EQ(read.dtype(), dtype);
    EXPECT_EQ(read.shape(), (Shape{2, 3}));
    EXPECT_EQ(std::memcmp(read.bytes().data(), tensor.bytes().data(), tensor.byte_count()), 0) << to_string(dtype);
  }
}

TEST(Npy, RoundTripOfEveryRank) {
  const TempFolder folder;
  for (const Shape& shape : {Shape{}, Shape{1}, Shape{0}, Shape{3, 0, 2}, Shape{2, 1, 2, 1, 2}}) {
    write_npy(folder / "x.npy", Tensor::zeros(DType::kF32, shape));
    EXPECT_EQ(read_npy(folder / "x.npy").shape(), shape);
  }
}

TEST(Npy, HeaderIsWhatNumPyWrites) {
  const std::string text = npy_header(DType::kF32, Shape{3});
  EXPECT_EQ(text.size() % 64, 0u);
  EXPECT_EQ(text.substr(10, 57), "{'descr': '<f4', 'fortran_order': False, 'shape': (3,), }");
  EXPECT_EQ(text.back(), '\n');
}

TEST(Npy, VersionsTwoAndThree) {
  for (const char version : {'\2', '\3'})
    EXPECT_EQ(values<std::int16_t>(parse_array(npy(header("<i2", "(2,)"), raw<std::int16_t>({7, -8}), version))), (std::vector<std::int16_t>{7, -8}));
}

TEST(Npy, BigEndian) {
  EXPECT_EQ(values<std::int32_t>(parse_array(npy(header(">i4", "(2,)"), std::string("\0\0\1\0\xff\xff\xff\xfe", 8)))), (std::vector<std::int32_t>{256, -2}));
  EXPECT_EQ(values<std::uint8_t>(parse_array(npy(header(">u1", "(1,)"), "a"))), std::vector<std::uint8_t>{'a'});
}

TEST(Npy, ColumnMajorIsTransposed) {
  const std::string text = npy(header("<i4", "(2, 3)", "True"), raw({1, 4, 2, 5, 3, 6}));
  EXPECT_EQ(values<std::int32_t>(parse_array(text)), (std::vector<std::int32_t>{1, 2, 3, 4, 5, 6}));
  const std::string deep = npy(header("<i4", "(2, 2, 2)", "True"), raw({0, 4, 2, 6, 1, 5, 3, 7}));
  EXPECT_EQ(values<std::int32_t>(parse_array(deep)), (std::vector<std::int32_t>{0, 1, 2, 3, 4, 5, 6, 7}));
  EXPECT_EQ(parse_array(npy(header("<i4", "(0, 3)", "True"), "")).element_count(), 0);
}

TEST(Npy, BoolsBecomeZeroOrOne) { EXPECT_EQ(parse_array(npy(header("|b1", "(3,)"), std::string("\0\1\x7f", 3))).int_at(2), 1); }

TEST(Npy, SpellingsOfTheHeader) {
  EXPECT_EQ(parse_array(npy("{\"shape\":(1L,),\"fortran_order\":False,\"descr\":\"<i4\"}\n", raw({1}))).shape(), Shape{1});
  EXPECT_EQ(parse_array(npy("{'descr': 'i4', 'fortran_order': False, 'shape': ()}", raw({5}))).int_at(0), 5);
}

TEST(Npy, RefusesWhatIsBehindTheArray) {
  expect_error(Code::kDataFormat, "i32[1] needs 4 bytes, and 4 more are behind them", [] { parse_array(npy(header("<i4", "(1,)"), raw({1, 2}))); });
}

TEST(NpyFile, ReadsRows) {
  const TempFolder folder;
  const NpyFile rows(folder.write("c.npy", npy(header(">i2", "(2, 2)"), std::string("\0\1\0\2\0\3\0\4", 8))));
  EXPECT_EQ(rows.row_count(), 2);
  std::vector<std::int16_t> row(2);
  rows.read_row(1, std::as_writable_bytes(std::span(row)));
  EXPECT_EQ(row, (std::vector<std::int16_t>{3, 4}));
  const NpyFile columns(folder.write("f.npy", npy(header("<i2", "(2, 3)", "True"), raw<std::int16_t>({1, 4, 2, 5, 3, 6}))));
  row.resize(3);
  columns.read_row(1, std::as_writable_bytes(std::span(row)));
  EXPECT_EQ(row, (std::vector<std::int16_t>{4, 5, 6}));
  const NpyFile empty(folder.write("e.npy", npy(header("<f4", "(0, 3)"), "")));
  EXPECT_EQ(empty.row_count(), 0);
  EXPECT_EQ(empty.row_bytes(), 12u);
  expect_error(Code::kDataShape, "a single number", [&] { NpyFile(folder.write("s.npy", npy(header("<f4", "()"), raw({1})))); });
}

TEST(Npy, RefusesWhatIsNoNumber) {
  expect_error(Code::kDataType, "Python objects", [] { parse_array(npy(header("|O", "(1,)"), "")); });
  expect_error(Code::kDataType, "strings", [] { parse_array(npy(header("<U5", "(1,)"), "")); });
  expect_error(Code::kDataType, "strings", [] { parse_array(npy(header("|S5", "(1,)"), "")); });
  expect_error(Code::kDataType, "complex", [] { parse_array(npy(header("<c8", "(1,)"), "")); });
  expect_error(Code::kDataType, "dates", [] { parse_array(npy(header("<M8[ns]", "(1,)"), "")); });
  expect_error(Code::kDataType, "bfloat16", [] { parse_array(npy(header("|V2", "(1,)"), "")); });
  expect_error(Code::kDataType, "\"<f16\"", [] { parse_array(npy(header("<f16", "(1,)"), "")); });
  expect_error(Code::kDataType, "\"\"", [] { parse_array(npy(header("", "(1,)"), "")); });
  expect_error(Code::kDataType, "records", [] { parse_array(npy("{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (1,), }", "")); });
}

TEST(Npy, RefusesImpossibleShapes) {
  expect_error(Code::kTooLarge, "2^40", [] { parse_array(npy(header("<f4", "(1099511627776, 1024)"), "")); });
  expect_error(Code::kTooLarge, "2^40", [] { parse_array(npy(header("<f4", "(4294967296, 4294967296, 4294967296)"), "")); });
  expect_error(Code::kDataFormat, "negative", [] { parse_array(npy(header("<f4", "(-1, 3)"), "")); });
  expect_error(Code::kDataFormat, "2^63", [] { parse_array(npy(header("<f4", "(99999999999999999999,)"), "")); });
  expect_error(Code::kDataFormat, "needs 4398046511104 bytes, but only 4 are there", [] { parse_array(npy(header("<f4", "(1099511627776,)"), raw({1}))); });
  std::string many = "(";
  for (int i = 0; i < 40; ++i) many += "1,";
  expect_error(Code::kTooLarge, "40 axes", [&] { parse_array(npy(header("<f4", many + ")"), raw({1}))); });
}

TEST(Npy, RefusesWrongHeaders) {
  expect_error(Code::kDataFormat, "not a NumPy .npy file but text", [] { parse_array("1,2,3\n"); });
  expect_error(Code::kDataFormat, "but empty", [] { parse_array(""); });
  expect_error(Code::kDataFormat, "version 9", [] { parse_array(npy(header("<f4", "(1,)"), raw({1}), '\x09')); });
  expect_error(Code::kDataFormat, "at most", [] { parse_array(npy(std::string(70'000, ' '), "", 2)); });
  for (const char* wrong :
       {"", "{", "{}", "[]", "{'descr': '<f4'}", "{'descr': '<f4', 'fortran_order': False, 'shape': (1,)} x",
        "{'descr': '<f4', 'fortran_order': Maybe, 'shape': (1,)}", "{'descr': '<f4', 'fortran_order': False, 'shape': 1}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (1 2)}", "{'descr': '<f4', 'evil': 1}", "{'descr", "{'descr': '<f4' 'shape': ()}",
        "{'descr': __import__('os'), 'fortran_order': False, 'shape': ()}", "{'descr': '<f4', 'fortran_order': False, 'shape': (x,)}"})
    expect_error(Code::kDataFormat, "header has", [&] { parse_array(npy(wrong, raw({1}))); });
}

TEST(Npy, RefusesEveryTruncation) {
  const std::string whole = npy(header("<i4", "(2, 2)"), raw({1, 2, 3, 4}));
  ASSERT_NO_THROW(parse_array(whole));
  for (std::size_t size = 0; size < whole.size(); ++size) EXPECT_THROW(parse_array(whole.substr(0, size)), Error) << size;
}

// Any byte of the header may be anything: an Error at worst.
TEST(Npy, SurvivesDamagedHeaders) {
  const std::string whole = npy(header("<i4", "(2, 2)"), raw({1, 2, 3, 4}));
  for (std::size_t at = 0; at < whole.size(); ++at) {
    for (int value = 0; value < 256; ++value) {
      std::string damaged = whole;
      damaged[at] = static_cast<char>(value);
      try {
        parse_array(damaged);
      } catch (const Error&) {}
    }
  }
}

}  // namespace
}  // namespace hone
