// The drivers of devices with memory of their own: the one list. A driver is a file and a line in drivers.cc.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/device/device.h"

namespace hone {

/// A device that is there.
struct SeenDevice {
  std::string description;   ///< "NVIDIA H100 80GB HBM3, sm_90, 79.1 GiB"
  std::string why_not = {};  ///< it cannot be used; "": it can
  friend bool operator==(const SeenDevice&, const SeenDevice&) = default;
};

struct Driver {
  std::string_view name;  ///< as --device takes it, and the plan's program that it runs
  /// All that are there, by number. If there are none, *why_none (which may be null) says what is missing.
  std::vector<SeenDevice> (*list)(std::string* why_none);
  /// Throws Error kDevice.
  std::unique_ptr<Device> (*open)(int number);
  bool preferred = false;  ///< where one is there, and nothing else is asked for
};

std::span<const Driver> all_drivers();

/// Numbers of the driver's devices that can be used.
std::vector<int> usable_devices(const Driver& driver);

/// Each device that "cuda:0,1" or "cpu" names, for choose_device(). Throws Error kUsage for one that is named twice.
std::vector<std::string> devices_in(std::string_view list);

/// "cuda", "cuda:1": the driver and the number, without one that of the first device that can be used; processes that were started together on this machine take turns (runtime/collective/mpi_launch.h).
/// Nothing for "cpu". "auto" is the first preferred driver that has a device that can be used and a program in the plan, then the cpu, then what else the plan has a program for, as if it were named. Throws Error kDevice for a device that is not known, not there, or cannot be used.
struct ChosenDevice {
  const Driver* driver = nullptr;
  int number = 0;
};
std::optional<ChosenDevice> choose_device(std::string_view device, const std::vector<std::string>& targets_of_plan, std::span<const Driver> drivers = all_drivers());

}  // namespace hone
