// device_check PLAN DEVICE: the cases that every driver must pass (device_conformance.h), on a device of this machine. A line for each; exits 1 if one fails. scripts/gpu_check carries it to a GPU.
#include <fmt/format.h>

#include <cstdio>
#include <exception>

#include "runtime/device/drivers.h"
#include "tests/runtime/device_conformance.h"

namespace hone::test {
namespace {

int check_device(const std::string& plan_file, const std::string& device) {
  const plan::Plan plan = plan::load(plan_file);
  const auto chosen = choose_device(device, {device.substr(0, device.find(':'))});
  if (not chosen) throw std::runtime_error(device + " is no device with memory of its own");
  int failures = 0;
  for (const DeviceCase& each : device_cases()) {
    const std::string problem = run_on(chosen->driver->open(chosen->number), std::string(chosen->driver->name), plan, each);
    fmt::print("{} {}{}{}\n", problem.empty() ? "ok  " : "FAIL", each.name, problem.empty() ? "" : ": ", problem);
    failures += problem.empty() ? 0 : 1;
  }
  return failures == 0 ? 0 : 1;
}

}  // namespace
}  // namespace hone::test

int main(int argc, char** argv) {
  if (argc != 3) return std::fputs("usage: device_check PLAN DEVICE\n", stderr), 2;
  try {
    return hone::test::check_device(argv[1], argv[2]);
  } catch (const std::exception& error) { return fmt::print(stderr, "{}\n", error.what()), 2; }
}
