// A library's call and the kernel behind it as one call: what another call that does both must beat (plan::LibraryStep::Epilogue).
#pragma once

#include <vector>

#include "runtime/kernel_run.h"
#include "runtime/plan/plan.h"

namespace hone {

class CallAndKernel final : public DeviceCall {
 public:
  /// Reads the epilogue's operands and writes its results; what the call hands to the kernel lies in the scratch, `between` bytes. `call` and `device` outlive it; `kernel` is the epilogue's.
  CallAndKernel(Device& device, DeviceCall& call, const plan::LibraryStep& step, const BoundKernel& kernel, std::size_t between);

  std::size_t scratch_bytes() const override { return scratch_ + between_; }
  void put(Stream stream, std::span<const std::byte* const> operands, std::span<std::byte* const> results, std::byte* scratch) override;

 private:
  struct Place {
    enum class Of : std::uint8_t { kOperand, kResult, kBetween } of = Of::kBetween;
    std::size_t number = 0;
  };
  Place place_of(std::int64_t buffer) const;
  const std::byte* read(Place place, std::span<const std::byte* const> operands, std::span<std::byte* const> results, std::byte* between) const;

  Device& device_;
  DeviceCall& call_;
  const plan::LibraryStep::Epilogue& epilogue_;
  const BoundKernel kernel_;
  const std::size_t between_, scratch_;  ///< bytes; those of the call's scratch come first
  std::vector<Place> operands_, results_, arguments_;
};

}  // namespace hone
