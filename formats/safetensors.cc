#include "formats/safetensors.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>

#include "base/checked.h"
#include "base/diag.h"
#include "base/files.h"
#include "base/limits.h"
#include "base/text.h"
#include "base/untrusted_json.h"
#include "formats/elements.h"

namespace hone {

namespace {

using Json = nlohmann::json;                 // reading: names are found in no time, however many there are
using OrderedJson = nlohmann::ordered_json;  // writing

constexpr std::string_view kMetadata = "__metadata__";
constexpr std::uint64_t kLengthBytes = 8;
constexpr int kDepth = 3;  // of a header: tensors, their fields, the numbers of a list
constexpr std::size_t kAlignment = 64;  // of the first element; the format asks for 8

struct TypeName {
  std::string_view name;
  DType dtype;
};
constexpr TypeName kTypeNames[] = {{"F32", DType::kF32}, {"F64", DType::kF64}, {"F16", DType::kF16}, {"BF16", DType::kBF16}, {"I8", DType::kI8},
                                   {"I16", DType::kI16}, {"I32", DType::kI32}, {"I64", DType::kI64}, {"U8", DType::kU8},     {"U16", DType::kU16},
                                   {"U32", DType::kU32}, {"U64", DType::kU64}, {"BOOL", DType::kBool}, {"F8_E4M3", DType::kF8E4M3FN}, {"F8_E5M2", DType::kF8E5M2},
                                   {"F8_E8M0", DType::kF8E8M0}};

Error damaged(const std::string& path, const std::string& what) {
  return {Code::kDataFormat, fmt::format("{} is no sound safetensors file: {}", printable(path, 1000), what), {}, {"it is damaged or incomplete; make or copy it again"}};
}

std::uint64_t header_length(std::span<const std::byte> file, const std::string& path) {
  std::uint64_t length = 0;
  if (file.size() < kLengthBytes) throw damaged(path, fmt::format("it has {} bytes", file.size()));
  std::memcpy(&length, file.data(), sizeof length);  // little-endian, as this machine
  if (length > limits::kSafetensorsHeaderBytes) throw damaged(path, fmt::format("its header claims {} bytes", length));
  if (length > file.size() - kLengthBytes) throw damaged(path, fmt::format("its header claims {} bytes, and {} follow", length, file.size() - kLengthBytes));
  return length;
}

/// Looks for a name that stands in the outermost object twice.
class NameTwice final : public nlohmann::json_sax<Json> {
 public:
  std::optional<std::string> found;

  bool key(std::string& name) override {
    if (depth_ == 1 and not names_.insert(name).second) found = name;
    return true;
  }
  bool start_object(std::size_t) override { return ++depth_, true; }
  bool end_object() override { return --depth_, true; }
  bool start_array(std::size_t) override { return ++depth_, true; }
  bool end_array() override { return --depth_, true; }
  bool null() override { return true; }
  bool boolean(bool) override { return true; }
  bool number_integer(std::int64_t) override { return true; }
  bool number_unsigned(std::uint64_t) override { return true; }
  bool number_float(double, const std::string&) override { return true; }
  bool string(std::string&) override { return true; }
  bool binary(Json::binary_t&) override { return true; }
  bool parse_error(std::size_t, const std::string&, const Json::exception&) override { return false; }

 private:
  std::set<std::string> names_;
  int depth_ = 0;
};

/// The header as JSON. Names that stand in it twice are refused: readers would not agree on which one counts. The parser's own callback is not for this: at the end of
/// each tensor it walks over all that came before.
Json parse_header(std::string_view text, const std::string& path) {
  if (is_nested_deeper(text, kDepth)) throw damaged(path, "something in its header is nested more deeply than a tensor's shape");
  const Json json = Json::parse(text, nullptr, false);
  if (not json.is_object()) throw damaged(path, "its header is no JSON object");
  NameTwice twice;
  Json::sax_parse(text, &twice);
  if (twice.found) throw damaged(path, fmt::format("its header has {} twice", quoted(*twice.found)));
  return json;
}

std::optional<std::vector<std::uint64_t>> whole_numbers(const Json& json) {
  if (not json.is_array()) return std::nullopt;
  std::vector<std::uint64_t> numbers;
  for (const Json& item : json) {
    if (not item.is_number_unsigned()) return std::nullopt;
    numbers.push_back(item.get<std::uint64_t>());
  }
  return numbers;
}

DType dtype_of(const std::string& name, const std::string& tensor, const std::string& path) {
  for (const TypeName& row : kTypeNames)
    if (row.name == name) return row.dtype;
  throw Error(Code::kDataType, fmt::format("{}: the tensor {} has the element type {}, which Hone does not read", printable(path, 1000), quoted(tensor), quoted(name)), {},
              {"save it in another type, such as F32"});
}

SafetensorsEntry entry_from(const std::string& name, const Json& json, const std::string& path) {
  static const Json kNothing;
  const auto field = [&](const char* key) -> const Json& { return json.is_object() and json.contains(key) ? json[key] : kNothing; };
  const auto shape = whole_numbers(field("shape")), offsets = whole_numbers(field("data_offsets"));
  if (not field("dtype").is_string() or not shape or not offsets or offsets->size() != 2)
    throw damaged(path, fmt::format("the tensor {} lacks a dtype, a shape or two data_offsets", quoted(name)));
  if (shape->size() > limits::kRank) throw damaged(path, fmt::format("the tensor {} has {} axes", quoted(name), shape->size()));
  SafetensorsEntry entry{.name = name, .dtype = dtype_of(field("dtype").get<std::string>(), name, path), .shape = {}};
  for (const std::uint64_t extent : *shape) entry.shape.push_back(checked_cast<std::int64_t>(extent, "the extents of " + quoted(name)));
  entry.offset = (*offsets)[0];
  entry.bytes = (*offsets)[1] - (*offsets)[0];
  const std::uint64_t expected = bytes_of_shape(entry.dtype, entry.shape, printable(path, 1000));
  if ((*offsets)[1] < (*offsets)[0] or entry.bytes != expected)
    throw damaged(path, fmt::format("the tensor {} lies from {} to {}, and {}{} take {} bytes", quoted(name), (*offsets)[0], (*offsets)[1], to_string(entry.dtype),
                                    shape_text(entry.shape), expected));
  return entry;
}

/// Sorted, each tensor begins where the one before it ends, and the last one ends with the file.
void check_cover(std::vector<SafetensorsEntry>* entries, std::uint64_t data_bytes, const std::string& path) {
  std::stable_sort(entries->begin(), entries->end(), [](const SafetensorsEntry& a, const SafetensorsEntry& b) { return std::pair(a.offset, a.bytes) < std::pair(b.offset, b.bytes); });
  std::uint64_t end = 0;
  for (const SafetensorsEntry& entry : *entries) {
    if (entry.offset != end)
      throw damaged(path, fmt::format("the tensor {} begins at {}, {} the one before it at {}", quoted(entry.name), entry.offset, entry.offset < end ? "inside of" : "behind the end of", end));
    end += entry.bytes;
    if (end > data_bytes) throw damaged(path, fmt::format("the tensor {} ends at {}, and there are {} bytes", quoted(entry.name), end, data_bytes));
  }
  if (end != data_bytes) throw damaged(path, fmt::format("its tensors end at {}, and there are {} bytes", end, data_bytes));
}

[[noreturn]] void no_such_name(const SafetensorsHeader& header, const std::string& path, const std::string& name) {
  std::vector<std::string> names;
  for (const SafetensorsEntry& entry : header.entries) names.push_back(entry.name);
  std::vector<std::string> notes;
  if (const std::string hint = did_you_mean(name, names); not hint.empty()) notes.push_back(hint);
  notes.push_back(names.empty() ? "it holds no tensors" : "it holds " + quoted_list(names));
  throw Error(Code::kDataName, fmt::format("{} has no tensor {}", printable(path, 1000), quoted(name)), {}, std::move(notes));
}

std::string_view type_name(const SafetensorsSource& tensor, const std::string& path) {
  for (const TypeName& row : kTypeNames)
    if (row.dtype == tensor.dtype) return row.name;
  throw Error(Code::kDataType, fmt::format("cannot write {}: the tensor {} is {}, which safetensors files do not have", printable(path, 1000), quoted(tensor.name), to_string(tensor.dtype)));
}

/// The header's text, padded with blanks so that the elements are aligned.
std::string header_text(std::span<const SafetensorsSource> tensors, const std::map<std::string, std::string>& metadata, const std::string& path) {
  OrderedJson json = OrderedJson::object();
  std::set<std::string_view> names;
  if (not metadata.empty()) json[std::string(kMetadata)] = metadata;
  std::uint64_t end = 0;
  for (const SafetensorsSource& tensor : tensors) {
    if (not names.insert(tensor.name).second or tensor.name == kMetadata)
      throw Error(Code::kDataName, fmt::format("cannot write {}: the name {} cannot be used, or not twice", printable(path, 1000), quoted(tensor.name)));
    const std::uint64_t begin = end;
    end = checked_add(end, static_cast<std::uint64_t>(checked_element_count(tensor.shape)) * size_of(tensor.dtype), "the tensors of a file");
    json.push_back({tensor.name, {{"dtype", type_name(tensor, path)}, {"shape", tensor.shape}, {"data_offsets", {begin, end}}}});
  }
  std::string text = json.dump(-1, ' ', false, OrderedJson::error_handler_t::replace);
  text.append((kAlignment - (kLengthBytes + text.size()) % kAlignment) % kAlignment, ' ');
  return text;
}

}  // namespace

Tensor read_entry(std::span<const std::byte> file, const SafetensorsEntry& entry) {
  const auto bytes = file.subspan(entry.offset, entry.bytes);
  if (entry.dtype != DType::kBool) return Tensor::copy(entry.dtype, entry.shape, bytes);
  // a file's bytes may be others, and a bool of any other value is undefined
  return Tensor::make(entry.dtype, entry.shape, [&](std::span<std::byte> to) {
    std::transform(bytes.begin(), bytes.end(), to.begin(), [](std::byte byte) { return std::byte{byte != std::byte{0}}; });
  });
}

SafetensorsHeader read_safetensors_header(std::span<const std::byte> file, const std::string& path) {
  const std::uint64_t length = header_length(file, path), data = kLengthBytes + length;
  const Json json = parse_header({reinterpret_cast<const char*>(file.data()) + kLengthBytes, length}, path);
  SafetensorsHeader header;
  for (const auto& [name, value] : json.items()) {
    if (name != kMetadata) {
      header.entries.push_back(entry_from(name, value, path));
      continue;
    }
    if (not value.is_object()) throw damaged(path, "its __metadata__ is no JSON object");
    for (const auto& [key, text] : value.items())
      if (text.is_string()) header.metadata[key] = text.get<std::string>();
  }
  check_cover(&header.entries, file.size() - data, path);
  for (SafetensorsEntry& entry : header.entries) entry.offset += data;
  return header;
}

Tensor read_safetensors(const std::string& path, const std::string& name) {
  const MappedFile file(path);
  const SafetensorsHeader header = read_safetensors_header(file.bytes(), path);
  const auto found = std::find_if(header.entries.begin(), header.entries.end(), [&](const SafetensorsEntry& entry) { return entry.name == name; });
  if (found == header.entries.end()) no_such_name(header, path, name);
  return read_entry(file.bytes(), *found);
}

std::vector<std::pair<std::string, Tensor>> read_safetensors(const std::string& path) {
  const MappedFile file(path);
  std::vector<std::pair<std::string, Tensor>> tensors;
  for (const SafetensorsEntry& entry : read_safetensors_header(file.bytes(), path).entries) tensors.emplace_back(entry.name, read_entry(file.bytes(), entry));
  return tensors;
}

void write_safetensors(const std::string& path, std::span<const SafetensorsSource> tensors, const std::map<std::string, std::string>& metadata, const std::function<void()>& confirm) {
  const std::string header = header_text(tensors, metadata, path);
  const std::uint64_t length = header.size();
  write_file_atomically(path, [&](AtomicFile& file) {
    file.write(std::as_bytes(std::span(&length, 1)));
    file.write(header);
    for (const SafetensorsSource& source : tensors) {
      const Tensor tensor = source.read();
      HONE_CHECK(tensor.dtype() == source.dtype and tensor.shape() == source.shape, "a tensor is not what the header says");
      file.write(tensor.bytes());
    }
    if (confirm) confirm();
  });
}

}  // namespace hone
