// What replicas exchange that share a device: it adds up what lies in its memory, and nothing goes through the host's. The host of each waits for the others before and after, so it is no part of what
// is captured.
#pragma once

#include <vector>

#include "runtime/device/device.h"

namespace hone {

class SharedExchange final : public DeviceCommunicator {
 public:
  /// `device` sums the terms of so many replicas; those of the others are on the same hardware, and in this process. They, and `replicas`, outlive it.
  SharedExchange(Device& device, Communicator& replicas) : device_(device), replicas_(replicas) {}

  void all_reduce(Stream stream, std::span<const ExchangedTensor> tensors) override;
  void reduce_scatter(Stream stream, std::span<const ExchangedTensor> tensors) override;
  void all_gather(Stream stream, std::span<const ExchangedTensor> tensors) override;
  void synchronize(Stream stream) override { device_.synchronize(stream); }
  bool can_be_captured() const override { return false; }

 private:
  /// Calls work(tensor, its addresses by rank) for each tensor when all replicas' are there, and returns when all have done so.
  template <typename Work>
  void meet(Stream stream, std::span<const ExchangedTensor> tensors, Work work);
  RangePiece piece(const ExchangedTensor& tensor, std::size_t rank) const { return piece_of(tensor.count, replicas_.size(), static_cast<int>(rank)); }

  Device& device_;
  Communicator& replicas_;
};

}  // namespace hone
