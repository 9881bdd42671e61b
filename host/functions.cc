#include "host/functions.h"

namespace hone {

const HostFunction* find_host_function(std::string_view name) {
#define HONE_HOST_FUNCTION_ADDRESS(function) &host::function,
  static const HostFunction* const kAll[] = {HONE_HOST_FUNCTIONS(HONE_HOST_FUNCTION_ADDRESS)};
#undef HONE_HOST_FUNCTION_ADDRESS
  for (const HostFunction* function : kAll)
    if (function->name == name) return function;
  return nullptr;
}

}  // namespace hone
