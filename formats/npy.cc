#include "formats/npy.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstring>
#include <string_view>

#include "base/check.h"
#include "base/diag.h"
#include "base/limits.h"
#include "base/text.h"
#include "formats/elements.h"
#include "formats/sniff.h"

namespace hone {

namespace {

constexpr std::string_view kNpyMagic = "\x93NUMPY";
constexpr std::string_view kRewrite = "write it again with numpy.save(\"file.npy\", array)";

[[noreturn]] void not_npy(const std::string& name, std::string_view why, std::string_view note = kRewrite) {
  throw Error(Code::kDataFormat, fmt::format("{}: {}", printable(name, 1000), why), {}, {std::string(note)});
}

[[noreturn]] void wrong_type(const std::string& name, std::string_view what, std::string_view note) {
  throw Error(Code::kDataType, fmt::format("{}: {}, where numbers are expected", printable(name, 1000), what), {}, {std::string(note)});
}

/// Reads the Python dictionary in a header: three keys, each with one kind of value. No recursion, no surprises.
class HeaderParser {
 public:
  HeaderParser(std::string_view text, const std::string& name) : text_(text), name_(name) {}

  NpyInfo parse() {
    expect('{');
    while (not accept('}')) {
      const std::string_view key = string();
      expect(':');
      if (key == "descr") descr();
      else if (key == "fortran_order") fortran_order();
      else if (key == "shape") shape();
      else fail(fmt::format("the unknown key {}", quoted(key)));
      if (not accept(',')) {
        expect('}');
        break;
      }
    }
    if (not trim(text_.substr(at_)).empty()) fail("something behind its end");
    if (not has_descr_ or not has_order_ or not has_shape_) fail("one of descr, fortran_order and shape missing");
    return info_;
  }

 private:
  [[noreturn]] void fail(std::string_view found) const { not_npy(name_, fmt::format("the .npy header has {}: {}", found, quoted(text_))); }

  void skip_blanks() {
    while (at_ < text_.size() and (text_[at_] == ' ' or text_[at_] == '\n' or text_[at_] == '\t')) ++at_;
  }

  bool accept(char wanted) {
    skip_blanks();
    if (at_ >= text_.size() or text_[at_] != wanted) return false;
    ++at_;
    return true;
  }

  void expect(char wanted) {
    if (not accept(wanted)) fail(fmt::format("no '{}' at byte {}", wanted, at_));
  }

  bool accept_word(std::string_view word) {
    skip_blanks();
    if (not text_.substr(std::min(at_, text_.size())).starts_with(word)) return false;
    at_ += word.size();
    return true;
  }

  std::string_view string() {
    skip_blanks();
    const char quote = at_ < text_.size() ? text_[at_] : '\0';
    if (quote != '\'' and quote != '"') fail(fmt::format("no string at byte {}", at_));
    const std::size_t end = text_.find(quote, at_ + 1);
    if (end == std::string_view::npos) fail("a string without an end");
    const std::string_view result = text_.substr(at_ + 1, end - at_ - 1);
    at_ = end + 1;
    return result;
  }

  void descr() {
    has_descr_ = true;
    skip_blanks();
    if (at_ < text_.size() and (text_[at_] == '[' or text_[at_] == '('))
      wrong_type(name_, "an array of records", "save each field as an array of its own: numpy.save(\"x.npy\", array[\"field\"])");
    type(string());
  }

  /// "<f4": byte order, kind, bytes.
  void type(std::string_view name) {
    std::string_view rest = name;
    char order = '|';
    if (not rest.empty() and std::string_view("<>=|").find(rest[0]) != std::string_view::npos) order = rest[0], rest.remove_prefix(1);
    struct Named {
      std::string_view name;
      DType dtype;
    };
    constexpr Named kTypes[] = {{"f2", DType::kF16}, {"f4", DType::kF32}, {"f8", DType::kF64}, {"i1", DType::kI8},  {"i2", DType::kI16}, {"i4", DType::kI32},
                                {"i8", DType::kI64}, {"u1", DType::kU8},  {"u2", DType::kU16}, {"u4", DType::kU32}, {"u8", DType::kU64}, {"b1", DType::kBool}};
    const auto found = std::find_if(std::begin(kTypes), std::end(kTypes), [&](const Named& type) { return type.name == rest; });
    if (found == std::end(kTypes)) refuse(name, rest.empty() ? '\0' : rest[0]);
    info_.dtype = found->dtype;
    info_.byte_swapped = order == '>' and size_of(info_.dtype) > 1;
  }

  [[noreturn]] void refuse(std::string_view name, char kind) const {
    switch (kind) {
      case 'O':
        wrong_type(name_, "an array of Python objects",
                   "rows of different lengths make such arrays; pad them to one length, then numpy.save(file, numpy.asarray(rows, numpy.float32))");
      case 'S':
      case 'a':
      case 'U': wrong_type(name_, fmt::format("strings ({})", quoted(name)), "turn them into numbers first: numpy.unique(array, return_inverse=True)[1]");
      case 'c': wrong_type(name_, fmt::format("complex numbers ({})", quoted(name)), "save real and imaginary parts as two arrays");
      case 'M':
      case 'm': wrong_type(name_, fmt::format("dates or times ({})", quoted(name)), "array.astype(numpy.int64) makes numbers of them");
      case 'V': wrong_type(name_, fmt::format("raw bytes ({})", quoted(name)), "NumPy writes bfloat16 that way; save array.astype(numpy.float32)");
      default: wrong_type(name_, fmt::format("the element type {}", quoted(name)), "save array.astype(numpy.float32)");
    }
  }

  void fortran_order() {
    has_order_ = true;
    info_.column_major = accept_word("True");
    if (not info_.column_major and not accept_word("False")) fail("a fortran_order that is neither True nor False");
  }

  void shape() {
    has_shape_ = true;
    info_.shape.clear();
    expect('(');
    while (not accept(')')) {
      skip_blanks();
      std::int64_t extent = 0;
      const char* const end = text_.data() + text_.size();
      const auto [after, error] = std::from_chars(text_.data() + std::min(at_, text_.size()), end, extent);
      if (error == std::errc::result_out_of_range) fail("an extent beyond 2^63");
      if (error != std::errc{}) fail(fmt::format("no extent at byte {}", at_));
      at_ = static_cast<std::size_t>(after - text_.data());
      accept('L');  // Python 2's long
      info_.shape.push_back(extent);
      if (not accept(',')) {
        expect(')');
        break;
      }
    }
  }

  std::string_view text_;
  const std::string& name_;
  std::size_t at_ = 0;
  NpyInfo info_;
  bool has_descr_ = false, has_order_ = false, has_shape_ = false;
};

/// Copies the elements under the last axes of a column-major array, from `first_axis` on, into row-major order; `offset` is the element that they begin at.
void copy_column_major(std::span<const std::byte> data, const NpyInfo& info, std::size_t first_axis, std::int64_t offset, std::span<std::byte> destination) {
  const std::size_t size = size_of(info.dtype);
  const std::size_t rank = info.shape.size();
  std::vector<std::int64_t> stride(rank, 1), index(rank, 0);
  for (std::size_t axis = 1; axis < rank; ++axis) stride[axis] = stride[axis - 1] * info.shape[axis - 1];
  for (std::size_t at = 0; at < destination.size(); at += size) {
    std::memcpy(destination.data() + at, data.data() + static_cast<std::size_t>(offset) * size, size);
    for (std::size_t axis = rank; axis-- > first_axis;) {
      offset += stride[axis];
      if (++index[axis] < info.shape[axis]) break;
      offset -= stride[axis] * info.shape[axis];
      index[axis] = 0;
    }
  }
}

/// What every element still needs once its bytes are where they belong.
void finish_elements(const NpyInfo& info, std::span<std::byte> bytes) {
  if (info.byte_swapped) swap_bytes(bytes, size_of(info.dtype));
  if (info.dtype == DType::kBool) normalize_bools(bytes);
}

/// Types that NumPy has no name for are written as the integers that hold them.
std::string npy_type(DType dtype) {
  if (dtype == DType::kBool) return "|b1";
  const bool as_bits = is_float(dtype) and is_storage_only(dtype) and dtype != DType::kF16;
  const char kind = is_float(dtype) and not as_bits ? 'f' : info(dtype).is_signed and not as_bits ? 'i' : 'u';
  return fmt::format("{}{}{}", size_of(dtype) == 1 ? '|' : '<', kind, size_of(dtype));
}

}  // namespace

NpyInfo read_npy_header(std::span<const std::byte> bytes, const std::string& name, std::optional<std::uint64_t> file_bytes) {
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  if (not text.starts_with(kNpyMagic)) {
    const std::string content = describe_content(bytes);
    not_npy(name, content.empty() ? "not a NumPy .npy file" : fmt::format("not a NumPy .npy file but {}", content));
  }
  if (text.size() < 8) not_npy(name, "cut off inside its .npy header");
  const int version = static_cast<unsigned char>(text[6]);
  if (version < 1 or version > 3) not_npy(name, fmt::format(".npy version {}, where 1 to 3 are known", version));
  const std::size_t length_bytes = version == 1 ? 2 : 4;
  const std::size_t start = 8 + length_bytes;
  if (text.size() < start) not_npy(name, "cut off inside its .npy header");
  std::uint32_t length = 0;
  std::memcpy(&length, bytes.data() + 8, length_bytes);
  if (length > limits::kNpyHeaderBytes)
    not_npy(name, fmt::format("a .npy header of {}, where at most {} are taken", human_bytes(length), human_bytes(limits::kNpyHeaderBytes)));
  if (text.size() - start < length) not_npy(name, "cut off inside its .npy header");
  NpyInfo info = HeaderParser(text.substr(start, length), name).parse();
  info.data_offset = start + length;
  if (std::ranges::any_of(info.shape, [](std::int64_t extent) { return extent < 0; })) not_npy(name, fmt::format("shape {} is negative", shape_text(info.shape)));
  info.data_bytes = bytes_of_shape(info.dtype, info.shape, printable(name, 1000));
  const std::uint64_t present = file_bytes.value_or(bytes.size()) - info.data_offset;
  if (present < info.data_bytes) {
    not_npy(name, fmt::format("{}{} needs {} bytes, but only {} are there", to_string(info.dtype), shape_text(info.shape), info.data_bytes, present),
            "the file was cut off; copy or write it again");
  }
  if (present > info.data_bytes) {
    not_npy(name, fmt::format("{}{} needs {} bytes, and {} more are behind them", to_string(info.dtype), shape_text(info.shape), info.data_bytes, present - info.data_bytes),
            "was numpy.save called several times for one file? Save what belongs together as one array, or as several with numpy.savez");
  }
  return info;
}

Tensor parse_npy(std::span<const std::byte> bytes, const std::string& name) {
  const NpyInfo info = read_npy_header(bytes, name);
  const std::span<const std::byte> data = bytes.subspan(info.data_offset, info.data_bytes);
  return Tensor::make(info.dtype, info.shape, [&](std::span<std::byte> destination) {
    if (info.column_major and info.shape.size() > 1) copy_column_major(data, info, 0, 0, destination);
    else std::copy(data.begin(), data.end(), destination.begin());
    finish_elements(info, destination);
  });
}

Tensor read_npy(const std::string& path) { return parse_npy(MappedFile(path).bytes(), path); }

NpyFile::NpyFile(const std::string& path) : file_(path), info_(read_npy_header(file_.bytes(), path)) {
  if (info_.shape.empty()) throw Error(Code::kDataShape, fmt::format("{}: a single number, where an array of samples is expected", printable(path, 1000)));
  row_bytes_ =
      info_.shape[0] == 0 ? bytes_of_shape(info_.dtype, std::span(info_.shape).subspan(1), path) : info_.data_bytes / static_cast<std::size_t>(info_.shape[0]);
}

void NpyFile::read_row(std::int64_t row, std::span<std::byte> destination) const {
  HONE_CHECK(row >= 0 and row < row_count() and destination.size() == row_bytes_, "row of an .npy file out of range");
  const std::span<const std::byte> data = file_.bytes().subspan(info_.data_offset, info_.data_bytes);
  if (info_.column_major and info_.shape.size() > 1) {
    copy_column_major(data, info_, 1, row, destination);
  } else {
    const std::span<const std::byte> source = data.subspan(static_cast<std::size_t>(row) * row_bytes_, row_bytes_);
    std::copy(source.begin(), source.end(), destination.begin());
  }
  finish_elements(info_, destination);
}

std::string npy_header(DType dtype, std::span<const std::int64_t> shape) {
  constexpr std::size_t kAlignment = 64;
  std::string extents;
  for (const std::int64_t extent : shape) extents += fmt::format("{}{}", extents.empty() ? "" : ", ", extent);
  if (shape.size() == 1) extents += ",";
  std::string header = fmt::format("{{'descr': '{}', 'fortran_order': False, 'shape': ({}), }}", npy_type(dtype), extents);
  const std::size_t before = kNpyMagic.size() + 4;
  header.append((kAlignment - (before + header.size() + 1) % kAlignment) % kAlignment, ' ');
  header += '\n';
  std::string result(kNpyMagic);
  result += {'\x01', '\x00', static_cast<char>(header.size() & 0xff), static_cast<char>(header.size() >> 8)};
  return result + header;
}

void write_npy(const std::string& path, const Tensor& tensor) {
  write_file_atomically(path, [&](AtomicFile& file) {
    file.write(npy_header(tensor.dtype(), tensor.shape()));
    file.write(tensor.bytes());
  });
}

}  // namespace hone
