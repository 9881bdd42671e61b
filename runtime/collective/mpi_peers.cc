#include "runtime/collective/mpi_peers.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <immintrin.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <thread>

#include "base/check.h"
#include "base/diag.h"
#include "base/text.h"

namespace hone {

using std::chrono::steady_clock;
using namespace std::chrono_literals;

namespace {

constexpr int kControlTag = 7;
/// A message that has not come yet mostly comes soon. Later the core is left to others, and at last slept on: there may be more replicas than cores.
constexpr auto kSpin = 50us, kYield = 2000us, kShortestSleep = 50us, kLongestSleep = 1000us;
/// More than that between two looks at the clock, and it was this process that did not run.
constexpr auto kLongestStep = 200ms;
constexpr auto kLongestFarewell = 1000ms;
/// MPI's word on a peer may be late: so long, a word on why that one has left may still come.
constexpr auto kLateNews = 300ms;

/// Also while its parent has not asked for its exit code yet, which mpirun does late.
bool has_ended(std::uint32_t process) {
  std::ifstream file(fmt::format("/proc/{}/stat", process));
  std::string text;
  if (not std::getline(file, text)) return kill(static_cast<pid_t>(process), 0) != 0 and errno == ESRCH;
  const std::size_t name_end = text.rfind(") ");  // NUMBER (NAME) STATE
  return name_end != std::string::npos and (text[name_end + 2] == 'Z' or text[name_end + 2] == 'X');
}

}  // namespace

struct MpiPeers::Waiting {
  steady_clock::time_point last{};
  steady_clock::duration waited{}, next_word{};
};

std::string MpiPeers::name_of(int rank) const {
  const Peer& peer = peers_[rank];
  return peer.host.empty() ? fmt::format("{}", rank) : fmt::format("{} (process {} on {})", rank, peer.process, peer.host);
}

Error MpiPeers::error() const {
  const char* const look = failure_->blame == Blame::kFails ? "look at that replica's own messages"
                                                            : "look whether its process and its machine live and can be reached; if it is only slow, a larger --collective-timeout waits for it";
  return Error(Code::kPeer, failure_->text, {}, {look, "the other replicas cannot go on without it; start again with --resume"});
}

void MpiPeers::begin(const char* name) {
  if (failure_) throw error();
  HONE_CHECK(requests_.empty(), "a call begins within another");
  call_ = name;
}

void MpiPeers::post(const Transfer& transfer, int posted, MPI_Request request) {
  if (posted != MPI_SUCCESS) connection_broke(transfer.peer, mpi_.text_of(posted));
  requests_.push_back(request);
  transfers_.push_back(transfer);
}

/// Looks first, which also lets MPI see broken connections: Open MPI 4.1 over TCP may never return where it learns by writing that a peer has gone.
void MpiPeers::send(const Transfer& transfer, const void* from) {
  look_around();
  MPI_Request request = nullptr;
  const int posted = (CallWatch::Call(watch_), mpi_.Isend(from, static_cast<int>(transfer.bytes), mpi_.byte, transfer.peer, transfer.tag, data_, &request));
  post(transfer, posted, request);
}

void MpiPeers::receive(const Transfer& transfer, void* to) {
  MPI_Request request = nullptr;
  const int posted = (CallWatch::Call(watch_), mpi_.Irecv(to, static_cast<int>(transfer.bytes), mpi_.byte, transfer.peer, transfer.tag, data_, &request));
  post(transfer, posted, request);
}

std::span<const MpiPeers::Transfer> MpiPeers::wait_some() {
  HONE_CHECK(not requests_.empty(), "nothing is under way");
  if (indices_.size() < requests_.size()) {
    indices_.resize(requests_.size());
    statuses_.resize(requests_.size());
  }
  Waiting waiting;
  for (;;) {
    int count = 0;
    const int result = (CallWatch::Call(watch_), mpi_.Testsome(static_cast<int>(requests_.size()), requests_.data(), &count, indices_.data(), statuses_.data()));
    if (count == MPI_UNDEFINED) count = 0;
    if (result == MPI_SUCCESS and count == 0) {
      rest(waiting);
      continue;
    }
    take_finished(result, count);
    return finished_;
  }
}

void MpiPeers::wait_all() {
  while (not requests_.empty()) wait_some();
}

/// Moves the transfers at indices_ from those under way to finished_.
void MpiPeers::take_finished(int result, int count) {
  finished_.clear();
  if (result != MPI_SUCCESS and result != MPI_ERR_IN_STATUS) connection_broke(-1, mpi_.text_of(result));
  for (int i = 0; i < count; ++i) {
    Transfer& transfer = transfers_[static_cast<std::size_t>(indices_[static_cast<std::size_t>(i)])];
    const MPI_Status& status = statuses_[static_cast<std::size_t>(i)];
    if (result == MPI_ERR_IN_STATUS and status.MPI_ERROR != MPI_SUCCESS) connection_broke(transfer.peer, mpi_.text_of(status.MPI_ERROR));
    if (int bytes = 0; transfer.receives and mpi_.Get_count(&status, mpi_.byte, &bytes) == MPI_SUCCESS) transfer.bytes = static_cast<std::size_t>(bytes);
    finished_.push_back(transfer);
    transfer.tag = -1;
  }
  std::size_t left = 0;
  for (std::size_t i = 0; i < transfers_.size(); ++i)
    if (transfers_[i].tag >= 0) {
      transfers_[left] = transfers_[i];
      requests_[left++] = requests_[i];
    }
  transfers_.resize(left);
  requests_.resize(left);
}

/// Between two looks at what is under way.
void MpiPeers::rest(Waiting& waiting) {
  const auto now = steady_clock::now();
  if (waiting.last == steady_clock::time_point{}) {
    waiting.last = now;
    waiting.next_word = timeout_ / 8;
  }
  waiting.waited += std::min<steady_clock::duration>(now - waiting.last, kLongestStep);  // a job that was stopped as a whole goes on
  waiting.last = now;
  if (waiting.waited < kSpin) return _mm_pause();
  look_around();
  if (waiting.waited >= waiting.next_word) {
    say_that_it_waits();
    waiting.next_word += timeout_ / 8;
  }
  if (waiting.waited >= timeout_) nobody_came();
  if (waiting.waited < kYield) std::this_thread::yield();
  else std::this_thread::sleep_for(std::clamp<steady_clock::duration>(waiting.waited / 16, kShortestSleep, kLongestSleep));
}

/// What others say comes before what this one sees. Who fails by itself has met all others, so what they need of it to have met, too, is sent: they go on to their next call. Each then finds by itself what is wrong with its own command, as it would alone.
void MpiPeers::look_around() {
  look_for_messages();
  if (failure_ and failure_->blame == Blame::kFails and not have_met_) return;
  if (failure_) throw error();
  if (const auto lost = connections_.lost()) connection_broke(lost->rank, lost->why);
}

/// The first failure that is heard of counts, and is passed on; but who is there knows that it is the other one that cannot be reached.
void MpiPeers::look_for_messages() {
  for (;;) {
    int is_there = 0;
    MPI_Status status{};
    Control control;
    if ((CallWatch::Call(watch_), mpi_.Iprobe(MPI_ANY_SOURCE, kControlTag, messages_, &is_there, &status)) != MPI_SUCCESS or is_there == 0) return;
    const int from = status.MPI_SOURCE;
    if ((CallWatch::Call(watch_), mpi_.Recv(&control, sizeof control, mpi_.byte, from, kControlTag, messages_, &status)) != MPI_SUCCESS) return;
    Peer& peer = peers_[from];
    if (control.blame == Blame::kWaits) {
      peer.waits_for = control.about;
      peer.heard = steady_clock::now();
      continue;
    }
    peer.knows = true;
    if (failure_) continue;
    control.text[sizeof control.text - 1] = '\0';
    const bool is_refuted = control.blame == Blame::kUnreachable and control.about == rank_;
    failure_ = is_refuted ? unreachable({from}, "it cannot reach this one") : Failure{control.blame, control.text};
    spread({is_refuted ? from : control.about});
  }
}

void MpiPeers::say_that_it_waits() {
  const std::vector<int> blamed = culprits();
  for (int peer = 0; peer < size_; ++peer) {
    Outbox& outbox = waits_[static_cast<std::size_t>(peer)];
    MPI_Status status;
    int done = 1;
    if (outbox.under_way and ((CallWatch::Call(watch_), mpi_.Test(&outbox.request, &done, &status)) != MPI_SUCCESS or done == 0)) continue;  // it does not take what was sent before
    outbox.under_way = false;
    if (peer == rank_) continue;
    outbox.control = {.about = blamed.empty() ? -1 : blamed.front()};
    outbox.under_way = (CallWatch::Call(watch_), mpi_.Isend(&outbox.control, sizeof outbox.control, mpi_.byte, peer, kControlTag, messages_, &outbox.request)) == MPI_SUCCESS;
  }
}

/// Those with whom a transfer is under way, in order.
std::vector<int> MpiPeers::missing() const {
  std::vector<int> ranks;
  for (int peer = 0; peer < size_; ++peer)
    if (peer != rank_ and std::any_of(transfers_.begin(), transfers_.end(), [&](const Transfer& transfer) { return transfer.peer == peer or transfer.peer < 0; })) ranks.push_back(peer);
  return ranks;
}

/// Of all that were seen to be gone: who is missing may have gone because of another.
std::optional<int> MpiPeers::first_gone() const {
  std::optional<int> first;
  for (int rank = 0; rank < size_; ++rank)
    if (peers_[rank].gone != 0 and (not first or peers_[rank].gone < peers_[*first].gone)) first = rank;
  return first;
}

/// The first whose process was seen to be gone; else, of the missing, those that have not said lately that they wait themselves; else those for whom they wait.
std::vector<int> MpiPeers::culprits() const {
  const auto waits = [&](int rank) {
    const auto& heard = peers_[rank].heard;
    return rank == rank_ or (heard and steady_clock::now() - *heard < timeout_ / 2);
  };
  const std::vector<int> candidates = missing();
  std::vector<int> blamed;
  if (const std::optional<int> gone = first_gone()) return {*gone};
  for (const int rank : candidates)
    if (not waits(rank)) blamed.push_back(rank);
  if (not blamed.empty()) return blamed;
  for (const int rank : candidates)
    if (const int other = peers_[rank].waits_for; other >= 0 and not waits(other)) blamed.push_back(other);
  std::sort(blamed.begin(), blamed.end());
  blamed.erase(std::unique(blamed.begin(), blamed.end()), blamed.end());
  return blamed.empty() ? candidates : blamed;
}

/// "rank 1 (process 12 on a)", "ranks 1 (...) and 2 (...)"
std::string MpiPeers::names_of(const std::vector<int>& ranks, std::string_view between) const {
  std::vector<std::string> names;
  for (const int rank : ranks) names.push_back(name_of(rank));
  return fmt::format("rank{} {}", names.size() == 1 ? "" : "s", fmt::join(names, between));
}

MpiPeers::Failure MpiPeers::nobody_came_to(const std::vector<int>& blamed) const {
  const double seconds = std::chrono::duration<double>(timeout_).count();
  return {Blame::kMissing, fmt::format("{} did not come within {} (rank {} waited in {})", names_of(blamed, " and "), human_duration(seconds), rank_, call_)};
}

void MpiPeers::nobody_came() {
  look_for_messages();
  if (failure_) throw error();
  const std::vector<int> blamed = culprits();
  failure_ = nobody_came_to(blamed);
  spread(blamed);
  throw error();
}

/// In the watch's thread, as the next one.
void MpiPeers::look_who_is_gone() {
  if (not are_known_) return;
  for (int peer = 0; peer < size_; ++peer)
    if (peers_[peer].is_here and peers_[peer].gone == 0 and has_ended(peers_[peer].process))
      peers_[peer].gone = steady_clock::now().time_since_epoch().count();
}

/// The other thread is within MPI for good, and what it has written before is seen.
void MpiPeers::is_stuck() {
  if (not failure_) failure_ = nobody_came_to(culprits());
  say(error());
  std::_Exit(exit_code(Code::kPeer));
}

void MpiPeers::say(const Error& error) const {
  when_stuck_(error);
  std::fputs((std::string(error.what()) + "\n").c_str(), stderr);
}

/// It does not say which connection broke: a process that is gone within a moment is to blame, else any to which something was being sent.
void MpiPeers::is_ended_by_mpi() {
  const auto someone_is_gone = [&] { return std::any_of(&peers_[0], &peers_[size_], [](const Peer& peer) { return peer.gone != 0; }); };
  for (const auto end = steady_clock::now() + kLateNews; not failure_ and not someone_is_gone() and steady_clock::now() < end; std::this_thread::sleep_for(5ms)) look_who_is_gone();
  if (not failure_) failure_ = unreachable(culprits(), "a connection broke during a write, and MPI ends this process");
  say(with_note(error(), "MPI ends this process where it is, before it can say in which step"));
}

/// Names this one, too: who hears of it cannot know which of the two is cut off from the others.
MpiPeers::Failure MpiPeers::unreachable(const std::vector<int>& blamed, std::string_view why) const {
  return {Blame::kUnreachable, fmt::format("{} cannot be reached from rank {} in {}: {}", names_of(blamed, " or "), name_of(rank_), call_, why)};
}

/// The end of one connection may be seen late: where that peer has only left because of another, the word about the other is on its way.
void MpiPeers::connection_broke(int peer, std::string_view why) {
  for (const auto end = steady_clock::now() + kLateNews; not failure_ and steady_clock::now() < end; std::this_thread::sleep_for(1ms)) look_for_messages();
  if (not failure_) {
    const std::optional<int> gone = first_gone();
    const int blamed = gone.value_or(peer);
    failure_ = blamed < 0 or blamed >= size_ ? Failure{Blame::kUnreachable, fmt::format("MPI fails in {}: {}", call_, why)} : unreachable({blamed}, why);
    spread(blamed < 0 or blamed >= size_ ? std::vector<int>{} : std::vector{blamed});
  }
  throw error();
}

/// Tells all of failure_, and waits a moment until they have said the same: a process that ends while messages to it are under way may take its own ones with it.
void MpiPeers::spread(const std::vector<int>& blamed) {
  for (int peer = 0; peer < size_; ++peer) {
    if (peer == rank_) continue;
    Outbox& outbox = failures_[static_cast<std::size_t>(peer)];
    outbox.control = {.blame = failure_->blame, .about = blamed.empty() ? -1 : blamed.front()};
    const std::size_t length = std::min(failure_->text.size(), sizeof outbox.control.text - 1);
    std::memcpy(outbox.control.text, failure_->text.data(), length);
    outbox.under_way = (CallWatch::Call(watch_), mpi_.Isend(&outbox.control, sizeof outbox.control, mpi_.byte, peer, kControlTag, messages_, &outbox.request)) == MPI_SUCCESS;
  }
  const auto is_waited_for = [&](int peer) {
    return peer != rank_ and not peers_[peer].knows and std::find(blamed.begin(), blamed.end(), peer) == blamed.end();
  };
  for (const auto end = steady_clock::now() + std::min<steady_clock::duration>(timeout_, kLongestFarewell); steady_clock::now() < end; std::this_thread::sleep_for(200us)) {
    bool all_know = true;
    for (int peer = 0; peer < size_; ++peer) all_know = all_know and not is_waited_for(peer);
    if (all_know) break;
    look_for_messages();
  }
}

void MpiPeers::fail(const char* why) noexcept {
  try {
    if (failure_) return;
    failure_ = Failure{Blame::kFails, fmt::format("rank {} has failed: {}", name_of(rank_), why)};
    spread({});
  } catch (...) {  // no memory: the others will miss it
  }
}

}  // namespace hone
