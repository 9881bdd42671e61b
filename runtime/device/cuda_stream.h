// A device's streams as the libraries that work in them take them.
#pragma once

#include <functional>

#include "runtime/device/cuda_library.h"
#include "runtime/device/device.h"

namespace hone::cuda {

/// The handle of a stream, whose device's context is current in the calling thread from then on.
using UseStream = std::function<StreamHandle(Stream)>;

}  // namespace hone::cuda
