#include "runtime/collective/mpi_communicator.h"

#include <algorithm>
#include <array>
#include <exception>
#include <vector>

#include "base/check.h"
#include "runtime/collective/exchange_plan.h"
#include "runtime/collective/mpi_peers.h"
#include "runtime/collective/tree_sum.h"

namespace hone {
namespace {

constexpr std::uint32_t kWindow = 4;  // chunks under way, for each peer and stream
/// So few bytes go to all at once, and each sums all of them: one message instead of two, one after the other.
constexpr std::size_t kSmall = std::size_t{8} << 10;

/// What goes from one replica to another. A part is what one replica is to have first, whole then: in sums it gets the part from all and adds them up, in a broadcast from the root.
enum Stream : std::size_t {
  kPartOut,   ///< what this replica has of the peer's part
  kPartIn,    ///< what the peer has of this replica's part
  kWholeOut,  ///< this replica's part, now whole
  kWholeIn,   ///< the peer's
  kStreams
};
constexpr bool receives(Stream stream) { return stream == kPartIn or stream == kWholeIn; }
constexpr int tag_of(Stream stream) { return stream == kPartOut or stream == kPartIn ? 0 : 1; }
/// Of tags 0 and 1, and the direction.
constexpr Stream stream_of(const MpiPeers::Transfer& transfer) { return static_cast<Stream>(transfer.tag * 2 + (transfer.receives ? 1 : 0)); }

class Connected final : public MpiCommunicator {
 public:
  explicit Connected(const MpiOptions& options) : peers_(options), lanes_(static_cast<std::size_t>(peers_.size())) {}
  ~Connected() override;

  int rank() const override { return peers_.rank(); }
  std::chrono::milliseconds timeout() const override { return peers_.timeout(); }
  int size() const override { return peers_.size(); }
  bool is_broken() const override { return peers_.is_broken(); }
  bool mostly_waits() const override { return true; }
  void fail(const char* why) noexcept override { peers_.fail(why); }

  void all_reduce(std::span<const ExchangedTensor> tensors) override { exchange("all_reduce", tensors, {.parts = true, .wholes = true}); }
  void reduce_scatter(std::span<const ExchangedTensor> tensors) override { exchange("reduce_scatter", tensors, {.parts = true}); }
  void all_gather(std::span<const ExchangedTensor> tensors) override { exchange("all_gather", tensors, {.wholes = true}); }
  void broadcast(std::span<const ExchangedTensor> tensors, int root) override { exchange("broadcast", tensors, {.parts = true, .wholes = true, .root = root}); }
  void barrier() override;

 private:
  struct Kind {
    bool parts = false, wholes = false;
    int root = -1;  // of a broadcast
  };
  /// One stream between this replica and a peer.
  struct Lane {
    std::uint32_t next = 0;  // chunk to be posted
    std::array<bool, kWindow> busy{};
    std::array<std::vector<std::byte>, kWindow> scratch;

    /// Is the chunk done?
    bool is_done(std::uint32_t chunk) const { return chunk < next and (chunk + kWindow < next or not busy[chunk % kWindow]); }
  };
  using Lanes = std::array<Lane, kStreams>;

  void exchange(const char* name, std::span<const ExchangedTensor> tensors, Kind kind);
  bool has_stream(Stream stream, int peer) const;
  std::span<const ExchangedChunk> chunks_of(Stream stream, int peer) const { return plan_.part(stream == kPartOut or stream == kWholeIn ? peer : rank()); }
  bool may_post(Stream stream, int peer) const;
  void post(Stream stream, int peer);
  void finish(const MpiPeers::Transfer& transfer);
  void advance();
  bool may_complete() const;
  void complete_own(const ExchangedChunk& chunk);
  void sum(const ExchangedChunk& chunk);
  Lane& lane(Stream stream, int peer) { return lanes_[static_cast<std::size_t>(peer)][stream]; }
  const Lane& lane(Stream stream, int peer) const { return lanes_[static_cast<std::size_t>(peer)][stream]; }
  std::byte* scratch(std::vector<std::byte>& memory, const ExchangedChunk& chunk);

  MpiPeers peers_;
  const int exceptions_ = std::uncaught_exceptions();
  ExchangePlan plan_;
  std::span<const ExchangedTensor> tensors_;
  Kind kind_;
  std::vector<Lanes> lanes_;  // by peer
  std::uint32_t whole_ = 0;   // chunks of the own part that are whole
  std::size_t left_ = 0;      // transfers that are not done
  std::array<std::vector<std::byte>, kWindow> own_scratch_;  // packed chunks of the own part on their way to all
  std::vector<const void*> terms_;
};

Connected::~Connected() {
  if (std::uncaught_exceptions() > exceptions_) fail("it ended because of an error; see its own messages");
  if (is_broken()) return;
  try {
    barrier();
    peers_.finish();
  } catch (const std::exception& error) {  // what was to be done is done; mpi_is_unfinished() says how to leave
    fail(error.what());
  }
}

void Connected::barrier() {
  peers_.begin("barrier");
  static std::byte nothing;
  for (int peer = 0; peer < size(); ++peer) {
    if (peer == rank()) continue;
    peers_.receive({.peer = peer, .tag = 2, .receives = true}, &nothing);
    peers_.send({.peer = peer, .tag = 2}, &nothing);
  }
  for (int left = 2 * (size() - 1); left > 0;) left -= static_cast<int>(peers_.wait_some().size());
}

void Connected::exchange(const char* name, std::span<const ExchangedTensor> tensors, Kind kind) {
  peers_.begin(name);
  if (size() == 1) return;
  tensors_ = tensors;
  kind_ = kind;
  std::size_t bytes = 0;
  for (const ExchangedTensor& tensor : tensors) bytes += tensor.bytes();
  if (kind.parts and kind.wholes and bytes <= kSmall) {
    kind_.wholes = false;
    plan_.keep_whole(tensors, size());
  } else {
    plan_.cut_into_parts(tensors, size());
  }
  whole_ = 0;
  left_ = 0;
  for (int peer = 0; peer < size(); ++peer)
    for (std::size_t stream = 0; stream < kStreams; ++stream) {
      lane(Stream(stream), peer).next = 0;
      if (has_stream(Stream(stream), peer)) left_ += chunks_of(Stream(stream), peer).size();
    }
  for (advance(); left_ > 0; advance())
    for (const MpiPeers::Transfer& transfer : peers_.wait_some()) finish(transfer);
}

bool Connected::has_stream(Stream stream, int peer) const {
  if (peer == rank()) return false;
  const bool is_broadcast = kind_.root >= 0;
  switch (stream) {
    case kPartOut: return kind_.parts and (not is_broadcast or rank() == kind_.root);
    case kPartIn: return kind_.parts and (not is_broadcast or peer == kind_.root);
    case kWholeOut: return kind_.wholes and peer != kind_.root;
    case kWholeIn: return kind_.wholes and rank() != kind_.root;
    default: return false;
  }
}

bool Connected::may_post(Stream stream, int peer) const {
  if (not has_stream(stream, peer)) return false;
  const Lane& posted = lane(stream, peer);
  if (posted.next >= chunks_of(stream, peer).size() or posted.busy[posted.next % kWindow]) return false;
  switch (stream) {
    case kPartIn: return posted.next < whole_ + kWindow;  // its scratch is free when the chunk before in it has been summed
    case kWholeOut: return posted.next < whole_;
    case kWholeIn: return not has_stream(kPartOut, peer) or lane(kPartOut, peer).is_done(posted.next);  // what comes back lies where that was sent from
    default: return true;
  }
}

std::byte* Connected::scratch(std::vector<std::byte>& memory, const ExchangedChunk& chunk) {
  if (memory.size() < chunk.bytes) memory.resize(chunk.bytes);
  return memory.data();
}

void Connected::post(Stream stream, int peer) {
  Lane& posted = lane(stream, peer);
  const std::uint32_t number = posted.next++;
  const ExchangedChunk& chunk = chunks_of(stream, peer)[number];
  const bool is_summed = stream == kPartIn and kind_.root < 0;
  std::byte* place = is_summed ? nullptr : plan_.in_place(chunk);
  if (place == nullptr and stream == kWholeOut) {
    place = own_scratch_[number % kWindow].data();
  } else if (place == nullptr) {
    place = scratch(posted.scratch[number % kWindow], chunk);
    if (stream == kPartOut) plan_.pack(chunk, place);
  }
  posted.busy[number % kWindow] = true;
  const MpiPeers::Transfer transfer = {.peer = peer, .tag = tag_of(stream), .receives = receives(stream), .chunk = number, .bytes = chunk.bytes};
  if (receives(stream)) peers_.receive(transfer, place);
  else peers_.send(transfer, place);
}

void Connected::finish(const MpiPeers::Transfer& transfer) {
  const Stream stream = stream_of(transfer);
  Lane& done = lane(stream, transfer.peer);
  const ExchangedChunk& chunk = chunks_of(stream, transfer.peer)[transfer.chunk];
  HONE_CHECK(transfer.bytes == chunk.bytes, "replicas exchange different tensors");
  done.busy[transfer.chunk % kWindow] = false;
  --left_;
  if (stream == kWholeIn and plan_.in_place(chunk) == nullptr) plan_.unpack(chunk, done.scratch[transfer.chunk % kWindow].data());
}

/// Goes on wherever something can.
void Connected::advance() {
  const auto post_all = [&] {
    for (int peer = 0; peer < size(); ++peer)
      for (const Stream stream : {kPartIn, kWholeIn, kPartOut, kWholeOut})
        while (may_post(stream, peer)) post(stream, peer);
  };
  post_all();
  while (may_complete()) {
    complete_own(plan_.part(rank())[whole_++]);
    post_all();
  }
}

/// Is the next chunk of the own part there, from all, and what it may be packed into free?
bool Connected::may_complete() const {
  if (whole_ >= plan_.part(rank()).size()) return false;
  for (int peer = 0; peer < size(); ++peer) {
    if (has_stream(kPartIn, peer) and not lane(kPartIn, peer).is_done(whole_)) return false;
    if (has_stream(kWholeOut, peer) and whole_ >= kWindow and not lane(kWholeOut, peer).is_done(whole_ - kWindow)) return false;
  }
  return true;
}

void Connected::complete_own(const ExchangedChunk& chunk) {
  if (kind_.parts and kind_.root < 0) sum(chunk);
  else if (kind_.parts and rank() != kind_.root and plan_.in_place(chunk) == nullptr) plan_.unpack(chunk, lane(kPartIn, kind_.root).scratch[(whole_ - 1) % kWindow].data());
  if (kind_.wholes and plan_.in_place(chunk) == nullptr) plan_.pack(chunk, scratch(own_scratch_[(whole_ - 1) % kWindow], chunk));
}

/// Of all replicas' elements in the order of the ranks.
void Connected::sum(const ExchangedChunk& chunk) {
  for (const ExchangedRun& run : plan_.runs(chunk)) {
    const ExchangedTensor& tensor = tensors_[run.tensor];
    void* const own = static_cast<std::byte*>(tensor.data) + static_cast<std::size_t>(run.begin) * size_of(tensor.dtype);
    terms_.clear();
    for (int peer = 0; peer < size(); ++peer)
      terms_.push_back(peer == rank() ? own : lane(kPartIn, peer).scratch[(whole_ - 1) % kWindow].data() + run.offset);
    sum_in_tree(tensor.dtype, terms_, {0, run.end - run.begin}, {&own, 1});
  }
}

}  // namespace

std::unique_ptr<MpiCommunicator> connect_with_mpi(const MpiOptions& options) { return std::make_unique<Connected>(options); }

}  // namespace hone
