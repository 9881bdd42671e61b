#include "inspect/trace.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "base/diag.h"
#include "base/text.h"
#include "base/untrusted_json.h"
#include "runtime/plan/step_name.h"
#include "runtime/trace.h"

namespace hone {

namespace {

using nlohmann::json;

struct Event {
  std::string name, origin;
  double begin = 0, duration = 0;
};

double number_of(const json& event, const char* key) {
  const auto found = event.find(key);
  return found != event.end() and found->is_number() ? found->get<double>() : 0;
}

std::string text_of(const json& event, const char* key) {
  const auto found = event.find(key);
  return found != event.end() and found->is_string() ? found->get<std::string>() : "";
}

/// The spans of each track, in the order of their begin.
std::vector<std::vector<Event>> tracks_of(const json& trace) {
  std::map<std::pair<double, double>, std::vector<Event>> tracks;
  for (const json& event : trace) {
    if (not event.is_object() or text_of(event, "ph") != "X") continue;
    Event made{.name = text_of(event, "name"), .origin = "", .begin = number_of(event, "ts"), .duration = std::max(0.0, number_of(event, "dur"))};
    if (const auto arguments = event.find("args"); arguments != event.end() and arguments->is_object()) made.origin = text_of(*arguments, "origin");
    tracks[{number_of(event, "pid"), number_of(event, "tid")}].push_back(std::move(made));
  }
  std::vector<std::vector<Event>> list;
  for (auto& [key, events] : tracks) {
    std::ranges::stable_sort(events, std::less(), &Event::begin);
    list.push_back(std::move(events));
  }
  return list;
}

/// The steps of one track: each event is the next step of its name and origin; where there is none behind the last one, the entry begins again.
class Track {
 public:
  Track(const plan::Entry& entry, const std::vector<Event>& events) : sums_(entry.steps.size()) {
    std::map<std::pair<std::string, std::string>, std::vector<std::uint32_t>> numbers;
    for (std::uint32_t i = 0; i < entry.steps.size(); ++i) {
      const std::string name = traced_name(name_of(entry.steps[i])), &origin = entry.steps[i].origin;
      for (const std::string& known : std::set<std::string>{"", origin, traced_name(origin)}) numbers[{name, known}].push_back(i);
    }
    std::map<std::uint32_t, MeasuredStep::Span> spans;
    double begin = 0;
    std::int64_t last = -1;
    for (const Event& event : events) {
      const auto found = numbers.find({event.name, event.origin});
      if (found == numbers.end()) continue;
      auto next = std::ranges::upper_bound(found->second, last, std::less(), [](std::uint32_t step) { return static_cast<std::int64_t>(step); });
      if (next == found->second.end()) {
        keep_longest(spans);
        next = found->second.begin();
      }
      if (spans.empty()) begin = event.begin;
      last = *next;
      spans[*next] = {event.begin - begin, event.duration};
      sums_[*next].microseconds += event.duration;
      ++sums_[*next].runs;
      ++matched_;
    }
    keep_longest(spans);
  }
  const std::vector<MeasuredStep>& sums() const { return sums_; }
  const std::map<std::uint32_t, MeasuredStep::Span>& spans() const { return spans_; }
  std::size_t matched() const { return matched_; }

 private:
  void keep_longest(std::map<std::uint32_t, MeasuredStep::Span>& spans) {
    if (spans.size() >= spans_.size()) spans_ = std::move(spans);  // of equals the last: the first runs of a process are slow
    spans.clear();
  }
  std::vector<MeasuredStep> sums_;
  std::map<std::uint32_t, MeasuredStep::Span> spans_;
  std::size_t matched_ = 0;
};

[[noreturn]] void refuse(const std::string& path, const std::string& why) {
  throw Error(Code::kDataFormat, fmt::format("{}: {}", quoted(path), why), {}, {"hone-run train PLAN --trace FILE writes one"});
}

}  // namespace

std::vector<std::optional<MeasuredStep>> measured_steps(std::string_view text, const std::string& path, const plan::Entry& entry) {
  const json parsed = parse_untrusted_json<json>(text);
  const bool wrapped = parsed.is_object() and parsed.contains("traceEvents");
  if (not wrapped and not parsed.is_array()) refuse(path, "no trace in Chrome's format");
  std::vector<std::optional<MeasuredStep>> measured(entry.steps.size());
  std::optional<Track> longest;
  for (const std::vector<Event>& events : tracks_of(wrapped ? parsed["traceEvents"] : parsed)) {
    Track track(entry, events);
    for (std::size_t i = 0; i < measured.size(); ++i) {
      const MeasuredStep& sum = track.sums()[i];
      if (sum.runs == 0) continue;
      const double mean = sum.microseconds / static_cast<double>(sum.runs);
      if (not measured[i] or measured[i]->microseconds < mean) measured[i] = MeasuredStep{.microseconds = mean, .runs = sum.runs, .span = {}};
    }
    if (track.matched() > 0 and (not longest or track.matched() > longest->matched())) longest = std::move(track);
  }
  if (not longest) refuse(path, fmt::format("none of its events is a step of {}", entry.name));
  for (const auto& [step, span] : longest->spans())
    if (measured[step]) measured[step]->span = span;
  return measured;
}

}  // namespace hone
