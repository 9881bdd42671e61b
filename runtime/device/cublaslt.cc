#include "runtime/device/cublaslt.h"

#include <fmt/format.h>

#include "runtime/device/shared_library.h"

namespace hone::cublaslt {

namespace {

std::string version_text(std::size_t number) { return fmt::format("{}.{}.{}", number / 10000, number / 100 % 100, number % 100); }

}  // namespace

std::string Library::version() const { return version_text(get_version()); }

std::string Library::text(Status status) const {
  const char *name = status_name(status), *words = status_text(status);
  return fmt::format("{} ({}): {}", name == nullptr ? "an unknown status" : name, status, words == nullptr ? "" : words);
}

std::unique_ptr<Library> open_library(std::span<const char* const> files, std::string* why) {
  void* const handle = open_shared_library(files, why);
  if (handle == nullptr) return nullptr;
  auto library = std::make_unique<Library>();
#define HONE_CUBLASLT_FUNCTION(symbol, name, result, arguments)                                                \
  library->name = reinterpret_cast<decltype(library->name)>(find_function(handle, "it", #symbol, why));        \
  if (library->name == nullptr) return nullptr;
  HONE_CUBLASLT_FUNCTIONS(HONE_CUBLASLT_FUNCTION)
#undef HONE_CUBLASLT_FUNCTION
  if (library->get_version() < kOldest) return *why = fmt::format("{} is too old: {} is the oldest that will do", library->version(), version_text(kOldest)), nullptr;
  return library;
}

const Library* library(std::string* why) {
  static std::string why_none;
  static const std::unique_ptr<Library> loaded = [] {
    constexpr const char* kFiles[] = {"libcublasLt.so.13", "libcublasLt.so.12"};
    return open_library(kFiles, &why_none);
  }();
  if (loaded == nullptr and why != nullptr) *why = why_none;
  return loaded.get();
}

}  // namespace hone::cublaslt
