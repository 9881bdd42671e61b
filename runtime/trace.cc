#include "runtime/trace.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

#include "base/text.h"
#include "runtime/plan/step_name.h"

namespace hone {

namespace {

using Json = nlohmann::ordered_json;

constexpr std::size_t kLongestTracedName = 1000;  // of what comes from a model

/// "backward" of "backward: matmul at node ..."
std::string part_of(const plan::Step& step) {
  const std::size_t colon = step.origin.find(':');
  return colon == std::string::npos ? "other" : traced_name(step.origin.substr(0, colon));
}

/// Perfetto's times are microseconds.
double microseconds(std::int64_t nanoseconds) { return static_cast<double>(nanoseconds) / 1e3; }

/// Which entry a step is of: steps of several entries, and those of a loop's body, may have one name.
class EntryNames {
 public:
  explicit EntryNames(const std::vector<const plan::Program*>& programs) {
    for (const plan::Program* program : programs)
      for (const plan::Entry& entry : program->entries) add(entry.steps, entry.name);
  }
  /// "" for a step of no program that is shown.
  std::string of(const plan::Step* step) const {
    const auto behind = by_first_.upper_bound(step);
    if (behind == by_first_.begin()) return "";
    const Steps& steps = std::prev(behind)->second;
    return std::less<>()(step, steps.end) ? steps.entry : "";
  }

 private:
  struct Steps {
    const plan::Step* end;
    std::string entry;
  };
  void add(const std::vector<plan::Step>& steps, const std::string& entry) {
    by_first_[steps.data()] = {steps.data() + steps.size(), entry};
    for (const plan::Step& step : steps)
      if (const auto* region = std::get_if<plan::RegionStep>(&step.what))
        for (const plan::Entry& body : region->bodies) add(body.steps, entry.ends_with(kBody) ? entry : entry + kBody);  // plan::check limits the depth
  }
  static constexpr const char* kBody = ", in a body";
  std::map<const plan::Step*, Steps, std::less<>> by_first_;
};

Json event_of(const TraceSpan& span, std::size_t process, std::size_t thread, const EntryNames& entries) {
  Json event = {{"ph", "X"}, {"pid", process}, {"tid", thread}, {"ts", microseconds(span.begin)}, {"dur", microseconds(span.end - span.begin)}};
  if (span.step == nullptr) {
    event["name"] = span.number < 0 ? std::string(span.phase) : fmt::format("{} {}", span.phase, span.number);
    event["cat"] = "run";
    return event;
  }
  event["name"] = traced_name(name_of(*span.step));
  event["cat"] = part_of(*span.step);
  Json& arguments = event["args"] = {{"origin", traced_name(span.step->origin)}};
  if (const std::string entry = entries.of(span.step); not entry.empty()) arguments["entry"] = traced_name(entry);
  if (span.step->nodes.empty()) return event;
  for (const std::string& node : span.step->nodes) arguments["nodes"].push_back(traced_name(node));
  return event;
}

Json name_event(const char* what, std::size_t process, std::size_t thread, const std::string& name) {
  return {{"ph", "M"}, {"name", what}, {"pid", process}, {"tid", thread}, {"args", {{"name", traced_name(name)}}}};
}

}  // namespace

std::string traced_name(const std::string& name) { return printable(name, kLongestTracedName); }

TraceTrack::TraceTrack(const Trace& trace, std::string process, std::string thread, std::size_t capacity)
    : trace_(trace), process_(std::move(process)), thread_(std::move(thread)), spans_(std::max<std::size_t>(capacity, 1)) {}

std::int64_t TraceTrack::now() const { return trace_.now(); }

void TraceTrack::add(const TraceSpan& span) { spans_[added_++ % spans_.size()] = span; }

TraceTrack& Trace::add_track(std::string process, std::string thread) {
  const std::lock_guard lock(mutex_);
  return tracks_.emplace_back(*this, std::move(process), std::move(thread), capacity_);
}

/// When the first step began of which every track still has all. Spans are added when they end, so what was forgotten had ended before what is there did.
std::int64_t Trace::first_whole_step() const {
  std::int64_t forgotten = 0;  // until when
  for (const TraceTrack& track : tracks_)
    if (track.added_ > track.spans_.size()) forgotten = std::max(forgotten, track.spans_[track.added_ % track.spans_.size()].end);
  if (forgotten == 0) return 0;
  std::int64_t first = now();
  for (const TraceTrack& track : tracks_)
    for (std::size_t i = 0; i < std::min(track.added_, track.spans_.size()); ++i) {
      const TraceSpan& span = track.spans_[i];
      if (span.phase == kStep and span.begin >= forgotten) first = std::min(first, span.begin);
    }
  return first;
}

std::string Trace::to_json() const {
  const std::int64_t first = first_whole_step();
  const EntryNames entries(programs_);
  std::vector<std::string> processes;
  std::string events;
  const auto add = [&](const Json& event) { events += (events.empty() ? "\n" : ",\n") + event.dump(-1, ' ', false, Json::error_handler_t::replace); };
  for (std::size_t thread = 0; thread < tracks_.size(); ++thread) {
    const TraceTrack& track = tracks_[thread];
    auto found = std::ranges::find(processes, track.process_);
    const auto process = static_cast<std::size_t>(found - processes.begin());
    if (found == processes.end()) {
      processes.push_back(track.process_);
      add(name_event("process_name", process, thread, track.process_));
    }
    add(name_event("thread_name", process, thread, track.thread_));
    for (std::size_t i = track.added_ - std::min(track.added_, track.spans_.size()); i < track.added_; ++i)
      if (const TraceSpan& span = track.spans_[i % track.spans_.size()]; span.begin >= first) add(event_of(span, process, thread, entries));
  }
  std::vector<std::string> targets;
  for (const plan::Program* program : programs_)
    if (std::ranges::find(targets, program->target) == targets.end()) targets.push_back(program->target);
  return "{\"displayTimeUnit\":\"ms\",\"otherData\":{\"targets\":" + Json(targets).dump(-1, ' ', false, Json::error_handler_t::replace) + "},\"traceEvents\":[" + events + "\n]}\n";
}

}  // namespace hone
