#include "runtime/collective/tcp_connections.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <limits>
#include <string_view>
#include <system_error>

namespace hone {

namespace {

/// mca_btl_tcp_endpoint_hs_msg_t of Open MPI 4.0 to 5.0 (opal/mca/btl/tcp/btl_tcp_endpoint.h). In the job that mpirun has started, a process's number is its rank.
struct Handshake {
  std::uint32_t job = 0, process = 0;
  char magic[16] = {};
};
constexpr std::string_view kMagicOfTcp("OPAL-TCP-BTL\0", 13);

std::optional<ino_t> inode_of(int socket) {
  struct stat status {};
  if (fstat(socket, &status) != 0 or not S_ISSOCK(status.st_mode)) return std::nullopt;
  return status.st_ino;
}

/// Builds of Open MPI for machines of several kinds send it in network byte order, all others as it is. Of a rank below 2^16, the other way to read it is larger.
std::uint32_t rank_in(const Handshake& handshake) { return std::min<std::uint32_t>(handshake.process, ntohl(handshake.process)); }

/// Of a read of nothing, which is the connection's end, too.
bool is_final(ssize_t result, int problem) { return result == 0 or (result < 0 and problem != EINTR and problem != EAGAIN and problem != EWOULDBLOCK and problem != EFAULT); }

}  // namespace

void TcpConnections::heard(int socket, std::span<const std::byte> bytes) {
  Handshake handshake;
  if (bytes.size() != sizeof handshake) return;
  std::memcpy(&handshake, bytes.data(), sizeof handshake);
  const std::uint32_t rank = rank_in(handshake);
  if (std::string_view(handshake.magic, kMagicOfTcp.size()) != kMagicOfTcp or rank > std::numeric_limits<std::uint16_t>::max()) return;
  const std::optional<ino_t> inode = inode_of(socket);
  const std::lock_guard lock(mutex_);
  if (inode) connections_[socket] = {static_cast<int>(rank), *inode};
}

bool TcpConnections::hides(int socket, ssize_t result, int problem) {
  if (not is_final(result, problem)) return false;
  const std::lock_guard lock(mutex_);
  const auto found = connections_.find(socket);
  if (found == connections_.end() or found->second.inode != inode_of(socket)) return false;
  const int rank = found->second.rank;
  const std::optional<int> other_end = silence(socket);
  if (not other_end) return false;
  other_ends_.push_back(*other_end);
  connections_.erase(found);
  if (not lost_) lost_ = {rank, result == 0 ? "the connection was closed" : std::generic_category().message(problem)};
  return true;
}

/// An error would not do: whoever waits for events would get them over and over, and libevent, which MPI asks for events, goes on until there are none. The other end of what takes its place.
std::optional<int> TcpConnections::silence(int socket) {
  int ends[2] = {};
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends) != 0) return std::nullopt;
  const bool is_replaced = dup3(ends[0], socket, O_CLOEXEC) == socket;
  close(ends[0]);
  if (is_replaced) return ends[1];
  close(ends[1]);
  return std::nullopt;
}

std::optional<TcpConnections::Lost> TcpConnections::lost() const {
  const std::lock_guard lock(mutex_);
  return lost_;
}

void TcpConnections::forget() {
  const std::lock_guard lock(mutex_);
  connections_.clear();
  for (const int end : other_ends_) close(end);
  other_ends_.clear();
  lost_.reset();
}

}  // namespace hone
