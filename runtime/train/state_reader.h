// How weights and states are read that are to be kept.
#pragma once

#include <functional>
#include <string>

#include "base/tensor.h"

namespace hone {

struct StateReader {
  /// Reads a weight or state by name. Of states that replicas hold in parts, each once at most, in the program's order. Empty: as the session has it.
  std::function<Tensor(const std::string& name)> read = {};
  /// Called when all that is kept has been read, and before it counts. Throws where it must not be kept. Empty: it may.
  std::function<void()> confirm = {};
};

}  // namespace hone
