// The sim driver: a GPU played by the host. Kernels run block by block and thread by thread (backends/llvm/gpu_blocks.h), one piece of work after the other as it is put into streams. What a real
// device would forgive by luck is a mistake here: accesses that no event and no synchronize() orders, memory that was released or never allocated, results that are read too early, capture of what
// cannot be captured. Mistakes are InternalErrors. Fresh and released memory holds NaNs.
#pragma once

#include <chrono>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <vector>

#include "runtime/device/choices.h"
#include "runtime/device/code_loader.h"
#include "runtime/device/device.h"
#include "runtime/device/host_memory.h"
#include "runtime/device/order_check.h"

namespace hone {

struct SimOptions {
  int number = 0;
  std::uint64_t memory_bytes = 0;  ///< that it pretends to have; 0: as much as the host
  /// Of the order in which a launch's blocks run, which must not matter.
  std::uint64_t seed = 0;
  /// The launch after so many is the one at which the device is lost: it and all that come after it fail. 0: it never is.
  std::uint64_t lost_after = 0;
  /// Are its libraries there? Else programs run their own code in place of them.
  bool has_libraries = true;
  /// Device::makes_graphs(): where it does not, capturing one is a mistake.
  bool makes_graphs = true;
  /// In how many ways they offer each call; the first one, which they recommend, is the slowest.
  int algorithms = 1;
  /// Are calls that do a kernel's work as well faster than the two?
  bool has_epilogues = false;
};

/// Options from text: "memory=64MiB,lost_after=1000,libraries=0,graphs=0,algorithms=3,epilogues=1". Throws Error kUsage.
SimOptions sim_options(std::string_view text, int number);

class SimDevice : public Device {
 public:
  explicit SimDevice(SimOptions options);

  std::string name() const override;
  std::uint64_t free_memory() const override;
  std::byte* allocate(std::size_t bytes, std::string_view what) override;
  void release(std::byte* memory) noexcept override;
  void load(const plan::Program& program) override;
  const DeviceKernel* find(const std::string& kernel) override;
  std::string why_no_library(const LibraryRow& row) const override;
  std::string choose_by_timing(const std::string& file) override;
  /// Done by the host's library, on one thread, so that bits do not depend on how many there are.
  std::unique_ptr<DeviceCall> make_call(const LibraryRow& row, const LibrarySpec& spec) override;
  int most_summed_terms() const override;
  void sum(Stream stream, DType dtype, std::span<const std::byte* const> terms, RangePiece range, std::span<std::byte* const> sums) override;
  void copy_from_other(Stream stream, std::byte* to, const std::byte* from, std::size_t bytes) override;
  std::unique_ptr<DeviceCall> make_faster_call(const LibraryRow& row, const LibrarySpec& spec, DeviceCall& rival) override;
  std::string why_no_exchange() const override { return ""; }
  /// By the replicas' own communicator, as its memory is the host's.
  std::unique_ptr<DeviceCommunicator> connect(Communicator& replicas) override;
  Stream make_stream() override;
  Event make_event() override;
  void record(Event event, Stream stream) override;
  void wait(Stream stream, Event event) override;
  void synchronize(Stream stream) override;
  Event make_timed_event() override { return make_event(); }
  void record_time(Event event, Stream stream) override;
  std::optional<std::int64_t> time_between(Event from, Event to) override;
  std::byte* allocate_pinned(std::size_t bytes) override;
  void release_pinned(std::byte* memory) noexcept override;
  void launch(Stream stream, const Launch& launch) override;
  void copy_in(Stream stream, std::byte* to, const void* from, std::size_t bytes) override;
  void copy_out(Stream stream, void* to, const std::byte* from, std::size_t bytes) override;
  void copy(Stream stream, std::byte* to, const std::byte* from, std::size_t bytes) override;
  bool makes_graphs() const override { return options_.makes_graphs; }
  void begin_capture(Stream stream) override;
  StepGraph end_capture(Stream stream) override;
  void replay(Stream stream, StepGraph graph) override;
  void forget(StepGraph graph) noexcept override;

 private:
  class Call;
  class Slowed;
  class Exchange;
  using Work = std::function<void()>;
  /// A copy to the host, which is done when the host has waited for it.
  struct Arrival {
    Stream stream;
    void* to;
    std::vector<std::byte> bytes;
  };
  /// A copy from pinned memory, which holds still until the host has waited for it.
  struct Departure {
    Stream stream;
    const std::byte* from;
    std::size_t bytes;
    std::uint64_t hash;
  };
  struct Recorded {
    std::vector<Work> works;
    std::vector<Stream> streams;  ///< that take part; the first is the one that was captured
  };

  bool is_pinned(const std::byte* memory) const;
  void check_departures(Stream stream);
  /// Does it, or writes it down.
  void put(Stream stream, Work work);
  void refuse_capture(const char* what) const;
  /// Throws Error kDeviceLost once the device is lost.
  void check_lost() const;
  bool is_captured(Stream stream) const;
  /// A launch with what it was given by reference.
  struct OwnLaunch {
    const DeviceKernel* kernel;
    std::vector<void*> buffers;
    std::vector<std::size_t> bytes, skipped;
    std::size_t read_only;
    std::vector<std::int64_t> sizes;
    std::int64_t begin, end;
  };
  void run(Stream stream, const OwnLaunch& launch);

  SimOptions options_;
  std::unique_ptr<Choices> choices_;  ///< by timing
  OrderCheck order_;
  std::map<std::byte*, HostMemory> memory_;
  std::deque<HostMemory> released_;  ///< the last of what was: not given out again for a while, so that whoever still reads it finds NaNs
  std::size_t released_bytes_ = 0;
  std::uint64_t used_ = 0;
  LoadedCode code_;
  std::map<std::string, std::unique_ptr<DeviceKernel>> kernels_;
  std::vector<Arrival> arrivals_;
  std::vector<Departure> departures_;
  std::map<std::byte*, HostMemory> pinned_;
  std::map<Event, std::chrono::steady_clock::time_point> times_;
  std::unique_ptr<Recorded> capture_;
  std::set<Event> captured_events_;  ///< those that stand for captured work
  std::map<StepGraph, Recorded> graphs_;
  std::uint32_t next_graph_ = 0;
  std::uint64_t launches_ = 0;
  std::string mistake_;  ///< found where nothing may be thrown
};

}  // namespace hone
