// What the weights of a model built in C++ begin with.
#pragma once

#include <cstdint>
#include <vector>

#include "frontend/builder.h"

namespace hone::nn {

/// The initial f32 elements of weight number `stream` of a model with this seed. Throws kShape for an orthogonal weight that is no matrix, kTooLarge, kUsage for a limit or a deviation that is none.
Tensor draw(const Initializer& initializer, std::vector<std::int64_t> shape, std::uint64_t seed, std::uint64_t stream);

}  // namespace hone::nn
