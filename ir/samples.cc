#include "ir/samples.h"

namespace hone {

Dim samples_of(const Graph& graph) {
  Dim samples = 0;
  for (const Input& input : graph.inputs()) {
    const Shape& shape = graph.type(input.value).shape;
    if (input.role != Role::kInput or shape.empty()) continue;
    if (shape[0].is_symbol()) return shape[0];
    if (samples.is_constant(0)) samples = shape[0];
  }
  return samples;
}

}  // namespace hone
