// Archives as WebDataset has them: the files of a sample follow each other and differ in what is behind the first dot of their names.
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstring>
#include <set>

#include "base/diag.h"
#include "base/limits.h"
#include "base/text.h"
#include "formats/elements.h"
#include "formats/npy.h"
#include "formats/tar.h"
#include "runtime/data/open_array.h"

namespace hone {

namespace {

/// What the files of one ending hold, gathered file by file.
class MemberRows {
 public:
  virtual ~MemberRows() = default;
  virtual void add(const StreamedFile& file, const TarMember& member, const std::string& name) = 0;
  virtual Array finish(const DataSource& source, bool streamed) = 0;
};

Array at_offsets(const DataSource& source, DType dtype, const std::vector<std::int64_t>& row_shape, std::vector<std::uint64_t> offsets, bool streamed) {
  std::vector<std::int64_t> shape = row_shape;
  const auto rows = static_cast<std::int64_t>(offsets.size());
  shape.insert(shape.begin(), rows);
  return {label_of(source),
          dtype,
          std::move(shape),
          {{.bytes = open_row_bytes(source.path, streamed), .row_count = rows, .offset = 0, .stride = 0, .offsets = std::move(offsets)}}};
}

class NpyRows : public MemberRows {
 public:
  void add(const StreamedFile& file, const TarMember& member, const std::string& name) override {
    const NpyInfo info = header_of(file, member, name);
    if (info.column_major or info.byte_swapped)
      throw Error(
          Code::kDataFormat,
          fmt::format("{}: {} elements, which are not read out of an archive", printable(name, 1000), info.byte_swapped ? "big-endian" : "column-major"), {},
          {"write it again with numpy.save(file, numpy.ascontiguousarray(array, array.dtype.newbyteorder(\"=\")))"});
    if (offsets_.empty()) first_ = info;
    if (info.dtype != first_.dtype or info.shape != first_.shape)
      throw Error(Code::kDataShape,
                  fmt::format("{} is {}{}, and the first such file is {}{}", printable(name, 1000), to_string(info.dtype), shape_text(info.shape),
                              to_string(first_.dtype), shape_text(first_.shape)),
                  {}, {"all samples need one type and shape"});
    offsets_.push_back(member.offset + info.data_offset);
  }
  Array finish(const DataSource& source, bool streamed) override { return at_offsets(source, first_.dtype, first_.shape, std::move(offsets_), streamed); }

 private:
  /// Reads as much as headers usually take, and more only if it must be.
  NpyInfo header_of(const StreamedFile& file, const TarMember& member, const std::string& name) {
    constexpr std::uint64_t kUsual = 512;
    start_.resize(std::min(member.bytes, kUsual));
    file.read(member.offset, start_);
    std::uint16_t length = 0;
    if (start_.size() >= 10) std::memcpy(&length, start_.data() + 8, sizeof(length));
    if (length + 12U > start_.size() and start_.size() < member.bytes) {
      start_.resize(std::min<std::uint64_t>(member.bytes, 12 + limits::kNpyHeaderBytes));
      file.read(member.offset, start_);
    }
    return read_npy_header(start_, name, member.bytes);
  }

  std::vector<std::byte> start_;
  NpyInfo first_;
  std::vector<std::uint64_t> offsets_;
};

class RawRows : public MemberRows {
 public:
  RawRows(DType dtype, std::vector<std::int64_t> shape) : dtype_(dtype), shape_(std::move(shape)), bytes_(bytes_if_any_has(dtype, shape_)) {}
  void add(const StreamedFile&, const TarMember& member, const std::string& name) override {
    if (member.bytes != bytes_)
      throw Error(
          Code::kDataFormat,
          fmt::format("{} has {} bytes, and {} of shape {} take {}", printable(name, 1000), member.bytes, to_string(dtype_), shape_text(shape_), text_of_bytes(bytes_)), {},
          {"correct the type or the shape; images that are compressed are not unpacked"});
    offsets_.push_back(member.offset);
  }
  Array finish(const DataSource& source, bool streamed) override { return at_offsets(source, dtype_, shape_, std::move(offsets_), streamed); }

 private:
  DType dtype_;
  std::vector<std::int64_t> shape_;
  std::optional<std::uint64_t> bytes_;
  std::vector<std::uint64_t> offsets_;
};

class TextRows : public MemberRows {
 public:
  void add(const StreamedFile& file, const TarMember& member, const std::string& name) override {
    constexpr std::uint64_t kLongest = 64;
    std::string text(std::min(member.bytes, kLongest), '\0');
    file.read(member.offset, std::as_writable_bytes(std::span(text)));
    const std::string_view digits = trim(text);
    std::int64_t number = 0;
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), number);
    if (error != std::errc{} or end != digits.data() + digits.size() or member.bytes > kLongest)
      throw Error(Code::kDataFormat, fmt::format("{} holds {}, which is no integer", printable(name, 1000), quoted(text)), {},
                  {"a class is written as its number"});
    numbers_.push_back(number);
  }
  Array finish(const DataSource& source, bool) override {
    return {label_of(source), Tensor::of<std::int64_t>({static_cast<std::int64_t>(numbers_.size())}, std::span<const std::int64_t>(numbers_))};
  }

 private:
  std::vector<std::int64_t> numbers_;
};

std::unique_ptr<MemberRows> rows_for(const std::vector<std::string>& words, const DataSource& source) {
  if (words.size() == 3) return std::make_unique<RawRows>(dtype_from(words[1], source), shape_from(words[2], source));
  const std::string last = split(words[0], '.').back();
  if (words.size() == 1 and last == "npy") return std::make_unique<NpyRows>();
  if (words.size() == 1 and (last == "cls" or last == "id" or last == "index")) return std::make_unique<TextRows>();
  throw Error(Code::kUsage, fmt::format("{}: the ending {} does not tell what such a file holds", quoted(source.path + ":" + source.part), quoted(words[0])),
              {}, {"known are npy, and cls, id and index for numbers as text; raw elements are written FILE.tar:ENDING:u8:3x32x32; images are not decoded"});
}

/// "a/b/0001.left.npy": the sample "a/b/0001" and the ending "left.npy".
std::pair<std::string, std::string> parts_of(const std::string& name) {
  const std::size_t slash = name.rfind('/');
  const std::size_t dot = name.find('.', slash == std::string::npos ? 0 : slash + 1);
  return dot == std::string::npos ? std::pair(name, std::string()) : std::pair(name.substr(0, dot), name.substr(dot + 1));
}

[[noreturn]] void no_such_file(const DataSource& source, const std::string& sample, const std::string& ending, const std::set<std::string>& endings) {
  throw Error(Code::kDataName, fmt::format("{}: the sample {} has no file that ends in .{}", printable(source.path, 1000), quoted(sample), printable(ending)), {},
              {fmt::format("there are {}", printable(join(std::vector(endings.begin(), endings.end()), ", "), 500))});
}

}  // namespace

Array open_tar_array(const DataSource& source, bool streamed) {
  const std::vector<std::string> words = split(source.part, ':');
  const std::string& ending = words[0];
  const std::unique_ptr<MemberRows> rows = rows_for(words, source);
  const StreamedFile file(source.path);
  TarReader reader(file);
  std::string sample;
  bool is_empty = true, any = false, has = true;
  std::set<std::string> endings;  // of one sample
  while (const auto member = reader.next()) {
    is_empty = false;
    const auto [key, end] = parts_of(member->name);
    if (end.empty() or file_name_of(member->name).starts_with('.')) continue;
    if (key != sample or not any) {
      if (not has) no_such_file(source, sample, ending, endings);
      sample = key, any = true, has = false;
      endings.clear();
    }
    if (not endings.insert(end).second)
      throw Error(Code::kDataFormat, fmt::format("{} holds {} twice", printable(source.path, 1000), quoted(member->name)), {},
                  {"the files of a sample have endings of their own"});
    if (end != ending) continue;
    if (not member->stands_for.empty())
      throw Error(Code::kDataFormat, fmt::format("{} holds {} as {}, which is not followed", printable(source.path, 1000), quoted(member->name), member->stands_for), {},
                  {"write the archive again with the files themselves: tar --dereference --hard-dereference, without --sparse"});
    rows->add(file, *member, source.path + ":" + member->name);
    has = true;
  }
  if (not any)
    throw Error(Code::kDataName, fmt::format("{} holds no samples", printable(source.path, 1000)), {},
                {is_empty ? "the archive is empty" : "a sample is files such as 0001.npy and 0001.cls; names that begin with a dot, or have none, do not count"});
  if (not has) no_such_file(source, sample, ending, endings);
  Array array = rows->finish(source, streamed);
  if (reader.lacks_end_mark())
    array.add_note(fmt::format("{} ends without the end mark of an archive: if it was cut off between two files, what followed is missing; {} samples are there", printable(source.path, 1000), array.row_count()));
  return array;
}

}  // namespace hone
