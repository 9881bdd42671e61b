#include "runtime/call_and_kernel.h"

#include <algorithm>

#include "base/alignment.h"

namespace hone {

CallAndKernel::CallAndKernel(Device& device, DeviceCall& call, const plan::LibraryStep& step, const BoundKernel& kernel, std::size_t between)
    : device_(device), call_(call), epilogue_(*step.epilogue), kernel_(kernel), between_(between), scratch_(round_up(call.scratch_bytes(), kTensorAlignment, "library scratch")) {
  for (const std::int64_t operand : step.operands) operands_.push_back(place_of(operand));
  for (const std::uint32_t result : step.results) results_.push_back(place_of(result));
  for (const std::uint32_t buffer : kernel.buffers) arguments_.push_back(place_of(buffer));
}

CallAndKernel::Place CallAndKernel::place_of(std::int64_t buffer) const {
  const auto operand = std::ranges::find(epilogue_.operands, buffer);
  if (operand != epilogue_.operands.end()) return {Place::Of::kOperand, static_cast<std::size_t>(operand - epilogue_.operands.begin())};
  const auto result = std::ranges::find(epilogue_.results, static_cast<std::uint32_t>(buffer));
  if (result != epilogue_.results.end()) return {Place::Of::kResult, static_cast<std::size_t>(result - epilogue_.results.begin())};
  return {};
}

const std::byte* CallAndKernel::read(Place place, std::span<const std::byte* const> operands, std::span<std::byte* const> results, std::byte* between) const {
  if (place.of == Place::Of::kOperand) return operands[place.number];
  return place.of == Place::Of::kResult ? results[place.number] : between;
}

void CallAndKernel::put(Stream stream, std::span<const std::byte* const> operands, std::span<std::byte* const> results, std::byte* scratch) {
  std::byte* const between = scratch + scratch_;
  std::vector<const std::byte*> call_operands;
  std::vector<std::byte*> call_results;
  std::vector<void*> arguments;
  for (const Place place : operands_) call_operands.push_back(read(place, operands, results, between));
  for (const Place place : results_) call_results.push_back(place.of == Place::Of::kResult ? results[place.number] : between);
  for (const Place place : arguments_) arguments.push_back(const_cast<std::byte*>(read(place, operands, results, between)));
  call_.put(stream, call_operands, call_results, scratch);
  device_.launch(stream, {.kernel = kernel_.on_device,
                          .buffers = arguments,
                          .bytes = kernel_.bytes,
                          .skipped = kernel_.skipped,
                          .read_only = kernel_.read_only,
                          .sizes = kernel_.sizes,
                          .begin = kernel_.begin,
                          .end = kernel_.begin + kernel_.range});
}

}  // namespace hone
