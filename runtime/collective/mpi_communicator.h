// Replicas that are processes, on one machine or many, started by Open MPI's mpirun or Slurm's srun.
//
// Every wait has an end: a replica that does not come within the timeout, or that says that it fails, becomes an Error kPeer, which names the same replica everywhere. MPI cannot go on
// then, and its own end would wait for all: so a process in which mpi_is_unfinished() must flush what it has to say and leave by _Exit.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <string>

#include "base/diag.h"
#include "runtime/collective/communicator.h"
#include "runtime/collective/mpi_launch.h"

namespace hone {

struct MpiOptions {
  /// How long a call waits while nothing arrives; connecting, and each of the two steps of a clean end, may take as long.
  std::chrono::milliseconds timeout{300'000};
  /// Of the program. All replicas must have the same.
  std::string version;
  /// MPI itself may never come back from a call when a connection breaks, so that nothing can be thrown. Then this is called, in another thread, to say the error and to end the process;
  /// where it returns or is not given, the error is written to standard error, and the process ends with its exit code.
  std::function<void(const Error&)> when_stuck = {};
};

/// For one thread at a time, fail() included. Its end is a clean one, which waits for all replicas, unless it is broken or an exception goes through the scope; then the others are told
/// that this replica fails.
class MpiCommunicator : public Communicator {
 public:
  /// A call has thrown, or fail() was called: all further calls throw, the destructor waits for nothing.
  virtual bool is_broken() const = 0;
};

/// Can this build connect? If not, connect_with_mpi() throws kDevice.
bool has_mpi();

/// Starts MPI, once in a process, and waits until all replicas have come. From then on SIGPIPE is ignored, unless the process had a handler for it. Throws kDevice where there is no Open MPI, kPeer where replicas do not come or have other versions.
std::unique_ptr<MpiCommunicator> connect_with_mpi(const MpiOptions& options);

/// MPI was started here and has not come to a clean end: leave by _Exit.
bool mpi_is_unfinished();

/// Open MPI 4.1 does not live with a TCP connection that breaks (runtime/collective/tcp_connections.h). A program that defines recv, readv and writev itself gets its calls of them, and says here what came by recv;
void heard_by_mpi(int socket, const void* bytes, std::size_t count) noexcept;
/// and how a readv ended that read nothing, or a readv or writev that failed, with its errno: true where MPI is to see that it could be done later (-1, EAGAIN). Then the one who waits for replicas learns whose connection broke.
bool hidden_from_mpi(int socket, ssize_t result, int problem) noexcept;

/// Open MPI 4.1 ends the process by `_exit`, without a word of its ranks, when it sees a connection break while it writes, and when it finds no way to another process as it starts. A program that
/// defines `_exit` itself gets that call and asks here: when MPI starts, or a call of it is under way, says which replica cannot be reached, as MpiOptions::when_stuck does, and returns the exit code to leave with by _Exit; else returns `status`.
int exit_code_where_mpi_ends(int status) noexcept;

}  // namespace hone
