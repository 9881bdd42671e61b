#include "runtime/data/open_array.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "base/diag.h"
#include "base/limits.h"
#include "base/text.h"
#include "formats/csv.h"
#include "formats/idx.h"
#include "formats/npy.h"
#include "formats/npz.h"
#include "formats/safetensors.h"

namespace hone {

namespace {

using Opener = Array (*)(const DataSource& source, bool streamed);
struct KindOpener {
  FileKind kind;
  Opener open;
};
constexpr KindOpener kOpeners[] = {{FileKind::kNpy, open_npy_array},
                                   {FileKind::kNpz, open_npz_array},
                                   {FileKind::kIdx, open_idx_array},
                                   {FileKind::kCsv, open_csv_array},
                                   {FileKind::kSafetensors, open_safetensors_array},
                                   {FileKind::kTar, open_tar_array},
                                   {FileKind::kRaw, open_binary_array}};

Opener opener_of(FileKind kind) {
  for (const KindOpener& known : kOpeners)
    if (known.kind == kind) return known.open;
  internal_error(__FILE__, __LINE__, "a kind of file that nothing opens");
}

/// The files that a path means: itself, or what a pattern in its last name fits.
std::vector<std::string> paths_of(const DataSource& source) {
  const std::string pattern = file_name_of(source.path);
  if (pattern.find_first_of("*?") == std::string::npos or file_exists(source.path)) return {source.path};
  const std::string folder = folder_of(source.path);
  const bool bare = source.path == pattern;
  std::vector<std::string> paths;
  for (const std::string& name : list_folder(folder))
    if (glob_match(pattern, name)) paths.push_back(bare ? name : fmt::format("{}{}{}", folder, folder == "/" ? "" : "/", name));
  if (paths.empty())
    throw Error(Code::kFileOpen, fmt::format("no file fits the pattern {}", quoted(source.path, 1000)), {},
                {"\"*\" stands for any characters of a file's name, \"?\" for one"});
  return paths;
}

std::uint64_t bytes_of_files(const std::vector<std::string>& paths) {
  std::uint64_t bytes = 0;
  for (const std::string& path : paths) bytes += file_bytes(path);
  return bytes;
}

/// A file of several arrays, named `keys`: without a part the only one is meant, or the one that is called as the input is.
DataSource with_part(const DataSource& source, const std::vector<std::string>& keys) {
  if (not source.part.empty()) return source;
  DataSource chosen = source;
  if (keys.size() == 1) chosen.part = keys[0];
  else
    for (const std::string* name : {&source.input, &source.name})
      if (std::ranges::count(keys, *name) > 0) chosen.part = *name;
  if (keys.empty()) throw Error(Code::kDataName, fmt::format("{} holds no arrays", quoted(source.path)), {}, {"is it the file that was meant? numpy.savez(file, x=x, y=y) writes arrays"});
  if (chosen.part.empty())
    throw Error(Code::kDataName, fmt::format("{} holds {} arrays, and none is called {}", quoted(source.path), keys.size(), quoted(source.name)), {},
                {fmt::format("choose one with {}:KEY; there are {}", source.path, printable(join(keys, ", "), 500))});
  return chosen;
}

[[noreturn]] void refuse_part(const DataSource& source, const std::vector<std::string>& names) {
  std::vector<std::string> notes = {fmt::format("there are {}", printable(join(names, ", "), 500))};
  if (const std::string hint = did_you_mean(source.part, names); not hint.empty()) notes.insert(notes.begin(), hint);
  throw Error(Code::kDataName, fmt::format("{} has no tensor {}", printable(source.path, 1000), quoted(source.part)), {}, std::move(notes));
}

}  // namespace

std::string label_of(const DataSource& source) { return source.part.empty() or source.kind == FileKind::kRaw ? source.path : source.path + ":" + source.part; }

std::vector<std::int64_t> shape_from(const std::string& text, const DataSource& source) {
  std::vector<std::int64_t> shape;
  for (const std::string& extent : split(text, 'x')) {
    std::int64_t number = -1;
    const auto [end, error] = std::from_chars(extent.data(), extent.data() + extent.size(), number);
    if (error != std::errc{} or end != extent.data() + extent.size() or number < 0)
      throw Error(Code::kUsage, fmt::format("{}: {} is no shape", quoted(source.path + ":" + source.part), quoted(text)), {}, {"write a shape as 60000x784"});
    shape.push_back(number);
  }
  if (shape.size() > limits::kRank)
    throw Error(Code::kUsage, fmt::format("{}: a shape of {} axes", quoted(source.path + ":" + source.part), shape.size()), {}, {fmt::format("at most {} are taken", limits::kRank)});
  return shape;
}

std::optional<std::uint64_t> bytes_if_any_has(DType dtype, const std::vector<std::int64_t>& shape) {
  std::int64_t count = 1;
  for (const std::int64_t extent : shape)
    if (__builtin_mul_overflow(count, extent, &count) or count > limits::kTensorElements) return std::nullopt;
  return static_cast<std::uint64_t>(count) * size_of(dtype);
}

std::string text_of_bytes(std::optional<std::uint64_t> bytes) { return bytes ? std::to_string(*bytes) : "more than any file has"; }

DType dtype_from(const std::string& text, const DataSource& source) {
  const auto dtype = dtype_from_name(text);
  if (dtype and (not is_storage_only(*dtype) or info(*dtype).bits >= 16)) return *dtype;
  throw Error(Code::kUsage, fmt::format("{}: {} is no element type of a file", quoted(source.path + ":" + source.part), quoted(text)), {},
              {"element types are f32, f64, f16, bf16, i8 to i64, u8 to u64 and bool"});
}

Array Array::open(const DataSource& source, FileReading reading) {
  const std::vector<std::string> paths = paths_of(source);
  const bool streamed = reading == FileReading::kWhenWanted or bytes_of_files(paths) > kMappedBytes;
  std::vector<Array> arrays;
  DataSource one = source;
  for (const std::string& path : paths) {
    one.path = path;
    arrays.push_back(opener_of(source.kind)(one, streamed));
  }
  Array all = join_arrays(label_of(source), arrays);
  all.keep_rows(source.first_row, source.end_row);
  return all;
}

Array open_npy_array(const DataSource& source, bool streamed) {
  MappedFile file(source.path);
  const NpyInfo info = read_npy_header(file.bytes(), source.path);
  if (info.column_major or info.byte_swapped) return {label_of(source), parse_npy(file.bytes(), source.path)};
  const std::int64_t rows = info.shape.empty() ? 1 : info.shape[0];
  const std::uint64_t stride = rows == 0 ? 0 : info.data_bytes / static_cast<std::uint64_t>(rows);
  auto bytes = streamed ? open_row_bytes(source.path, true) : std::make_shared<const RowBytes>(std::move(file));
  return {
      label_of(source), info.dtype, info.shape, {{.bytes = std::move(bytes), .row_count = rows, .offset = info.data_offset, .stride = stride, .offsets = {}}}};
}

Array open_npz_array(const DataSource& source, bool) {
  std::vector<std::string> keys;
  if (source.part.empty())
    for (const NpzEntry& entry : list_npz(source.path)) keys.push_back(entry.key);
  const DataSource chosen = with_part(source, keys);
  return {label_of(chosen), read_npz(chosen.path, chosen.part)};
}

Array open_safetensors_array(const DataSource& source, bool streamed) {
  MappedFile file(source.path);
  const SafetensorsHeader header = read_safetensors_header(file.bytes(), source.path);
  std::vector<std::string> names;
  for (const SafetensorsEntry& entry : header.entries) names.push_back(entry.name);
  const DataSource chosen = with_part(source, names);
  const auto found = std::find_if(header.entries.begin(), header.entries.end(), [&](const SafetensorsEntry& entry) { return entry.name == chosen.part; });
  if (found == header.entries.end()) refuse_part(chosen, names);
  const std::int64_t rows = found->shape.empty() ? 1 : found->shape[0];
  const std::uint64_t stride = rows == 0 ? 0 : found->bytes / static_cast<std::uint64_t>(rows);
  auto bytes = streamed ? open_row_bytes(source.path, true) : std::make_shared<const RowBytes>(std::move(file));
  return {
      label_of(chosen), found->dtype, found->shape, {{.bytes = std::move(bytes), .row_count = rows, .offset = found->offset, .stride = stride, .offsets = {}}}};
}

Array open_idx_array(const DataSource& source, bool) { return {label_of(source), read_idx(source.path)}; }

namespace {

/// Numbers that take little become a tensor, others a scratch file.
Array array_of(const CsvTable& table, const DataSource& source) {
  const auto columns = static_cast<std::int64_t>(table.columns().size());
  std::vector<std::int64_t> shape = {table.row_count()};
  if (columns > 1 or source.part.empty()) shape.push_back(columns);
  const std::uint64_t stride = static_cast<std::uint64_t>(columns) * size_of(table.dtype());
  if (static_cast<std::uint64_t>(table.row_count()) * stride <= kMappedBytes) {
    return {label_of(source), Tensor::make(table.dtype(), shape, [&](std::span<std::byte> to) {
              table.read([&](std::span<const std::byte> block) {
                std::copy(block.begin(), block.end(), to.begin());
                to = to.subspan(block.size());
              });
            })};
  }
  StreamedFile numbers = StreamedFile::scratch();
  table.read([&](std::span<const std::byte> block) { numbers.append(block); });
  auto bytes = std::make_shared<const RowBytes>(std::move(numbers));
  return {label_of(source), table.dtype(), shape, {{.bytes = std::move(bytes), .row_count = table.row_count(), .offset = 0, .stride = stride, .offsets = {}}}};
}

}  // namespace

Array open_csv_array(const DataSource& source, bool) {
  const StreamedFile file(source.path);
  const CsvTable table(file, source.part);
  Array array = array_of(table, source);
  array.name_lines([source](std::int64_t row) {
    const StreamedFile again(source.path);
    return CsvTable(again, source.part).line_of(row);
  });
  if (table.begins_with_count())
    array.add_note(fmt::format("the first line of {} counts its columns, and is read as a row of numbers: if it names them, take it out (with pandas, frame.to_csv(file, index=False, header=False))", printable(source.path, 1000)));
  return array;
}

}  // namespace hone
