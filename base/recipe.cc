#include "base/recipe.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>

#include "base/check.h"
#include "base/objectives.h"
#include "base/other_names.h"
#include "base/recipe_changes.h"
#include "base/recipe_tables.h"
#include "base/text.h"

namespace hone {

namespace {

constexpr std::string_view kOptimizerPrefix = "optimizer.", kSchedulePrefix = "schedule.", kClassWeights = "loss.class_weights";

RecipeValue number_value(RecipeValue::Kind kind, double number) {
  RecipeValue value;
  value.kind = kind;
  value.boolean = number != 0;
  value.integer = static_cast<std::int64_t>(number);
  value.number = number;
  return value;
}

const RecipeKey& key_of(const OptimizerNumber& number) {
  const std::string name = std::string(kOptimizerPrefix) + std::string(number.key);
  const RecipeKey* const key = find_recipe_key(name);
  HONE_CHECK(key != nullptr, "an optimizer's number without a key: " + name);
  return *key;
}

RecipeValue default_of(const OptimizerNumber& number, Convention convention) { return number_value(key_of(number).kind, convention == Convention::kKeras ? number.keras : number.torch); }

double number_of(const RecipeValue& value) {
  switch (value.kind) {
    case RecipeValue::Kind::kBool: return value.boolean ? 1 : 0;
    case RecipeValue::Kind::kInt: return static_cast<double>(value.integer);
    default: return value.number;
  }
}

std::vector<std::string> key_names() {
  std::vector<std::string> names;
  for (const RecipeKey& key : recipe_keys()) names.emplace_back(key.name);
  return names;
}

/// "this version has a, b, c"
std::string kinds_note(std::string_view key) {
  std::vector<std::string> names;
  for (const RecipeKind& kind : recipe_kinds())
    if (kind.key == key) names.emplace_back(kind.name);
  return "this version has " + join(names, ", ");
}

/// One pass over what the user set: everything wrong with it is in `diags`, what is right is in `recipe`.
class Reader {
 public:
  /// `elsewhere`: what stands before a key that is set and has no line, in messages.
  Reader(const RecipeSource& source, Recipe start, std::string_view elsewhere = "--set ") : source_(source), elsewhere_(elsewhere), recipe_(std::move(start)) {}

  void read_all() {
    for (const auto& [name, value] : source_.values) read(name, value);
  }
  /// `compiled`: what the plan was made with.
  void refuse_what_cannot_change(const Recipe& compiled) {
    for (const auto& [name, value] : source_.values) {
      const RecipeKey* key = find_recipe_key(name);
      if (key == nullptr or key->when == RecipeKey::When::kRunning or is_of_another(name)) continue;
      const std::string again = fmt::format("compile again with --set {}={}", name, to_text(value));
      const double has = number_of(key->get(compiled)), none = number_of(key->get(Recipe{}));
      if (key->when == RecipeKey::When::kCompiling)
        error(Code::kRecipeKey, name, fmt::format("{} is compiled into the plan and cannot be changed when running", name), {again});
      else if (has == none and number_of(key->get(recipe_)) != none)
        error(Code::kRecipeKey, name, fmt::format("{} is {} in the plan, which leaves out what another one takes, and cannot be changed when running", name, none), {again});
    }
  }
  void check_combinations();
  void check_optimizer();
  void check_run();
  void fill_optimizer_defaults();
  void fill_early_stopping();

  const Diags& diags() const { return diags_; }
  Recipe take() { return std::move(recipe_); }

 private:
  void error(Code code, std::string_view key, std::string message, std::vector<std::string> notes = {}) {
    std::erase(notes, "");
    diags_.error(code, std::move(message), where(key), std::move(notes));
  }
  Loc where(std::string_view key) const {
    Loc loc;
    const auto line = source_.lines.find(key);
    const bool in_file = line != source_.lines.end() and line->second > 0;
    const bool set = source_.values.contains(key);
    loc.file = not set or in_file ? source_.file : fmt::format("{}{}", elsewhere_, key);
    loc.line = in_file ? line->second : 0;
    return loc;
  }
  bool is_set(std::string_view key) const { return source_.values.contains(key); }

  void read(const std::string& name, const RecipeValue& value);
  void check_loss();
  void check_metrics();
  void check_monitor(const std::string& name, const std::string& monitor);
  void check_pieces();
  void check_schedule_keys();
  bool is_of_another(std::string_view name) const;
  void check_optimizer_numbers(const OptimizerKind& optimizer);
  void refuse_unknown(const std::string& name);

  const RecipeSource& source_;
  std::string_view elsewhere_;
  Recipe recipe_;
  Diags diags_;
};

/// The numbers that the optimizer has in the recipe's convention.
std::vector<std::string> numbers_of(const Recipe& recipe) {
  std::vector<std::string> names;
  if (const OptimizerKind* optimizer = find_optimizer(recipe.optimizer.kind))
    for (const OptimizerNumber& number : optimizer->numbers)
      if (number.in_keras or recipe.train.convention != Convention::kKeras) names.emplace_back(number.key);
  return names;
}

/// For a key that there is not.
std::string hint_for_key(const std::string& name) {
  const std::string section = name.substr(0, name.find('.') + 1), word = name.substr(name.rfind('.') + 1);
  if (std::string other = hint_for_other_name("[" + name.substr(0, name.find('.')) + "]", word); not other.empty()) return other;
  const std::vector<std::string> names = key_names();
  for (const std::string& key : names)  // the right word in the wrong section: "train.batch_size", "learning_rate"
    if (key.substr(key.rfind('.') + 1) == word) return fmt::format("did you mean {}?", quoted(key));
  if (std::string other = hint_for_other_name("recipe", word); not other.empty()) return other;
  std::vector<std::string> words, in_section;
  for (const std::string& key : names)
    if (not section.empty() and key.starts_with(section)) in_section.push_back(key), words.push_back(key.substr(section.size()));
  if (in_section.empty()) {
    const std::string hint = did_you_mean(name, names);
    return hint.empty() ? "the sections are model, lora, loss, optimizer, schedule, metrics, data and train" : hint;
  }
  const auto similar = nearest(name.substr(section.size()), words);  // a section in common makes no two of them alike
  return similar ? fmt::format("did you mean {}?", quoted(section + *similar)) : "it has " + join(in_section, ", ");
}

void Reader::refuse_unknown(const std::string& name) { error(Code::kRecipeKey, name, fmt::format("the recipe has no key {}", quoted(name)), {hint_for_key(name)}); }

using Problem = std::optional<RecipeProblem>;

Problem problem_of_number(std::string_view name, double number) {
  if (not std::isfinite(number)) return RecipeProblem{fmt::format("{} is {}, which is no number to calculate with", name, number), {"give a finite number"}};
  for (const RecipeRange& range : recipe_ranges()) {
    if (range.key != name) continue;
    const bool low_enough = range.below_high ? number < range.high : number <= range.high;
    const bool high_enough = range.above_low ? number > range.low : number >= range.low;
    if (low_enough and high_enough) continue;
    const std::string low = fmt::format("{} {}", range.above_low ? "greater than" : "at least", range.low);
    const std::string high = std::isinf(range.high) ? "" : fmt::format(" and {} {}", range.below_high ? "less than" : "at most", range.high);
    return RecipeProblem{fmt::format("{} is {}, and has to be {}{}", name, number, low, high), {"correct it, or leave the key out for its default"}};
  }
  return std::nullopt;
}

/// For a name that is none of `known`.
std::string hint_for(std::string_view key, const std::string& name, const std::vector<std::string>& known) {
  const std::string other = hint_for_other_name(key, name);
  return other.empty() ? did_you_mean(name, known) : other;
}

Problem problem_of_kind(std::string_view name, const std::string& kind) {
  std::vector<std::string> all;
  for (const RecipeKind& known : recipe_kinds()) {
    if (known.key != name) continue;
    if (known.name == kind) return std::nullopt;
    all.emplace_back(known.name);
  }
  if (all.empty()) return std::nullopt;  // a text of the user's own
  return RecipeProblem{fmt::format("{} = {} is none that Hone knows", name, quoted(kind)), {hint_for(name, kind, all), kinds_note(name)}};
}

/// The lists of numbers that there are say what things count, or when something comes.
Problem problem_of_list(std::string_view name, const std::vector<double>& numbers) {
  for (std::size_t i = 0; i < numbers.size(); ++i)
    if (not std::isfinite(numbers[i]) or numbers[i] < 0)
      return RecipeProblem{fmt::format("{}: number {} is {}, and has to be at least 0", name, i, numbers[i]), {name == kClassWeights ? "0 leaves it out, 1 is as usual" : "correct it, or leave the key out"}};
  if (name == kClassWeights and not numbers.empty() and std::ranges::all_of(numbers, [](double number) { return number == 0; }))
    return RecipeProblem{fmt::format("{} are all 0: nothing would count", name), {"leave the key out"}};
  return std::nullopt;
}

Problem problem_of_factors(std::string_view name, const std::map<std::string, double>& factors) {
  for (const auto& [item, number] : factors)
    if (not std::isfinite(number) or number == 0) return RecipeProblem{fmt::format("{}: the factor of {} is {}", name, quoted(item), number), {"give a finite number other than 0; 1 leaves the data as they are"}};
  return std::nullopt;
}

void Reader::read(const std::string& name, const RecipeValue& value) {
  const RecipeKey* key = find_recipe_key(name);
  if (key == nullptr) return refuse_unknown(name);
  const auto converted = convert(value, key->kind);
  if (not converted) {
    error(Code::kRecipeValue, name, fmt::format("{} is {}, and {} was found: {}", name, describe(key->kind), describe(value.kind), to_text(value)),
          {fmt::format("it says: {}", key->doc)});
  } else if (Problem problem = problem_of(*key, *converted)) {
    error(Code::kRecipeValue, name, std::move(problem->message), std::move(problem->notes));
  } else {
    key->set(recipe_, *converted);
  }
}

void Reader::check_loss() {
  const LossKind* loss = find_loss(recipe_.loss.kind);
  if (loss == nullptr) return;
  if (is_set("loss.delta") and loss->name != "huber")
    error(Code::kRecipeKey, "loss.delta", fmt::format("the loss {} has no delta", loss->name), {"leave it out; only huber has one"});
  if (is_set("loss.class_axis") and not loss->has_class_axis)
    error(Code::kRecipeKey, "loss.class_axis", fmt::format("the loss {} looks at each element alone, and has no axis of classes", loss->name), {"leave it out"});
  for (const char* key : {"loss.ignore_index", "loss.label_smoothing", "loss.class_weights"})
    if (const bool is_read = std::string_view(key) == "loss.ignore_index" ? loss->compared == Compared::kClasses : loss->knows_classes; is_set(key) and not is_read)
      error(Code::kRecipeKey, key, fmt::format("{} is about integer classes, and the loss {} has none", key, loss->name), {"leave it out"});
  const bool has_probabilities = recipe_.loss.targets == "probabilities";
  if (has_probabilities and loss->compared != Compared::kClasses)
    error(Code::kRecipeKey, "loss.targets", fmt::format("loss.targets says what losses of classes are given, and the loss {} has no classes", loss->name), {"leave it out"});
  if (has_probabilities and is_set("loss.ignore_index"))
    error(Code::kRecipeKey, "loss.ignore_index", "loss.ignore_index is the number of a class, and loss.targets = \"probabilities\" has no numbers", {"leave it out; a row of zeros adds nothing to the loss, and counts in its mean"});
  const std::size_t weights = recipe_.loss.class_weights.size();
  if (loss->knows_classes and loss->compared == Compared::kLabels and weights != 0 and weights != 2)
    error(Code::kRecipeValue, "loss.class_weights", fmt::format("loss.class_weights has {} numbers, and the loss {} knows no and yes", weights, loss->name),
          {"give two numbers: [what a target of 0 counts, what a target of 1 counts]"});
}

std::string metric_names() {
  std::vector<std::string> names;
  for (const MetricKind& metric : metric_kinds()) names.emplace_back(metric.name);
  return join(names, ", ");
}

/// "it goes with softmax_cross_entropy, cross_entropy and nll".
std::string losses_of(const MetricKind& metric) {
  std::vector<std::string> names;
  for (const LossKind& loss : loss_kinds())
    if (std::count(metric.beside.begin(), metric.beside.end(), loss.compared) > 0) names.emplace_back(loss.name);
  return "it goes with " + join(names, ", ");
}

void Reader::check_metrics() {
  const LossKind* loss = find_loss(recipe_.loss.kind);
  std::vector<std::string> seen, known;
  for (const MetricKind& metric : metric_kinds()) known.emplace_back(metric.name == "top_K_accuracy" ? "top_5_accuracy" : metric.name);
  for (const std::string& name : recipe_.metrics.list) {
    const MetricKind* metric = find_metric(name);
    if (metric == nullptr) {
      error(Code::kRecipeValue, "metrics.list", fmt::format("the metric {} is not in this version", quoted(name)),
            {hint_for("metrics.list", name, known), fmt::format("this version has {} (top_5_accuracy, for one)", metric_names())});
    } else if (loss != nullptr and std::count(metric->beside.begin(), metric->beside.end(), loss->compared) == 0) {
      error(Code::kRecipeValue, "metrics.list", fmt::format("the metric {} says nothing about what the loss {} compares", name, loss->name),
            {losses_of(*metric)});
    }
    if (std::count(seen.begin(), seen.end(), name) > 0)
      error(Code::kRecipeValue, "metrics.list", fmt::format("the metric {} stands there twice", quoted(name)), {"name each metric once"});
    seen.push_back(name);
  }
}

/// A run reports the loss and the metrics, each for the validation data, too. What a model's own training reports is not known here.
void Reader::check_monitor(const std::string& name, const std::string& monitor) {
  if (monitor.empty() or not recipe_.can_train()) return;
  std::vector<std::string> reported = {"loss", "val_loss"};
  for (const std::string& metric : recipe_.metrics.list) reported.push_back(metric), reported.push_back("val_" + metric);
  if (std::count(reported.begin(), reported.end(), monitor) > 0) return;
  error(Code::kRecipeValue, name, fmt::format("{} = {} is nothing that the run reports", name, quoted(monitor)),
        {did_you_mean(monitor, reported), fmt::format("it reports {}", join(reported, ", "))});
}

void Reader::check_pieces() {
  const std::vector<double>&boundaries = recipe_.schedule.boundaries, &fractions = recipe_.schedule.fractions;
  if (boundaries.empty() and not is_set("schedule.boundaries"))
    error(Code::kRecipeValue, "schedule.kind", "schedule.kind is \"piecewise\", and schedule.boundaries is missing: nothing says where the rate changes", {"for example boundaries = [1000, 2000]"});
  const bool are_steps = std::ranges::all_of(boundaries, [](double step) { return step == std::floor(step); });
  if (not are_steps or std::ranges::adjacent_find(boundaries, std::greater_equal<>()) != boundaries.end())
    error(Code::kRecipeValue, "schedule.boundaries", "schedule.boundaries have to be numbers of steps, each larger than the one before", {"for example boundaries = [1000, 2000]"});
  if (not fractions.empty() and fractions.size() != boundaries.size() + 1)
    error(Code::kRecipeValue, "schedule.fractions", fmt::format("schedule.fractions has {} numbers, and {} boundaries make {} parts", fractions.size(), boundaries.size(), boundaries.size() + 1),
          {"give one number for each part, or leave them out: each boundary then multiplies by schedule.factor"});
}

void Reader::check_schedule_keys() {
  const ScheduleKeys* schedule = find_schedule(recipe_.schedule.kind);
  if (schedule == nullptr) return;
  std::vector<std::string> has = {"warmup_steps"};
  has.insert(has.end(), schedule->keys.begin(), schedule->keys.end());
  for (auto set = source_.values.lower_bound(kSchedulePrefix); set != source_.values.end() and set->first.starts_with(kSchedulePrefix); ++set) {
    const std::string key = set->first.substr(kSchedulePrefix.size());
    if (key == "kind" or find_recipe_key(set->first) == nullptr or std::ranges::count(has, key) > 0) continue;
    error(Code::kRecipeKey, set->first, fmt::format("the schedule {} has no {}", schedule->kind, key),
          {fmt::format("it has {}", join(has, ", ")), is_set("schedule.kind") ? "" : "schedule.kind says which schedule it is: \"constant\" is the default"});
  }
}

/// What may also change when running.
void Reader::check_run() {
  check_schedule_keys();
  const Recipe::Schedule& schedule = recipe_.schedule;
  if (schedule.every > 0 and schedule.every_steps > 0)
    error(Code::kRecipeValue, "schedule.every_steps", "schedule.every and schedule.every_steps say the same thing, in epochs and in steps", {"keep one of the two; 0 is none"});
  if (schedule.kind == "piecewise") check_pieces();
  if (schedule.kind == "plateau") {
    check_monitor("schedule.monitor", schedule.monitor);
    if (schedule.factor >= 1)
      error(Code::kRecipeValue, "schedule.factor", fmt::format("schedule.factor is {}, and a plateau's drop has to be less than 1", schedule.factor), {"0.1 is the default"});
  }
  if (schedule.kind == "one_cycle" and schedule.warmup_steps > 0)
    error(Code::kRecipeValue, "schedule.warmup_steps", "one_cycle begins with a rise of its own, and schedule.warmup_steps asks for another",
          {"leave it out; schedule.pct_start says how long the rise is"});
  check_monitor("train.early_stopping.monitor", recipe_.train.early_stopping_monitor);
}

/// Is it a number that another optimizer has, and this one not?
bool Reader::is_of_another(std::string_view name) const {
  if (find_optimizer(recipe_.optimizer.kind) == nullptr or not name.starts_with(kOptimizerPrefix)) return false;
  const std::string_view key = name.substr(kOptimizerPrefix.size());
  return std::ranges::count(optimizer_number_keys(), key) > 0 and not is_number_of(recipe_, key);
}

void Reader::check_optimizer_numbers(const OptimizerKind& optimizer) {
  const bool keras = recipe_.train.convention == Convention::kKeras;
  for (const std::string_view key : optimizer_number_keys()) {
    const std::string name = std::string(kOptimizerPrefix) + std::string(key);
    if (not is_set(name) or not is_of_another(name)) continue;
    error(Code::kRecipeKey, name, fmt::format("the optimizer {}{} has no {}", keras ? "Keras's " : "", optimizer.name, key),
          {fmt::format("it has {}", join(numbers_of(recipe_), ", "))});
  }
}

void Reader::check_optimizer() {
  const OptimizerKind* kind = find_optimizer(recipe_.optimizer.kind);
  if (kind == nullptr) return;
  const OptimizerKind& optimizer = *kind;
  check_optimizer_numbers(optimizer);
  const Recipe::Optimizer& o = recipe_.optimizer;
  const bool keras = recipe_.train.convention == Convention::kKeras;
  if (optimizer.name == "sgd" and not keras and o.nesterov and (o.momentum <= 0 or o.dampening != 0))
    error(Code::kRecipeValue, "optimizer.nesterov", "nesterov needs a momentum above 0 and no dampening", {"set optimizer.momentum = 0.9, for one"});
  if (o.clip_norm > 0 and o.clip_value > 0)
    error(Code::kRecipeValue, "optimizer.clip_value", "optimizer.clip_norm and optimizer.clip_value are both set: which comes first?", {"keep one of the two"});
  if (optimizer.name != "muon" and not o.exclude_from_muon.empty())
    error(Code::kRecipeKey, "optimizer.exclude_from_muon", fmt::format("the optimizer is {}, not muon", optimizer.name), {"leave it out"});
}

void Reader::check_combinations() {
  const bool has_loss = is_set("loss.kind");
  if (not has_loss) {
    for (const std::string_view section : {"lora.", "loss.", "optimizer.", "metrics."}) {
      const auto first = source_.values.lower_bound(section);
      if (first == source_.values.end() or not first->first.starts_with(section)) continue;
      error(Code::kRecipeValue, first->first, fmt::format("{} is set, but loss.kind is missing: nothing says what to minimize", first->first),
            {kinds_note("loss.kind")});
      break;
    }
  } else if (not is_set("optimizer.kind")) {
    error(Code::kRecipeValue, "loss.kind", "optimizer.kind is missing: nothing says how to train", {kinds_note("optimizer.kind")});
  }
  check_loss();
  if (is_set("model.freeze") and is_set("model.train_only") and not recipe_.model.freeze.empty() and not recipe_.model.train_only.empty())
    error(Code::kRecipeValue, "model.train_only", "model.freeze and model.train_only say the same thing in opposite ways", {"keep one of the two"});
  if (is_set("model.dropout.after") != is_set("model.dropout.rate"))
    error(Code::kRecipeValue, is_set("model.dropout.after") ? "model.dropout.after" : "model.dropout.rate", "model.dropout needs both after and rate",
          {"for example dropout = { after = \"encoder.*\", rate = 0.1 }"});
  for (const char* key : {"lora.rank", "lora.alpha", "lora.export"})
    if (is_set(key) and recipe_.lora.targets.empty())
      error(Code::kRecipeValue, key, fmt::format("{} is set, but lora.targets names no weight: there are no adapters", key), {"for example targets = [\"*q_proj*\", \"*v_proj*\"]"});
  check_optimizer();
  check_metrics();
}

void Reader::fill_optimizer_defaults() {
  const OptimizerKind* optimizer = find_optimizer(recipe_.optimizer.kind);
  if (optimizer == nullptr) return;
  for (const OptimizerNumber& number : optimizer->numbers) {
    const RecipeKey& key = key_of(number);
    if (not is_set(key.name)) key.set(recipe_, default_of(number, recipe_.train.convention));
  }
}

/// One key of early stopping asks for it.
void Reader::fill_early_stopping() {
  std::string& monitor = recipe_.train.early_stopping_monitor;
  if (not monitor.empty()) return;
  for (const char* key : {"train.early_stopping.patience", "train.early_stopping.min_delta", "train.early_stopping.restore_best"})
    if (is_set(key)) monitor = "val_loss";
}

}  // namespace

bool is_number_of(const Recipe& recipe, std::string_view name) { return std::ranges::count(numbers_of(recipe), name) > 0; }

std::optional<RecipeProblem> problem_of(const RecipeKey& key, const RecipeValue& value) {
  using Kind = RecipeValue::Kind;
  switch (value.kind) {
    case Kind::kString: return problem_of_kind(key.name, value.string);
    case Kind::kNumbers: return problem_of_factors(key.name, value.numbers);
    case Kind::kNumberList: return problem_of_list(key.name, value.number_list);
    case Kind::kStrings: return std::nullopt;
    case Kind::kBool:
    case Kind::kInt:
    case Kind::kFloat: return problem_of_number(key.name, number_of(value));
  }
  return std::nullopt;
}

namespace {

Recipe resolved(Reader reader) {
  reader.read_all();
  reader.fill_optimizer_defaults();
  reader.fill_early_stopping();
  reader.check_combinations();
  reader.check_run();
  reader.diags().throw_if_errors();
  return reader.take();
}

}  // namespace

Recipe resolve(const RecipeSource& source) { return resolved(Reader(source, {})); }

void check_recipe(const Recipe& recipe) {
  RecipeSource told = changes_between(Recipe{}, recipe);
  if (const OptimizerKind* optimizer = find_optimizer(recipe.optimizer.kind))  // what resolve() fills in may be what no user may say
    for (const OptimizerNumber& number : optimizer->numbers)
      if (const auto value = told.values.find(key_of(number).name); value != told.values.end() and to_text(value->second) == to_text(default_of(number, recipe.train.convention))) told.values.erase(value);
  if (told.values.empty()) return;
  told.file = "the program's recipe";
  try {
    (void)resolved(Reader(told, {}, "the program's recipe, "));
  } catch (const Error& error) {
    std::vector<Diag> diags = error.diags();
    for (Diag& diag : diags) diag.notes.emplace_back("read_recipe_text() and read_recipe_file() make a recipe with all that follows from it; change its members then, and make another one for another optimizer");
    throw Error(std::move(diags));
  }
}

Recipe change_at_run_time(const Recipe& recipe, const RecipeSource& changes) {
  Reader reader(changes, recipe);
  reader.read_all();
  reader.refuse_what_cannot_change(recipe);
  reader.fill_early_stopping();
  reader.check_optimizer();
  reader.check_run();
  reader.diags().throw_if_errors();
  return reader.take();
}

}  // namespace hone
