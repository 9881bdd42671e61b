#include "runtime/device_timeline.h"

#include <algorithm>
#include <utility>

#include "base/check.h"

namespace hone {

void DeviceTimeline::show(Stream stream, TraceTrack& track) { tracks_.push_back({.stream = stream, .shown = &track, .pending = {}}); }

std::size_t DeviceTimeline::track_of(Stream stream) const {
  const auto found = std::ranges::find(tracks_, stream, &Track::stream);
  HONE_CHECK(found != tracks_.end(), "a stream that no track shows");
  return static_cast<std::size_t>(found - tracks_.begin());
}

Event DeviceTimeline::take_event() {
  if (free_.empty()) return device_.make_timed_event();
  const Event event = free_.back();
  free_.pop_back();
  return event;
}

void DeviceTimeline::set_clock(Stream idle) {
  if (clocks_made_ < clocks_.size()) clocks_[clocks_made_++].event = device_.make_timed_event();
  clock_ = clocks_made_ < clocks_.size() ? 0 : 1 - clock_;
  const std::size_t now = clock_;
  for (const Track& track : tracks_)
    if (std::ranges::any_of(track.pending, [now](const Pending& pending) { return pending.clock == now; })) return;  // the one before is good enough: nobody has waited for long
  clocks_[now].at = tracks_.front().shown->now();
  device_.record_time(clocks_[now].event, idle);
}

Event DeviceTimeline::begin(Stream stream) {
  const Event event = take_event();
  device_.record_time(event, stream);
  return event;
}

void DeviceTimeline::end(Stream stream, Event begin, const TraceSpan& what) {
  const TimedSpan span = {.track = track_of(stream), .what = what, .begin = begin, .end = take_event()};
  device_.record_time(span.end, stream);
  if (captures_) captured_.push_back(span);
  else tracks_[span.track].pending.push_back({.span = span, .clock = clock_});
}

/// False if it has not come.
bool DeviceTimeline::put(Track& track, const Pending& pending) const {
  const Clock& clock = clocks_[pending.clock];
  const auto begin = device_.time_between(clock.event, pending.span.begin), end = device_.time_between(clock.event, pending.span.end);
  if (not begin or not end) return false;
  TraceSpan span = pending.span.what;
  span.begin = clock.at + *begin;
  span.end = clock.at + std::max(*begin, *end);
  track.shown->add(span);
  return true;
}

void DeviceTimeline::flush() {
  for (Track& track : tracks_)
    for (; not track.pending.empty() and put(track, track.pending.front()); track.pending.pop_front()) {
      const Pending& done = track.pending.front();
      if (not done.of_graph) free_.insert(free_.end(), {done.span.begin, done.span.end});
    }
}

std::vector<TimedSpan> DeviceTimeline::end_capture() {
  captures_ = false;
  return std::exchange(captured_, {});
}

void DeviceTimeline::replayed(const std::vector<TimedSpan>& spans) {
  for (const TimedSpan& span : spans) tracks_[span.track].pending.push_back({.span = span, .clock = clock_, .of_graph = true});
}

void DeviceTimeline::give_back(const std::vector<TimedSpan>& spans) {
  for (const TimedSpan& span : spans) free_.insert(free_.end(), {span.begin, span.end});
}

}  // namespace hone
