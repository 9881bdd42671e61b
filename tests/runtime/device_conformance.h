// What every driver must do, in cases that run unchanged on each: on sim in the tests, on a GPU by device_check, which scripts/gpu_check carries there. What only a simulation can see is in
// sim_device_test.cc.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/device/device.h"
#include "runtime/plan/plan.h"

namespace hone::test {

/// A device of its own for each case, with two streams, an event and three blocks of memory, of which `a` holds sevens.
struct DeviceBench {
  static constexpr std::size_t kBytes = std::size_t{1} << 20;

  std::unique_ptr<Device> owned;
  Device& device = *owned;
  const std::string target;  ///< of the plan's program that runs there
  const plan::Plan& plan;
  Stream first, second;
  Event event;
  std::byte *a, *b, *c;
  const std::vector<std::byte> sevens = std::vector<std::byte>(kBytes, std::byte{7}), nines = std::vector<std::byte>(kBytes, std::byte{9});

  DeviceBench(std::unique_ptr<Device> of, std::string target_name, const plan::Plan& its_plan);
  ~DeviceBench();
  DeviceBench(const DeviceBench&) = delete;
  DeviceBench& operator=(const DeviceBench&) = delete;

  std::vector<std::byte> content(Stream stream, const std::byte* memory, std::size_t bytes = kBytes);
  /// "" if the memory holds the bytes.
  std::string holds(Stream stream, const std::byte* memory, std::span<const std::byte> bytes, std::string_view what);
};

struct DeviceCase {
  std::string_view name;
  /// What is wrong; "" nothing.
  std::string (*run)(DeviceBench& bench);
};
std::span<const DeviceCase> device_cases();

/// The case on that device, for which the plan has a program (and one for the cpu, whose predict is kernels alone); what it throws is wrong, too.
std::string run_on(std::unique_ptr<Device> device, const std::string& target, const plan::Plan& plan, const DeviceCase& each);

}  // namespace hone::test
