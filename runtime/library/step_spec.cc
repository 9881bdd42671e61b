#include "runtime/library/step_spec.h"

namespace hone {

namespace {

template <typename Call>
LibrarySpec spec_of_call(const Call& call, const DimBindings& sizes, const std::function<TensorType(std::uint32_t)>& type_of) {
  LibrarySpec spec;
  for (const auto& [name, values] : call.attributes) spec.attributes[name] = evaluate(values, sizes);
  for (const std::int64_t operand : call.operands) spec.operands.push_back(operand < 0 ? std::nullopt : std::optional(type_of(static_cast<std::uint32_t>(operand))));
  for (const std::uint32_t result : call.results) spec.results.push_back(type_of(result));
  return spec;
}

}  // namespace

LibrarySpec library_spec(const plan::LibraryStep& step, const DimBindings& sizes, const std::function<TensorType(std::uint32_t)>& type_of) { return spec_of_call(step, sizes, type_of); }
LibrarySpec library_spec(const plan::LibraryStep::Epilogue& epilogue, const DimBindings& sizes, const std::function<TensorType(std::uint32_t)>& type_of) { return spec_of_call(epilogue, sizes, type_of); }

}  // namespace hone
