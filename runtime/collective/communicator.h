// Communicator: what replicas exchange. Each replica has one; all call the same functions in the same order, with tensors of the same types and sizes.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <span>

#include "base/dtype.h"

namespace hone {

/// Elements that lie in the caller's memory.
struct ExchangedTensor {
  DType dtype = DType::kF32;  ///< f32, f64, bf16, i32, i64 where it is summed; any type where it is only moved
  std::int64_t count = 0;     ///< elements
  void* data = nullptr;
  std::int64_t bucket = -1;   ///< of the plan, if it is exchanged as part of one: drivers that see the others' tensors hold theirs against it

  std::size_t bytes() const { return static_cast<std::size_t>(count) * size_of(dtype); }
};

/// The part of a tensor that is one replica's own in reduce_scatter and all_gather: piece_of(count, size(), rank) (runtime/device/team.h).
///
/// Sums are formed in a fixed tree over the ranks (runtime/collective/tree_sum.h), so that they are the same on all replicas, in every run and with every driver.
/// bf16 is what travels: it is added up in f32, and the sum of all is rounded once.
/// All functions throw Error kPeer, which names the rank, where another replica has failed, has said so (fail), or does not come in time; after that, all of them do.
class Communicator {
 public:
  Communicator() = default;
  Communicator(const Communicator&) = delete;
  Communicator& operator=(const Communicator&) = delete;
  virtual ~Communicator() = default;

  virtual int rank() const = 0;
  virtual int size() const = 0;

  /// Every replica gets the sums of all replicas' elements, where its own were.
  virtual void all_reduce(std::span<const ExchangedTensor> tensors) = 0;
  /// Every replica gets the sums of its own parts, where its own elements of them were; the rest of the tensors is as before.
  virtual void reduce_scatter(std::span<const ExchangedTensor> tensors) = 0;
  /// Every replica gets the others' parts from them.
  virtual void all_gather(std::span<const ExchangedTensor> tensors) = 0;
  /// Every replica gets the elements of `root`.
  virtual void broadcast(std::span<const ExchangedTensor> tensors, int root) = 0;
  /// Returns when all replicas have called it.
  virtual void barrier() = 0;

  /// How long to wait for others, where this does not wait itself.
  virtual std::chrono::milliseconds timeout() const { return std::chrono::minutes(5); }
  /// Throws Error kPeer if it is known by now that another replica has failed. Waits for nobody.
  virtual void check_peers() {}

  /// Do its functions mostly wait, so that another thread had better call them while this one computes?
  virtual bool mostly_waits() const { return false; }

  /// This replica fails: the others' calls, those that wait included, throw an Error that names it and says why.
  virtual void fail(const char* why) noexcept = 0;
};

}  // namespace hone
