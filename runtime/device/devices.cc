#include "runtime/device/devices.h"

#include <fmt/format.h>

#include "base/text.h"
#include "runtime/device/cpu.h"
#include "runtime/device/host_memory.h"

namespace hone {

std::vector<DeviceInfo> list_devices() {
  const int cores = usable_cores();
  return {{.name = "cpu",
           .description = fmt::format("{}, {} {}, {}, {}", host_cpu_model(), cores, cores == 1 ? "core" : "cores", to_string(host_cpu_level()),
                                      human_bytes(host_memory_bytes())),
           .usable = true,
           .reason = ""},
          {.name = "cuda", .description = "NVIDIA GPUs", .usable = false, .reason = "this build of Hone has no CUDA driver"}};
}

}  // namespace hone
