// The processes of one job: messages between them, waits that end, and who is to blame when they end badly.
//
// A replica that waits for long says so to all (kWaits), with the one it waits for. So at a timeout the replicas that are there, but wait themselves, are told from the one that is not,
// and who was only held up by it is not blamed. Who gives up tells all whom it blames, and waits a moment until they have heard: all name the same replica, the first that was named.
// A TCP connection that broke is the end of waiting, where the program hides it from MPI (tcp_connections.h). Where it does not, Open MPI 4.1 may loop for ever in a call (opal_progress finds its list of events in a
// circle), and such a replica is silent: so a process of this machine that has ended is to blame before one that is silent, and a thread watches for calls that do not come back, and ends the process.
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/diag.h"
#include "runtime/collective/call_watch.h"
#include "runtime/collective/mpi_communicator.h"
#include "runtime/collective/mpi_library.h"
#include "runtime/collective/tcp_connections.h"

namespace hone {

class MpiPeers {
 public:
  /// Starts MPI and waits for all.
  explicit MpiPeers(const MpiOptions& options);
  MpiPeers(const MpiPeers&) = delete;
  MpiPeers& operator=(const MpiPeers&) = delete;
  ~MpiPeers();

  int rank() const { return rank_; }
  int size() const { return size_; }
  bool is_broken() const { return failure_.has_value(); }

  /// A call begins; `name` stands in messages.
  void begin(const char* name);

  /// A message that is under way. Those of one tag between two replicas come in the order in which they were sent.
  struct Transfer {
    int peer = 0;
    int tag = 0;  ///< 0 to 3
    bool receives = false;
    std::uint32_t chunk = 0;  ///< the caller's
    std::size_t bytes = 0;    ///< of one received: the most that may come, then those that came
  };
  /// The memory must stay as it is until the transfer has been returned by wait_some, or until the process ends.
  void send(const Transfer& transfer, const void* from);
  void receive(const Transfer& transfer, void* to);
  /// Waits until one or more of the transfers are done and returns those; valid until the next call. Throws kPeer.
  std::span<const Transfer> wait_some();

  void fail(const char* why) noexcept;
  /// In the thread whose call it is: MPI ends the process, and none of its functions can be called any more. Returns where no call is under way, or when all is said.
  void is_ended_by_mpi();
  /// The same, while it starts.
  void cannot_start() const;
  bool is_in_call() const { return watch_.is_in_call(); }
  std::chrono::milliseconds timeout() const { return std::chrono::duration_cast<std::chrono::milliseconds>(timeout_); }
  /// The clean end, after a last meeting of all.
  void finish();

 private:
  enum class Blame : std::uint32_t {
    kWaits,        ///< nobody yet: the sender lives, and waits for `about`
    kFails,        ///< `about` said so
    kMissing,      ///< `about` did not come
    kUnreachable,  ///< a connection to `about` broke
  };
  /// Small enough that MPI sends it at once, whatever the receiver does.
  struct Control {
    Blame blame = Blame::kWaits;
    std::int32_t about = -1;
    char text[1000] = {};
  };
  /// A message of ours to a peer, until MPI has taken it.
  struct Outbox {
    Control control;
    MPI_Request request = nullptr;
    bool under_way = false;
  };
  struct Waiting;
  struct Failure {
    Blame blame;
    std::string text;
  };
  struct Peer {
    std::string host;
    std::uint32_t process = 0;
    int waits_for = -1;
    std::optional<std::chrono::steady_clock::time_point> heard;  // that it waits
    bool knows = false;                                          // of the failure
    bool is_here = false;                                        // on this machine
    std::atomic<std::int64_t> gone = 0;                          // when its process was first seen not to be there, if it is here
  };

  // mpi_connect.cc
  void start_mpi();
  void greet(const std::string& version);
  void duplicate_world();
  void check_versions(const std::vector<std::string>& versions);

  void post(const Transfer& transfer, int posted, MPI_Request request);
  void wait_all();
  void take_finished(int result, int count);
  void rest(Waiting& waiting);
  void look_for_messages();
  void say_that_it_waits();
  std::vector<int> missing() const;
  std::optional<int> first_gone() const;
  std::vector<int> culprits() const;
  std::string name_of(int rank) const;
  Error error() const;
  Failure nobody_came_to(const std::vector<int>& blamed) const;
  Failure unreachable(const std::vector<int>& blamed, std::string_view why) const;
  std::string names_of(const std::vector<int>& ranks, std::string_view between) const;
  void look_who_is_gone();
  void is_stuck();
  void say(const Error& error) const;
  [[noreturn]] void nobody_came();
  void look_around();
  [[noreturn]] void connection_broke(int peer, std::string_view why);
  void spread(const std::vector<int>& blamed);

  const MpiLibrary& mpi_;
  TcpConnections& connections_;
  const std::chrono::steady_clock::duration timeout_;
  int rank_ = 0, size_ = 1;
  MPI_Comm messages_ = nullptr, data_ = nullptr;
  const char* call_ = "connecting";
  std::unique_ptr<Peer[]> peers_;  // by rank
  std::atomic<bool> are_known_ = false;
  bool have_met_ = false;  // what it takes to exchange data: nobody can fail before that but by being gone
  std::optional<Failure> failure_;

  // In flight, side by side
  std::vector<MPI_Request> requests_;
  std::vector<Transfer> transfers_;
  std::vector<MPI_Status> statuses_;
  std::vector<int> indices_;
  std::vector<Transfer> finished_;

  std::vector<Outbox> waits_, failures_;  // by peer

  const std::function<void(const Error&)> when_stuck_;
  CallWatch watch_;  // the last member: it uses the others
};

}  // namespace hone
