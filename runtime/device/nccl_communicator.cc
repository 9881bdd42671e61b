#include "runtime/device/nccl_communicator.h"

#include <fmt/format.h>

#include <chrono>
#include <thread>
#include <utility>

#include "base/check.h"
#include "base/diag.h"
#include "runtime/device/team.h"

namespace hone::nccl {

namespace {

using Clock = std::chrono::steady_clock;

int type_of(DType dtype) {
  constexpr std::pair<DType, int> kTypes[] = {{DType::kF32, kF32}, {DType::kF64, kF64}, {DType::kBF16, kBF16}, {DType::kI32, kI32}, {DType::kI64, kI64}};
  for (const auto& [ours, theirs] : kTypes)
    if (ours == dtype) return theirs;
  internal_error(__FILE__, __LINE__, fmt::format("NCCL is asked to add up {}", to_string(dtype)));
}

class NcclCommunicator final : public DeviceCommunicator {
 public:
  NcclCommunicator(const Library& library, Communicator& replicas, Gpu gpu) : library_(library), replicas_(replicas), gpu_(std::move(gpu)) { join(id_of_first()); }
  ~NcclCommunicator() override { abort(); }  // which waits for nobody

  void all_reduce(Stream stream, std::span<const ExchangedTensor> tensors) override {
    exchange(stream, [&](cuda::StreamHandle handle) {
      for (const ExchangedTensor& tensor : tensors)
        if (tensor.count > 0) check(library_.all_reduce(tensor.data, tensor.data, static_cast<std::size_t>(tensor.count), type_of(tensor.dtype), kSum, comm_, handle), "ncclAllReduce");
    });
  }

  /// The pieces are not equally long, as ncclReduceScatter would have them: each is reduced to who owns it.
  void reduce_scatter(Stream stream, std::span<const ExchangedTensor> tensors) override {
    for_each_piece(stream, tensors, [&](std::byte* data, std::size_t count, DType dtype, int root, cuda::StreamHandle handle) {
      check(library_.reduce(data, data, count, type_of(dtype), kSum, root, comm_, handle), "ncclReduce");
    });
  }
  void all_gather(Stream stream, std::span<const ExchangedTensor> tensors) override {
    for_each_piece(stream, tensors, [&](std::byte* data, std::size_t count, DType dtype, int root, cuda::StreamHandle handle) {
      check(library_.broadcast(data, data, count * size_of(dtype), kU8, root, comm_, handle), "ncclBroadcast");
    });
  }

  void synchronize(Stream stream) override {
    wait("what was exchanged did not arrive", [&] { return gpu_.is_done(stream); });
  }

 private:
  /// The first replica makes it; all get it, or hear that there is none.
  UniqueId id_of_first() {
    struct {
      std::int32_t is_there = 0;
      UniqueId id = {};
    } message;
    if (replicas_.rank() == 0) message.is_there = library_.unique_id(&message.id) == 0 ? 1 : 0;
    const ExchangedTensor tensor = {DType::kU8, sizeof(message), &message};
    replicas_.broadcast({&tensor, 1}, 0);
    if (message.is_there == 0)
      throw Error(Code::kPeer, "NCCL of the first replica does not start", {}, {"NCCL_DEBUG=INFO in the environment lets it tell why", "replicas as logical devices on one GPU (--virtual) exchange without it"});
    return message.id;
  }

  void join(const UniqueId& id) {
    Config config;
    const Result result = library_.comm_create(&comm_, replicas_.size(), id, replicas_.rank(), &config);
    if (result != kInProgress) check(result, "ncclCommInitRankConfig");
    settle("the replicas did not all connect");
  }

  /// All of it is one operation of NCCL's.
  template <typename Put>
  void exchange(Stream stream, Put put) {
    require_alive();
    const cuda::StreamHandle handle = gpu_.use(stream);
    check(library_.group_start(), "ncclGroupStart");
    put(handle);
    const Result result = library_.group_end();
    if (result != kInProgress) check(result, "ncclGroupEnd");
    settle("an exchange could not begin");
  }

  template <typename Put>
  void for_each_piece(Stream stream, std::span<const ExchangedTensor> tensors, Put put) {
    exchange(stream, [&](cuda::StreamHandle handle) {
      for (const ExchangedTensor& tensor : tensors)
        for (int rank = 0; rank < replicas_.size(); ++rank) {
          const RangePiece piece = piece_of(tensor.count, replicas_.size(), rank);
          if (piece.begin < piece.end)
            put(static_cast<std::byte*>(tensor.data) + static_cast<std::size_t>(piece.begin) * size_of(tensor.dtype), static_cast<std::size_t>(piece.end - piece.begin), tensor.dtype, rank, handle);
        }
    });
  }

  /// Waits until what was asked for is under way.
  void settle(const char* what) {
    wait(what, [] { return true; });
  }

  /// Until the communicator is not busy and `is_done` says so; no longer than the timeout, and not for replicas that have failed.
  template <typename IsDone>
  void wait(const char* what, IsDone is_done) {
    require_alive();
    const Clock::time_point end = Clock::now() + replicas_.timeout();
    for (;;) {
      Result state = 0;
      check(library_.comm_error(comm_, &state), "ncclCommGetAsyncError");
      if (state == 0 and is_done()) return;
      if (state != kInProgress) check(state, "an exchange");
      try {
        replicas_.check_peers();
      } catch (...) {
        abort();
        throw;
      }
      if (Clock::now() > end) {
        abort();
        throw Error(Code::kPeer, fmt::format("replica {} of {}: {} within {} s", replicas_.rank(), replicas_.size(), what, std::chrono::duration<double>(replicas_.timeout()).count()), {},
                    {"look at what the other replicas say first", "start again with --resume; --collective-timeout waits longer, and NCCL_DEBUG=INFO lets NCCL tell more"});
      }
      std::this_thread::yield();
    }
  }

  void check(Result result, const char* call) {
    if (result == 0) return;
    const std::string text = library_.text(result, comm_);
    abort();
    throw Error(Code::kPeer, fmt::format("replica {} of {}: {} says {}", replicas_.rank(), replicas_.size(), call, text), {},
                {"look at what the other replicas say first", "NCCL_DEBUG=INFO in the environment lets it tell more"});
  }

  void require_alive() const {
    if (comm_ == nullptr) throw Error(Code::kPeer, fmt::format("replica {} of {} exchanges nothing any more: an exchange has failed", replicas_.rank(), replicas_.size()), {}, {"start again with --resume"});
  }

  void abort() noexcept {
    if (Comm comm = std::exchange(comm_, nullptr)) (void)library_.comm_abort(comm);
  }

  const Library& library_;
  Communicator& replicas_;
  const Gpu gpu_;
  Comm comm_ = nullptr;
};

}  // namespace

std::unique_ptr<DeviceCommunicator> connect(const Library& library, Communicator& replicas, Gpu gpu) { return std::make_unique<NcclCommunicator>(library, replicas, std::move(gpu)); }

}  // namespace hone::nccl
