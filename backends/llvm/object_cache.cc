#include "backends/llvm/object_cache.h"

#include <fmt/format.h>
#include <llvm/Support/CachePruning.h>

#include <chrono>
#include <cstdlib>
#include <optional>
#include <span>

#include "base/diag.h"
#include "base/files.h"
#include "base/hash.h"

namespace hone {

namespace {

constexpr std::uint64_t kMostBytes = std::uint64_t{1} << 30;
constexpr std::chrono::hours kMonth{30 * 24};

std::string folder_of_environment() {
  const char* folder = std::getenv(kKernelCacheVariable);
  if (folder == nullptr or *folder == '\0') return "";
  make_folders(folder);
  return folder;
}

/// A file is its code and the hash of that.
std::string sealed(std::string_view code) {
  const std::uint64_t hash = hash_of(code);
  std::string file(code);
  file.append(reinterpret_cast<const char*>(&hash), sizeof(hash));
  return file;
}

std::optional<std::string> kept_in(const std::string& path) try {
  std::string file = read_file(path, kMostBytes);
  if (file.size() < sizeof(std::uint64_t)) return std::nullopt;
  std::string_view code = file;
  code.remove_suffix(sizeof(std::uint64_t));
  if (sealed(code) != file) return std::nullopt;
  return std::string(code);
} catch (const Error&) {
  return std::nullopt;
}

}  // namespace

ObjectCache::ObjectCache() : ObjectCache(folder_of_environment()) {}

std::string ObjectCache::find_or_make(std::string_view source, const std::function<std::string()>& make) const {
  if (not is_open()) return make();
  // the name by which LLVM's pruning knows what it may remove
  const std::string path = fmt::format("{}/llvmcache-{}", folder_, wide_hash_of(std::as_bytes(std::span(source))));
  if (file_exists(path))
    if (std::optional<std::string> code = kept_in(path)) return *std::move(code);
  std::string code = make();
  try {
    make_folders(folder_);
    write_file_atomically(path, sealed(code));
  } catch (const Error&) {  // no room, or no right to write there: it is made again the next time
  }
  return code;
}

void ObjectCache::prune() const {
  if (is_open()) llvm::pruneCache(folder_, {.Expiration = kMonth, .MaxSizeBytes = kMostBytes});
}

}  // namespace hone
