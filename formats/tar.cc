#include "formats/tar.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <string_view>
#include <vector>

#include "base/diag.h"
#include "base/limits.h"
#include "base/text.h"
#include "formats/sniff.h"

namespace hone {

namespace {

constexpr std::uint64_t kBlock = 512;

// POSIX.1-1988 ustar: where fields begin, and how long they are.
struct HeaderField {
  std::size_t offset, bytes;
};
constexpr HeaderField kName = {0, 100}, kSize = {124, 12}, kChecksum = {148, 8}, kPrefix = {345, 155};
constexpr std::size_t kType = 156, kTarMagic = 257;

constexpr char kRegular = '0', kOldRegular = '\0', kContiguous = '7', kHardLink = '1', kSymbolicLink = '2', kSparse = 'S', kGnuLongName = 'L', kGnuLongLink = 'K', kPaxHeader = 'x', kPaxGlobal = 'g';

using Block = std::array<char, kBlock>;

/// Up to the first zero byte.
std::string_view text_of(const Block& block, HeaderField field) {
  const std::string_view text(block.data() + field.offset, field.bytes);
  return text.substr(0, text.find('\0'));
}

/// Octal digits, or with the highest bit set a binary number, highest byte first (GNU). Nothing when it is neither or does not fit.
std::optional<std::uint64_t> number_of(const Block& block, HeaderField field) {
  const auto first = static_cast<unsigned char>(block[field.offset]);
  std::uint64_t number = 0;
  if (first >= 0x80) {
    for (std::size_t i = 1; i < field.bytes; ++i) {
      if (number >> 56 != 0) return std::nullopt;
      number = number << 8 | static_cast<unsigned char>(block[field.offset + i]);
    }
    return first == 0x80 ? std::optional(number) : std::nullopt;
  }
  const std::string_view digits = trim(text_of(block, field));
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), number, 8);
  if (error != std::errc{} or end != digits.data() + digits.size()) return std::nullopt;
  return number;
}

/// The sum of all bytes, those of the checksum itself taken as blanks.
bool has_right_checksum(const Block& block) {
  std::uint64_t sum = 0;
  for (std::size_t i = 0; i < kBlock; ++i) {
    const bool own = i >= kChecksum.offset and i < kChecksum.offset + kChecksum.bytes;
    sum += own ? ' ' : static_cast<unsigned char>(block[i]);
  }
  return number_of(block, kChecksum) == sum;
}

bool is_empty(const Block& block) {
  return std::all_of(block.begin(), block.end(), [](char c) { return c == '\0'; });
}

}  // namespace

void TarReader::damaged(const std::string& why) const {
  throw Error(Code::kDataFormat, fmt::format("{}: {}", printable(file_.path(), 1000), why), {},
              {"copy or download the archive again; compressed ones are unpacked first"});
}

std::string TarReader::long_name(std::uint64_t offset, std::uint64_t bytes) const {
  if (bytes > limits::kNameBytes) damaged(fmt::format("the header at byte {} announces a name of {}", offset - kBlock, human_bytes(bytes)));
  std::string name(bytes, '\0');
  file_.read(offset, std::as_writable_bytes(std::span(name)));
  return name;
}

/// Records "LENGTH KEY=VALUE\n".
TarReader::Extended TarReader::extended(const std::string& records) const {
  std::string_view rest = records;
  Extended told;
  while (not rest.empty() and rest[0] != '\0') {
    std::size_t length = 0;
    const auto [end, error] = std::from_chars(rest.data(), rest.data() + rest.size(), length);
    const auto digits = static_cast<std::size_t>(end - rest.data());
    if (error != std::errc{} or length <= digits + 1 or length > rest.size()) damaged("an extended header that is none");
    const std::string_view record = rest.substr(digits + 1, length - digits - 2);
    if (record.starts_with("path=")) told.path = record.substr(5);
    if (record.starts_with("GNU.sparse.")) told.is_sparse = true;
    if (record.starts_with("size=")) damaged("a file of 8 GiB or more, which this version does not read");
    rest.remove_prefix(length);
  }
  return told;
}

std::optional<TarMember> TarReader::next() {
  std::string name;
  std::string_view stands_for;
  while (at_ < file_.size()) {
    Block block{};
    const std::uint64_t header = at_;
    if (file_.size() - header < kBlock)
      damaged(fmt::format("not a tar archive, or cut off: {} bytes are left for a header of {}", file_.size() - header, kBlock));
    file_.read(header, std::as_writable_bytes(std::span(block)));
    if (is_empty(block)) return std::nullopt;
    if (not has_right_checksum(block)) {
      const std::string content = header == 0 ? describe_content(std::as_bytes(std::span(block))) : "";
      damaged(content.empty() or content == "a tar archive" ? fmt::format("no tar header at byte {}", header)
                                                            : fmt::format("not a tar archive but {}", content));
    }
    const auto bytes = number_of(block, kSize);
    const std::uint64_t begin = header + kBlock;
    if (not bytes or *bytes > file_.size() - begin)
      damaged(fmt::format("the file {} would end beyond the archive, which is cut off or damaged", quoted(text_of(block, kName))));
    at_ = std::min(file_.size(), begin + (*bytes + kBlock - 1) / kBlock * kBlock);
    switch (const char type = block[kType]) {
      case kGnuLongName: name = long_name(begin, *bytes), name.resize(std::min(name.size(), name.find('\0'))); continue;
      case kPaxHeader: {
        const Extended told = extended(long_name(begin, *bytes));
        name = told.path;
        if (told.is_sparse) stands_for = "a sparse file";
        continue;
      }
      case kGnuLongLink:
      case kPaxGlobal: continue;
      default:
        if (type == kRegular or type == kOldRegular or type == kContiguous) break;
        if (type == kHardLink or type == kSymbolicLink or type == kSparse) {
          stands_for = type == kHardLink ? "a hard link" : type == kSymbolicLink ? "a symbolic link" : "a sparse file";
          break;
        }
        name.clear();
        stands_for = {};
        continue;
    }
    if (name.empty()) {
      const bool posix = std::string_view(block.data() + kTarMagic, 6) == std::string_view("ustar\0", 6);
      const std::string_view prefix = posix ? text_of(block, kPrefix) : std::string_view();
      name = prefix.empty() ? std::string(text_of(block, kName)) : fmt::format("{}/{}", prefix, text_of(block, kName));
    }
    return TarMember{std::move(name), begin, *bytes, stands_for};
  }
  lacks_end_mark_ = true;
  return std::nullopt;
}

}  // namespace hone
