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

double number_of(const json& event, const char* key) {
  const auto found = event.find(key);
  return found != event.end() and found->is_number() ? found->get<double>() : 0;
}

std::string text_of(const json& event, const char* key) {
  const auto found = event.find(key);
  return found != event.end() and found->is_string() ? found->get<std::string>() : "";
}

/// The spans of each track, in the order of their begin.
std::vector<std::vector<TracedEvent>> tracks_of(const json& trace) {
  std::map<std::pair<double, double>, std::vector<TracedEvent>> tracks;
  for (const json& event : trace) {
    if (not event.is_object() or text_of(event, "ph") != "X") continue;
    TracedEvent made{.name = text_of(event, "name"), .origin = "", .entry = "", .begin = number_of(event, "ts"), .duration = std::max(0.0, number_of(event, "dur"))};
    if (const auto arguments = event.find("args"); arguments != event.end() and arguments->is_object()) made.origin = text_of(*arguments, "origin"), made.entry = text_of(*arguments, "entry");
    tracks[{number_of(event, "pid"), number_of(event, "tid")}].push_back(std::move(made));
  }
  std::vector<std::vector<TracedEvent>> list;
  for (auto& [key, events] : tracks) {
    std::ranges::stable_sort(events, std::less(), &TracedEvent::begin);
    list.push_back(std::move(events));
  }
  return list;
}

std::vector<std::string> targets_of(const json& trace) {
  std::vector<std::string> list;
  const json none = json::object();
  const json& other = trace.is_object() and trace.contains("otherData") ? trace["otherData"] : none;
  if (not other.is_object() or not other.contains("targets")) return list;
  for (const json& target : other["targets"])
    if (target.is_string()) list.push_back(target.get<std::string>());
  return list;
}

/// Does what ran as `traced` do the steps of `entry`, with exchanges or norms besides, or for a part of the batch?
bool has_steps_of(std::string_view entry, std::string_view traced) {
  const auto is = [traced](std::string_view one) { return traced == one or traced == plan::replica_entry(one) or traced == plan::sharded_entry(plan::replica_entry(one)); };
  return is(entry) or (entry == plan::kTrainStep and (is(plan::kTrainStepNorms) or traced == plan::kShardStep));
}

/// The steps of one track: each event is the next step of its name and origin; where there is none behind the last one, the entry begins again.
class Track {
 public:
  Track(const plan::Entry& entry, const std::vector<TracedEvent>& events) : sums_(entry.steps.size()) {
    std::map<std::pair<std::string, std::string>, std::vector<std::uint32_t>> numbers;
    for (std::uint32_t i = 0; i < entry.steps.size(); ++i) {
      const std::string name = traced_name(name_of(entry.steps[i])), &origin = entry.steps[i].origin;
      for (const std::string& known : std::set<std::string>{"", origin, traced_name(origin)}) numbers[{name, known}].push_back(i);
    }
    std::map<std::uint32_t, MeasuredStep::Span> spans;
    double begin = 0;
    std::int64_t last = -1;
    for (const TracedEvent& event : events) {
      const auto found = numbers.find({event.name, event.origin});
      if (found == numbers.end() or not(event.entry.empty() or has_steps_of(entry.name, event.entry))) continue;
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

std::size_t matched_steps(const TracedRun& trace, const plan::Entry& entry) {
  std::size_t count = 0;
  for (const std::vector<TracedEvent>& events : trace.tracks) count += Track(entry, events).matched();
  return count;
}

const plan::Program& named_program(const TracedRun& trace, const plan::Plan& plan) {
  std::vector<std::string> targets;
  for (const plan::Program& program : plan.programs) {
    if (std::ranges::find(trace.targets, program.target) != trace.targets.end()) return program;
    targets.push_back(program.target);
  }
  throw Error(Code::kUsage, fmt::format("{} is a trace of a program for {}, and the plan has none", quoted(trace.path), printable(join(trace.targets, ", "), 100)), {},
              {"the plan's programs are for " + quoted_list(targets), "give the plan that was traced"});
}

}  // namespace

TracedRun read_trace(std::string_view text, const std::string& path) {
  const json parsed = parse_untrusted_json<json>(text);
  const bool wrapped = parsed.is_object() and parsed.contains("traceEvents");
  if (not wrapped and not parsed.is_array()) refuse(path, "no trace in Chrome's format");
  return {.path = path, .targets = targets_of(parsed), .tracks = tracks_of(wrapped ? parsed["traceEvents"] : parsed)};
}

std::vector<std::optional<MeasuredStep>> measured_steps(const TracedRun& trace, const plan::Entry& entry) {
  std::vector<std::optional<MeasuredStep>> measured(entry.steps.size());
  std::optional<Track> longest;
  for (const std::vector<TracedEvent>& events : trace.tracks) {
    Track track(entry, events);
    for (std::size_t i = 0; i < measured.size(); ++i) {
      const MeasuredStep& sum = track.sums()[i];
      if (sum.runs == 0) continue;
      const double mean = sum.microseconds / static_cast<double>(sum.runs);
      if (not measured[i] or measured[i]->microseconds < mean) measured[i] = MeasuredStep{.microseconds = mean, .runs = sum.runs, .span = {}};
    }
    if (track.matched() > 0 and (not longest or track.matched() > longest->matched())) longest = std::move(track);
  }
  if (not longest) refuse(trace.path, fmt::format("none of its events is a step of {}", entry.name));
  for (const auto& [step, span] : longest->spans())
    if (measured[step]) measured[step]->span = span;
  return measured;
}

const plan::Program& traced_program(const TracedRun& trace, const plan::Plan& plan, std::string_view entry) {
  if (not trace.targets.empty()) return named_program(trace, plan);
  const plan::Program* best = &plan.programs.at(0);
  std::size_t most = 0;
  for (const plan::Program& program : plan.programs) {
    const plan::Entry* const one = program.find(entry);
    const std::size_t matched = one == nullptr ? 0 : matched_steps(trace, *one);
    if (matched > most) best = &program, most = matched;
  }
  return *best;
}

}  // namespace hone
