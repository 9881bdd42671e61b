#include "runtime/collective/thread_communicators.h"

#include <fmt/format.h>

#include <cstring>
#include <vector>

#include "base/diag.h"
#include "runtime/collective/same_tensors.h"
#include "runtime/collective/thread_meeting.h"
#include "runtime/collective/tree_sum.h"
#include "runtime/device/team.h"

namespace hone {

struct ThreadCommunicators::Shared {
  explicit Shared(int replicas) : size(replicas), meeting(replicas), tensors(static_cast<std::size_t>(replicas)) {}

  void meet() { meeting.meet(); }

  const int size;
  ThreadMeeting meeting;
  std::vector<std::span<const ExchangedTensor>> tensors;  // by rank, between two meetings
  std::vector<std::unique_ptr<Member>> members;
};

class ThreadCommunicators::Member : public Communicator {
 public:
  Member(Shared& shared, int rank) : shared_(shared), rank_(rank) {}
  int rank() const override { return rank_; }
  int size() const override { return shared_.size; }

  void all_reduce(std::span<const ExchangedTensor> tensors) override {
    show(tensors);
    for (std::size_t i = 0; i < tensors.size(); ++i) {
      const auto [terms, sums] = everywhere(i);
      sum_in_tree(tensors[i].dtype, terms, own_part(tensors[i], rank_), sums);
    }
    shared_.meet();
  }
  void reduce_scatter(std::span<const ExchangedTensor> tensors) override {
    show(tensors);
    for (std::size_t i = 0; i < tensors.size(); ++i) {
      void* const own = tensors[i].data;
      sum_in_tree(tensors[i].dtype, everywhere(i).terms, own_part(tensors[i], rank_), {&own, 1});
    }
    shared_.meet();
  }
  void all_gather(std::span<const ExchangedTensor> tensors) override {
    show(tensors);
    for (int rank = 0; rank < shared_.size; ++rank)
      for (std::size_t i = 0; i < tensors.size() and rank != rank_; ++i) copy_from(rank, i, tensors[i], own_part(tensors[i], rank));
    shared_.meet();
  }
  void broadcast(std::span<const ExchangedTensor> tensors, int root) override {
    show(tensors);
    for (std::size_t i = 0; i < tensors.size() and rank_ != root; ++i) copy_from(root, i, tensors[i], {0, tensors[i].count});
    shared_.meet();
  }
  void barrier() override { shared_.meet(); }
  void check_peers() override { shared_.meeting.check(); }

  void fail(const char* why) noexcept override {
    shared_.meeting.fail(replica_has_failed(rank_, why));
  }

 private:
  /// Lets all replicas see all tensors, until they meet again.
  void show(std::span<const ExchangedTensor> tensors) {
    of(rank_) = tensors;
    shared_.meet();
    require_same_tensors(shared_.tensors, shared_.meeting);
  }
  std::span<const ExchangedTensor>& of(int rank) { return shared_.tensors[static_cast<std::size_t>(rank)]; }

  struct Places {
    std::vector<const void*> terms;
    std::vector<void*> sums;
  };
  Places everywhere(std::size_t tensor) const {
    Places places;
    for (const auto& tensors : shared_.tensors) {
      places.terms.push_back(tensors[tensor].data);
      places.sums.push_back(tensors[tensor].data);
    }
    return places;
  }
  RangePiece own_part(const ExchangedTensor& tensor, int rank) const { return piece_of(tensor.count, shared_.size, rank); }
  void copy_from(int rank, std::size_t number, const ExchangedTensor& to, RangePiece range) {
    const std::size_t element = size_of(to.dtype), begin = static_cast<std::size_t>(range.begin) * element, bytes = static_cast<std::size_t>(range.end - range.begin) * element;
    if (bytes > 0) std::memcpy(static_cast<std::byte*>(to.data) + begin, static_cast<const std::byte*>(of(rank)[number].data) + begin, bytes);
  }

  Shared& shared_;
  int rank_;
};

ThreadCommunicators::ThreadCommunicators(int size) : shared_(std::make_unique<Shared>(size)) {
  for (int rank = 0; rank < size; ++rank) shared_->members.push_back(std::make_unique<Member>(*shared_, rank));
}
ThreadCommunicators::~ThreadCommunicators() = default;
int ThreadCommunicators::size() const { return shared_->size; }
void ThreadCommunicators::renew() { shared_->meeting.renew(); }
Communicator& ThreadCommunicators::of(int rank) { return *shared_->members.at(static_cast<std::size_t>(rank)); }

}  // namespace hone
