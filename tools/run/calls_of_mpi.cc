// What Open MPI 4.1 calls, and finds here before it finds it in its own libraries and in that of C.
//
// It does not live with a TCP connection that breaks (runtime/collective/tcp_connections.h): so recv, readv and writev hide that from it, and Hone notices it in its place.
// Where it ends the process all the same (it finds no way to another as it starts, or a connection was not known to lead to a rank), it tells mpirun to kill all the others (PMIx_Abort) and leaves by _exit, without
// a word of ranks: this process says which replica cannot be reached, and the others live to notice it themselves, as after any other failure.
#include <dlfcn.h>
#include <sys/socket.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstdlib>

#include "runtime/collective/mpi_communicator.h"

namespace {

template <typename Function>
Function* next_of(const char* name) {
  return reinterpret_cast<Function*>(dlsym(RTLD_NEXT, name));
}

/// With the errno that the call has left.
ssize_t seen_by_mpi(int socket, ssize_t result) {
  const int problem = errno;
  const bool is_hidden = hone::hidden_from_mpi(socket, result, problem);
  errno = is_hidden ? EAGAIN : problem;
  return is_hidden ? -1 : result;
}

}  // namespace

extern "C" ssize_t recv(int socket, void* bytes, std::size_t most, int flags) {
  static const auto next = next_of<ssize_t(int, void*, std::size_t, int)>("recv");
  const ssize_t result = next(socket, bytes, most, flags);
  if (result > 0) hone::heard_by_mpi(socket, bytes, static_cast<std::size_t>(result));
  return result;
}

extern "C" ssize_t readv(int file, const struct iovec* pieces, int count) {
  static const auto next = next_of<ssize_t(int, const struct iovec*, int)>("readv");
  const ssize_t result = next(file, pieces, count);
  return result > 0 ? result : seen_by_mpi(file, result);
}

extern "C" ssize_t writev(int file, const struct iovec* pieces, int count) {
  static const auto next = next_of<ssize_t(int, const struct iovec*, int)>("writev");
  const ssize_t result = next(file, pieces, count);
  return result >= 0 ? result : seen_by_mpi(file, result);
}

extern "C" void _exit(int status) { std::_Exit(hone::exit_code_where_mpi_ends(status)); }

extern "C" [[noreturn]] int PMIx_Abort(int status, const char* /*message*/, void* /*processes*/, std::size_t /*count*/) { _exit(status); }
