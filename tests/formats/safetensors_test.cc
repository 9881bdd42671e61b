#include "formats/safetensors.h"

#include <gtest/gtest.h>

#include "tests/support/temp_folder.h"

namespace hone {
namespace {

using test::expect_error;
using test::TempFolder;

SafetensorsSource source(const std::string& name, const Tensor& tensor) { return {name, tensor.dtype(), tensor.shape(), [tensor] { return tensor; }}; }

/// A file with the header `json` and `data` bytes of data.
std::string file_with(const std::string& json, std::size_t data) {
  const std::uint64_t length = json.size();
  return std::string(reinterpret_cast<const char*>(&length), sizeof length) + json + std::string(data, '\1');
}

TEST(Safetensors, WhatIsWrittenReadsBack) {
  const TempFolder folder;
  const Tensor a = Tensor::of<float>({2, 3}, std::vector<float>{1, 2, 3, 4, 5, 6}), b = Tensor::scalar<std::int64_t>(-7), c = Tensor::zeros(DType::kBF16, {0, 4});
  const std::vector<SafetensorsSource> sources = {source("layer.0/\"w\"", a), source("step", b), source("empty", c)};
  write_safetensors(folder / "x.safetensors", sources, {{"format", "hone"}});
  const auto tensors = read_safetensors(folder / "x.safetensors");
  ASSERT_EQ(tensors.size(), 3u);
  EXPECT_EQ(tensors[0].first, "layer.0/\"w\"");
  for (const auto& [name, expected] : {std::pair("layer.0/\"w\"", a), std::pair("step", b), std::pair("empty", c)}) {
    const Tensor tensor = read_safetensors(folder / "x.safetensors", name);
    EXPECT_EQ(tensor.dtype(), expected.dtype());
    EXPECT_EQ(tensor.shape(), expected.shape());
    EXPECT_TRUE(std::equal(tensor.bytes().begin(), tensor.bytes().end(), expected.bytes().begin(), expected.bytes().end()));
  }
  const std::string text = folder.read("x.safetensors");
  const SafetensorsHeader header = read_safetensors_header(std::as_bytes(std::span(text)), "x");
  EXPECT_EQ(header.metadata.at("format"), "hone");
  EXPECT_EQ(header.entries[0].offset % 64, 0u);
}

TEST(Safetensors, ReadsWhatOthersWrite) {  // no padding, metadata in between, another order of keys
  const TempFolder folder;
  folder.write("x", file_with(R"({"b":{"data_offsets":[4,6],"dtype":"BOOL","shape":[2]},"__metadata__":{"format":"pt"},"a":{"dtype":"I8","shape":[4],"data_offsets":[0,4]}})", 6));
  const auto tensors = read_safetensors(folder / "x");
  ASSERT_EQ(tensors.size(), 2u);
  EXPECT_EQ(tensors[0].first, "a");
  EXPECT_EQ(tensors[0].second.int_at(3), 1);
  EXPECT_EQ(tensors[1].second.dtype(), DType::kBool);
}

TEST(Safetensors, BoolsBecomeZeroOrOne) {
  const TempFolder folder;
  std::string text = file_with(R"({"a":{"dtype":"BOOL","shape":[2],"data_offsets":[0,2]}})", 2);
  text[text.size() - 1] = '\7';
  folder.write("x", text);
  EXPECT_EQ(read_safetensors(folder / "x", "a").bytes()[1], std::byte{1});
}

TEST(Safetensors, MissingNameIsAnsweredWithTheNearest) {
  const TempFolder folder;
  write_safetensors(folder / "x", std::vector{source("fc1.weight", Tensor::scalar(1.0f))});
  expect_error(Code::kDataName, "did you mean \"fc1.weight\"", [&] { read_safetensors(folder / "x", "fc1.weigth"); });
}

struct BadHeader {
  const char* json;
  std::size_t data;
  Code code;
  const char* says;
};

TEST(Safetensors, DamagedHeadersAreRefusedWithAReason) {
  const BadHeader cases[] = {
      {"[]", 0, Code::kDataFormat, "no JSON object"},
      {"{\"a\":", 0, Code::kDataFormat, "no JSON object"},
      {R"({"a":7})", 0, Code::kDataFormat, "lacks a dtype"},
      {R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0]}})", 4, Code::kDataFormat, "lacks a dtype"},
      {R"({"a":{"dtype":"F32","shape":[-1],"data_offsets":[0,4]}})", 4, Code::kDataFormat, "lacks a dtype"},
      {R"({"a":{"dtype":"F4","shape":[2],"data_offsets":[0,1]}})", 1, Code::kDataType, "\"F4\""},
      {R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,4]}})", 4, Code::kDataFormat, "take 8 bytes"},
      {R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[4,0]}})", 4, Code::kDataFormat, "lies from 4 to 0"},
      {R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[4,8]}})", 8, Code::kDataFormat, "begins at 4"},
      {R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},"b":{"dtype":"F32","shape":[1],"data_offsets":[2,6]}})", 8, Code::kDataFormat, "inside of the one before"},
      {R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}})", 3, Code::kDataFormat, "ends at 4, and there are 3"},
      {R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}})", 9, Code::kDataFormat, "end at 4, and there are 9"},
      {R"({"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}})", 1, Code::kDataFormat, "\"a\" twice"},
      {R"({"a":{"dtype":"U8","shape":[4294967296,4294967296,16],"data_offsets":[0,0]}})", 0, Code::kTooLarge, ""},
      {R"({"a":{"dtype":"U8","shape":[18446744073709551615],"data_offsets":[0,1]}})", 1, Code::kTooLarge, "extents"},
      {R"({"__metadata__":3})", 0, Code::kDataFormat, "__metadata__"},
  };
  const TempFolder folder;
  for (const BadHeader& bad : cases) {
    SCOPED_TRACE(bad.json);
    folder.write("x", file_with(bad.json, bad.data));
    expect_error(bad.code, bad.says, [&] { read_safetensors(folder / "x"); });
  }
}

TEST(Safetensors, DamagedLengthsAreRefused) {
  const TempFolder folder;
  folder.write("short", "1234567");
  expect_error(Code::kDataFormat, "it has 7 bytes", [&] { read_safetensors(folder / "short"); });
  folder.write("long", std::string("\xff\xff\xff\xff\xff\xff\xff\x7f", 8) + "{}");
  expect_error(Code::kDataFormat, "its header claims", [&] { read_safetensors(folder / "long"); });
  folder.write("cut", file_with("{}", 0).substr(0, 9));
  expect_error(Code::kDataFormat, "and 1 follow", [&] { read_safetensors(folder / "cut"); });
}

TEST(Safetensors, DeeplyNestedHeadersAreRefusedWithoutHarm) {
  const TempFolder folder;
  folder.write("x", file_with("{\"a\":" + std::string(1'000'000, '['), 0));
  expect_error(Code::kDataFormat, "nested more deeply", [&] { read_safetensors(folder / "x"); });
  const std::string nested = std::string(100'000, '[') + std::string(100'000, ']');
  folder.write("y", file_with("{\"a\":{\"dtype\":" + nested + ",\"shape\":[],\"data_offsets\":[0,0]}}", 0));
  expect_error(Code::kDataFormat, "nested more deeply", [&] { read_safetensors(folder / "y"); });
}

TEST(Safetensors, NamesThatCannotBeWrittenAreRefused) {
  const TempFolder folder;
  const Tensor one = Tensor::scalar(1.0f);
  expect_error(Code::kDataName, "\"a\"", [&] { write_safetensors(folder / "x", std::vector{source("a", one), source("a", one)}); });
  expect_error(Code::kDataName, "__metadata__", [&] { write_safetensors(folder / "x", std::vector{source("__metadata__", one)}); });
  expect_error(Code::kDataType, "i4", [&] { write_safetensors(folder / "x", std::vector{source("a", Tensor::zeros(DType::kI4, {2}))}); });
  EXPECT_TRUE(folder.names().empty());
}

}  // namespace
}  // namespace hone
