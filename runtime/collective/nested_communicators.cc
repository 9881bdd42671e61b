#include "runtime/collective/nested_communicators.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <mutex>
#include <string>
#include <vector>

#include "base/alignment.h"
#include "base/diag.h"
#include "runtime/collective/same_tensors.h"
#include "runtime/collective/thread_meeting.h"
#include "runtime/collective/tree_sum.h"
#include "runtime/device/team.h"

namespace hone {

namespace {

constexpr std::int64_t kGrain = 64;  // of piece_of(): processes' parts that are multiples of it begin where they should

std::byte* at(const ExchangedTensor& tensor, std::int64_t element) { return static_cast<std::byte*>(tensor.data) + static_cast<std::size_t>(element) * size_of(tensor.dtype); }

void copy_elements(const ExchangedTensor& from, std::int64_t begin, std::int64_t count, const ExchangedTensor& to, std::int64_t to_begin) {
  if (count > 0) std::memcpy(at(to, to_begin), at(from, begin), static_cast<std::size_t>(count) * size_of(from.dtype));
}

int checked_local(int local) {
  if (local > 0 and std::has_single_bit(static_cast<unsigned>(local))) return local;
  throw Error(Code::kUsage, fmt::format("several processes of {} replicas each: the sum of that many is no part of the sum of all of them", local), {},
              {"let each process have one, two, four, eight ... replicas, or start more processes"});
}

}  // namespace

struct NestedCommunicators::Shared {
  Shared(Communicator& others, int replicas) : between(others), local(checked_local(replicas)), meeting(replicas), tensors(static_cast<std::size_t>(replicas)) {}

  int total() const { return between.size() * local; }
  RangePiece part(std::int64_t count, int rank) const { return piece_of(count, total(), rank); }
  /// Of all replicas of a process.
  RangePiece part_of_process(std::int64_t count, int process) const { return {part(count, process * local).begin, part(count, (process + 1) * local - 1).end}; }
  /// The largest of these, rounded up.
  std::int64_t widest(std::int64_t count) const {
    std::int64_t most = 1;
    for (int process = 0; process < between.size(); ++process) {
      const RangePiece own = part_of_process(count, process);
      most = std::max(most, own.end - own.begin);
    }
    return round_up(most, kGrain, "a process's part");
  }

  /// What travels are the first replica's tensors, or, where these are other elements, scratch of the same sizes.
  void travel_in_place(std::span<const ExchangedTensor> own) {
    travels.assign(own.begin(), own.end());
    for (ExchangedTensor& each : travels)
      if (summed_as(each.dtype) != each.dtype) each = {summed_as(each.dtype), each.count, nullptr};
    place_scratch();
  }
  /// What travels is scratch, in which each process's part has as much room, so that it is what the communicator between processes takes for its part.
  void travel_by_parts(std::span<const ExchangedTensor> own, bool summed) {
    travels.clear();
    for (const ExchangedTensor& each : own) travels.push_back({summed ? summed_as(each.dtype) : each.dtype, widest(each.count) * between.size(), nullptr});
    place_scratch();
  }
  /// Elements of each process's part of what travels by parts.
  std::int64_t room(std::size_t tensor) const { return travels[tensor].count / between.size(); }
  void take_all_parts(std::span<const ExchangedTensor> to) const {
    for (std::size_t i = 0; i < to.size(); ++i)
      for (int process = 0; process < between.size(); ++process) {
        const RangePiece part = part_of_process(to[i].count, process);
        copy_elements(travels[i], room(i) * process, part.end - part.begin, to[i], part.begin);
      }
  }
  void place_scratch() {
    std::size_t bytes = 0;
    const auto room = [](const ExchangedTensor& tensor) { return round_up(tensor.bytes(), kGrain, "what travels"); };
    for (const ExchangedTensor& each : travels) bytes += each.data == nullptr ? room(each) : 0;
    if (scratch.size() < bytes) scratch.resize(bytes);
    std::byte* free = scratch.data();
    for (ExchangedTensor& each : travels) {
      if (each.data != nullptr) continue;
      each.data = free;
      free += room(each);
    }
  }

  Communicator& between;
  const int local;
  ThreadMeeting meeting;
  std::mutex between_mutex;  // of calls of `between`
  std::vector<std::span<const ExchangedTensor>> tensors;  // by local replica, between two meetings
  std::vector<ExchangedTensor> travels;                   // the first replica's to set
  std::vector<std::byte> scratch;
  std::vector<std::unique_ptr<Member>> members;
};

/// Each call: all show their tensors, do their share of the sums, let the first one exchange them, take what they want of the result, and meet once more, as the next call changes what travels.
class NestedCommunicators::Member : public Communicator {
 public:
  Member(Shared& shared, int local) : shared_(shared), local_(local) {}
  int rank() const override { return process() * shared_.local + local_; }
  int size() const override { return shared_.total(); }
  bool mostly_waits() const override { return shared_.between.mostly_waits(); }

  void all_reduce(std::span<const ExchangedTensor> tensors) override {
    if (is_first()) shared_.travel_in_place(tensors);
    show(tensors);
    for (std::size_t i = 0; i < tensors.size(); ++i) sum_unrounded(tensors[i].dtype, terms(i, 0), piece_of(tensors[i].count, shared_.local, local_), shared_.travels[i].data);
    lead([&](Communicator& between) { between.all_reduce(shared_.travels); });
    for (std::size_t i = 0; i < tensors.size(); ++i)
      if (shared_.travels[i].data != tensors[i].data) round_sums(tensors[i].dtype, shared_.travels[i].data, tensors[i].count, tensors[i].data);
    shared_.meeting.meet();
  }

  void reduce_scatter(std::span<const ExchangedTensor> tensors) override {
    if (is_first()) shared_.travel_by_parts(tensors, true);
    show(tensors);
    for (std::size_t i = 0; i < tensors.size(); ++i)
      for (int process = 0; process < shared_.between.size(); ++process) {
        const RangePiece part = shared_.part_of_process(tensors[i].count, process);
        sum_unrounded(tensors[i].dtype, terms(i, part.begin), piece_of(part.end - part.begin, shared_.local, local_), place(i, process));
      }
    lead([&](Communicator& between) { between.reduce_scatter(shared_.travels); });
    for (std::size_t i = 0; i < tensors.size(); ++i) {
      const RangePiece own = shared_.part(tensors[i].count, rank());
      const std::int64_t first = own.begin - shared_.part_of_process(tensors[i].count, process()).begin;
      if (own.end > own.begin) round_sums(tensors[i].dtype, place(i, process()) + static_cast<std::size_t>(first) * size_of(shared_.travels[i].dtype), own.end - own.begin, at(tensors[i], own.begin));
    }
    shared_.meeting.meet();
  }

  void all_gather(std::span<const ExchangedTensor> tensors) override {
    if (is_first()) shared_.travel_by_parts(tensors, false);
    show(tensors);
    for (std::size_t i = 0; i < tensors.size(); ++i) {
      const RangePiece own = shared_.part(tensors[i].count, rank());
      copy_elements(tensors[i], own.begin, own.end - own.begin, shared_.travels[i], shared_.room(i) * process() + own.begin - shared_.part_of_process(tensors[i].count, process()).begin);
    }
    lead([&](Communicator& between) { between.all_gather(shared_.travels); });
    shared_.take_all_parts(tensors);
    shared_.meeting.meet();
  }

  void broadcast(std::span<const ExchangedTensor> tensors, int root) override {
    show(tensors);
    const std::span<const ExchangedTensor> firsts = shared_.tensors.front();
    if (rank() == root and not is_first())
      for (std::size_t i = 0; i < tensors.size(); ++i) copy_elements(tensors[i], 0, tensors[i].count, firsts[i], 0);
    lead([&](Communicator& between) { between.broadcast(firsts, root / shared_.local); });
    if (rank() != root and not is_first())
      for (std::size_t i = 0; i < tensors.size(); ++i) copy_elements(firsts[i], 0, tensors[i].count, tensors[i], 0);
    shared_.meeting.meet();
  }

  void barrier() override {
    lead([](Communicator& between) { between.barrier(); });
  }

  /// The first replica may be on its way through a call, which ends in time.
  std::chrono::milliseconds timeout() const override { return shared_.between.timeout(); }
  void check_peers() override { shared_.meeting.check(); }
  void fail(const char* why) noexcept override {
    const Error failure = replica_has_failed(rank(), why);
    shared_.meeting.fail(failure);
    const std::lock_guard lock(shared_.between_mutex);
    shared_.between.fail(("its " + failure.diags().front().message).c_str());
  }

 private:
  bool is_first() const { return local_ == 0; }
  int process() const { return shared_.between.rank(); }
  std::byte* place(std::size_t tensor, int process) const { return at(shared_.travels[tensor], shared_.room(tensor) * process); }

  /// Lets all of this process see the tensors, until they meet again.
  void show(std::span<const ExchangedTensor> tensors) {
    shared_.tensors[static_cast<std::size_t>(local_)] = tensors;
    shared_.meeting.meet();
    require_same_tensors(shared_.tensors, shared_.meeting);
  }
  /// Of all replicas of this process, from an element on.
  std::vector<const void*> terms(std::size_t tensor, std::int64_t begin) const {
    std::vector<const void*> terms;
    for (const auto& tensors : shared_.tensors) terms.push_back(at(tensors[tensor], begin));
    return terms;
  }
  /// When all are ready, the first one calls the other processes; all return when it has. What it throws all throw.
  template <typename Call>
  void lead(Call call) {
    shared_.meeting.meet();
    if (is_first()) {
      const std::lock_guard lock(shared_.between_mutex);
      try {
        call(shared_.between);
      } catch (const Error& error) {
        shared_.meeting.fail(error);
        throw;
      }
    }
    shared_.meeting.meet();
  }

  Shared& shared_;
  const int local_;
};

NestedCommunicators::NestedCommunicators(Communicator& between, int local) : shared_(std::make_unique<Shared>(between, local)) {
  for (int i = 0; i < local; ++i) shared_->members.push_back(std::make_unique<Member>(*shared_, i));
}
NestedCommunicators::~NestedCommunicators() = default;
void NestedCommunicators::all_gather_of_process(std::span<const ExchangedTensor> tensors) {
  shared_->travel_by_parts(tensors, false);
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    const RangePiece own = shared_->part_of_process(tensors[i].count, shared_->between.rank());
    copy_elements(tensors[i], own.begin, own.end - own.begin, shared_->travels[i], shared_->room(i) * shared_->between.rank());
  }
  shared_->between.all_gather(shared_->travels);
  shared_->take_all_parts(tensors);
}
Communicator& NestedCommunicators::of(int local) { return *shared_->members.at(static_cast<std::size_t>(local)); }

}  // namespace hone
