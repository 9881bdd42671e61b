#include "ir/samples.h"

#include <fmt/format.h>

#include "base/text.h"

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

void require_samples(const Graph& graph) {
  if (not samples_of(graph).is_constant(0)) return;
  for (const Input& input : graph.inputs())
    if (const Type& type = graph.type(input.value); input.role == Role::kInput and not type.shape.empty())
      throw Error(Code::kShape, fmt::format("input {} is {}: a batch of it has 0 samples, and none that has one would fit", quoted(input.name), to_string(type)), {},
                  {"leave --dim out for that axis, or give it a number from 1 on; a file that says 0 there is best exported again, with a name for the axis"});
}

}  // namespace hone
