// DeviceWork: what a session on a device has besides its executors: the device, its streams, and the ways between its memory and the host's.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "runtime/device/device.h"
#include "runtime/device/host_memory.h"
#include "runtime/device_timeline.h"
#include "runtime/feeds_ahead.h"
#include "runtime/kernel_run.h"

namespace hone {

class DeviceWork {
 public:
  explicit DeviceWork(std::unique_ptr<Device> device);

  Device& device() { return *device_; }

  // In the stream that computes, in order.
  void run(const BoundKernel& kernel);
  void copy(std::byte* to, const std::byte* from, std::size_t bytes);
  void call(DeviceCall& call, std::span<const std::byte* const> operands, std::span<std::byte* const> results, std::byte* scratch) { call.put(compute_, operands, results, call.scratch_bytes() > 0 ? scratch : nullptr); }

  /// From now on what its streams run is put on tracks of the trace, which outlives that; null: no longer.
  void trace(Trace* trace, const std::string& process);
  /// What `put` puts into the stream that computes is a span, if there is a trace.
  template <typename Put>
  void timed(const plan::Step& step, Put put) { timed(compute_, {.step = &step}, put); }

  /// From now on exchanges go from device to device, in a stream of their own.
  void connect(std::unique_ptr<DeviceCommunicator> communicator);
  bool exchanges() const { return communicator_ != nullptr; }
  /// May they be captured?
  bool captures_exchanges() const { return exchanges() and communicator_->can_be_captured(); }
  /// Begins an exchange of what was computed until now; the tensors stay as they are until it has ended.
  void begin_exchange(const plan::Step& step, plan::AllReduceStep::Operation operation, std::span<const ExchangedTensor> tensors);
  /// What computes from now on waits for the first `count` of those begun since the last end_exchanges().
  void wait_for_exchanges(std::size_t count);
  /// ... for all of them.
  void end_exchanges();

  /// Nothing computes, and something is to.
  void begin_run();
  /// Session::feed_ahead.
  void feed_ahead(NamedFeeds feeds);
  /// Brings what the caller feeds to the device, or from where it was fed ahead; what computes from now on does so behind it. The caller's memory must hold still until finish().
  void feed(std::byte* to, const TensorView& from, std::size_t bytes);

  // Between host and device, when all before it is done; done when they return.
  void read(void* to, const std::byte* from, std::size_t bytes);
  std::vector<std::byte> read(const std::byte* from, std::size_t bytes);
  void write(std::byte* to, const void* from, std::size_t bytes);
  /// All that was put into the streams is done.
  void finish();
  /// What the host feeds is no longer read: a run has failed.
  void abandon_feeds() noexcept;

  /// Where the number i lies on the device, as i64, for 0 <= i < count; stays there.
  const std::byte* numbers(std::int64_t count);

  /// A word of memory, for as long as it lives; they are given back in reverse order.
  class Word {
   public:
    explicit Word(DeviceWork& work);
    ~Word() { --work_.words_taken_; }
    Word(const Word&) = delete;
    Word& operator=(const Word&) = delete;
    std::byte* data() const { return data_; }

   private:
    DeviceWork& work_;
    std::byte* data_;
  };

  /// What comes from now on is written down and not done, until it is made a CapturedSteps.
  void begin_capture();
  /// Grows whenever memory moves, or calls of libraries go: what was captured before is of no use.
  std::uint64_t memory_moved() const { return moved_; }
  void note_memory_moved() { ++moved_; }

 private:
  friend class CapturedSteps;

  void synchronize(Stream stream);
  template <typename Put>
  void timed(Stream stream, const TraceSpan& what, Put put) {
    if (timeline_ == nullptr) return put();
    const Event begin = timeline_->begin(stream);
    put();
    timeline_->end(stream, begin, what);
  }

  std::unique_ptr<Device> device_;
  std::unique_ptr<DeviceCommunicator> communicator_;
  Stream compute_;
  FeedsAhead ahead_;
  Stream exchange_ = {};  ///< where there is a communicator
  Event computed_ = {};           ///< what is exchanged next
  std::vector<Event> exchanged_;  ///< by number since the last end_exchanges()
  std::size_t begun_ = 0;
  std::vector<DeviceMemory> number_tables_;  // the last one is the longest; others may be read by what was captured
  std::int64_t number_count_ = 0;
  std::vector<DeviceMemory> words_;
  std::size_t words_taken_ = 0;
  std::uint64_t moved_ = 0;
  std::unique_ptr<DeviceTimeline> timeline_;  ///< where there is a trace
};

/// What was put into the stream since begin_capture(), to be done again and again with the same addresses and sizes.
class CapturedSteps {
 public:
  explicit CapturedSteps(DeviceWork& work);
  ~CapturedSteps();
  CapturedSteps(const CapturedSteps&) = delete;
  CapturedSteps& operator=(const CapturedSteps&) = delete;

  void replay();

 private:
  DeviceWork& work_;
  StepGraph graph_;
  std::vector<TimedSpan> spans_;
};

/// Memory in which a session computes: its device's, or the host's.
class WorkMemory {
 public:
  WorkMemory() = default;
  WorkMemory(std::size_t bytes, std::string_view what, DeviceWork* device);

  std::byte* data() const { return on_device_.data() != nullptr ? on_device_.data() : on_host_.data(); }
  std::size_t size() const { return on_device_.data() != nullptr ? on_device_.size() : on_host_.size(); }

 private:
  HostMemory on_host_;
  DeviceMemory on_device_;
};

}  // namespace hone
