// A device's streams as the libraries that work in them take them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>

#include "runtime/device/cuda_library.h"
#include "runtime/device/device.h"

namespace hone::cuda {

/// The handle of a stream, whose device's context is current in the calling thread from then on.
using UseStream = std::function<StreamHandle(Stream)>;

/// What calls do in a stream beside what libraries do for them.
struct Moves {
  std::function<void(Stream, std::byte* to, const std::byte* from, std::size_t bytes)> copy;   ///< within the device's memory
  std::function<void(Stream, std::byte* to, std::uint32_t word, std::size_t words)> fill;
};

}  // namespace hone::cuda
