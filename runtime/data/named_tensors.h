// Tensors by name: one example of a data set, a batch of them, or what a model gives.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "base/tensor.h"

namespace hone {

/// Each name once, in the order in which they were given.
using NamedTensors = std::vector<std::pair<std::string, Tensor>>;

}  // namespace hone
