#include "runtime/device/nccl.h"

#include <fmt/format.h>

#include "base/text.h"

namespace hone::nccl {

std::size_t Library::number() const {
  int number = 0;
  return get_version(&number) == 0 ? static_cast<std::size_t>(number) : 0;
}

std::string Library::text(Result result, Comm comm) const {
  const char *words = result_text(result), *more = last_error(comm);
  return fmt::format("{} ({}){}{}", words == nullptr ? "an unknown result" : words, result, more == nullptr or *more == '\0' ? "" : ": ", more == nullptr ? "" : printable(more, 500));
}

bool Library::find_functions(void* library, std::string* why) {
#define HONE_NCCL_FUNCTION(symbol, name, result, arguments)                            \
  name = reinterpret_cast<decltype(name)>(find_function(library, "it", #symbol, why)); \
  if (name == nullptr) return false;
  HONE_NCCL_FUNCTIONS(HONE_NCCL_FUNCTION)
#undef HONE_NCCL_FUNCTION
  return true;
}

}  // namespace hone::nccl
