#include "formats/idx.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>
#include <vector>

#include "base/diag.h"
#include "base/files.h"
#include "base/text.h"
#include "formats/elements.h"
#include "formats/inflate.h"
#include "formats/sniff.h"

namespace hone {

namespace {

struct IdxType {
  unsigned code;
  DType dtype;
};

constexpr std::array<IdxType, 6> kIdxTypes = {
    {{0x08, DType::kU8}, {0x09, DType::kI8}, {0x0b, DType::kI16}, {0x0c, DType::kI32}, {0x0d, DType::kF32}, {0x0e, DType::kF64}}};

[[noreturn]] void not_idx(const std::string& name, std::string_view why, std::string_view note) {
  throw Error(Code::kDataFormat, fmt::format("{}: {}", printable(name, 1000), why), {}, {std::string(note)});
}

unsigned byte_at(std::span<const std::byte> bytes, std::size_t at) { return std::to_integer<unsigned>(bytes[at]); }

DType idx_type(std::span<const std::byte> bytes, const std::string& name) {
  constexpr std::string_view kExpected = "an IDX file begins with two zero bytes, the element type (8 to 14) and the number of axes";
  if (bytes.size() >= 4 and byte_at(bytes, 0) == 0 and byte_at(bytes, 1) == 0)
    for (const IdxType& type : kIdxTypes)
      if (type.code == byte_at(bytes, 2)) return type.dtype;
  const std::string content = describe_content(bytes);
  if (not content.empty()) not_idx(name, fmt::format("not an IDX file but {}", content), kExpected);
  if (bytes.size() < 4) not_idx(name, "not an IDX file: shorter than its header", kExpected);
  not_idx(
      name,
      fmt::format("not an IDX file: it begins with {:02x} {:02x} {:02x} {:02x}", byte_at(bytes, 0), byte_at(bytes, 1), byte_at(bytes, 2), byte_at(bytes, 3)),
      kExpected);
}

bool is_gzip(std::span<const std::byte> bytes) { return bytes.size() >= 2 and byte_at(bytes, 0) == 0x1f and byte_at(bytes, 1) == 0x8b; }

struct IdxHeader {
  DType dtype;
  std::vector<std::int64_t> shape;
  std::size_t bytes;   ///< of itself
  std::size_t needed;  ///< of the elements
};

IdxHeader read_header(std::span<const std::byte> bytes, const std::string& name) {
  const DType dtype = idx_type(bytes, name);
  const std::size_t rank = byte_at(bytes, 3);
  const std::size_t start = 4 + 4 * rank;
  if (bytes.size() < start) not_idx(name, fmt::format("cut off inside its header of {} bytes", start), "copy or download the file again");
  std::vector<std::int64_t> shape;
  for (std::size_t at = 4; at < start; at += 4)
    shape.push_back(static_cast<std::int64_t>(byte_at(bytes, at)) << 24 | byte_at(bytes, at + 1) << 16 | byte_at(bytes, at + 2) << 8 | byte_at(bytes, at + 3));
  const std::size_t needed = bytes_of_shape(dtype, shape, printable(name, 1000));
  return {dtype, std::move(shape), start, needed};
}

Tensor parse_plain(std::span<const std::byte> bytes, const std::string& name) {
  const IdxHeader header = read_header(bytes, name);
  const DType dtype = header.dtype;
  const std::span<const std::byte> data = bytes.subspan(header.bytes);
  if (data.size() != header.needed) {
    not_idx(name, fmt::format("{}{} needs {} bytes, but {} are there", to_string(dtype), shape_text(header.shape), header.needed, data.size()),
            data.size() < header.needed ? "the file was cut off; copy or download it again" : "the header does not belong to these data");
  }
  return Tensor::make(dtype, header.shape, [&](std::span<std::byte> destination) {
    std::copy(data.begin(), data.end(), destination.begin());
    swap_bytes(destination, size_of(dtype));  // the format is big-endian
  });
}

}  // namespace

/// What is packed is unpacked as far as its header says that it goes, so that a small file cannot fill the memory with what is no array.
Tensor parse_idx(std::span<const std::byte> bytes, const std::string& name) {
  constexpr std::size_t kLongestHeader = 4 + 4 * 255;
  if (not is_gzip(bytes)) return parse_plain(bytes, name);
  const IdxHeader header = read_header(gunzip(bytes, name, kLongestHeader), name);
  return parse_plain(gunzip(bytes, name, std::uint64_t{header.bytes} + header.needed), name);
}

Tensor read_idx(const std::string& path) { return parse_idx(MappedFile(path).bytes(), path); }

bool is_idx_path(const std::string& path) {
  std::string_view name = path;
  if (name.ends_with(".gz")) name.remove_suffix(3);
  return name.ends_with("-ubyte") or name.ends_with(".idx");
}

}  // namespace hone
