// DeviceTimeline: when what was put into a device's streams ran, as spans of a trace: by an event before each piece of work and one behind it, which are read when they have come.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <vector>

#include "runtime/device/device.h"
#include "runtime/trace.h"

namespace hone {

/// A span whose times are still to come.
struct TimedSpan {
  std::size_t track = 0;  ///< of the timeline
  TraceSpan what;         ///< but for its times
  Event begin = {}, end = {};
};

class DeviceTimeline {
 public:
  /// Both outlive it.
  explicit DeviceTimeline(Device& device) : device_(device) {}

  /// What runs in the stream is put on that track.
  void show(Stream stream, TraceTrack& track);
  /// Before the first span, and where the stream waits for nothing: what the host's clock shows is held against the device's. Called often, as that one drifts.
  void set_clock(Stream idle);

  /// A piece of work of the stream is what is put there between the two calls, which may be nested.
  Event begin(Stream stream);
  void end(Stream stream, Event begin, const TraceSpan& what);
  /// What has come is put on the tracks; a stream's in its order.
  void flush();

  /// What is begun from now on is captured.
  void begin_capture() { captures_ = true; }
  /// It is, until here: those are the graph's. Its replay gives them new times.
  std::vector<TimedSpan> end_capture();
  void replayed(const std::vector<TimedSpan>& spans);
  /// The graph is gone.
  void give_back(const std::vector<TimedSpan>& spans);

 private:
  struct Clock {
    Event event = {};
    std::int64_t at = 0;  ///< then, in the trace's time
  };
  struct Pending {
    TimedSpan span;
    std::size_t clock = 0;
    bool of_graph = false;  ///< whose events are not free when they have come
  };
  struct Track {
    Stream stream;
    TraceTrack* shown;
    std::deque<Pending> pending;
  };
  std::size_t track_of(Stream stream) const;
  Event take_event();
  bool put(Track& track, const Pending& pending) const;

  Device& device_;
  std::vector<Track> tracks_;
  std::array<Clock, 2> clocks_;  // spans that were begun under the last but one may be pending still
  std::size_t clock_ = 0, clocks_made_ = 0;
  std::vector<Event> free_;
  bool captures_ = false;
  std::vector<TimedSpan> captured_;
};

}  // namespace hone
