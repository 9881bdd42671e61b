#include "runtime/device/cudnn.h"

#include <fmt/format.h>

#include <array>

#include "base/text.h"
#include "runtime/device/shared_library.h"

namespace hone::cudnn {

namespace {

std::string version_text(std::size_t number) { return fmt::format("{}.{}.{}", number / 10000, number / 100 % 100, number % 100); }

}  // namespace

std::string Library::version() const { return version_text(get_version()); }

std::string Library::text(Status status) const {
  std::array<char, 512> more{};
  last_error(more.data(), more.size());
  more.back() = '\0';
  const char* name = status_text(status);
  return fmt::format("{} ({}){}{}", name == nullptr ? "an unknown status" : name, status, more.front() == '\0' ? "" : ": ", printable(more.data()));
}

std::unique_ptr<Library> open_library(std::span<const char* const> files, std::string* why) {
  void* const handle = open_shared_library(files, why);
  if (handle == nullptr) return nullptr;
  auto library = std::make_unique<Library>();
#define HONE_CUDNN_FUNCTION(symbol, name, result, arguments)                                            \
  library->name = reinterpret_cast<decltype(library->name)>(find_function(handle, "it", #symbol, why)); \
  if (library->name == nullptr) return nullptr;
  HONE_CUDNN_FUNCTIONS(HONE_CUDNN_FUNCTION)
#undef HONE_CUDNN_FUNCTION
  if (library->get_version() < kOldest) return *why = fmt::format("{} is too old: {} is the oldest that will do", library->version(), version_text(kOldest)), nullptr;
  return library;
}

const Library* library(std::string* why) {
  static std::string why_none;
  static const std::unique_ptr<Library> loaded = [] {
    constexpr const char* kFiles[] = {"libcudnn.so.9"};
    return open_library(kFiles, &why_none);
  }();
  if (loaded == nullptr and why != nullptr) *why = why_none;
  return loaded.get();
}

Descriptor::Descriptor(const Library& library, Kind kind) : library_(&library) { check(library.descriptor_create(kind, &raw_), "cudnnBackendCreateDescriptor"); }

Descriptor::~Descriptor() {
  if (raw_ != nullptr) (void)library_->descriptor_destroy(raw_);
}

void Descriptor::finalize() { check(library_->descriptor_finalize(raw_), "cudnnBackendFinalize"); }

void Descriptor::set_raw(Attribute attribute, Type type, std::int64_t count, const void* values) {
  check(library_->descriptor_set(raw_, attribute, type, count, values), "cudnnBackendSetAttribute");
}

std::int64_t Descriptor::get_raw(Attribute attribute, Type type, std::int64_t room, void* values) const {
  std::int64_t count = 0;
  check(library_->descriptor_get(raw_, attribute, type, room, &count, values), "cudnnBackendGetAttribute");
  return count;
}

void Descriptor::check(Status status, const char* call) const {
  if (status != 0) throw Refused{status, fmt::format("{} says {}", call, library_->text(status))};
}

Descriptor device_properties(const Library& library, Handle handle) {
  Descriptor properties(library, Kind::kDeviceProperties);
  properties.set(Attribute::kDeviceHandle, Type::kHandle, handle);
  properties.finalize();
  return properties;
}

Descriptor device_properties(const Library& library, const std::string& json) {
  Descriptor properties(library, Kind::kDeviceProperties);
  properties.set(Attribute::kDeviceJson, Type::kChar, std::span<const char>(json));
  properties.finalize();
  return properties;
}

}  // namespace hone::cudnn
