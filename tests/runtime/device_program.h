// The kernels of a plan's predict, launched one by one on a device, without an executor: what a driver is held to by the cpu's program of the same plan.
#pragma once

#include <string>
#include <vector>

#include "base/tensor.h"
#include "runtime/device/device.h"
#include "runtime/plan/plan.h"

namespace hone::test {

class DeviceProgram {
 public:
  /// A feed for `samples` samples that differ. The device, of the driver `target`, and the plan outlive it. Throws std::runtime_error where the plan's predict is more than kernels, and calls that have one
  /// beside them.
  DeviceProgram(Device& device, std::string_view target, const plan::Plan& plan, std::int64_t samples);
  ~DeviceProgram();
  DeviceProgram(const DeviceProgram&) = delete;
  DeviceProgram& operator=(const DeviceProgram&) = delete;

  /// Brings the feeds there, each number times `factor`.
  void feed(Stream stream, float factor);
  /// Every kernel over its points, in so many launches.
  void launch(Stream stream, int pieces);
  /// What is wrong with the results in the device's memory, for feeds of that factor; "": nothing.
  std::string difference(Stream stream, float factor);

 private:
  struct Step {
    const DeviceKernel* kernel = nullptr;
    std::vector<void*> buffers;
    std::vector<std::size_t> bytes;
    std::vector<std::int64_t> sizes;
    std::size_t read_only = 0;
    std::int64_t range = 0;
  };
  Tensor fed(std::size_t feed, float factor) const;
  void add(const plan::KernelStep& step);

  Device& device_;
  const plan::Plan& plan_;
  const plan::Program* program_ = nullptr;
  const plan::Entry* entry_ = nullptr;
  DimBindings sizes_;
  std::vector<std::byte*> memory_;  // by buffer; of views null
  std::vector<Step> steps_;
};

}  // namespace hone::test
