#include "formats/inflate.h"

#include <fmt/format.h>
#include <zlib.h>

#include <algorithm>
#include <limits>

#include "base/check.h"
#include "base/diag.h"
#include "base/limits.h"
#include "base/text.h"

namespace hone {

namespace {

constexpr int kRawDeflate = -MAX_WBITS;
constexpr int kGzip = MAX_WBITS + 16;

[[noreturn]] void damaged(const std::string& name, std::string_view why) {
  throw Error(Code::kDataFormat, fmt::format("{}: the compressed data are damaged: {}", printable(name, 1000), why), {}, {"copy or download the file again"});
}

/// One zlib stream over `packed`, fed and drained in pieces, because zlib counts in 32 bits.
class Inflater {
 public:
  Inflater(std::span<const std::byte> packed, int window_bits, const std::string& name) : packed_(packed), name_(name) {
    HONE_CHECK(inflateInit2(&stream_, window_bits) == Z_OK, "zlib does not start");
  }
  ~Inflater() { inflateEnd(&stream_); }
  Inflater(const Inflater&) = delete;
  Inflater& operator=(const Inflater&) = delete;

  /// Fills as much of `destination` as there is data for; how much that was. Less than all only at the end of the stream.
  std::size_t read(std::span<std::byte> destination) {
    std::size_t done = 0;
    while (done < destination.size() and not finished_) {
      feed();
      const std::size_t room = std::min<std::size_t>(destination.size() - done, kPiece);
      stream_.next_out = reinterpret_cast<Bytef*>(destination.data() + done);
      stream_.avail_out = static_cast<uInt>(room);
      step();
      done += room - stream_.avail_out;
    }
    return done;
  }

  /// Whether the stream has ended where it should, with nothing left to unpack.
  bool at_end() {
    std::byte beyond{};
    return read({&beyond, 1}) == 0;
  }

  /// Starts the next gzip member, if one follows.
  bool next_member() {
    const std::span<const std::byte> rest = this->rest();
    if (rest.size() < 2 or rest[0] != std::byte{0x1f} or rest[1] != std::byte{0x8b}) return false;
    HONE_CHECK(inflateReset(&stream_) == Z_OK, "zlib does not start again");
    finished_ = false;
    return true;
  }

  /// The packed bytes not used yet.
  std::span<const std::byte> rest() const { return packed_.subspan(fed_ - stream_.avail_in); }

 private:
  static constexpr std::size_t kPiece = std::size_t{1} << 30;

  void feed() {
    if (stream_.avail_in > 0 or fed_ == packed_.size()) return;
    const std::size_t count = std::min(packed_.size() - fed_, kPiece);
    stream_.next_in = reinterpret_cast<Bytef*>(const_cast<std::byte*>(packed_.data() + fed_));
    stream_.avail_in = static_cast<uInt>(count);
    fed_ += count;
  }

  void step() {
    switch (inflate(&stream_, Z_NO_FLUSH)) {
      case Z_OK: return;
      case Z_STREAM_END: finished_ = true; return;
      case Z_BUF_ERROR: damaged(name_, "they end too early");  // there was room, so it lacked input
      case Z_MEM_ERROR: throw Error(Code::kMemory, fmt::format("not enough memory to unpack {}", printable(name_, 1000)));
      default: damaged(name_, stream_.msg != nullptr ? stream_.msg : "not deflate data");
    }
  }

  std::span<const std::byte> packed_;
  const std::string& name_;
  z_stream stream_{};
  std::size_t fed_ = 0;
  bool finished_ = false;
};

}  // namespace

std::vector<std::byte> inflate_raw(std::span<const std::byte> packed, std::size_t size, const std::string& name) {
  constexpr std::size_t kStep = std::size_t{16} << 20;
  Inflater inflater(packed, kRawDeflate, name);
  std::vector<std::byte> bytes;
  bytes.reserve(size);  // a promise: what is never written takes no memory
  while (bytes.size() < size) {
    const std::size_t done = bytes.size();
    bytes.resize(std::min(size, done + kStep));
    const std::size_t count = done + inflater.read(std::span(bytes).subspan(done));
    if (count < bytes.size()) damaged(name, fmt::format("they unpack to {} bytes where {} were expected", count, size));
  }
  if (not inflater.at_end()) damaged(name, fmt::format("they unpack to more than the {} bytes expected", size));
  return bytes;
}

std::vector<std::byte> inflate_raw_start(std::span<const std::byte> packed, std::size_t count, const std::string& name) {
  std::vector<std::byte> bytes(count);
  bytes.resize(Inflater(packed, kRawDeflate, name).read(bytes));
  return bytes;
}

std::vector<std::byte> gunzip(std::span<const std::byte> packed, const std::string& name, std::uint64_t enough) {
  constexpr std::size_t kFirst = 1 << 16;
  if (enough < limits::kDecompressedBytes) ++enough;  // one more tells that there is more
  const std::uint64_t most = std::min(limits::kDecompressedBytes, packed.size() * limits::kDecompressedRatio);
  Inflater inflater(packed, kGzip, name);
  std::vector<std::byte> bytes;
  std::size_t size = 0;
  do {
    while (true) {
      if (size == enough) return bytes;
      if (size == bytes.size()) bytes.resize(std::min<std::uint64_t>(enough, std::max<std::size_t>(kFirst, size + size / 2)));
      const std::size_t room = bytes.size() - size;
      const std::size_t count = inflater.read(std::span(bytes).subspan(size));
      size += count;
      if (size > most) {
        throw Error(Code::kTooLarge, fmt::format("{}: {} unpack to more than {}", printable(name, 1000), human_bytes(packed.size()), human_bytes(most)), {},
                    {"no data set looks like that; the file was made to fill the memory"});
      }
      if (count < room) break;
    }
  } while (inflater.next_member());
  if (not std::all_of(inflater.rest().begin(), inflater.rest().end(), [](std::byte b) { return b == std::byte{0}; }))
    damaged(name, fmt::format("{} bytes follow that are not gzip", inflater.rest().size()));
  bytes.resize(size);
  return bytes;
}

std::uint32_t crc32_of(std::span<const std::byte> bytes, std::uint32_t before) {
  return static_cast<std::uint32_t>(crc32_z(before, reinterpret_cast<const Bytef*>(bytes.data()), bytes.size()));
}

}  // namespace hone
