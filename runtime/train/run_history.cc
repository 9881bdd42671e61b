#include "runtime/train/run_history.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

#include "base/files.h"
#include "base/untrusted_json.h"

namespace hone {

namespace {

using Json = nlohmann::ordered_json;

constexpr std::size_t kMostSteps = 1 << 16;
constexpr std::size_t kLongestLine = 4 << 20;  // norms of 100,000 weights

/// What is no object, or too long to be ours: null.
Json parse_line(std::string_view line) {
  if (line.size() > kLongestLine) return nullptr;
  const Json json = parse_untrusted_json<Json>(line);
  return json.is_object() ? json : Json(nullptr);
}

std::optional<std::int64_t> integer_of(const Json& json, const char* key) {
  const auto found = json.find(key);
  return found == json.end() or not found->is_number_integer() ? std::nullopt : std::optional(found->get<std::int64_t>());
}

double number_of(const Json& json) { return json.is_number() ? json.get<double>() : std::numeric_limits<double>::quiet_NaN(); }
double number_of(const Json& json, const char* key) {
  const auto found = json.find(key);
  return found == json.end() ? std::numeric_limits<double>::quiet_NaN() : number_of(*found);
}

}  // namespace

void RunHistory::add(const StepPoint& point) {
  if (until_next_ > 0) {
    --until_next_;
    return;
  }
  until_next_ = stride_ - 1;
  steps_.push_back(point);
  if (steps_.size() < kMostSteps) return;
  for (std::size_t i = 0; i < kMostSteps / 2; ++i) steps_[i] = steps_[2 * i];
  steps_.resize(kMostSteps / 2);
  stride_ *= 2;  // from the last one that stayed; the next comes one old stride from now
}

void RunHistory::add(EpochPoint point) {
  for (const auto& [name, value] : point.values)
    if (std::find(names_.begin(), names_.end(), name) == names_.end()) names_.push_back(name);
  epochs_.push_back(std::move(point));
}

void RunHistory::add_line(std::string_view line) {
  const Json json = parse_line(line);
  if (json.is_null() or not json.contains("kind")) return;
  const auto step = integer_of(json, "step"), epoch = integer_of(json, "epoch");
  if (json["kind"] == "step" and step) add(StepPoint{*step, number_of(json, "loss"), number_of(json, "learning_rate")});
  if (json["kind"] != "epoch" or not epoch) return;
  EpochPoint point = {.epoch = *epoch, .learning_rate = number_of(json, "learning_rate"), .seconds = number_of(json, "seconds"), .values = {}};
  for (const auto& [name, value] : json.items())
    if ((value.is_number() or value.is_null()) and name != "epoch" and name != "learning_rate" and name != "seconds")
      point.values.emplace_back(name, number_of(value));
  add(std::move(point));
}

bool is_before(std::string_view line, ResumePoint point) {
  const Json json = parse_line(line);
  if (json.is_null()) return false;
  if (const auto step = integer_of(json, "step")) return *step <= point.step;
  const auto epoch = integer_of(json, "epoch");
  return not epoch or *epoch < point.epoch;
}

void for_each_line(const std::string& path, const std::function<void(std::string_view)>& use) {
  if (not file_exists(path)) return;
  const MappedFile file(path);
  std::string_view rest = file.text();
  for (std::size_t end = rest.find('\n'); end != std::string_view::npos; end = rest.find('\n')) {
    use(rest.substr(0, end));
    rest.remove_prefix(end + 1);
  }
}

std::optional<BestEpoch> best_epoch(const RunHistory& history) {
  for (const char* name : {"val_loss", "loss"}) {
    std::optional<BestEpoch> best;
    for (const EpochPoint& epoch : history.epochs())
      if (const double value = value_of(epoch, name); std::isfinite(value) and (not best or value < best->value)) best = BestEpoch{epoch.epoch, name, value};
    if (best) return best;
  }
  return std::nullopt;
}

}  // namespace hone
