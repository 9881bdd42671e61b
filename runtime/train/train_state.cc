#include "runtime/train/train_state.h"

#include <fmt/format.h>

#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

#include "base/diag.h"
#include "base/recipe_tables.h"
#include "base/text.h"
#include "runtime/data/batch_source.h"
#include "runtime/train/counters.h"

namespace hone {

namespace {

using Json = nlohmann::ordered_json;

constexpr std::int64_t kStateVersion = 1;

/// JSON has no word for them.
Json json_of(double number) {
  if (std::isfinite(number)) return number;
  return std::isnan(number) ? "nan" : number > 0 ? "inf" : "-inf";
}

double exact_number_of(const Json& json) {
  if (json.is_number()) return json.get<double>();
  if (json == "nan") return std::numeric_limits<double>::quiet_NaN();
  if (json == "inf") return std::numeric_limits<double>::infinity();
  if (json == "-inf") return -std::numeric_limits<double>::infinity();
  throw Json::type_error::create(302, "expected a number", nullptr);
}

Json json_of(const std::vector<double>& numbers) {
  Json json = Json::array();
  for (const double number : numbers) json.push_back(json_of(number));
  return json;
}

std::vector<double> numbers_of(const Json& json) {
  std::vector<double> numbers;
  for (const Json& item : json) numbers.push_back(exact_number_of(item));
  return numbers;
}

std::int64_t count_of(const Json& json, const char* key) {
  const Json& count = json.at(key);
  if (not count.is_number_integer() or count < 0 or count > kMostCounted) throw Json::out_of_range::create(401, fmt::format("{} is {}, which counts nothing", key, count.dump()), nullptr);
  return count.get<std::int64_t>();
}

/// What a JSON error says, without the library's own name for it.
std::string reason_of(const Json::exception& error) {
  const std::string_view text = error.what();
  const std::size_t end = text.find("] ");
  return printable(text.substr(end == std::string_view::npos ? 0 : end + 2), 200);
}

TrainState state_of(const Json& json) {
  TrainState state;
  if (json.at("version") != kStateVersion) throw Json::other_error::create(501, "it was written by another version of Hone", nullptr);
  state.step = count_of(json, "step");
  state.epoch = count_of(json, "epoch");
  state.batch = count_of(json, "batch");
  if (json.contains("batches")) state.batches = count_of(json, "batches");  // not kept by earlier versions
  state.reported = json.value("reported", false);  // not kept by earlier versions
  state.order = json.at("order").get<std::string>();
  state.data_hash = json.value("data_hash", "");  // not kept by earlier versions
  state.seconds = exact_number_of(json.at("seconds"));
  state.means = numbers_of(json.at("means"));
  for (const auto& [name, value] : json.at("values").items()) state.values.emplace_back(name, exact_number_of(value));
  if (json.contains("best")) {
    const Json& best = json.at("best");
    state.best = {.epoch = count_of(best, "epoch"), .name = best.at("name").get<std::string>(), .value = exact_number_of(best.at("value"))};
    state.best_step = count_of(best, "step");
  }
  state.plateau = numbers_of(json.at("plateau"));
  state.early_stopping = numbers_of(json.at("early_stopping"));
  state.recipe = recipe_from_json(json.at("recipe").dump());
  return state;
}

}  // namespace

std::vector<std::string> changes_since(const TrainState& state, const Recipe& recipe, const BatchSource& batches) {
  const std::string order = batches.order(), hash = batches.data_hash();
  const bool are_other_data = not state.data_hash.empty() and not hash.empty() and state.data_hash != hash;
  if (state.batch > 0 and state.order != order)
    throw Error(Code::kPlanMismatch,
                fmt::format("the run was stopped in the middle of epoch {}, after batch {}, and the rest of it would not be the same", state.epoch + 1, state.batch), {},
                {"it was " + printable(state.order, 500), "it would be " + printable(order, 500), "go on with the same data, batch size, seed and order; they may change between epochs"});
  if (state.batch > 0 and are_other_data)
    throw Error(Code::kPlanMismatch,
                fmt::format("the run was stopped in the middle of epoch {}, after batch {}, and these are not the data that it began with", state.epoch + 1, state.batch), {},
                {"as many samples as before, but the values of some differ", "go on with the same data; they may change between epochs"});
  std::vector<std::string> changes;
  if (state.order != order) changes.push_back(fmt::format("the data are gone through in another way: it was {}, and is {}", printable(state.order, 500), printable(order, 500)));
  else if (are_other_data) changes.emplace_back("the data are not those that the run was trained on so far");
  for (const RecipeKey& key : recipe_keys()) {
    const std::string before = to_text(key.get(state.recipe)), now = to_text(key.get(recipe));
    if (before != now and key.name != "train.epochs") changes.push_back(fmt::format("{} was {}, and is {}", key.name, before, now));
  }
  return changes;
}

std::string to_json(const TrainState& state) {
  Json json = {{"version", kStateVersion}, {"step", state.step}, {"epoch", state.epoch}, {"batch", state.batch}, {"batches", state.batches}, {"reported", state.reported}, {"order", state.order}, {"data_hash", state.data_hash}, {"seconds", json_of(state.seconds)}};
  json["means"] = json_of(state.means);
  json["values"] = Json::object();
  for (const auto& [name, value] : state.values) json["values"][name] = json_of(value);
  if (state.best) json["best"] = {{"name", state.best->name}, {"value", json_of(state.best->value)}, {"epoch", state.best->epoch}, {"step", state.best_step}};
  json["plateau"] = json_of(state.plateau);
  json["early_stopping"] = json_of(state.early_stopping);
  json["recipe"] = Json::parse(to_json(state.recipe));
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

TrainState state_from_json(std::string_view text, const std::string& path) {
  try {
    constexpr int kDepth = 8;  // the recipe's lists lie less deep; what lies deeper would be written by recursion
    return state_of(Json::parse(text, [](int depth, Json::parse_event_t, Json&) {
      if (depth > kDepth) throw Json::other_error::create(501, "it is nested too deeply", nullptr);
      return true;
    }));
  } catch (const Json::exception& error) {
    throw Error(Code::kDataFormat, fmt::format("{} is no state of a training run: {}", printable(path, 1000), reason_of(error)), {},
                {"it is damaged, or another program wrote it"});
  } catch (const Error& error) {  // of the recipe
    std::vector<Diag> diags = error.diags();
    for (Diag& diag : diags) diag.loc.file = printable(path, 1000);
    throw Error(std::move(diags));
  }
}

}  // namespace hone
