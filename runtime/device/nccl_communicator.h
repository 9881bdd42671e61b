// Exchanges between GPUs by NCCL.
//
// Its communicators do not block: whoever waits for another replica looks whether that is still there, gives up after the collective timeout, and ends what is under way on the device. Sums have the
// order of NCCL's rings and trees, which is the same in every run on the same machines, and another one than that of exchanges through the host.
#pragma once

#include <functional>
#include <memory>

#include "runtime/device/cuda_stream.h"
#include "runtime/device/nccl.h"

namespace hone::nccl {

/// What it needs of the device.
struct Gpu {
  cuda::UseStream use;
  std::function<bool(Stream)> is_done;  ///< all that is in the stream; throws what Device::synchronize throws
};

/// Called by all replicas at once, each with its own device's context current. Library and replicas outlive it. Throws Error kPeer.
std::unique_ptr<DeviceCommunicator> connect(const Library& library, Communicator& replicas, Gpu gpu);

}  // namespace hone::nccl
