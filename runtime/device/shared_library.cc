#include "runtime/device/shared_library.h"

#include <dlfcn.h>

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

}  // namespace hone
