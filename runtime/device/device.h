// Device: what a driver does for a program with memory of its own. Work is put into streams, each of which does one thing after the other; nothing else is ordered but by events and by
// synchronize(). Addresses are the device's: they are counted with, and nobody but the device looks there.
//
// The host is no driver: its executor's kernels run in memory that everybody sees (runtime/kernel_run.h).
#pragma once

#include <fmt/format.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "base/alignment.h"
#include "runtime/collective/communicator.h"
#include "runtime/device/peak.h"
#include "runtime/device/team.h"
#include "runtime/library/rows.h"
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
  std::span<const std::size_t> bytes;        ///< of each that may be accessed
  std::span<const std::size_t> skipped = {};  ///< and so many behind the address they begin; none: there
  std::size_t read_only = 0;                 ///< the first so many buffers are only read
  std::span<const std::int64_t> sizes;       ///< by value
  std::int64_t begin = 0, end = 0;
};

/// A call of a library on a device, made ready for one set of sizes.
class DeviceCall {
 public:
  DeviceCall() = default;
  virtual ~DeviceCall() = default;
  DeviceCall(const DeviceCall&) = delete;
  DeviceCall& operator=(const DeviceCall&) = delete;

  /// Memory that it may overwrite while it runs; at most device_scratch() of what it was made for.
  virtual std::size_t scratch_bytes() const = 0;
  /// Puts it into the stream, captured or not. Addresses are the device's, multiples of kLibraryAlignment; null where an operand is absent. The scratch is a multiple of kDeviceScratchAlignment (runtime/library/arena.h);
  /// null where none is wanted: cuBLASLt refuses another address even where it uses none of it.
  virtual void put(Stream stream, std::span<const std::byte* const> operands, std::span<std::byte* const> results, std::byte* scratch) = 0;
};
/// Of what libraries read and write: the longest access of a thread.
inline constexpr std::size_t kLibraryAlignment = 16;

/// What replicas exchange from device to device, without the host (runtime/collective/communicator.h says what each function means). Sums have the order of who forms them.
class DeviceCommunicator {
 public:
  DeviceCommunicator() = default;
  virtual ~DeviceCommunicator() = default;
  DeviceCommunicator(const DeviceCommunicator&) = delete;
  DeviceCommunicator& operator=(const DeviceCommunicator&) = delete;

  // Put it into the stream, captured or not (but see can_be_captured()); the tensors lie on the device.
  virtual void all_reduce(Stream stream, std::span<const ExchangedTensor> tensors) = 0;
  virtual void reduce_scatter(Stream stream, std::span<const ExchangedTensor> tensors) = 0;
  virtual void all_gather(Stream stream, std::span<const ExchangedTensor> tensors) = 0;

  /// May what it puts into a stream be captured? Else the host waits in it for the other replicas.
  virtual bool can_be_captured() const { return true; }

  /// As the device's, for streams in which exchanges are: throws Error kPeer where another replica does not come in time, or has failed.
  virtual void synchronize(Stream stream) = 0;
};

class Device {
 public:
  virtual ~Device() = default;

  virtual std::string name() const = 0;  ///< "cuda:0"
  /// Bytes that can still be had.
  virtual std::uint64_t free_memory() const = 0;
  /// What it can do at most, without units that only some products can use; nothing: that is not known.
  virtual std::optional<MachinePeak> peak() const { return std::nullopt; }

  /// A multiple of kTensorAlignment in size, and of kDeviceScratchAlignment in place; contents are undefined. `what` names it in the message. Throws Error kMemory.
  virtual std::byte* allocate(std::size_t bytes, std::string_view what) = 0;
  /// Nothing that uses it may be under way.
  virtual void release(std::byte* memory) noexcept = 0;

  // What a session takes goes through these, which keep it to its limit.
  /// Bytes that may be taken from now on, of what is free; 0: all. Several sessions on one device have a limit each.
  void limit_memory(std::uint64_t bytes) { limit_ = bytes; }
  /// Throws Error kMemory with what is needed, what there is and ways out.
  std::byte* take(std::size_t bytes, std::string_view what);
  void give_back(std::byte* memory, std::size_t bytes) noexcept;
  /// Bytes that can still be taken.
  std::uint64_t available_memory() const;

  /// Makes the program's kernels known. Throws Error kPlanMismatch for code that this device cannot run, kMemory.
  virtual void load(const plan::Program& program) = 0;
  /// Null if the program has none of that name.
  virtual const DeviceKernel* find(const std::string& kernel) = 0;

  /// Why it cannot call the row's library (runtime/library/rows.h); "" if it can.
  virtual std::string why_no_library(const LibraryRow& row) const { return fmt::format("this device calls no {}", row.device_library); }
  /// From now on calls are chosen among what libraries recommend by how long they take here (runtime/device/choices.h), with the help of the file, if it is named; before, the first recommendation is taken. What a person
  /// should know of the file; "": nothing.
  virtual std::string choose_by_timing(const std::string&) { return ""; }
  /// Null if the library does not do that for these sizes: the program has code of its own for it.
  virtual std::unique_ptr<DeviceCall> make_call(const LibraryRow&, const LibrarySpec&) { return nullptr; }
  /// The call, if it is known to be faster than `rival`, which does the same in another way; else null: by rule, before choose_by_timing(), nothing is.
  virtual std::unique_ptr<DeviceCall> make_faster_call(const LibraryRow&, const LibrarySpec&, DeviceCall&) { return nullptr; }

  /// What tells the hardware apart from others', on this machine and elsewhere: replicas on one and the same cannot exchange as devices do.
  virtual std::string hardware() const { return name(); }
  /// Why it can exchange nothing with other devices; "" if it can.
  virtual std::string why_no_exchange() const { return "this device exchanges nothing with others"; }
  /// Called by all `replicas` at once, each on hardware of its own that can exchange. They, and the device, outlive it. Throws Error kPeer.
  virtual std::unique_ptr<DeviceCommunicator> connect(Communicator&) { return nullptr; }

  /// Of how many replicas that share this hardware, in one process, it adds up what they have; 0: it does not.
  virtual int most_summed_terms() const { return 0; }
  /// Elements of the range, added up in the order of runtime/collective/tree_sum.h, go to the same elements of each of `sums`, which may be terms. All lie on this hardware; it is not captured.
  virtual void sum(Stream, DType, std::span<const std::byte* const>, RangePiece, std::span<std::byte* const>) {}
  /// As copy(), from what another of these replicas has allocated.
  virtual void copy_from_other(Stream stream, std::byte* to, const std::byte* from, std::size_t bytes) { copy(stream, to, from, bytes); }

  virtual Stream make_stream() = 0;
  virtual Event make_event() = 0;
  /// The event stands for all that is in the stream by now.
  virtual void record(Event event, Stream stream) = 0;
  /// What comes into the stream from now on waits for what the event stands for.
  virtual void wait(Stream stream, Event event) = 0;
  /// Returns when all that is in the stream is done. Throws Error kDeviceLost with what went wrong on the device, which cannot be used afterwards.
  virtual void synchronize(Stream stream) = 0;

  /// For record_time() alone.
  virtual Event make_timed_event() = 0;
  /// The event tells from then on when all that is in the stream by now was done. Where that is captured it does so anew in each replay.
  virtual void record_time(Event event, Stream stream) = 0;
  /// Nanoseconds from one timed event to another; nothing while one of them has not come, or is not known to have.
  virtual std::optional<std::int64_t> time_between(Event from, Event to) = 0;

  virtual void launch(Stream stream, const Launch& launch) = 0;
  /// The host's memory must hold still, and is not to be read, until the stream was synchronized. Whether the host waits for a copy is left open, but of pinned memory: there it does not.
  virtual void copy_in(Stream stream, std::byte* to, const void* from, std::size_t bytes) = 0;
  virtual void copy_out(Stream stream, void* to, const std::byte* from, std::size_t bytes) = 0;
  /// Memory of the host that every device copies from and to by itself; null if there is none of that kind, or no more.
  virtual std::byte* allocate_pinned(std::size_t) { return nullptr; }
  /// No copy may be under way there.
  virtual void release_pinned(std::byte*) noexcept {}
  /// From one place of the device to another; they do not overlap.
  virtual void copy(Stream stream, std::byte* to, const std::byte* from, std::size_t bytes) = 0;

  /// Are steps to be captured? Else each launch is one of its own, which debuggers and profilers can follow.
  virtual bool makes_graphs() const { return true; }
  /// What comes into the stream, and into those that wait for its events, is written down and not done, until end_capture(). Only launches, copies within the device, record and wait.
  virtual void begin_capture(Stream stream) = 0;
  virtual StepGraph end_capture(Stream stream) = 0;
  /// Puts all of it into the stream again, with the addresses and sizes that it had.
  virtual void replay(Stream stream, StepGraph graph) = 0;
  virtual void forget(StepGraph graph) noexcept = 0;

 private:
  std::uint64_t limit_ = 0, taken_ = 0;
};

/// Memory of a device, or of the host where there is none.
class DeviceMemory {
 public:
  DeviceMemory() = default;
  DeviceMemory(Device& device, std::size_t bytes, std::string_view what) : device_(&device), data_(device.take(bytes, what)), bytes_(bytes) {}
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
    if (device_ != nullptr and data_ != nullptr) device_->give_back(data_, bytes_);
  }

  Device* device_ = nullptr;
  std::byte* data_ = nullptr;
  std::size_t bytes_ = 0;
};

}  // namespace hone
