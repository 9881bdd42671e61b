#include "runtime/device/cublaslt.h"

#include <fmt/format.h>

namespace hone::cublaslt {

std::size_t Library::number() const { return get_version(); }

std::string Library::text(Status status) const {
  const char *name = status_name(status), *words = status_text(status);
  return fmt::format("{} ({}): {}", name == nullptr ? "an unknown status" : name, status, words == nullptr ? "" : words);
}

bool Library::find_functions(void* library, std::string* why) {
#define HONE_CUBLASLT_FUNCTION(symbol, name, result, arguments)                        \
  name = reinterpret_cast<decltype(name)>(find_function(library, "it", #symbol, why)); \
  if (name == nullptr) return false;
  HONE_CUBLASLT_FUNCTIONS(HONE_CUBLASLT_FUNCTION)
#undef HONE_CUBLASLT_FUNCTION
  return true;
}

}  // namespace hone::cublaslt
