// Open MPI's TCP connections to other ranks, seen at the functions of the C library through which it uses them.
//
// Open MPI 4.1 does not live with a connection that breaks: where it learns of it by writing, it ends the process; where it learns of it by reading, it connects anew and goes on without what was lost, or loops for
// ever. So a program that defines recv, readv and writev itself (tools/run/calls_of_mpi.cc) lets this see how they end: a connection that broke is replaced by one from which nothing ever comes, and who waits
// (mpi_peers.h) asks which rank was lost, and fails as it does where one does not come: it names the rank, and can tell the others.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <map>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace hone {

/// For any thread.
class TcpConnections {
 public:
  TcpConnections() = default;
  TcpConnections(const TcpConnections&) = delete;
  TcpConnections& operator=(const TcpConnections&) = delete;
  ~TcpConnections() { forget(); }

  /// Bytes that came by recv. The first ones of a connection are Open MPI's word on who sends them; from others nothing is learned.
  void heard(int socket, std::span<const std::byte> bytes);
  /// How readv or writev ended, with its errno where `result` is negative. If that was the end of a connection to a rank, the rank is lost, `socket` is one that is silent from now on, and the call must look as
  /// if it could be done later (-1, EAGAIN).
  bool hides(int socket, ssize_t result, int problem);

  struct Lost {
    int rank = 0;
    std::string why;
  };
  /// The first one.
  std::optional<Lost> lost() const;
  /// Nothing is hidden any more; connections that are silent end.
  void forget();

 private:
  struct Connection {
    int rank = 0;
    ino_t inode = 0;  // of the socket: its number may be another file's by now
  };
  static std::optional<int> silence(int socket);

  mutable std::mutex mutex_;
  std::map<int, Connection> connections_;  // by socket
  std::vector<int> other_ends_;             // of those that are silent
  std::optional<Lost> lost_;
};

}  // namespace hone
