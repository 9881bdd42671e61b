// Files of plain elements or records, of which the user says what they are.
#include <fmt/format.h>

#include <charconv>

#include "base/checked.h"
#include "base/diag.h"
#include "base/text.h"
#include "formats/elements.h"
#include "runtime/data/open_array.h"

namespace hone {

namespace {

std::string spelled(const DataSource& source) { return quoted(source.path + ":" + source.part); }

Array rows_of(const DataSource& source, DType dtype, std::vector<std::int64_t> shape, std::shared_ptr<const RowBytes> bytes, std::uint64_t offset,
              std::uint64_t stride) {
  const std::int64_t rows = shape[0];
  return {label_of(source), dtype, std::move(shape), {{.bytes = std::move(bytes), .row_count = rows, .offset = offset, .stride = stride, .offsets = {}}}};
}

// ---- plain elements

Array open_plain(const DataSource& source, const std::vector<std::string>& words, bool streamed) {
  if (words.size() != 2)
    throw Error(Code::kUsage, fmt::format("{}: expected an element type and a shape behind the file's name", spelled(source)), {},
                {"write FILE.bin:f32:60000x784; element types are f32, f64, f16, bf16, i8 to i64, u8 to u64 and bool"});
  const DType dtype = dtype_from(words[0], source);
  const std::vector<std::int64_t> shape = shape_from(words[1], source);
  auto bytes = open_row_bytes(source.path, streamed);
  const std::optional<std::uint64_t> expected = bytes_if_any_has(dtype, shape);
  if (bytes->size() != expected)
    throw Error(Code::kDataFormat,
                fmt::format("{} has {} bytes, and {} of shape {} take {}", quoted(source.path), bytes->size(), words[0], shape_text(shape), text_of_bytes(expected)), {},
                {"correct the type or the shape behind the file's name"});
  return rows_of(source, dtype, shape, std::move(bytes), 0, shape[0] == 0 ? 0 : *expected / static_cast<std::uint64_t>(shape[0]));
}

// ---- CIFAR: "The CIFAR-10 dataset", binary version: records of one label byte (CIFAR-100: coarse, then fine) and 32x32 pixels of red, green, blue

constexpr std::uint64_t kPixels = 3 * 32 * 32;

struct CifarField {
  std::string_view set, field;
  std::uint64_t labels;  // bytes before the pixels
  std::uint64_t offset;  // of the field in its record
  int classes;           // 0: pixels
};
constexpr CifarField kCifarFields[] = {{"cifar10", "images", 1, 1, 0},
                                       {"cifar10", "labels", 1, 0, 10},
                                       {"cifar100", "images", 2, 2, 0},
                                       {"cifar100", "labels", 2, 1, 100},
                                       {"cifar100", "coarse_labels", 2, 0, 20}};

Array open_cifar(const DataSource& source, const std::vector<std::string>& words, bool streamed) {
  const CifarField* field = nullptr;
  for (const CifarField& known : kCifarFields)
    if (words.size() == 2 and known.set == words[0] and known.field == words[1]) field = &known;
  if (field == nullptr)
    throw Error(Code::kUsage, fmt::format("{}: expected images or labels behind {}", spelled(source), words[0]), {},
                {"write FILE.bin:cifar10:images, FILE.bin:cifar10:labels, or cifar100 with images, labels or coarse_labels"});
  auto bytes = open_row_bytes(source.path, streamed);
  const std::uint64_t record = field->labels + kPixels;
  if (bytes->size() == 0 or bytes->size() % record != 0)
    throw Error(Code::kDataFormat,
                fmt::format("{} has {} bytes, which is no number of {} records of {}", quoted(source.path), bytes->size(), field->set, record), {},
                {"take the binary version of the data set; if this is it, copy or download the file again"});
  const auto rows = static_cast<std::int64_t>(bytes->size() / record);
  if (field->classes == 0) return rows_of(source, DType::kU8, {rows, 3, 32, 32}, std::move(bytes), field->offset, record);
  Array labels = rows_of(source, DType::kU8, {rows}, std::move(bytes), field->offset, record);
  std::byte first{};
  labels.read(0, 1, &first);
  if (std::to_integer<int>(first) >= field->classes)
    throw Error(Code::kDataFormat,
                fmt::format("{}: the first record has the label {}, and {} has {} classes", quoted(source.path), std::to_integer<int>(first), field->set,
                            field->classes),
                {}, {"is it the binary version of that data set?"});
  return labels;
}

// ---- tokens

std::int64_t positive_from(const std::string& text, std::string_view what, const DataSource& source) {
  std::int64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error == std::errc{} and end == text.data() + text.size() and number > 0) return number;
  throw Error(Code::kUsage, fmt::format("{}: {} is no {}", spelled(source), quoted(text), what), {},
              {"write FILE.bin:tokens:u16:128, or FILE.bin:tokens:u16:128:64 for windows that overlap"});
}

/// Both kinds of windows end one id before the file does, so that there are as many of each.
Array open_tokens(const DataSource& source, const std::vector<std::string>& words, bool streamed) {
  if (words.size() != 3 and words.size() != 4)
    throw Error(Code::kUsage, fmt::format("{}: expected an element type and a window's length behind {}", spelled(source), words[0]), {},
                {"write x=FILE.bin:tokens:u16:128,y=FILE.bin:next_tokens:u16:128"});
  const DType dtype = dtype_from(words[1], source);
  if (not is_integer(dtype))
    throw Error(Code::kUsage, fmt::format("{}: tokens are integers, not {}", spelled(source), words[1]), {}, {"most such files hold u16 or u32"});
  const std::int64_t window = positive_from(words[2], "length of a window", source);
  const std::int64_t stride = words.size() == 3 ? window : positive_from(words[3], "distance of windows", source);
  auto bytes = open_row_bytes(source.path, streamed);
  const std::uint64_t size = size_of(dtype);
  if (bytes->size() % size != 0)
    throw Error(Code::kDataFormat, fmt::format("{} has {} bytes, which is no number of {} tokens", quoted(source.path), bytes->size(), words[1]), {},
                {"correct the type, or write the file again"});
  const auto tokens = static_cast<std::int64_t>(bytes->size() / size);
  if (tokens <= window)
    throw Error(Code::kDataLength,
                fmt::format("{} has {} tokens, and a window with the token behind it takes {}", quoted(source.path), tokens,
                            checked_add(window, std::int64_t{1}, "windows")),
                {}, {"take shorter windows"});
  const std::int64_t rows = (tokens - 1 - window) / stride + 1;
  const std::uint64_t offset = words[0] == "next_tokens" ? size : 0;
  return rows_of(source, dtype, {rows, window}, std::move(bytes), offset,
                 rows == 1 ? static_cast<std::uint64_t>(window) * size : static_cast<std::uint64_t>(stride) * size);
}

}  // namespace

Array open_binary_array(const DataSource& source, bool streamed) {
  const std::vector<std::string> words = split(source.part, ':');
  if (words[0] == "tokens" or words[0] == "next_tokens") return open_tokens(source, words, streamed);
  if (words[0].starts_with("cifar")) return open_cifar(source, words, streamed);
  return open_plain(source, words, streamed);
}

}  // namespace hone
