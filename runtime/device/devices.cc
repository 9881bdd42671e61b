#include "runtime/device/devices.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"
#include "runtime/device/cpu.h"
#include "runtime/device/cuda_library.h"
#include "runtime/device/drivers.h"
#include "runtime/device/host_memory.h"

namespace hone {
namespace {

DeviceInfo cpu() {
  const int cores = usable_cores();
  return {.name = "cpu",
          .description = fmt::format("{}, {} {} {}, {}", host_cpu_model(), cores, cores == 1 ? "core" : "cores", to_string(host_cpu_level()), human_bytes(host_memory_bytes())),
          .usable = true,
          .reason = ""};
}

void add_devices(std::vector<DeviceInfo>& devices, const Driver& driver) {
  std::string why_none;
  const std::vector<std::string> found = driver.list(&why_none);
  const bool all_alike = found.size() > 1 and std::ranges::equal_range(found, found.front()).size() == found.size();
  if (all_alike) devices.push_back({.name = std::string(driver.name), .description = fmt::format("{0}:0 to {0}:{1}, each {2}", driver.name, found.size() - 1, found.front()), .usable = true, .reason = ""});
  else
    for (std::size_t i = 0; i < found.size(); ++i) devices.push_back({.name = fmt::format("{}:{}", driver.name, i), .description = found[i], .usable = true, .reason = ""});
  if (found.empty()) devices.push_back({.name = std::string(driver.name), .description = "none", .usable = false, .reason = why_none});
}

}  // namespace

std::vector<DeviceInfo> list_devices() {
  std::vector<DeviceInfo> devices;
  for (const Driver& driver : all_drivers())
    if (driver.preferred and not driver.list(nullptr).empty()) add_devices(devices, driver);
  devices.push_back(cpu());
  for (const Driver& driver : all_drivers())
    if (not(driver.preferred and not driver.list(nullptr).empty())) add_devices(devices, driver);
  return devices;
}

std::vector<LibraryInfo> list_libraries() {
  std::vector<LibraryInfo> libraries;
  for (const cuda::Companion& each : cuda::companions()) libraries.push_back({.name = each.name, .version = each.version, .reason = each.reason});
  return libraries;
}

}  // namespace hone
