#include "runtime/device/nccl.h"

#include <fmt/format.h>

#include "base/text.h"
#include "runtime/device/shared_library.h"

namespace hone::nccl {

namespace {

std::string version_text(int number) { return fmt::format("{}.{}.{}", number / 10000, number / 100 % 100, number % 100); }

int version_of(const Library& library) {
  int number = 0;
  return library.get_version(&number) == 0 ? number : 0;
}

}  // namespace

std::string Library::version() const { return version_text(version_of(*this)); }

std::string Library::text(Result result, Comm comm) const {
  const char *words = result_text(result), *more = last_error(comm);
  return fmt::format("{} ({}){}{}", words == nullptr ? "an unknown result" : words, result, more == nullptr or *more == '\0' ? "" : ": ", more == nullptr ? "" : printable(more, 500));
}

std::unique_ptr<Library> open_library(std::span<const char* const> files, std::string* why) {
  void* const handle = open_shared_library(files, why);
  if (handle == nullptr) return nullptr;
  auto library = std::make_unique<Library>();
#define HONE_NCCL_FUNCTION(symbol, name, result, arguments)                                             \
  library->name = reinterpret_cast<decltype(library->name)>(find_function(handle, "it", #symbol, why)); \
  if (library->name == nullptr) return nullptr;
  HONE_NCCL_FUNCTIONS(HONE_NCCL_FUNCTION)
#undef HONE_NCCL_FUNCTION
  if (version_of(*library) < kOldest) return *why = fmt::format("{} is too old: {} is the oldest that will do", library->version(), version_text(kOldest)), nullptr;
  return library;
}

const Library* library(std::string* why) {
  static std::string why_none;
  static const std::unique_ptr<Library> loaded = [] {
    constexpr const char* kFiles[] = {"libnccl.so.2"};
    return open_library(kFiles, &why_none);
  }();
  if (loaded == nullptr and why != nullptr) *why = why_none;
  return loaded.get();
}

}  // namespace hone::nccl
