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
  const std::vector<SeenDevice> found = driver.list(&why_none);
  const auto add = [&](const std::string& name, const std::string& description, const SeenDevice& device) {
    devices.push_back({.name = name, .description = description, .usable = device.why_not.empty(), .reason = device.why_not});
  };
  const bool all_alike = found.size() > 1 and std::ranges::count(found, found.front()) == std::ssize(found);
  if (all_alike) add(std::string(driver.name), fmt::format("{0}:0 to {0}:{1}, each {2}", driver.name, found.size() - 1, found.front().description), found.front());
  else
    for (std::size_t i = 0; i < found.size(); ++i) add(fmt::format("{}:{}", driver.name, i), found[i].description, found[i]);
  if (found.empty()) devices.push_back({.name = std::string(driver.name), .description = "none", .usable = false, .reason = why_none});
}

}  // namespace

std::vector<DeviceInfo> list_devices(std::span<const Driver> drivers) {
  std::vector<DeviceInfo> devices;
  const auto comes_first = [](const Driver& driver) { return driver.preferred and not usable_devices(driver).empty(); };
  for (const Driver& driver : drivers)
    if (comes_first(driver)) add_devices(devices, driver);
  devices.push_back(cpu());
  for (const Driver& driver : drivers)
    if (not comes_first(driver)) add_devices(devices, driver);
  return devices;
}

std::vector<DeviceInfo> list_devices() { return list_devices(all_drivers()); }

std::vector<LibraryInfo> list_libraries() {
  std::vector<LibraryInfo> libraries;
  for (const cuda::Companion& each : cuda::companions()) libraries.push_back({.name = each.name, .version = each.version, .reason = each.reason});
  return libraries;
}

}  // namespace hone
