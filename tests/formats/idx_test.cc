#include "formats/idx.h"

#include <gtest/gtest.h>
#include <zlib.h>

#include "tests/support/temp_folder.h"

namespace hone {
namespace {

using test::expect_error;
using test::TempFolder;
using namespace std::string_literals;
using Shape = std::vector<std::int64_t>;

Tensor parse_text(const std::string& text) { return parse_idx(std::as_bytes(std::span(text)), "labels.idx"); }

std::string gzip(const std::string& text) {
  std::string packed(text.size() + 1000, '\0');
  z_stream stream{};
  deflateInit2(&stream, 9, Z_DEFLATED, MAX_WBITS + 16, 9, Z_DEFAULT_STRATEGY);
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));
  stream.avail_in = static_cast<uInt>(text.size());
  stream.next_out = reinterpret_cast<Bytef*>(packed.data());
  stream.avail_out = static_cast<uInt>(packed.size());
  EXPECT_EQ(deflate(&stream, Z_FINISH), Z_STREAM_END);
  packed.resize(stream.total_out);
  deflateEnd(&stream);
  return packed;
}

const std::string kBytes = "\0\0\x08\x02\0\0\0\x02\0\0\0\x03"s + "abcdef";

TEST(Idx, ReadsEveryType) {
  const Tensor bytes = parse_text(kBytes);
  EXPECT_EQ(bytes.dtype(), DType::kU8);
  EXPECT_EQ(bytes.shape(), (Shape{2, 3}));
  EXPECT_EQ(bytes.int_at(5), 'f');
  EXPECT_EQ(parse_text("\0\0\x09\x01\0\0\0\x01\xff"s).int_at(0), -1);
  EXPECT_EQ(parse_text("\0\0\x0b\x01\0\0\0\x01\x01\x02"s).int_at(0), 258);
  EXPECT_EQ(parse_text("\0\0\x0c\x01\0\0\0\x01\0\x01\0\0"s).int_at(0), 65536);
  EXPECT_EQ(parse_text("\0\0\x0d\x01\0\0\0\x01\x3f\xc0\0\0"s).at(0), 1.5);
  EXPECT_EQ(parse_text("\0\0\x0e\x01\0\0\0\x01\x3f\xf8\0\0\0\0\0\0"s).at(0), 1.5);
  EXPECT_EQ(parse_text("\0\0\x08\x01\0\0\0\0"s).element_count(), 0);
}

TEST(Idx, ReadsGzip) {
  const TempFolder folder;
  EXPECT_EQ(parse_text(gzip(kBytes)).shape(), (Shape{2, 3}));
  EXPECT_EQ(parse_text(gzip(kBytes.substr(0, 9)) + gzip(kBytes.substr(9))).shape(), (Shape{2, 3}));  // two members
  EXPECT_EQ(parse_text(gzip(kBytes) + std::string(512, '\0')).shape(), (Shape{2, 3}));               // padded, as tapes do
  EXPECT_EQ(read_idx(folder.write("x-idx2-ubyte.gz", gzip(kBytes))).int_at(0), 'a');
}

TEST(Idx, PacksOfWhatIsNoArrayAreNotUnpacked) {
  const std::string header = "\0\0\x08\x02\0\0\0\x02\0\0\0\x03"s;
  expect_error(Code::kDataFormat, "u8[2,3] needs 6 bytes, but 7 are there", [&] { parse_text(gzip(header + std::string(10'000'000, 'x'))); });
  expect_error(Code::kDataFormat, "nothing but zero bytes", [] { parse_text(gzip(std::string(10'000'000, '\0') + "x")); });
  std::string damaged = gzip(header + std::string(10'000'000, 'x'));
  damaged.resize(damaged.size() / 2);  // the rest is not even looked at
  expect_error(Code::kDataFormat, "but 7 are there", [&] { parse_text(damaged); });
}

TEST(Idx, SaysWhatIsWrong) {
  expect_error(Code::kDataFormat, "not an IDX file but empty", [] { parse_text(""); });
  expect_error(Code::kDataFormat, "begins with 00 00 07 01", [] {
    parse_text(
        "\0\0\x07\x01\0\0\0\x01"s
        "a");
  });
  expect_error(Code::kDataFormat, "not an IDX file but text", [] { parse_text("5,0,4,1"); });
  expect_error(Code::kDataFormat, "u8[2,3] needs 6 bytes, but 7 are there", [] { parse_text(kBytes + "x"); });
  expect_error(Code::kTooLarge, "2^40", [] { parse_text("\0\0\x08\x02\xff\xff\xff\xff\xff\xff\xff\xff"s); });
  expect_error(Code::kTooLarge, "255 axes", [] { parse_text("\0\0\x08\xff"s + std::string(4 * 255, '\0')); });
  expect_error(Code::kDataFormat, "labels.idx", [] { parse_text(gzip(kBytes) + "tail"); });
}

TEST(Idx, RefusesEveryTruncation) {
  const std::string packed = gzip(kBytes);
  for (std::size_t size = 0; size < kBytes.size(); ++size) EXPECT_THROW(parse_text(kBytes.substr(0, size)), Error) << size;
  for (std::size_t size = 0; size < packed.size(); ++size) EXPECT_THROW(parse_text(packed.substr(0, size)), Error) << size;
}

TEST(Idx, SurvivesDamage) {
  for (const std::string& whole : {kBytes, gzip(kBytes)}) {
    for (std::size_t at = 0; at < whole.size(); ++at) {
      for (int bit = 0; bit < 8; ++bit) {
        std::string damaged = whole;
        damaged[at] = static_cast<char>(damaged[at] ^ (1 << bit));
        try {
          parse_text(damaged);
        } catch (const Error&) {}
      }
    }
  }
}

TEST(Idx, KnowsItsNames) {
  for (const char* path : {"train-images-idx3-ubyte", "a/x-ubyte.gz", "x.idx", "x.idx.gz"}) EXPECT_TRUE(is_idx_path(path)) << path;
  for (const char* path : {"x.npy", "x.gz", "ubyte.csv", "idx"}) EXPECT_FALSE(is_idx_path(path)) << path;
}

TEST(Idx, ReadsMnist) {
  const std::string folder = HONE_SHARED_DIR "/data/mnist-10k/";
  if (not std::filesystem::exists(folder)) GTEST_SKIP() << "The shared data set mnist-10k is not here.";
  const Tensor images = read_idx(folder + "images-idx3-ubyte.gz");
  const Tensor labels = read_idx(folder + "labels-idx1-ubyte.gz");
  EXPECT_EQ(images.shape(), (Shape{10000, 28, 28}));
  EXPECT_EQ(labels.shape(), Shape{10000});
  for (const std::uint8_t label : labels.data<std::uint8_t>()) ASSERT_LT(label, 10);
}

}  // namespace
}  // namespace hone
