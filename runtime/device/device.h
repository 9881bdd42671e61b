// Device: what a driver does for a program with memory of its own. Work is put into streams, each of which does one thing after the other; nothing else is ordered but by events and by
// synchronize(). Addresses are the device's: they are counted with, and nobody but the device looks there.
//
// The host is no driver: its executor's kernels run in memory that everybody sees (runtime/kernel_run.h).
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "runtime/plan/launch.h"
#include "runtime/plan/plan.h"

namespace hone {

// They belong to the device that made them, and live as long.
enum class Stream : std::uint32_t {};
enum class Event : std::uint32_t {};
enum class StepGraph : std::uint32_t {};

/// A kernel of the loaded program.
struct DeviceKernel {
  std::string name;
  void* function = nullptr;  ///< the driver's own
  plan::LaunchShape shape = {};
};

/// One launch: the outer points [begin, end), begin < end, in so many blocks.
struct Launch {
  const DeviceKernel* kernel = nullptr;
  std::span<void* const> buffers;            ///< addresses
  std::span<const std::size_t> bytes;        ///< of each
  std::size_t read_only = 0;                 ///< the first so many buffers are only read
  std::span<const std::int64_t> sizes;       ///< by value
  std::int64_t begin = 0, end = 0;
};

class Device {
 public:
  virtual ~Device() = default;

  virtual std::string name() const = 0;  ///< "cuda:0"
  /// Bytes that can still be had.
  virtual std::uint64_t free_memory() const = 0;

  /// A multiple of kTensorAlignment in size and place; contents are undefined. `what` names it in the message. Throws Error kMemory.
  virtual std::byte* allocate(std::size_t bytes, std::string_view what) = 0;
  /// Nothing that uses it may be under way.
  virtual void release(std::byte* memory) noexcept = 0;

  /// Makes the program's kernels known. Throws Error kPlanMismatch for code that this device cannot run.
  virtual void load(const plan::Program& program) = 0;
  /// Null if the program has none of that name.
  virtual const DeviceKernel* find(const std::string& kernel) = 0;

  virtual Stream make_stream() = 0;
  virtual Event make_event() = 0;
  /// The event stands for all that is in the stream by now.
  virtual void record(Event event, Stream stream) = 0;
  /// What comes into the stream from now on waits for what the event stands for.
  virtual void wait(Stream stream, Event event) = 0;
  /// Returns when all that is in the stream is done. Throws Error kDevice with what went wrong on the device, which cannot be used afterwards.
  virtual void synchronize(Stream stream) = 0;

  virtual void launch(Stream stream, const Launch& launch) = 0;
  /// The host's memory must hold still, and is not to be read, until the stream was synchronized.
  virtual void copy_in(Stream stream, std::byte* to, const void* from, std::size_t bytes) = 0;
  virtual void copy_out(Stream stream, void* to, const std::byte* from, std::size_t bytes) = 0;
  /// From one place of the device to another; they do not overlap.
  virtual void copy(Stream stream, std::byte* to, const std::byte* from, std::size_t bytes) = 0;

  /// What comes into the stream, and into those that wait for its events, is written down and not done, until end_capture(). Only launches, copies within the device, record and wait.
  virtual void begin_capture(Stream stream) = 0;
  virtual StepGraph end_capture(Stream stream) = 0;
  /// Puts all of it into the stream again, with the addresses and sizes that it had.
  virtual void replay(Stream stream, StepGraph graph) = 0;
  virtual void forget(StepGraph graph) noexcept = 0;
};

/// Memory of a device, or of the host where there is none.
class DeviceMemory {
 public:
  DeviceMemory() = default;
  DeviceMemory(Device& device, std::size_t bytes, std::string_view what) : device_(&device), data_(device.allocate(bytes, what)), bytes_(bytes) {}
  ~DeviceMemory() { release(); }
  DeviceMemory(DeviceMemory&& other) noexcept { swap(other); }
  DeviceMemory& operator=(DeviceMemory&& other) noexcept {
    DeviceMemory moved(std::move(other));
    swap(moved);
    return *this;
  }

  std::byte* data() const { return data_; }
  std::size_t size() const { return bytes_; }

 private:
  void swap(DeviceMemory& other) noexcept {
    std::swap(device_, other.device_);
    std::swap(data_, other.data_);
    std::swap(bytes_, other.bytes_);
  }
  void release() noexcept {
    if (device_ != nullptr and data_ != nullptr) device_->release(data_);
  }

  Device* device_ = nullptr;
  std::byte* data_ = nullptr;
  std::size_t bytes_ = 0;
};

}  // namespace hone
