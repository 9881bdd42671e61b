// The devices a plan could run on, for `hone-run devices`.
#pragma once

#include <string>
#include <vector>

namespace hone {

struct DeviceInfo {
  std::string name;         ///< as --device takes it: "cpu"
  std::string description;  ///< "Intel(R) Xeon(R) Processor, 2 cores, x86-64-v4, 23.5 GiB"
  bool usable = false;
  std::string reason;  ///< why not, when it is not usable
};

/// All devices Hone knows, usable or not, the preferred one first.
std::vector<DeviceInfo> list_devices();

}  // namespace hone
