#include "formats/onnx_external.h"

#include <fmt/format.h>

#include <cerrno>
#include <charconv>
#include <system_error>

#include "base/file_system.h"
#include "base/text.h"

namespace hone {

namespace {

constexpr std::string_view kTogether = "a model with external data is several files: keep them in one folder, under the names they were saved with";

struct Location {
  std::string path;
  std::uint64_t offset = 0;
  std::optional<std::uint64_t> length;
};

class ExternalReader {
 public:
  ExternalReader(const onnx::TensorProto& proto, const std::string& model_folder, const Loc& loc) : proto_(proto), folder_(model_folder), loc_(loc) {}

  ExternalBytes read(std::optional<std::uint64_t> needed) const {
    const Location location = parse();
    const std::string path = resolve(location.path);
    ExternalBytes result{open(path, location.path), {}};
    const std::uint64_t size = result.file.size();
    if (location.offset > size) fail(fmt::format("its data begin at byte {} of {}, which has {}", location.offset, quoted(location.path), size), kTogether);
    const std::uint64_t length = location.length.value_or(needed.value_or(size - location.offset));
    if (needed and length != *needed)
      fail(fmt::format("its shape needs {} bytes, but its external data are {} long", *needed, length), "the file is damaged; export the model again");
    if (length > size - location.offset) {
      fail(fmt::format("its data are bytes {} to {} of {}, which has {}", location.offset,
                       location.offset + static_cast<unsigned __int128>(length) > UINT64_MAX ? UINT64_MAX : location.offset + length, quoted(location.path),
                       size),
           "the data file was cut off, or belongs to another model");
    }
    result.bytes = result.file.bytes().subspan(location.offset, length);
    return result;
  }

 private:
  [[noreturn]] void fail(std::string_view why, std::string_view note) const {
    throw Error(Code::kBadWeight, fmt::format("{}: {}", tensor_label(proto_), why), loc_, {std::string(note)});
  }

  std::uint64_t number(const onnx::StringStringEntryProto& entry) const {
    std::uint64_t value = 0;
    const char* const end = entry.value().data() + entry.value().size();
    const auto [after, error] = std::from_chars(entry.value().data(), end, value);
    if (error != std::errc{} or after != end)
      fail(fmt::format("the {} of its external data is {}, not a number", entry.key(), quoted(entry.value())), "export the model again");
    return value;
  }

  Location parse() const {
    Location location;
    for (const onnx::StringStringEntryProto& entry : proto_.external_data()) {
      if (entry.key() == "location") location.path = entry.value();
      else if (entry.key() == "offset") location.offset = number(entry);
      else if (entry.key() == "length") location.length = number(entry);
    }
    if (location.path.empty()) fail("its data are said to be external, but no location is given", "export the model again");
    return location;
  }

  /// The path of the data file, each step of it looked at, because a model from elsewhere must not read what it likes.
  std::string resolve(const std::string& location) const {
    constexpr std::string_view kInside = "external data must be in the model's own folder: copy the file there, and save the model with that location";
    if (location[0] == '/') fail(fmt::format("its data are in {}, an absolute path", quoted(location)), kInside);
    if (location.find('\0') != std::string::npos) fail(fmt::format("its data are in {}, which is no file name", quoted(location)), kInside);
    std::string path = folder_.empty() ? "." : folder_;
    for (const std::string& part : split(location, '/')) {
      if (part.empty() or part == ".") continue;
      if (part == "..") fail(fmt::format("its data are in {}, outside of the model's folder", quoted(location)), kInside);
      path += "/" + part;
      struct stat status {};
      if (file_system().stat_link(path, &status) != 0) break;  // open() says what is missing
      if (S_ISLNK(status.st_mode))
        fail(fmt::format("its data are in {}, a symbolic link, which could lead anywhere", quoted(path)),
             "put the file itself in its place (cp --dereference)");
    }
    return path;
  }

  MappedFile open(const std::string& path, const std::string& location) const {
    struct stat status {};
    const bool there = file_system().stat_link(path, &status) == 0;
    const std::string reason = there ? "" : std::generic_category().message(errno);
    if (not there) fail(fmt::format("its data should be in {}, which cannot be read in folder {}: {}", quoted(location), quoted(folder_), reason), kTogether);
    if (not S_ISREG(status.st_mode)) fail(fmt::format("its data are in {}, which is not a file", quoted(location)), kTogether);
    try {
      return MappedFile(path);
    } catch (const Error& error) { fail(error.diags().front().message, kTogether); }
  }

  const onnx::TensorProto& proto_;
  const std::string& folder_;
  const Loc& loc_;
};

}  // namespace

bool is_external(const onnx::TensorProto& proto) { return proto.data_location() == onnx::TensorProto::EXTERNAL; }

std::string tensor_label(const onnx::TensorProto& proto) {
  return proto.name().empty() ? std::string("the tensor") : fmt::format("initializer {}", quoted(proto.name()));
}

ExternalBytes read_external(const onnx::TensorProto& proto, const std::string& model_folder, std::optional<std::uint64_t> needed, const Loc& loc) {
  return ExternalReader(proto, model_folder, loc).read(needed);
}

void clear_values(onnx::TensorProto* proto) {
  proto->clear_raw_data();
  proto->clear_float_data();
  proto->clear_int32_data();
  proto->clear_string_data();
  proto->clear_int64_data();
  proto->clear_double_data();
  proto->clear_uint64_data();
  proto->clear_external_data();
  proto->clear_data_location();
}

void set_external(onnx::TensorProto* proto, const std::string& location, std::uint64_t offset, std::uint64_t length) {
  clear_values(proto);
  proto->set_data_location(onnx::TensorProto::EXTERNAL);
  const auto add = [&](const char* key, std::string value) {
    onnx::StringStringEntryProto* const entry = proto->add_external_data();
    entry->set_key(key);
    entry->set_value(std::move(value));
  };
  add("location", location);
  add("offset", fmt::format("{}", offset));
  add("length", fmt::format("{}", length));
}

}  // namespace hone
