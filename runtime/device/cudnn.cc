#include "runtime/device/cudnn.h"

#include <fmt/format.h>

#include <array>
#include <cstdlib>

#include "base/diag.h"
#include "base/text.h"

namespace hone::cudnn {

/// Recurrent layers are multiplied by cuBLAS in several streams at once. By default it has buffers of two sizes, and takes that which is free, and the algorithm that goes with it; with one size results are the same in
/// every run. It looks when it is started; a choice of the user's stays.
const Library* library(std::string* why) {
  static const int chosen = setenv("CUBLAS_WORKSPACE_CONFIG", ":4096:2", 0);
  (void)chosen;
  return library_of_machine<Library>(why);
}

std::size_t Library::number() const { return get_version(); }

std::string Library::text(Status status) const {
  std::array<char, 512> more{};
  last_error(more.data(), more.size());
  more.back() = '\0';
  const char* name = status_text(status);
  return fmt::format("{} ({}){}{}", name == nullptr ? "an unknown status" : name, status, more.front() == '\0' ? "" : ": ", printable(more.data()));
}

bool Library::find_functions(void* library, std::string* why) {
#define HONE_CUDNN_FUNCTION(symbol, name, result, arguments)                           \
  name = reinterpret_cast<decltype(name)>(find_function(library, "it", #symbol, why)); \
  if (name == nullptr) return false;
  HONE_CUDNN_FUNCTIONS(HONE_CUDNN_FUNCTION)
#undef HONE_CUDNN_FUNCTION
  return true;
}

void check(const Library& library, Status status, const char* call) {
  if (status != 0) throw Refused{status, fmt::format("{} says {}", call, library.text(status))};
}

void lose_device(const Refused& refused) {
  throw Error(Code::kDeviceLost, refused.what, {}, {"what was computed on the device is lost; the last checkpoint is not: go on with --resume"});
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
