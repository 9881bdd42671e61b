#include "runtime/device/shared_library.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include "base/text.h"

namespace hone {

void* open_shared_library(std::span<const char* const> files, std::string* why) {
  for (const char* file : files) {
    if (void* library = dlopen(file, RTLD_NOW | RTLD_LOCAL)) return library;
    const char* message = dlerror();
    *why = message == nullptr ? file : printable(message);
  }
  return nullptr;
}

void* find_function(void* library, const std::string& file, const char* name, std::string* why) {
  void* function = dlsym(library, name);
  if (function == nullptr) *why = file + " has no " + name;
  return function;
}

std::string version_text(std::size_t number) { return fmt::format("{}.{}.{}", number / 10000, number / 100 % 100, number % 100); }

std::string too_old_text(std::size_t number, std::size_t oldest) { return fmt::format("{} is too old: {} is the oldest that will do", version_text(number), version_text(oldest)); }

}  // namespace hone
