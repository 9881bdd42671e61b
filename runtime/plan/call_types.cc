#include "runtime/plan/call_types.h"

namespace hone::plan {

namespace {

template <typename Call>
CallTypes types_of_call(const Entry& entry, const Call& call) {
  CallTypes types;
  const auto add = [&](auto& tensors, std::int64_t number) {
    if (number < 0) return void(tensors.emplace_back());
    const Buffer& buffer = entry.buffers[static_cast<std::size_t>(number)];
    tensors.push_back(CallTypes::Tensor{buffer.dtype, buffer.shape.size()});
  };
  for (const auto operand : call.operands) add(types.operands, operand);
  for (const auto result : call.results) add(types.results, static_cast<std::int64_t>(result));
  for (const auto& [name, numbers] : call.attributes) {
    auto& known = types.attributes[name];
    for (const Dim& number : numbers) known.push_back(number.is_constant() ? std::optional(number.value()) : std::nullopt);
  }
  return types;
}

}  // namespace

CallTypes call_types(const Entry& entry, const LibraryStep& step) { return types_of_call(entry, step); }
CallTypes call_types(const Entry& entry, const LibraryStep::Epilogue& epilogue) { return types_of_call(entry, epilogue); }
CallTypes call_types(const Entry& entry, const HostStep& step) { return types_of_call(entry, step); }

}  // namespace hone::plan
