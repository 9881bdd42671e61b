#include "runtime/library/widened.h"

#include <algorithm>
#include <cstring>

#include "base/float_format.h"
#include "base/tensor.h"

namespace hone {

namespace {

bool is_half(const TensorType& type) { return type.dtype == DType::kF16; }

/// The same in f32.
TensorType wide(TensorType type) {
  if (is_half(type)) type.dtype = DType::kF32;
  return type;
}

class WidenedCall final : public LibraryCall {
 public:
  WidenedCall(CreateCall create, const LibrarySpec& spec) : spec_(spec), operands_(spec.operands.size()), results_(spec.results.size()) {
    LibrarySpec wider = spec;
    for (auto& operand : wider.operands)
      if (operand) operand = wide(*operand);
    for (TensorType& result : wider.results) result = wide(result);
    call_ = create(wider);
    description_.scratch_bytes = call_->description().scratch_bytes;
    for (std::size_t i = 0; i < operands_.size(); ++i)
      if (spec.operands[i] and is_half(*spec.operands[i])) operands_[i].resize(count_of(*spec.operands[i]));
    for (std::size_t i = 0; i < results_.size(); ++i) {
      if (is_half(spec.results[i])) results_[i].resize(count_of(spec.results[i]));
      description_.result_bytes.push_back(count_of(spec.results[i]) * size_of(spec.results[i].dtype));
    }
  }

  void execute(std::span<const void* const> operands, std::span<void* const> results, void* scratch) override {
    std::vector<const void*> read(operands.begin(), operands.end());
    std::vector<void*> written(results.begin(), results.end());
    for (std::size_t i = 0; i < operands_.size(); ++i) {
      if (operands_[i].empty()) continue;
      const auto* halves = static_cast<const std::uint16_t*>(operands[i]);
      std::ranges::transform(halves, halves + operands_[i].size(), operands_[i].begin(), [](const std::uint16_t& half) { return static_cast<float>(read_storage(DType::kF16, &half)); });
      read[i] = operands_[i].data();
    }
    for (std::size_t i = 0; i < results_.size(); ++i)
      if (not results_[i].empty()) written[i] = results_[i].data();
    call_->execute(read, written, scratch);
    for (std::size_t i = 0; i < results_.size(); ++i)
      for (std::size_t k = 0; k < results_[i].size(); ++k) write_storage(DType::kF16, static_cast<std::uint16_t*>(results[i]) + k, results_[i][k]);
  }

 private:
  static std::size_t count_of(const TensorType& type) { return static_cast<std::size_t>(checked_element_count(type.shape)); }

  const LibrarySpec spec_;
  std::vector<std::vector<float>> operands_, results_;  ///< those that are f16, in f32; the others are empty
  std::unique_ptr<LibraryCall> call_;
};

}  // namespace

std::unique_ptr<LibraryCall> widened(CreateCall create, const LibrarySpec& spec) {
  const bool has_half = std::ranges::any_of(spec.operands, [](const auto& operand) { return operand and is_half(*operand); }) or std::ranges::any_of(spec.results, is_half);
  if (not has_half) return create(spec);
  return std::make_unique<WidenedCall>(create, spec);
}

}  // namespace hone
