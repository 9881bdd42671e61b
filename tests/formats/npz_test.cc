#include "formats/npz.h"

#include <gtest/gtest.h>
#include <zlib.h>

#include <cerrno>
#include <cstring>

#include "base/file_system.h"
#include "formats/inflate.h"
#include "formats/zip.h"
#include "tests/support/bytes.h"
#include "tests/support/temp_folder.h"

namespace hone {
namespace {

using test::bytes_of;
using test::expect_error;
using test::TempFolder;
using Shape = std::vector<std::int64_t>;


template <typename T>
void put(std::string* text, T value) {
  text->append(reinterpret_cast<const char*>(&value), sizeof(T));
}

std::string deflated(const std::string& text) {
  std::string packed(text.size() + 1000, '\0');
  z_stream stream{};
  deflateInit2(&stream, 9, Z_DEFLATED, -MAX_WBITS, 9, Z_DEFAULT_STRATEGY);
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));
  stream.avail_in = static_cast<uInt>(text.size());
  stream.next_out = reinterpret_cast<Bytef*>(packed.data());
  stream.avail_out = static_cast<uInt>(packed.size());
  EXPECT_EQ(deflate(&stream, Z_FINISH), Z_STREAM_END);
  packed.resize(stream.total_out);
  deflateEnd(&stream);
  return packed;
}

/// A zip archive of one entry, every number of which a test may make wrong.
struct Archive {
  std::string name = "x.npy";
  std::string packed;
  std::uint16_t method = 0;
  std::uint16_t flags = 0;
  std::uint32_t crc = 0;
  std::uint64_t size = 0;
  std::uint32_t header_offset = 0;
  std::uint16_t count = 1;
  bool zip64 = false;       ///< sizes in the zip64 field
  bool descriptor = false;  ///< sizes and checksum behind the data, zero in the local header

  Archive(const std::string& content, bool deflate)
      : packed(deflate ? deflated(content) : content), method(deflate ? 8 : 0), crc(crc32_of(bytes_of(content))), size(content.size()) {}

  std::string text() const {
    const auto packed_size = static_cast<std::uint64_t>(packed.size());
    std::string result;
    put<std::uint32_t>(&result, 0x04034b50);
    common(&result, descriptor ? 0 : crc, descriptor ? 0 : packed_size, descriptor ? 0 : size);
    put<std::uint16_t>(&result, 3);
    result += name + "abc" + packed;
    if (descriptor) result += std::string("PK\7\x8", 4) + std::string(12, 'd');
    const auto start = static_cast<std::uint32_t>(result.size());
    put<std::uint32_t>(&result, 0x02014b50);
    put<std::uint16_t>(&result, 20);
    common(&result, crc, zip64 ? 0xffffffff : packed_size, zip64 ? 0xffffffff : size);
    put<std::uint16_t>(&result, zip64 ? 20 : 0);
    result.append(10, '\0');
    put<std::uint32_t>(&result, header_offset);
    result += name;
    if (zip64) {
      put<std::uint16_t>(&result, 1);
      put<std::uint16_t>(&result, 16);
      put<std::uint64_t>(&result, size);
      put<std::uint64_t>(&result, packed_size);
    }
    const auto end = static_cast<std::uint32_t>(result.size());
    put<std::uint32_t>(&result, 0x06054b50);
    put<std::uint32_t>(&result, 0);
    put<std::uint16_t>(&result, count);
    put<std::uint16_t>(&result, count);
    put<std::uint32_t>(&result, end - start);
    put<std::uint32_t>(&result, start);
    put<std::uint16_t>(&result, 7);
    return result + "comment";
  }

 private:
  void common(std::string* text, std::uint32_t checksum, std::uint64_t packed_size, std::uint64_t unpacked_size) const {
    put<std::uint16_t>(text, 20);
    put<std::uint16_t>(text, static_cast<std::uint16_t>(flags | (descriptor ? 8 : 0)));
    put<std::uint16_t>(text, method);
    put<std::uint32_t>(text, 0);
    put<std::uint32_t>(text, checksum);
    put<std::uint32_t>(text, static_cast<std::uint32_t>(packed_size));
    put<std::uint32_t>(text, static_cast<std::uint32_t>(unpacked_size));
    put<std::uint16_t>(text, static_cast<std::uint16_t>(name.size()));
  }
};

std::string array_text() {
  std::string text = npy_header(DType::kI32, Shape{100});
  for (int i = 0; i < 100; ++i) put(&text, i / 10);
  return text;
}

Tensor parse_archive(const TempFolder& folder, const std::string& text) { return read_npz(folder.write("x.npz", text), "x"); }

TEST(Npz, RoundTrip) {
  const TempFolder folder;
  const std::vector<float> numbers = {1, 2, 3};
  write_npz(folder / "x.npz",
            {{"a", Tensor::of<float>({3}, numbers)}, {"layer/größe", Tensor::scalar<std::int64_t>(7)}, {"none", Tensor::zeros(DType::kBool, {0, 4})}});
  const auto arrays = read_npz(folder / "x.npz");
  ASSERT_EQ(arrays.size(), 3u);
  EXPECT_EQ(arrays[0].first, "a");
  EXPECT_EQ(arrays[0].second.at(2), 3);
  EXPECT_EQ(read_npz(folder / "x.npz", "layer/größe").int_at(0), 7);
  EXPECT_EQ(arrays[2].second.shape(), (Shape{0, 4}));
  const auto list = list_npz(folder / "x.npz");
  ASSERT_EQ(list.size(), 3u);
  EXPECT_EQ(list[1].key, "layer/größe");
  EXPECT_EQ(list[1].info.dtype, DType::kI64);
  EXPECT_EQ(list[2].info.shape, (Shape{0, 4}));
}

TEST(Npz, RoundTripOfNothingAndOfMany) {
  const TempFolder folder;
  write_npz(folder / "none.npz", {});
  EXPECT_TRUE(read_npz(folder / "none.npz").empty());
  std::vector<std::pair<std::string, Tensor>> arrays;
  for (int i = 0; i < 70'000; ++i) arrays.emplace_back(std::to_string(i), Tensor::scalar<std::uint8_t>(1));
  write_npz(folder / "many.npz", arrays);  // more than 65535 entries need zip64
  EXPECT_EQ(list_npz(folder / "many.npz").size(), arrays.size());
}

TEST(Npz, ReadsEveryKindOfEntry) {
  const TempFolder folder;
  for (const bool deflate : {false, true}) {
    for (const bool zip64 : {false, true}) {
      for (const bool descriptor : {false, true}) {
        Archive archive(array_text(), deflate);
        archive.zip64 = zip64;
        archive.descriptor = descriptor;
        EXPECT_EQ(parse_archive(folder, archive.text()).int_at(99), 9);
        EXPECT_EQ(list_npz(folder / "x.npz")[0].info.shape, Shape{100});
      }
    }
  }
}

TEST(Npz, UnknownKeyNamesTheNearest) {
  const TempFolder folder;
  write_npz(folder / "x.npz", {{"images", Tensor::scalar(1)}, {"labels", Tensor::scalar(1)}});
  expect_error(Code::kDataName, "did you mean \"images\"?", [&] { read_npz(folder / "x.npz", "image"); });
  expect_error(Code::kDataName, "it holds \"images\", \"labels\"", [&] { read_npz(folder / "x.npz", "y"); });
}

TEST(Npz, RefusesDuplicateNames) {
  const TempFolder folder;
  expect_error(Code::kDataName, "two arrays are called \"a\"", [&] { write_npz(folder / "x.npz", {{"a", Tensor::scalar(1)}, {"a", Tensor::scalar(2)}}); });
  EXPECT_TRUE(folder.names().empty());
}

TEST(Npz, RefusesBombs) {
  const TempFolder folder;
  Archive claims(array_text(), true);
  claims.zip64 = true;
  claims.size = std::uint64_t{1} << 50;
  expect_error(Code::kTooLarge, "made to fill the memory", [&] { parse_archive(folder, claims.text()); });
  Archive more(array_text() + "and more", true);
  more.size = array_text().size();  // unpacks to more than it says
  expect_error(Code::kDataFormat, "more than the 528 bytes", [&] { parse_archive(folder, more.text()); });
  Archive cut(array_text(), true);
  cut.size = 100;
  expect_error(Code::kDataFormat, "cut off inside its .npy header", [&] { parse_archive(folder, cut.text()); });
  Archive less(array_text().substr(0, 527), true);
  less.size += 1;
  expect_error(Code::kDataFormat, "where 528 were expected", [&] { parse_archive(folder, less.text()); });
  Archive zeros(array_text() + std::string(std::size_t{1} << 20, '\0'), true);  // a thousandth in the file: that many equal bytes are no lie
  EXPECT_LT(zeros.text().size(), 10'000U);
  expect_error(Code::kDataFormat, "i32[100] needs 400 bytes, and 1048576 more are behind them", [&] { parse_archive(folder, zeros.text()); });
}

TEST(Npz, RefusesOverlappingEntries) {
  const std::string one = Archive(array_text(), false).text();
  const std::size_t start = one.rfind("PK\1\2"), end = one.rfind("PK\5\6");
  std::string two = one.substr(0, end) + one.substr(start, end - start) + one.substr(end);
  const std::size_t record = two.rfind("PK\5\6");
  two[record + 8] = two[record + 10] = 2;
  const TempFolder folder;
  expect_error(Code::kDataFormat, "reaches into the next", [&] { parse_archive(folder, two); });
}

TEST(Npz, SaysWhatIsWrong) {
  const TempFolder folder;
  const auto with = [&](auto change) {
    Archive archive(array_text(), false);
    change(archive);
    return [&folder, text = archive.text()] { parse_archive(folder, text); };
  };
  expect_error(Code::kDataFormat, "checksum", with([](Archive& a) { a.crc ^= 1; }));
  expect_error(Code::kDataFormat, "encrypted", with([](Archive& a) { a.flags = 1; }));
  expect_error(Code::kDataFormat, "compression method 12", with([](Archive& a) { a.method = 12; }));
  expect_error(Code::kDataFormat, "two different sizes", with([](Archive& a) { a.size = 10; }));
  expect_error(Code::kDataFormat, "beyond the archive's end", with([](Archive& a) { a.header_offset = 1'000'000; }));
  expect_error(Code::kDataFormat, "not where", with([](Archive& a) {
                 a.header_offset = 1;
                 a.packed.resize(10);
                 a.size = 10;
               }));
  expect_error(Code::kDataFormat, "damaged", with([](Archive& a) { a.count = 3; }));
  expect_error(Code::kDataName, "it holds no arrays", with([](Archive& a) { a.name = "data.pkl"; }));
  expect_error(Code::kDataFormat, "not a zip archive but text", [&] { parse_archive(folder, "hello"); });
  expect_error(Code::kDataFormat, "not a zip archive but a NumPy .npy file", [&] { parse_archive(folder, array_text()); });
  expect_error(Code::kDataFormat, "it was cut off", [&] { parse_archive(folder, Archive(array_text(), false).text().substr(0, 200)); });
  expect_error(Code::kDataFormat, "x.npz:x", [&] { parse_archive(folder, Archive("not an array", false).text()); });
}

TEST(Npz, RefusesEveryTruncation) {
  const TempFolder folder;
  for (const bool deflate : {false, true}) {
    const std::string whole = Archive(array_text(), deflate).text();
    for (std::size_t size = 0; size < whole.size(); ++size) EXPECT_THROW(parse_archive(folder, whole.substr(0, size)), Error) << size;
  }
}

TEST(Npz, SurvivesDamage) {
  const TempFolder folder;
  for (const bool deflate : {false, true}) {
    Archive archive(array_text(), deflate);
    archive.zip64 = true;
    const std::string whole = archive.text();
    for (std::size_t at = 0; at < whole.size(); ++at) {
      for (const int value : {0x00, 0x01, 0x7f, 0x80, 0xff}) {
        std::string damaged = whole;
        damaged[at] = static_cast<char>(value);
        folder.write("x.npz", damaged);
        try {
          read_npz(folder / "x.npz");
          list_npz(folder / "x.npz");
        } catch (const Error&) {}
      }
    }
  }
}

TEST(Npz, FullDiskKeepsTheOldFile) {
  const TempFolder folder;
  write_npz(folder / "x.npz", {{"a", Tensor::scalar(1)}});
  const std::string old = folder.read("x.npz");
  FaultyFileSystem faulty;
  faulty.set_disk_space(100);
  const ScopedFileSystem scope(faulty);
  expect_error(Code::kFileWrite, "No space left", [&] { write_npz(folder / "x.npz", {{"a", Tensor::scalar(2)}}); });
  EXPECT_EQ(folder.read("x.npz"), old);
  EXPECT_EQ(folder.names(), std::vector<std::string>{"x.npz"});
}

TEST(Npz, ReadsTheSharedModelsData) {
  const std::filesystem::path models = HONE_SHARED_DIR "/models";
  if (not std::filesystem::exists(models)) GTEST_SKIP() << "The shared models are not here.";
  int count = 0;
  for (const auto& entry : std::filesystem::directory_iterator(models)) {
    const std::string path = entry.path() / "train.npz";
    if (not std::filesystem::exists(path)) continue;
    const auto list = list_npz(path);
    const auto arrays = read_npz(path);
    ASSERT_EQ(list.size(), arrays.size()) << path;
    for (std::size_t i = 0; i < list.size(); ++i) {
      EXPECT_EQ(list[i].key, arrays[i].first);
      EXPECT_EQ(list[i].info.shape, arrays[i].second.shape());
    }
    ++count;
  }
  EXPECT_GT(count, 0);
}

}  // namespace
}  // namespace hone
