#include "formats/zip.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <optional>
#include <type_traits>

#include "base/check.h"
#include "base/diag.h"
#include "base/limits.h"
#include "base/text.h"
#include "formats/inflate.h"
#include "formats/sniff.h"

// Offsets and signatures: PKWARE's APPNOTE.TXT, sections 4.3.7 (local header), 4.3.12 (central directory), 4.3.14 to 4.3.16 (its end), 4.5.3 (zip64 sizes).
namespace hone {

namespace {

constexpr std::uint32_t kLocalHeader = 0x04034b50, kCentralHeader = 0x02014b50, kEnd = 0x06054b50, kEnd64 = 0x06064b50, kEnd64Locator = 0x07064b50;
constexpr std::size_t kLocalHeaderBytes = 30, kCentralHeaderBytes = 46, kEndBytes = 22, kEnd64Bytes = 56, kEnd64LocatorBytes = 20;
constexpr std::uint32_t kIn64 = 0xffff'ffff;  // the real value stands in the zip64 field
constexpr std::uint16_t kIn64Short = 0xffff;
constexpr std::uint16_t kZip64Field = 1;
constexpr std::uint16_t kStored = 0, kDeflated = 8;
constexpr std::uint16_t kEncrypted = 1, kUtf8Name = 1 << 11;
constexpr std::uint16_t kZipVersion = 20, kZip64Version = 45;

[[noreturn]] void damaged(const std::string& name, std::string_view why, std::string_view note = "copy or write the file again") {
  throw Error(Code::kDataFormat, fmt::format("{}: {}", printable(name, 1000), why), {}, {std::string(note)});
}

template <typename T>
T number_at(std::span<const std::byte> bytes, std::uint64_t at, const std::string& name) {
  if (at > bytes.size() or bytes.size() - at < sizeof(T)) damaged(name, "the zip archive is cut off or damaged");
  T value{};
  std::memcpy(&value, bytes.data() + at, sizeof(T));
  return value;
}

std::span<const std::byte> part(std::span<const std::byte> bytes, std::uint64_t at, std::uint64_t count, const std::string& name) {
  if (at > bytes.size() or bytes.size() - at < count) damaged(name, "the zip archive is cut off or damaged");
  return bytes.subspan(at, count);
}

struct Directory {
  std::uint64_t offset = 0;
  std::uint64_t entry_count = 0;
};

/// The end record is the last thing in the file but for a comment of at most 64 KiB.
std::optional<std::uint64_t> find_end(std::span<const std::byte> bytes) {
  if (bytes.size() < kEndBytes) return std::nullopt;
  const std::uint64_t last = bytes.size() - kEndBytes;
  const std::uint64_t first = last > 0xffff ? last - 0xffff : 0;
  for (std::uint64_t at = last + 1; at-- > first;) {
    if (bytes[at] != std::byte{'P'} or number_at<std::uint32_t>(bytes, at, "") != kEnd) continue;
    if (at + kEndBytes + number_at<std::uint16_t>(bytes, at + 20, "") == bytes.size()) return at;
  }
  return std::nullopt;
}

Directory find_directory(std::span<const std::byte> bytes, const std::string& name) {
  const auto end = find_end(bytes);
  if (not end) {
    const std::string content = describe_content(bytes);
    const bool is_zip = bytes.size() >= 4 and number_at<std::uint32_t>(bytes, 0, name) == kLocalHeader;
    damaged(name, is_zip            ? "a zip archive without its end: it was cut off"
                  : content.empty() ? "not a zip archive"
                                    : fmt::format("not a zip archive but {}", content));
  }
  Directory directory{.offset = number_at<std::uint32_t>(bytes, *end + 16, name), .entry_count = number_at<std::uint16_t>(bytes, *end + 10, name)};
  if (*end < kEnd64LocatorBytes or number_at<std::uint32_t>(bytes, *end - kEnd64LocatorBytes, name) != kEnd64Locator) return directory;
  const auto end64 = number_at<std::uint64_t>(bytes, *end - kEnd64LocatorBytes + 8, name);
  if (number_at<std::uint32_t>(part(bytes, end64, kEnd64Bytes, name), 0, name) != kEnd64) damaged(name, "the zip64 end record is not where it should be");
  if (directory.offset == kIn64) directory.offset = number_at<std::uint64_t>(bytes, end64 + 48, name);
  if (directory.entry_count == kIn64Short) directory.entry_count = number_at<std::uint64_t>(bytes, end64 + 32, name);
  return directory;
}

/// Replaces the sizes and the offset that did not fit into 32 bits.
void read_zip64(std::span<const std::byte> extra, ZipEntry* entry, const std::string& name) {
  std::uint64_t at = 0;
  while (extra.size() - at >= 4) {
    const auto id = number_at<std::uint16_t>(extra, at, name);
    const auto length = number_at<std::uint16_t>(extra, at + 2, name);
    const std::span<const std::byte> field = part(extra, at + 4, length, name);
    at += 4 + length;
    if (id != kZip64Field) continue;
    std::uint64_t next = 0;
    for (std::uint64_t* value : {&entry->bytes, &entry->packed_bytes, &entry->header_offset}) {
      if (*value != kIn64) continue;
      *value = number_at<std::uint64_t>(field, next, name);
      next += 8;
    }
    return;
  }
}

void check_sizes(const ZipEntry& entry, const std::string& label) {
  if (entry.method == kStored and entry.bytes != entry.packed_bytes) damaged(label, "a stored entry of two different sizes");
  const bool too_large = entry.bytes > limits::kDecompressedBytes and entry.method != kStored;
  if (too_large or entry.bytes / limits::kDecompressedRatio > entry.packed_bytes) {
    throw Error(Code::kTooLarge, fmt::format("{}: {} that unpack to {}", printable(label, 1000), human_bytes(entry.packed_bytes), human_bytes(entry.bytes)), {},
                {"no data set looks like that; the archive was made to fill the memory"});
  }
}

template <typename T>
void put(std::string* text, T value) {
  static_assert(std::is_unsigned_v<T>);
  text->append(reinterpret_cast<const char*>(&value), sizeof(T));
}

std::uint32_t clamp32(std::uint64_t value) { return static_cast<std::uint32_t>(std::min<std::uint64_t>(value, kIn64)); }

/// The part that local and central headers share: flags, method, time (1 January 1980: files do not depend on when they are written), checksum, sizes.
void put_common(std::string* text, const ZipEntry& entry, bool is_64) {
  put<std::uint16_t>(text, is_64 ? kZip64Version : kZipVersion);
  put<std::uint16_t>(text, kUtf8Name);
  put<std::uint16_t>(text, kStored);
  put<std::uint16_t>(text, 0);
  put<std::uint16_t>(text, 0x21);
  put<std::uint32_t>(text, entry.crc);
  put<std::uint32_t>(text, clamp32(entry.packed_bytes));
  put<std::uint32_t>(text, clamp32(entry.bytes));
  put<std::uint16_t>(text, static_cast<std::uint16_t>(entry.name.size()));
}

}  // namespace

ZipReader::ZipReader(std::span<const std::byte> bytes, std::string name) : bytes_(bytes), name_(std::move(name)) {
  const Directory directory = find_directory(bytes_, name_);
  if (directory.entry_count > limits::kArchiveEntries)
    throw Error(Code::kTooLarge,
                fmt::format("{}: {} entries, where at most {} are taken", printable(name_, 1000), directory.entry_count, limits::kArchiveEntries));
  std::uint64_t at = directory.offset;
  for (std::uint64_t i = 0; i < directory.entry_count; ++i) {
    const std::span<const std::byte> header = part(bytes_, at, kCentralHeaderBytes, name_);
    if (number_at<std::uint32_t>(header, 0, name_) != kCentralHeader) damaged(name_, "the directory of the zip archive is damaged");
    const auto name_bytes = number_at<std::uint16_t>(header, 28, name_);
    const auto extra_bytes = number_at<std::uint16_t>(header, 30, name_);
    const std::span<const std::byte> entry_name = part(bytes_, at + kCentralHeaderBytes, name_bytes, name_);
    ZipEntry entry{.name = {reinterpret_cast<const char*>(entry_name.data()), entry_name.size()},
                   .method = number_at<std::uint16_t>(header, 10, name_),
                   .crc = number_at<std::uint32_t>(header, 16, name_),
                   .packed_bytes = number_at<std::uint32_t>(header, 20, name_),
                   .bytes = number_at<std::uint32_t>(header, 24, name_),
                   .header_offset = number_at<std::uint32_t>(header, 42, name_)};
    read_zip64(part(bytes_, at + kCentralHeaderBytes + name_bytes, extra_bytes, name_), &entry, name_);
    if (number_at<std::uint16_t>(header, 8, name_) & kEncrypted) damaged(label(entry), "an encrypted entry", "unpack the archive and give the files in it");
    if (entry.method != kStored and entry.method != kDeflated)
      damaged(label(entry), fmt::format("compression method {}, where 0 (stored) and 8 (deflate) are known", entry.method),
              "write it with numpy.savez or numpy.savez_compressed");
    check_sizes(entry, label(entry));
    entries_.push_back(std::move(entry));
    at += kCentralHeaderBytes + name_bytes + extra_bytes + number_at<std::uint16_t>(header, 32, name_);
  }
  refuse_overlaps();
}

std::string ZipReader::label(const ZipEntry& entry) const { return name_ + ":" + entry.name; }

/// Entries that share bytes are how a small archive becomes petabytes.
void ZipReader::refuse_overlaps() const {
  std::vector<const ZipEntry*> order;
  for (const ZipEntry& entry : entries_) order.push_back(&entry);
  std::sort(order.begin(), order.end(), [](const ZipEntry* a, const ZipEntry* b) { return a->header_offset < b->header_offset; });
  for (std::size_t i = 0; i < order.size(); ++i) {
    const std::uint64_t limit = i + 1 < order.size() ? order[i + 1]->header_offset : bytes_.size();
    const std::uint64_t room = limit - std::min(limit, order[i]->header_offset);
    if (room < kLocalHeaderBytes or room - kLocalHeaderBytes < order[i]->packed_bytes)
      damaged(label(*order[i]), "the entry reaches into the next one, or beyond the archive's end");
  }
}

std::span<const std::byte> ZipReader::packed(const ZipEntry& entry) const {
  const std::span<const std::byte> header = part(bytes_, entry.header_offset, kLocalHeaderBytes, label(entry));
  if (number_at<std::uint32_t>(header, 0, name_) != kLocalHeader) damaged(label(entry), "the entry is not where the archive's directory says");
  const std::uint64_t skipped = std::uint64_t{number_at<std::uint16_t>(header, 26, name_)} + number_at<std::uint16_t>(header, 28, name_);
  return part(bytes_, entry.header_offset + kLocalHeaderBytes + skipped, entry.packed_bytes, label(entry));
}

std::span<const std::byte> ZipReader::read(const ZipEntry& entry, std::vector<std::byte>& buffer) const {
  std::span<const std::byte> content = packed(entry);
  buffer.clear();
  if (entry.method == kDeflated) {
    buffer = inflate_raw(content, entry.bytes, label(entry));
    content = buffer;
  }
  if (const std::uint32_t crc = crc32_of(content); crc != entry.crc)
    damaged(label(entry), fmt::format("the checksum is {:08x}, where the archive says {:08x}: the data are damaged", crc, entry.crc));
  return content;
}

std::vector<std::byte> ZipReader::read_start(const ZipEntry& entry, std::size_t count) const {
  const std::span<const std::byte> content = packed(entry);
  const std::size_t wanted = std::min<std::uint64_t>(count, entry.bytes);
  if (entry.method == kDeflated) return inflate_raw_start(content, wanted, label(entry));
  return {content.begin(), content.begin() + static_cast<std::ptrdiff_t>(wanted)};
}

void ZipWriter::add(const std::string& name, std::span<const std::span<const std::byte>> parts) {
  HONE_CHECK(name.size() < 0xffff, "an archive entry with too long a name");
  ZipEntry entry{.name = name, .header_offset = file_.position()};
  for (const std::span<const std::byte> bytes : parts) {
    entry.crc = crc32_of(bytes, entry.crc);
    entry.bytes += bytes.size();
  }
  entry.packed_bytes = entry.bytes;
  const bool is_64 = entry.bytes >= kIn64;
  std::string header;
  put<std::uint32_t>(&header, kLocalHeader);
  put_common(&header, entry, is_64);
  put<std::uint16_t>(&header, is_64 ? 20 : 0);
  header += entry.name;
  if (is_64) {
    put<std::uint16_t>(&header, kZip64Field);
    put<std::uint16_t>(&header, 16);
    put<std::uint64_t>(&header, entry.bytes);
    put<std::uint64_t>(&header, entry.packed_bytes);
  }
  file_.write(header);
  for (const std::span<const std::byte> bytes : parts) file_.write(bytes);
  entries_.push_back(std::move(entry));
}

void ZipWriter::finish() {
  const std::uint64_t start = file_.position();
  for (const ZipEntry& entry : entries_) {
    std::string extra;
    for (const std::uint64_t value : {entry.bytes, entry.packed_bytes, entry.header_offset})
      if (value >= kIn64) put<std::uint64_t>(&extra, value);
    const bool is_64 = not extra.empty();
    std::string header;
    put<std::uint32_t>(&header, kCentralHeader);
    put<std::uint16_t>(&header, is_64 ? kZip64Version : kZipVersion);
    put_common(&header, entry, is_64);
    put<std::uint16_t>(&header, static_cast<std::uint16_t>(is_64 ? 4 + extra.size() : 0));
    header.append(10, '\0');  // no comment, first disk, no attributes
    put<std::uint32_t>(&header, clamp32(entry.header_offset));
    header += entry.name;
    if (is_64) {
      put<std::uint16_t>(&header, kZip64Field);
      put<std::uint16_t>(&header, static_cast<std::uint16_t>(extra.size()));
      header += extra;
    }
    file_.write(header);
  }
  const std::uint64_t end = file_.position();
  const std::uint64_t count = entries_.size();
  std::string record;
  if (count >= kIn64Short or start >= kIn64 or end - start >= kIn64) {
    put<std::uint32_t>(&record, kEnd64);
    put<std::uint64_t>(&record, kEnd64Bytes - 12);
    put<std::uint16_t>(&record, kZip64Version);
    put<std::uint16_t>(&record, kZip64Version);
    put<std::uint64_t>(&record, 0);  // this disk and the directory's
    for (const std::uint64_t value : {count, count, end - start, start}) put<std::uint64_t>(&record, value);
    put<std::uint32_t>(&record, kEnd64Locator);
    put<std::uint32_t>(&record, 0);
    put<std::uint64_t>(&record, end);
    put<std::uint32_t>(&record, 1);  // disks in all
  }
  const auto short_count = static_cast<std::uint16_t>(std::min<std::uint64_t>(count, kIn64Short));
  put<std::uint32_t>(&record, kEnd);
  put<std::uint32_t>(&record, 0);
  put<std::uint16_t>(&record, short_count);
  put<std::uint16_t>(&record, short_count);
  put<std::uint32_t>(&record, clamp32(end - start));
  put<std::uint32_t>(&record, clamp32(start));
  put<std::uint16_t>(&record, 0);
  file_.write(record);
}

}  // namespace hone
