// How the processes of a job meet, and how they part: MpiPeers' begin and end.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <functional>
#include <future>
#include <map>
#include <memory>
#include <thread>

#include "base/check.h"
#include "base/text.h"
#include "runtime/collective/mpi_launch.h"
#include "runtime/collective/mpi_peers.h"

namespace hone {
namespace {

constexpr int kGreetingTag = 6;
constexpr std::uint32_t kMagic = 0x454E4F48;  // "HONE"
constexpr std::uint32_t kProtocol = 2;        // of this file, mpi_peers, exchange_plan and mpi_communicator: a change of what travels is another number

/// What replicas say to each other first. `magic`, `bytes`, `protocol` and `version` stay where they are in all protocols, so that others can at least say what differs.
struct Greeting {
  std::uint32_t magic = kMagic;
  std::uint32_t bytes = sizeof(Greeting);
  std::uint32_t protocol = kProtocol;
  char version[64] = {};
  std::uint32_t process = 0;
  char host[64] = {};
  char machine[96] = {};  // as booted, and its numbering of processes: the same where one replica's kill() means another
};
constexpr std::size_t kLargestGreeting = 1024;

template <std::size_t N>
void put(char (&to)[N], const std::string& text) {
  std::memcpy(to, text.data(), std::min(text.size(), N - 1));
}
template <std::size_t N>
std::string text_in(const char (&from)[N]) {
  return printable(std::string_view(from, ::strnlen(from, N)));
}

std::string machine() {
  std::array<char, 64> numbering{};
  std::string boot;
  if (std::ifstream file("/proc/sys/kernel/random/boot_id"); not std::getline(file, boot)) return "";
  return readlink("/proc/self/ns/pid", numbering.data(), numbering.size() - 1) > 0 ? boot + numbering.data() : "";
}

std::atomic<bool> is_open = false, was_opened = false;
// For a program's _exit, which gets no argument of ours:
std::atomic<MpiPeers*> the_peers = nullptr;
std::atomic<MpiPeers*> the_starting = nullptr;  // within MPI_Init, which ends the process itself where it finds no way to another

TcpConnections& the_connections() {
  static TcpConnections connections;
  return connections;
}

extern "C" void end_of_a_start() {
  if (the_starting != nullptr) std::_Exit(exit_code_where_mpi_ends(EXIT_FAILURE));
}

/// Runs `call` in a thread of its own, since MPI has calls that may never return. Nothing, and the thread stays behind, where it does not return in time.
std::optional<int> result_within(std::chrono::steady_clock::duration timeout, std::function<int()> call) {
  auto promise = std::make_shared<std::promise<int>>();
  std::future<int> result = promise->get_future();
  std::thread([promise, call = std::move(call)] { promise->set_value(call()); }).detach();
  if (result.wait_for(timeout) != std::future_status::ready) return std::nullopt;
  return result.get();
}

}  // namespace

bool has_mpi() { return true; }
bool mpi_is_unfinished() { return is_open; }

void heard_by_mpi(int socket, const void* bytes, std::size_t count) noexcept {
  if (not is_open) return;
  try {
    the_connections().heard(socket, {static_cast<const std::byte*>(bytes), count});
  } catch (...) {  // no memory: this connection's end will not be hidden
  }
}

bool hidden_from_mpi(int socket, ssize_t result, int problem) noexcept {
  if (not is_open) return false;
  try {
    return the_connections().hides(socket, result, problem);
  } catch (...) {  // no memory
    return false;
  }
}

int exit_code_where_mpi_ends(int status) noexcept {
  MpiPeers *const peers = the_peers, *const starting = the_starting.exchange(nullptr);
  if (starting == nullptr and (peers == nullptr or not peers->is_in_call())) return status;
  try {
    if (starting != nullptr) starting->cannot_start();
    else peers->is_ended_by_mpi();
  } catch (...) {  // no memory: MPI itself has said something
  }
  return exit_code(Code::kPeer);
}

MpiPeers::MpiPeers(const MpiOptions& options)
    : mpi_(mpi_library()), connections_(the_connections()), timeout_(options.timeout), when_stuck_(options.when_stuck ? options.when_stuck : [](const Error&) {}), watch_(options.timeout, [this] { look_who_is_gone(); }, [this] { is_stuck(); }) {
  start_mpi();
  the_peers = this;
  greet(options.version);
  duplicate_world();
  have_met_ = true;
}

MpiPeers::~MpiPeers() { the_peers = nullptr; }

void MpiPeers::start_mpi() {
  HONE_CHECK(not was_opened.exchange(true), "MPI cannot be started twice in a process");
  is_open = true;
  struct sigaction action {};
  if (sigaction(SIGPIPE, nullptr, &action) == 0 and action.sa_handler == SIG_DFL) signal(SIGPIPE, SIG_IGN);  // MPI writes to peers that have gone: no reason to end without a word
  std::atexit(end_of_a_start);  // another way of MPI to end the process
  the_starting = this;
  const std::optional<int> result = result_within(timeout_, [&mpi = mpi_] {
    int given = 0;
    const int started = mpi.Init_thread(nullptr, nullptr, MPI_THREAD_SERIALIZED, &given);
    return started == MPI_SUCCESS and given < MPI_THREAD_SERIALIZED ? MPI_ERR_OTHER : started;
  });
  the_starting = nullptr;
  const double seconds = std::chrono::duration<double>(timeout_).count();
  if (not result)
    throw Error(Code::kPeer, fmt::format("MPI did not start within {}: a replica has not come, or its machine cannot be reached", human_duration(seconds)), {},
                {"look at the other replicas' messages and at those of mpirun; if they are only slow, a larger --collective-timeout waits for them"});
  if (*result != MPI_SUCCESS) throw Error(Code::kPeer, "MPI cannot be started: " + mpi_.text_of(*result), {}, {"look at the messages of MPI above"});
  messages_ = data_ = mpi_.world;
  mpi_.Comm_set_errhandler(mpi_.world, mpi_.errors_return);
  mpi_.Comm_rank(mpi_.world, &rank_);
  mpi_.Comm_size(mpi_.world, &size_);
  peers_ = std::make_unique<Peer[]>(static_cast<std::size_t>(size_));
  waits_.resize(static_cast<std::size_t>(size_));
  failures_.resize(static_cast<std::size_t>(size_));
}

void MpiPeers::cannot_start() const {
  const LaunchedRank own = launched_rank().value_or(LaunchedRank{});
  const Error error(Code::kPeer, fmt::format("MPI cannot start on rank {} of {}: it finds no way to another replica, or to its machine", own.rank, own.size), {},
                    {"Open MPI's own messages say more", "look at the machines' names and firewalls, and at the interfaces and ports that it was told to use (--mca btl_tcp_if_include, btl_tcp_port_min_v4, ...)"});
  say(error);
}

/// All learn who the others are, and whether they are the same Hone.
void MpiPeers::greet(const std::string& version) {
  Greeting own;
  own.process = static_cast<std::uint32_t>(getpid());
  put(own.version, version);
  put(own.machine, machine());
  std::array<char, 256> host{};
  if (gethostname(host.data(), host.size() - 1) == 0) put(own.host, host.data());

  std::vector<std::array<std::byte, kLargestGreeting>> others(static_cast<std::size_t>(size_));
  for (int peer = 0; peer < size_; ++peer) {
    if (peer == rank_) continue;
    receive({.peer = peer, .tag = kGreetingTag, .receives = true, .bytes = kLargestGreeting}, others[static_cast<std::size_t>(peer)].data());
    send({.peer = peer, .tag = kGreetingTag, .bytes = sizeof own}, &own);
  }
  wait_all();
  std::vector<std::string> versions;
  for (int rank = 0; rank < size_; ++rank) {
    Greeting greeting = own;
    if (rank != rank_) std::memcpy(&greeting, others[static_cast<std::size_t>(rank)].data(), sizeof greeting);
    versions.push_back(greeting.magic == kMagic ? fmt::format("{} (protocol {})", text_in(greeting.version), greeting.protocol) : "another program");
    if (greeting.magic != kMagic or greeting.protocol != kProtocol) continue;
    peers_[rank].process = greeting.process;
    peers_[rank].host = text_in(greeting.host);
    peers_[rank].is_here = rank != rank_ and greeting.machine[0] != '\0' and std::memcmp(greeting.machine, own.machine, sizeof own.machine) == 0;
  }
  are_known_ = true;
  check_versions(versions);
}

void MpiPeers::check_versions(const std::vector<std::string>& versions) {
  std::map<std::string, std::vector<int>> ranks;
  for (std::size_t rank = 0; rank < versions.size(); ++rank) ranks[versions[rank]].push_back(static_cast<int>(rank));
  if (ranks.size() == 1) return;
  std::vector<std::string> groups;
  for (const auto& [version, same] : ranks) groups.push_back(fmt::format("{} on rank{} {}", version, same.size() == 1 ? "" : "s", fmt::join(same, ", ")));
  throw Error(Code::kPeer, fmt::format("the replicas run different versions: {}", fmt::join(groups, "; ")), {}, {"install the same Hone on all machines"});
}

/// Data travel in a communicator of their own; messages about failures stay in the world, which all have from the beginning.
void MpiPeers::duplicate_world() {
  MPI_Comm duplicate = nullptr;
  MPI_Request request = nullptr;
  const int result = mpi_.Comm_idup(mpi_.world, &duplicate, &request);
  post({.peer = -1}, result, request);
  wait_all();
  mpi_.Comm_set_errhandler(duplicate, mpi_.errors_return);
  data_ = duplicate;
}

void MpiPeers::finish() {
  connections_.forget();  // who has come to its end closes them
  if (result_within(timeout_, [&mpi = mpi_] { return mpi.Finalize(); }) == MPI_SUCCESS) is_open = false;
}

}  // namespace hone
