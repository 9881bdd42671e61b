// What Open MPI is shown of connections that break.
#include "runtime/collective/tcp_connections.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <utility>

namespace hone::test {
namespace {

/// Two ends.
class Sockets {
 public:
  Sockets() { EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, ends_.data()), 0); }
  ~Sockets() {
    for (const int end : ends_)
      if (end >= 0) close(end);
  }
  Sockets(const Sockets&) = delete;
  Sockets& operator=(const Sockets&) = delete;
  int here() const { return ends_[0]; }
  void close_there() { close(std::exchange(ends_[1], -1)); }

 private:
  std::array<int, 2> ends_{};
};

/// What Open MPI says first. Of a job's number and the process's in it, in the machine's byte order or in that of the network.
std::string handshake(std::uint32_t rank, const std::string& magic = "OPAL-TCP-BTL") {
  const std::array<std::uint32_t, 2> name = {77, rank};
  std::string text(24, '\0');
  std::memcpy(text.data(), name.data(), sizeof name);
  std::memcpy(text.data() + sizeof name, magic.data(), magic.size());
  return text;
}

void hear(TcpConnections& connections, int socket, const std::string& text) { connections.heard(socket, std::as_bytes(std::span(text))); }

/// Whoever waits for the socket waits for ever, and what is written goes somewhere.
void expect_silence(int socket) {
  pollfd waits = {.fd = socket, .events = POLLIN, .revents = 0};
  EXPECT_EQ(poll(&waits, 1, 0), 0);
  char byte = 'x';
  EXPECT_EQ(read(socket, &byte, 1), -1);
  EXPECT_EQ(errno, EAGAIN);
  EXPECT_EQ(write(socket, &byte, 1), 1);
}

TEST(TcpConnections, NamesTheFirstRankThatWasLostAndSilencesAll) {
  Sockets two, five;
  TcpConnections connections;
  hear(connections, two.here(), handshake(2));
  hear(connections, five.here(), handshake(htonl(5)));
  EXPECT_FALSE(connections.lost());
  five.close_there();
  two.close_there();
  EXPECT_TRUE(connections.hides(five.here(), -1, EPIPE));
  EXPECT_TRUE(connections.hides(two.here(), 0, 0));
  for (const int socket : {five.here(), two.here()}) expect_silence(socket);
  ASSERT_TRUE(connections.lost());
  EXPECT_EQ(connections.lost()->rank, 5);
  EXPECT_EQ(connections.lost()->why, "Broken pipe");
}

TEST(TcpConnections, SaysThatTheOtherEndWasClosed) {
  const Sockets two;
  TcpConnections connections;
  hear(connections, two.here(), handshake(2));
  EXPECT_TRUE(connections.hides(two.here(), 0, 0));
  EXPECT_EQ(connections.lost()->why, "the connection was closed");
}

TEST(TcpConnections, LetsThroughWhatIsNoEnd) {
  const Sockets two;
  TcpConnections connections;
  hear(connections, two.here(), handshake(2));
  for (const int problem : {EAGAIN, EINTR, EFAULT}) EXPECT_FALSE(connections.hides(two.here(), -1, problem));
  EXPECT_FALSE(connections.hides(two.here(), 7, 0));
  EXPECT_FALSE(connections.lost());
}

TEST(TcpConnections, LearnsNothingFromOtherBytes) {
  const Sockets socket;
  TcpConnections connections;
  for (const std::string& text : {std::string(), handshake(2).substr(0, 23), handshake(2) + "x", handshake(2, "OPAL-TCP-BTX"), handshake(2, "OPAL-TCP-BTL2"), handshake(0x00010001U), std::string(1 << 20, 'O')}) {
    hear(connections, socket.here(), text);
    EXPECT_FALSE(connections.hides(socket.here(), 0, 0));
  }
  EXPECT_FALSE(connections.lost());
}

TEST(TcpConnections, LetsThroughTheEndOfAnotherFileOfTheSameNumber) {
  TcpConnections connections;
  int number = 0;
  {
    const Sockets two;
    number = two.here();
    hear(connections, number, handshake(2));
  }
  EXPECT_FALSE(connections.hides(number, -1, EBADF));
  const Sockets other;
  ASSERT_EQ(other.here(), number);
  EXPECT_FALSE(connections.hides(number, 0, 0));
  hear(connections, number, handshake(3));
  EXPECT_TRUE(connections.hides(number, 0, 0));
  EXPECT_EQ(connections.lost()->rank, 3);
}

TEST(TcpConnections, HidesNothingAfterTheEnd) {
  const Sockets two;
  TcpConnections connections;
  hear(connections, two.here(), handshake(2));
  connections.forget();
  EXPECT_FALSE(connections.hides(two.here(), 0, 0));
}

}  // namespace
}  // namespace hone::test
