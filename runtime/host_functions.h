// Host functions: plain C++ over whole tensors, for ops that are no index formula (DESIGN: ops of meaning `host`). A HostStep names one.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "base/dtype.h"

namespace hone {

struct HostTensor {
  DType dtype = DType::kF32;
  std::vector<std::int64_t> shape;
  void* data = nullptr;  ///< of an operand: read only
};

struct HostFunction {
  std::string_view name;
  std::string_view doc;
  /// Writes all of `results`. May allocate.
  void (*run)(std::string_view attributes, std::span<const HostTensor> operands, std::span<const HostTensor> results);
};

/// Null if there is none.
const HostFunction* find_host_function(std::string_view name);

}  // namespace hone
