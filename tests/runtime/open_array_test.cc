// Arrays out of every kind of file that a user may name, mapped or streamed, and what is said when the file is not what it should be.
#include "runtime/data/open_array.h"

#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <numeric>

#include "base/text.h"
#include "formats/npy.h"
#include "formats/safetensors.h"
#include "runtime/data/convert.h"
#include "tests/support/tar_archive.h"
#include "tests/support/temp_folder.h"

namespace hone {
namespace {

using test::expect_error;
using test::TarArchive;
using test::TempFolder;
using Numbers = std::vector<std::int64_t>;

DataSource source_of(const std::string& spelled) {
  const std::vector<std::string> items = {"x=" + spelled};
  return parse_data("--train", items).at(0);
}
Array open(const TempFolder& folder, const std::string& spelled) { return Array::open(source_of(folder / spelled)); }

Numbers integers(const Array& array) {
  std::vector<std::byte> scratch;
  const std::byte* data = array.rows(0, array.row_count(), scratch);
  Numbers result;
  for (std::int64_t i = 0; i < array.element_count(); ++i) result.push_back(integer_at(array.dtype(), data, static_cast<std::size_t>(i)));
  return result;
}
std::string shape_of(const Array& array) { return std::string(to_string(array.dtype())) + shape_text(array.shape()); }

void refuse(const TempFolder& folder, const std::string& spelled, Code code, std::string_view part) {
  expect_error(code, part, [&] { open(folder, spelled); });
}

template <typename T>
std::string bytes_of(std::vector<T> values) {
  return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T)};
}
template <typename T>
std::string counted(std::size_t count) {
  std::vector<T> values(count);
  std::iota(values.begin(), values.end(), T{0});
  return bytes_of(values);
}
template <typename T>
std::string npy(std::vector<std::int64_t> shape, std::vector<T> values) {
  return npy_header(kDTypeOf<T>, shape) + bytes_of(values);
}

/// Records of CIFAR whose labels and pixels tell them apart.
std::string cifar(const std::vector<std::string>& labels) {
  std::string bytes;
  for (const std::string& label : labels) bytes += label + std::string(3072, static_cast<char>(10 + label.back()));
  return bytes;
}

TEST(OpenArray, SmallFilesAreReadWhenWantedIfAsked) {
  const TempFolder folder;
  folder.write("x.npy", npy<std::int64_t>({3, 2}, {1, 2, 3, 4, 5, 6}));
  folder.write("x.bin", bytes_of<std::int64_t>({1, 2, 3, 4, 5, 6}));
  for (const char* const spelled : {"x.npy", "x.bin:i64:3x2"}) {
    const DataSource source = source_of(folder / spelled);
    EXPECT_FALSE(Array::open(source).is_streamed()) << spelled;
    const Array streamed = Array::open(source, FileReading::kWhenWanted);
    EXPECT_TRUE(streamed.is_streamed()) << spelled;
    EXPECT_EQ(integers(streamed), (Numbers{1, 2, 3, 4, 5, 6})) << spelled;
  }
}

TEST(OpenArray, CsvColumnsAreOneArray) {
  const TempFolder folder;
  folder.write("a.csv", "x,y,label\n1,0.5,7\n2,1.5,8\n");
  EXPECT_EQ(shape_of(open(folder, "a.csv:x,y")), "f64[2,2]");
  EXPECT_EQ(shape_of(open(folder, "a.csv")), "f64[2,3]");
  EXPECT_EQ(shape_of(open(folder, "a.csv:label")), "i64[2]");
  EXPECT_EQ(integers(open(folder, "a.csv:2")), (Numbers{7, 8}));
  EXPECT_EQ(integers(open(folder, "a.csv:2[1:]")), (Numbers{8}));
  folder.write("b.tsv", "1\t2\n3\t4\n");
  EXPECT_EQ(integers(open(folder, "b.tsv:0..1")), (Numbers{1, 2, 3, 4}));
}

TEST(OpenArray, CifarTenAndHundred) {
  const TempFolder folder;
  folder.write("data_batch_1.bin", cifar({"\x03", "\x09"}));
  folder.write("train.bin", cifar({"\x13\x63", "\x01\x02"}));
  const Array images = open(folder, "data_batch_1.bin:cifar10:images");
  EXPECT_EQ(shape_of(images), "u8[2,3,32,32]");
  EXPECT_EQ(integers(images)[0], 13);
  EXPECT_EQ(integers(images)[3072], 19);
  EXPECT_EQ(integers(open(folder, "data_batch_1.bin:cifar10:labels")), (Numbers{3, 9}));
  EXPECT_EQ(integers(open(folder, "train.bin:cifar100:labels")), (Numbers{0x63, 2}));
  EXPECT_EQ(integers(open(folder, "train.bin:cifar100:coarse_labels")), (Numbers{0x13, 1}));
  EXPECT_EQ(integers(open(folder, "train.bin:cifar100:images[1:2]"))[0], 12);
}

TEST(OpenArray, PatternJoinsFilesInTheOrderOfTheirNames) {
  const TempFolder folder;
  folder.write("batch_2.bin", cifar({"\x05"}));
  folder.write("batch_1.bin", cifar({"\x03", "\x09"}));
  folder.write("batch_3.bin", cifar({"\x01", "\x02"}));
  folder.write("test.bin", cifar({"\x08"}));
  EXPECT_EQ(integers(open(folder, "batch_*.bin:cifar10:labels")), (Numbers{3, 9, 5, 1, 2}));
  EXPECT_EQ(integers(open(folder, "batch_?.bin:cifar10:labels[1:4]")), (Numbers{9, 5, 1}));
  const Array part = open(folder, "batch_*.bin:cifar10:labels[1:4]");
  const auto search = [](std::int64_t wanted) {
    return [wanted](const std::byte* data, std::size_t count) -> std::optional<std::size_t> {
      for (std::size_t i = 0; i < count; ++i)
        if (std::to_integer<int>(data[i]) == wanted) return i;
      return std::nullopt;
    };
  };
  EXPECT_EQ(part.find(search(1))->row, 2);
  EXPECT_FALSE(part.find(search(3)));  // a row that was left out
  EXPECT_FALSE(part.find(search(2)));
  refuse(folder, "none_*.bin:cifar10:labels", Code::kFileOpen, "no file fits the pattern");
  write_npy(folder / "a1.npy", Tensor::zeros(DType::kF32, {2, 3}));
  write_npy(folder / "a2.npy", Tensor::zeros(DType::kF32, {2, 4}));
  refuse(folder, "a*.npy", Code::kDataShape, "a1.npy is [2,3]");
  write_npy(folder / "a2.npy", Tensor::zeros(DType::kF64, {2, 3}));
  refuse(folder, "a*.npy", Code::kDataType, "holds f64");
}

TEST(OpenArray, TokensAreWindowsAndTheirSuccessors) {
  const TempFolder folder;
  folder.write("t.bin", counted<std::uint16_t>(11));
  EXPECT_EQ(shape_of(open(folder, "t.bin:tokens:u16:3")), "u16[3,3]");
  EXPECT_EQ(integers(open(folder, "t.bin:tokens:u16:3")), (Numbers{0, 1, 2, 3, 4, 5, 6, 7, 8}));
  EXPECT_EQ(integers(open(folder, "t.bin:next_tokens:u16:3")), (Numbers{1, 2, 3, 4, 5, 6, 7, 8, 9}));
  EXPECT_EQ(integers(open(folder, "t.bin:tokens:u16:5")), (Numbers{0, 1, 2, 3, 4, 5, 6, 7, 8, 9}));
  EXPECT_EQ(integers(open(folder, "t.bin:next_tokens:u16:5")), (Numbers{1, 2, 3, 4, 5, 6, 7, 8, 9, 10}));
  EXPECT_EQ(integers(open(folder, "t.bin:tokens:u16:8:1")), (Numbers{0, 1, 2, 3, 4, 5, 6, 7, 1, 2, 3, 4, 5, 6, 7, 8, 2, 3, 4, 5, 6, 7, 8, 9}));
  EXPECT_EQ(integers(open(folder, "t.bin:next_tokens:u16:2:6")), (Numbers{1, 2, 7, 8}));
  folder.write("u.bin", counted<std::uint32_t>(5));
  EXPECT_EQ(integers(open(folder, "u.bin:next_tokens:u32:4")), (Numbers{1, 2, 3, 4}));
}

TEST(OpenArray, SearchLooksAtOverlappingWindowsOnceAndNamesTheFirst) {
  const TempFolder folder;
  folder.write("t.bin", counted<std::uint16_t>(1000));
  for (const std::string spelled : {"t.bin:tokens:u16:10:1", "t.bin:tokens:u16:10:3", "t.bin:tokens:u16:10", "t.bin:tokens:u16:10:25"}) {
    const Array array = open(folder, spelled);
    for (const std::uint16_t wanted : {0, 9, 10, 11, 500, 502}) {
      std::size_t seen = 0;
      const auto place = array.find([&](const std::byte* data, std::size_t count) -> std::optional<std::size_t> {
        seen += count;
        for (std::size_t i = 0; i < count; ++i)
          if (integer_at(DType::kU16, data, i) == wanted) return i;
        return std::nullopt;
      });
      EXPECT_LE(seen, 1000u);
      const Numbers all = integers(array);
      const auto first = std::find(all.begin(), all.end(), wanted) - all.begin();
      ASSERT_EQ(place.has_value(), first < static_cast<std::ptrdiff_t>(all.size())) << spelled << " " << wanted;
      if (place) EXPECT_EQ(place->row * 10 + place->element, first) << spelled << " " << wanted;
    }
  }
}

TEST(OpenArray, ArchiveGroupsFilesIntoSamples) {
  const TempFolder folder;
  TarArchive archive;
  archive.add("d/", "", '5');
  for (int i = 0; i < 3; ++i) {
    const std::string key = "d/sample" + std::to_string(i);
    archive.add(key + ".cls", std::to_string(7 - i) + "\n").add(key + ".x.npy", npy<std::uint8_t>({2}, {static_cast<std::uint8_t>(i), 9}));
    archive.add(key + ".raw", counted<std::int16_t>(4)).add(key + ".json", "{}");
  }
  folder.write("s.tar", archive.str());
  EXPECT_EQ(integers(open(folder, "s.tar:cls")), (Numbers{7, 6, 5}));
  EXPECT_EQ(integers(open(folder, "s.tar:cls[2:]")), (Numbers{5}));
  EXPECT_EQ(integers(open(folder, "s.tar:x.npy")), (Numbers{0, 9, 1, 9, 2, 9}));
  EXPECT_EQ(integers(open(folder, "s.tar:x.npy[1:2]")), (Numbers{1, 9}));
  EXPECT_EQ(shape_of(open(folder, "s.tar:raw:i16:2x2")), "i16[3,2,2]");
  refuse(folder, "s.tar:json", Code::kUsage, "images are not decoded");
  refuse(folder, "s.tar:y.npy", Code::kDataName, "\"d/sample0\" has no file that ends in .y.npy");
  refuse(folder, "s.tar:raw:i16:3", Code::kDataFormat, "has 8 bytes");
}

TEST(OpenArray, ArchiveWithOddSamplesIsRefused) {
  const TempFolder folder;
  folder.write("cut.tar", TarArchive().add("a.cls", "1").without_end());
  ASSERT_EQ(open(folder, "cut.tar:cls").notes().size(), 1u);
  EXPECT_NE(open(folder, "c*.tar:cls").notes().at(0).find("cut.tar ends without the end mark of an archive"), std::string::npos);
  folder.write("whole.tar", TarArchive().add("a.cls", "1").str());
  EXPECT_EQ(open(folder, "whole.tar:cls").notes().size(), 0u);
  folder.write("count.csv", "0,1,2\n4,5,6\n");
  ASSERT_EQ(open(folder, "count.csv").notes().size(), 1u);
  folder.write("missing.tar", TarArchive().add("a.cls", "1").add("a.txt", "t").add("b.txt", "t").add("c.cls", "2").str());
  refuse(folder, "missing.tar:cls", Code::kDataName, "\"b\" has no file that ends in .cls");
  folder.write("last.tar", TarArchive().add("a.cls", "1").add("b.txt", "t").str());
  refuse(folder, "last.tar:cls", Code::kDataName, "\"b\" has no file");
  folder.write("twice.tar", TarArchive().add("a.cls", "1").add("a.cls", "2").str());
  refuse(folder, "twice.tar:cls", Code::kDataFormat, "twice");
  folder.write("none.tar", TarArchive().add(".hidden.cls", "1").str());
  refuse(folder, "none.tar:cls", Code::kDataName, "none.tar holds no samples");
  folder.write("word.tar", TarArchive().add("a.cls", "cat").str());
  refuse(folder, "word.tar:cls", Code::kDataFormat, "a.cls holds \"cat\", which is no integer");
  folder.write("shapes.tar", TarArchive().add("a.npy", npy<float>({2}, {1, 2})).add("b.npy", npy<float>({3}, {1, 2, 3})).str());
  refuse(folder, "shapes.tar:npy", Code::kDataShape, "b.npy is f32[3], and the first such file is f32[2]");
  folder.write(
      "objects.tar",
      TarArchive().add("a.npy", std::string("\x93NUMPY\x01\x00\x3e\x00", 10) + "{'descr': '|O', 'fortran_order': False, 'shape': (1,), }      \n").str());
  refuse(folder, "objects.tar:npy", Code::kDataType, "Python objects");
  folder.write("empty.tar", std::string(1024, '\0'));
  refuse(folder, "empty.tar:npy", Code::kDataName, "the archive is empty");
}

TEST(OpenArray, SafetensorsAreReadByName) {
  const TempFolder folder;
  const Tensor odd = Tensor::of<std::uint8_t>({3}, std::vector<std::uint8_t>{1, 2, 3});  // what follows it lies at an odd place
  const Tensor rows = Tensor::of<std::int64_t>({2, 2}, std::vector<std::int64_t>{4, 5, 6, 7});
  const SafetensorsSource sources[] = {{"odd", DType::kU8, {3}, [&] { return odd; }}, {"x", DType::kI64, {2, 2}, [&] { return rows; }}};
  write_safetensors(folder / "a.safetensors", sources);
  EXPECT_EQ(integers(open(folder, "a.safetensors:x")), (Numbers{4, 5, 6, 7}));
  EXPECT_EQ(integers(open(folder, "a.safetensors")), (Numbers{4, 5, 6, 7}));  // called as the input
  EXPECT_EQ(integers(open(folder, "a.safetensors:odd[1:]")), (Numbers{2, 3}));
  EXPECT_EQ(integers(open_safetensors_array(source_of(folder / "a.safetensors:x"), true)), (Numbers{4, 5, 6, 7}));
  refuse(folder, "a.safetensors:odb", Code::kDataName, "did you mean \"odd\"?");
  std::string bytes = folder.read("a.safetensors");
  folder.write("cut.safetensors", bytes.substr(0, bytes.size() - 1));
  refuse(folder, "cut.safetensors:x", Code::kDataFormat, "cut.safetensors");
}

TEST(OpenArray, BinaryFilesThatDoNotFitAreRefused) {
  const TempFolder folder;
  folder.write("a.bin", counted<std::uint16_t>(10));
  refuse(folder, "a.bin:cifar10:images", Code::kDataFormat, "no number of cifar10 records of 3073");
  refuse(folder, "a.bin:cifar10:pixels", Code::kUsage, "expected images or labels");
  refuse(folder, "a.bin:cifar1:images", Code::kUsage, "cifar10");
  refuse(folder, "a.bin:tokens:u16:10", Code::kDataLength, "has 10 tokens, and a window with the token behind it takes 11");
  refuse(folder, "a.bin:tokens:u16:9223372036854775807", Code::kTooLarge, "windows");
  refuse(folder, "a.bin:tokens:f32:4", Code::kUsage, "tokens are integers");
  refuse(folder, "a.bin:tokens:u16:0", Code::kUsage, "\"0\" is no length");
  refuse(folder, "a.bin:tokens:u16:4:x", Code::kUsage, "\"x\" is no distance");
  refuse(folder, "a.bin:tokens:u16", Code::kUsage, "expected an element type and a window's length");
  refuse(folder, "a.bin:f4:5", Code::kUsage, "no element type");
  refuse(folder, "a.bin:u16:5x", Code::kUsage, "is no shape");
  refuse(folder, "a.bin:u16:99999999999x99999999999x3", Code::kDataFormat, "has 20 bytes, and u16 of shape [99999999999,99999999999,3] take more than any file has");
  refuse(folder, "a.bin:u16:1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x10", Code::kUsage, "a shape of 33 axes");
  folder.write("b.bin", counted<std::uint8_t>(11));
  refuse(folder, "b.bin:tokens:u16:2", Code::kDataFormat, "no number of u16 tokens");
  folder.write("c.bin", std::string(3073, '\x20'));
  refuse(folder, "c.bin:cifar10:labels", Code::kDataFormat, "the first record has the label 32");
}

/// 257 MiB of u16 numbers, which are streamed; the disk holds those rows alone that are looked at.
TEST(OpenArray, LargeFilesAreStreamedAndReadTheSame) {
  const TempFolder folder;
  const std::size_t rows = 257 * 1024, row_bytes = 1024;
  const std::string path = folder.write("big.bin", "");
  std::filesystem::resize_file(path, rows * row_bytes);
  {
    std::fstream file(path, std::ios::binary | std::ios::in | std::ios::out);
    for (const std::size_t number : {10, 11, 787, 60000, 262999}) {
      const std::vector<std::uint16_t> row(row_bytes / 2, static_cast<std::uint16_t>(number));
      file.seekp(static_cast<std::streamoff>(number * row_bytes));
      file.write(reinterpret_cast<const char*>(row.data()), row_bytes);
    }
  }
  const Array array = open(folder, "big.bin:u16:263168x512[10:263000]");
  EXPECT_TRUE(array.is_streamed());
  EXPECT_EQ(array.row_count(), 262990);
  std::vector<std::byte> scratch;
  for (const std::int64_t row : {0, 1, 777, 262989}) {
    const std::byte* data = array.rows(row, 1, scratch);
    EXPECT_EQ(integer_at(DType::kU16, data, 0), (row + 10) % 65536);
    EXPECT_EQ(integer_at(DType::kU16, data, 511), (row + 10) % 65536);
  }
  const auto place = array.find([](const std::byte* data, std::size_t count) -> std::optional<std::size_t> {
    for (std::size_t i = 0; i < count; ++i)
      if (integer_at(DType::kU16, data, i) == 60000) return i;
    return std::nullopt;
  });
  ASSERT_TRUE(place);
  EXPECT_EQ(place->row, 59990);
  EXPECT_EQ(place->element, 0);
}

}  // namespace
}  // namespace hone
