#include "formats/npz.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <set>
#include <string_view>

#include "base/diag.h"
#include "base/files.h"
#include "base/limits.h"
#include "base/text.h"
#include "formats/zip.h"

namespace hone {

namespace {

constexpr std::string_view kSuffix = ".npy";
constexpr std::size_t kStartBytes = 12 + limits::kNpyHeaderBytes;

bool is_array(const ZipEntry& entry) { return entry.name.ends_with(kSuffix); }

std::string key_of(const ZipEntry& entry) { return entry.name.substr(0, entry.name.size() - kSuffix.size()); }

Tensor read_entry(const ZipReader& archive, const ZipEntry& entry, const std::string& path) {
  std::vector<std::byte> buffer;
  (void)read_npy_header(archive.read_start(entry, kStartBytes), path + ":" + key_of(entry), entry.bytes);  // what is no array need not be unpacked
  return parse_npy(archive.read(entry, buffer), path + ":" + key_of(entry));
}

[[noreturn]] void no_such_key(const ZipReader& archive, const std::string& path, const std::string& key) {
  constexpr std::size_t kListed = 20;
  std::vector<std::string> keys;
  for (const ZipEntry& entry : archive.entries())
    if (is_array(entry)) keys.push_back(key_of(entry));
  std::vector<std::string> notes;
  if (const std::string hint = did_you_mean(key, keys); not hint.empty()) notes.push_back(hint);
  std::string listing = keys.empty() ? "it holds no arrays: is it a NumPy .npz file?" : "it holds ";
  for (std::size_t i = 0; i < std::min(keys.size(), kListed); ++i) listing += (i == 0 ? "" : ", ") + quoted(keys[i]);
  if (keys.size() > kListed) listing += fmt::format(" and {} more", keys.size() - kListed);
  notes.push_back(listing);
  throw Error(Code::kDataName, fmt::format("{} has no array {}", printable(path, 1000), quoted(key)), {}, std::move(notes));
}

}  // namespace

std::vector<NpzEntry> list_npz(const std::string& path) {
  const MappedFile file(path);
  const ZipReader archive(file.bytes(), path);
  std::vector<NpzEntry> result;
  for (const ZipEntry& entry : archive.entries()) {
    if (not is_array(entry)) continue;
    const std::string key = key_of(entry);
    result.push_back({key, read_npy_header(archive.read_start(entry, kStartBytes), path + ":" + key, entry.bytes)});
  }
  return result;
}

Tensor read_npz(const std::string& path, const std::string& key) {
  const MappedFile file(path);
  const ZipReader archive(file.bytes(), path);
  const auto wanted = [&](const ZipEntry& entry) { return is_array(entry) and key_of(entry) == key; };
  // The last of several entries of one name counts, as in Python's zipfile.
  const auto found = std::find_if(archive.entries().rbegin(), archive.entries().rend(), wanted);
  if (found == archive.entries().rend()) no_such_key(archive, path, key);
  return read_entry(archive, *found, path);
}

std::vector<std::pair<std::string, Tensor>> read_npz(const std::string& path) {
  const MappedFile file(path);
  const ZipReader archive(file.bytes(), path);
  std::vector<std::pair<std::string, Tensor>> result;
  for (const ZipEntry& entry : archive.entries())
    if (is_array(entry)) result.emplace_back(key_of(entry), read_entry(archive, entry, path));
  return result;
}

void write_npz(const std::string& path, const std::vector<std::pair<std::string, Tensor>>& arrays) {
  std::set<std::string_view> names;
  for (const auto& [name, tensor] : arrays) {
    if (not names.insert(name).second)
      throw Error(Code::kDataName, fmt::format("cannot write {}: two arrays are called {}", printable(path, 1000), quoted(name)));
    if (name.size() > limits::kNameBytes - 16)
      throw Error(Code::kDataName, fmt::format("cannot write {}: the array name {} is too long", printable(path, 1000), quoted(name)));
  }
  write_file_atomically(path, [&](AtomicFile& file) {
    ZipWriter archive(file);
    for (const auto& [name, tensor] : arrays) {
      const std::string header = npy_header(tensor.dtype(), tensor.shape());
      const std::array<std::span<const std::byte>, 2> parts = {std::as_bytes(std::span(header)), tensor.bytes()};
      archive.add(name + std::string(kSuffix), parts);
    }
    archive.finish();
  });
}

}  // namespace hone
