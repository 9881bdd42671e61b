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

struct Driver {
  std::string_view name;  ///< as --device takes it, and the plan's program that it runs
  /// The devices that are there: a line about each. If there are none, *why_none (which may be null) says what is missing.
  std::vector<std::string> (*list)(std::string* why_none);
  /// Throws Error kDevice.
  std::unique_ptr<Device> (*open)(int number);
  bool preferred = false;  ///< where one is there, and nothing else is asked for
};

std::span<const Driver> all_drivers();

/// Each device that "cuda:0,1" or "cpu" names, for choose_device(). Throws Error kUsage for one that is named twice.
std::vector<std::string> devices_in(std::string_view list);

/// "cuda", "cuda:1": the driver and the number, 0 without one. Nothing for "cpu". "auto" is the first preferred driver that has a device and a program in the plan, then the cpu, then what else the
/// plan has a program for. Throws Error kDevice for a device that is not known or not there.
struct ChosenDevice {
  const Driver* driver = nullptr;
  int number = 0;
};
std::optional<ChosenDevice> choose_device(std::string_view device, const std::vector<std::string>& targets_of_plan);

}  // namespace hone
