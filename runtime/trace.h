// What ran when, thread by thread, as a file that Perfetto and chrome://tracing open.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <mutex>
#include <string>
#include <vector>

namespace hone {

/// A name as traces have it: they may be no UTF-8, which JSON cannot hold, and of any length.
std::string traced_name(const std::string& name);

namespace plan {
struct Program;
struct Step;
}

/// What one thread does at a time. Spans of a track are nested in each other, or one after the other.
struct TraceSpan {
  std::int64_t begin = 0, end = 0;   ///< nanoseconds since the trace began
  const plan::Step* step = nullptr;  ///< of the plan, which outlives the trace's use; or
  const char* phase = nullptr;       ///< "step", "next batch": a text that is never freed,
  std::int64_t number = -1;          ///< and its number, if it has one
};

class Trace;

/// Spans of one thread: the last ones that fit. Used by one thread at a time; adding a span allocates nothing.
class TraceTrack {
 public:
  TraceTrack(const Trace& trace, std::string process, std::string thread, std::size_t capacity);

  std::int64_t now() const;
  void add(const TraceSpan& span);
  /// A plan's step, from `begin` to now.
  void add(const plan::Step& step, std::int64_t begin) { add({.begin = begin, .end = now(), .step = &step}); }

 private:
  friend class Trace;
  const Trace& trace_;
  const std::string process_, thread_;
  std::vector<TraceSpan> spans_;  // a ring
  std::size_t added_ = 0;
};

class Trace {
 public:
  using Clock = std::chrono::steady_clock;
  static constexpr std::size_t kSpansOfATrack = std::size_t{1} << 16;
  static constexpr char kStep[] = "step";  ///< the phase that is a step of training: a trace begins with a whole one. An array: literals of the same text may lie in different places

  /// Each track keeps its last `spans`.
  explicit Trace(std::size_t spans = kSpansOfATrack) : capacity_(spans), start_(Clock::now()) {}
  Trace(const Trace&) = delete;
  Trace& operator=(const Trace&) = delete;

  /// A new track, shown as a thread of that process; it lives as long as the trace. Any thread may ask.
  TraceTrack& add_track(std::string process, std::string thread);
  /// Whose steps its spans are: their entries and the target are told with them. It outlives the trace's use.
  void shows(const plan::Program& program) { programs_.push_back(&program); }
  std::int64_t now() const { return std::chrono::duration_cast<std::chrono::nanoseconds>(Clock::now() - start_).count(); }

  /// The trace in Chrome's format, while nobody adds to it: from the first step of training on of which no track has forgotten anything.
  std::string to_json() const;

 private:
  std::int64_t first_whole_step() const;
  const std::size_t capacity_;
  const Clock::time_point start_;
  std::mutex mutex_;
  std::deque<TraceTrack> tracks_;
  std::vector<const plan::Program*> programs_;
};

/// Puts what its scope does on a track, if there is one.
class TraceScope {
 public:
  TraceScope(TraceTrack* track, const char* phase, std::int64_t number = -1) : track_(track) {
    if (track_ != nullptr) span_ = {.begin = track_->now(), .phase = phase, .number = number};
  }
  ~TraceScope() {
    if (track_ == nullptr) return;
    span_.end = track_->now();
    track_->add(span_);
  }
  TraceScope(const TraceScope&) = delete;
  TraceScope& operator=(const TraceScope&) = delete;

 private:
  TraceTrack* track_;
  TraceSpan span_;
};

}  // namespace hone
