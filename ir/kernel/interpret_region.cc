#include "ir/kernel/interpret_region.h"

#include <cstring>

namespace hone {

namespace {

Tensor slice_of(const Tensor& tensor, std::int64_t i) {
  const std::vector<std::int64_t> shape(tensor.shape().begin() + 1, tensor.shape().end());
  const std::size_t bytes = tensor.byte_count() / static_cast<std::size_t>(tensor.shape()[0]);
  return Tensor::copy(tensor.dtype(), shape, tensor.bytes().subspan(static_cast<std::size_t>(i) * bytes, bytes));
}

/// Slices, put together along a new first axis in any order.
class Stack {
 public:
  explicit Stack(const Type& type) : slices_(static_cast<std::size_t>(type.shape[0].value())), type_(type) {}
  void set(std::int64_t i, Tensor slice) { slices_[static_cast<std::size_t>(i)] = std::move(slice); }
  Tensor take() const {
    return Tensor::make(type_.dtype, constant_shape(type_.shape), [&](std::span<std::byte> bytes) {
      std::size_t at = 0;
      for (const Tensor& slice : slices_) {
        std::memcpy(bytes.data() + at, slice.bytes().data(), slice.byte_count());
        at += slice.byte_count();
      }
    });
  }

 private:
  std::vector<Tensor> slices_;
  Type type_;
};

std::vector<Tensor> interpret_scan(const Node& node, std::span<const Tensor> operands, std::int64_t trips, std::span<const Type> result_types, const RunBody& run) {
  const auto state_count = static_cast<std::size_t>(node.attrs[kStates]), first_captured = state_count + static_cast<std::size_t>(node.attrs[kScanned]);
  std::vector<Tensor> states(operands.begin(), operands.begin() + static_cast<std::ptrdiff_t>(state_count));
  std::vector<Stack> stacks;
  for (std::size_t i = state_count; i < result_types.size(); ++i) stacks.emplace_back(result_types[i]);
  for (std::int64_t trip = 0; trip < trips; ++trip) {
    const std::int64_t i = node.attrs[kReverse] ? trips - 1 - trip : trip;
    std::vector<Tensor> given{Tensor::scalar(i)};
    given.insert(given.end(), states.begin(), states.end());
    for (std::size_t k = state_count; k < first_captured; ++k) given.push_back(slice_of(operands[k], i));
    given.insert(given.end(), operands.begin() + static_cast<std::ptrdiff_t>(first_captured), operands.end());
    std::vector<Tensor> made = run(0, given);
    for (std::size_t k = 0; k < state_count; ++k) {
      stacks[k].set(i, std::move(states[k]));
      states[k] = std::move(made[k]);
    }
    for (std::size_t k = state_count; k < made.size(); ++k) stacks[k].set(i, std::move(made[k]));
  }
  for (const Stack& stack : stacks) states.push_back(stack.take());
  return states;
}

std::vector<Tensor> interpret_while(const Node& node, std::span<const Tensor> operands, std::int64_t most, const RunBody& run) {
  const auto state_count = static_cast<std::ptrdiff_t>(node.attrs[kStates]);
  bool goes_on = operands[0].int_at(0) != 0;
  std::vector<Tensor> states(operands.begin() + 1, operands.begin() + 1 + state_count);
  std::int64_t trips = 0;
  for (; trips < most and goes_on; ++trips) {
    std::vector<Tensor> given{Tensor::scalar(trips)};
    given.insert(given.end(), states.begin(), states.end());
    given.insert(given.end(), operands.begin() + 1 + state_count, operands.end());
    std::vector<Tensor> made = run(0, given);
    goes_on = made[0].int_at(0) != 0;
    states.assign(made.begin() + 1, made.end());
  }
  return {Tensor::scalar(trips)};
}

}  // namespace

std::vector<Tensor> interpret_region(const Node& node, std::span<const Tensor> operands, std::int64_t trips, std::span<const Type> result_types, const RunBody& run) {
  switch (node.op->region) {
    case Region::kScan: return interpret_scan(node, operands, trips, result_types, run);
    case Region::kWhile: return interpret_while(node, operands, trips, run);
    case Region::kBranch: return run(operands[0].int_at(0) != 0 ? 0 : 1, operands.subspan(1));
    case Region::kCall: return run(0, operands);
    case Region::kNone: break;
  }
  internal_error(__FILE__, __LINE__, "interpret_region() of an op without bodies");
}

}  // namespace hone
