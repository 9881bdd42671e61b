// The devices a plan could run on, and the libraries that speed them up, for `hone-run devices`.
#pragma once

#include <span>
#include <string>
#include <vector>

namespace hone {

struct DeviceInfo {
  std::string name;         ///< as --device takes it: "cpu"
  std::string description;  ///< "Intel(R) Xeon(R) Processor, 2 cores x86-64-v4, 23.5 GiB"
  bool usable = false;
  std::string reason;  ///< why not, when it is not usable
};

/// All devices Hone knows, usable or not, the preferred one first.
std::vector<DeviceInfo> list_devices();
struct Driver;  // runtime/device/drivers.h
std::vector<DeviceInfo> list_devices(std::span<const Driver> drivers);

/// A library that is loaded when it is there.
struct LibraryInfo {
  std::string name;
  std::string version;  ///< empty: it cannot be used
  std::string reason;   ///< why not
};
std::vector<LibraryInfo> list_libraries();

}  // namespace hone
