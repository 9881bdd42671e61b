#include "runtime/collective/mpi_library.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include "base/diag.h"
#include "base/text.h"

namespace hone {
namespace {

constexpr const char* kWayOut = "install Open MPI 4 (Debian: apt-get install openmpi-bin), or put the folder of its libmpi.so.40 into LD_LIBRARY_PATH";

/// RTLD_GLOBAL: Open MPI's plug-ins expect its symbols to be there.
void* open_library() {
  std::string why;
  for (const char* name : {"libmpi.so.40", "libmpi.so"}) {
    if (void* handle = dlopen(name, RTLD_NOW | RTLD_GLOBAL)) return handle;
    if (why.empty()) why = printable(dlerror());
  }
  throw Error(Code::kDevice, fmt::format("Open MPI cannot be loaded: {}", why), {}, {kWayOut});
}

void* symbol(void* library, const char* name) {
  if (void* found = dlsym(library, name)) return found;
  throw Error(Code::kDevice, fmt::format("the MPI library that was found has no {}; it is not Open MPI, or too old", name), {}, {kWayOut});
}

MpiLibrary load_mpi() {
  void* const handle = open_library();
  MpiLibrary library{};
#define HONE_MPI_LOAD(name) library.name = reinterpret_cast<decltype(library.name)>(symbol(handle, "MPI_" #name));
  HONE_MPI_FUNCTIONS(HONE_MPI_LOAD)
#undef HONE_MPI_LOAD
  library.world = static_cast<MPI_Comm>(symbol(handle, "ompi_mpi_comm_world"));
  library.byte = static_cast<MPI_Datatype>(symbol(handle, "ompi_mpi_byte"));
  library.errors_return = static_cast<MPI_Errhandler>(symbol(handle, "ompi_mpi_errors_return"));
  return library;
}

}  // namespace

std::string MpiLibrary::text_of(int error) const {
  char text[MPI_MAX_ERROR_STRING] = {};
  int length = 0;
  if (Error_string(error, text, &length) != MPI_SUCCESS) return fmt::format("MPI error {}", error);
  return printable(std::string_view(text, static_cast<std::size_t>(length)));
}

const MpiLibrary& mpi_library() {
  static const MpiLibrary library = load_mpi();
  return library;
}

}  // namespace hone
