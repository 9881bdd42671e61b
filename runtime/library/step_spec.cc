#include "runtime/library/step_spec.h"

namespace hone {

LibrarySpec library_spec(const plan::LibraryStep& step, const DimBindings& sizes, const std::function<TensorType(std::uint32_t)>& type_of) {
  LibrarySpec spec;
  for (const auto& [name, values] : step.attributes) spec.attributes[name] = evaluate(values, sizes);
  for (const std::int64_t operand : step.operands) spec.operands.push_back(operand < 0 ? std::nullopt : std::optional(type_of(static_cast<std::uint32_t>(operand))));
  for (const std::uint32_t result : step.results) spec.results.push_back(type_of(result));
  return spec;
}

}  // namespace hone
