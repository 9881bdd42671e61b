// The one table of the recipe's keys, and what their values may look like.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <type_traits>

#include "base/check.h"
#include "base/recipe_tables.h"
#include "base/text.h"

namespace hone {

namespace {

using Kind = RecipeValue::Kind;

void assign(bool& field, const RecipeValue& value) { field = value.boolean; }
void assign(std::int64_t& field, const RecipeValue& value) { field = value.integer; }
void assign(double& field, const RecipeValue& value) { field = value.number; }
void assign(std::string& field, const RecipeValue& value) { field = value.string; }
void assign(std::vector<std::string>& field, const RecipeValue& value) { field = value.strings; }
void assign(std::map<std::string, double>& field, const RecipeValue& value) { field = value.numbers; }
void assign(std::vector<double>& field, const RecipeValue& value) { field = value.number_list; }
void assign(Convention& field, const RecipeValue& value) { field = value.string == "keras" ? Convention::kKeras : Convention::kTorch; }

RecipeValue value_of(bool field) { return {.kind = Kind::kBool, .boolean = field}; }
RecipeValue value_of(std::int64_t field) { return {.kind = Kind::kInt, .integer = field}; }
RecipeValue value_of(double field) { return {.kind = Kind::kFloat, .number = field}; }
RecipeValue value_of(const std::string& field) { return {.kind = Kind::kString, .string = field}; }
RecipeValue value_of(const std::vector<std::string>& field) { return {.kind = Kind::kStrings, .strings = field}; }
RecipeValue value_of(const std::map<std::string, double>& field) { return {.kind = Kind::kNumbers, .numbers = field}; }
RecipeValue value_of(const std::vector<double>& field) { return {.kind = Kind::kNumberList, .number_list = field}; }
RecipeValue value_of(Convention field) { return value_of(std::string(field == Convention::kKeras ? "keras" : "torch")); }

using When = RecipeKey::When;

template <auto kSection, auto kField>
RecipeKey key(std::string_view name, When when, std::string_view doc) {
  return {name,
          value_of((Recipe{}.*kSection).*kField).kind,
          doc,
          when,
          [](Recipe& recipe, const RecipeValue& value) { assign((recipe.*kSection).*kField, value); },
          [](const Recipe& recipe) { return value_of((recipe.*kSection).*kField); }};
}

RecipeKey ignore_index() {
  RecipeKey result = key<&Recipe::loss, &Recipe::Loss::ignore_index>("loss.ignore_index", When::kCompiling, "a class whose targets do not count");
  result.set = [](Recipe& recipe, const RecipeValue& value) {
    recipe.loss.ignore_index = value.integer;
    recipe.loss.has_ignore_index = true;
  };
  return result;
}

std::vector<RecipeKey> make_keys() {
  using R = Recipe;
  using M = R::Model;
  using L = R::Loss;
  using O = R::Optimizer;
  using S = R::Schedule;
  using T = R::Train;
  constexpr When kCompiling = When::kCompiling, kRunning = When::kRunning, kIfThere = When::kIfThere;
  return {
      key<&R::model, &M::output>("model.output", kCompiling, "the output, or other value of the model, that the loss looks at; without it the only output"),
      key<&R::model, &M::freeze>("model.freeze", kCompiling, "weights not to train, by name pattern"),
      key<&R::model, &M::train_only>("model.train_only", kCompiling, "the only weights to train, by name pattern"),
      key<&R::model, &M::tie>("model.tie", kCompiling, "weights that are one, by name pattern: equal ones stay or become tied"),
      key<&R::model, &M::add_bias>("model.add_bias", kCompiling, "products and convolutions without a bias that get one of zeros, which is trained, by name pattern"),
      key<&R::model, &M::initialize>("model.initialize", kCompiling, "keep the file's weights, or draw fresh ones"),
      key<&R::model, &M::batch_norm>("model.batch_norm", kCompiling, "train: batch statistics; frozen: as exported for inference"),
      key<&R::model, &M::sync_batch_norm>("model.sync_batch_norm", kCompiling, "batch statistics are those of all replicas together, not each one's own"),
      key<&R::model, &M::dropout_after>("model.dropout.after", kCompiling, "nodes after which training drops elements, by name pattern"),
      key<&R::model, &M::new_head_classes>("model.new_head.classes", kCompiling, "a fresh last layer for so many classes; 0: the file's"),
      key<&R::model, &M::dropout_rate>("model.dropout.rate", kCompiling, "share of the elements that training drops"),
      key<&R::model, &M::frozen_precision>("model.frozen_precision", kCompiling, "what weights that are not trained are kept in"),
      key<&R::lora, &R::Lora::targets>("lora.targets", kCompiling, "matrices that get low-rank adapters and stay as they are themselves, by name pattern"),
      key<&R::lora, &R::Lora::rank>("lora.rank", kCompiling, "the adapters' inner extent"),
      key<&R::lora, &R::Lora::alpha>("lora.alpha", kCompiling, "adapters count alpha / rank"),
      key<&R::lora, &R::Lora::exported>("lora.export", kCompiling, "merged: the trained model has adapters added to its weights; separate: they alone are written, as PEFT has them"),
      key<&R::loss, &L::kind>("loss.kind", kCompiling, "what is minimized"),
      key<&R::loss, &L::targets>("loss.targets", kCompiling, "classes: the number of each target's class; probabilities: that of each class, such as one-hot or smoothed rows"),
      key<&R::loss, &L::class_axis>("loss.class_axis", kCompiling, "the axis of the output that holds the classes"),
      key<&R::loss, &L::label_smoothing>("loss.label_smoothing", kCompiling, "probability spread over all classes"),
      ignore_index(),
      key<&R::loss, &L::class_weights>("loss.class_weights", kCompiling, "what a target of each class counts, a number a class"),
      key<&R::loss, &L::sample_weights>("loss.sample_weights", kCompiling, "what each sample counts is given with the data, as sample_weight"),
      key<&R::loss, &L::delta>("loss.delta", kCompiling, "huber: where the square ends"),
      key<&R::optimizer, &O::kind>("optimizer.kind", kCompiling, "how the weights follow the gradients"),
      // The learning rate is fed at each step; the other numbers are states, which a run begins with as its recipe has them.
      key<&R::optimizer, &O::learning_rate>("optimizer.learning_rate", kRunning, "size of a step"),
      key<&R::optimizer, &O::beta1>("optimizer.beta1", kIfThere, "decay of the first moment"),
      key<&R::optimizer, &O::beta2>("optimizer.beta2", kIfThere, "decay of the second moment"),
      key<&R::optimizer, &O::epsilon>("optimizer.epsilon", kIfThere, "keeps the divisor from zero"),
      key<&R::optimizer, &O::rho>("optimizer.rho", kIfThere, "decay of the mean square (PyTorch's alpha)"),
      key<&R::optimizer, &O::momentum>("optimizer.momentum", kIfThere, "share of the last step that is kept"),
      key<&R::optimizer, &O::dampening>("optimizer.dampening", kIfThere, "PyTorch's sgd: what of the gradient momentum leaves out"),
      key<&R::optimizer, &O::nesterov>("optimizer.nesterov", kCompiling, "look ahead along the momentum"),
      key<&R::optimizer, &O::centered>("optimizer.centered", kCompiling, "rmsprop: divide by the variance"),
      key<&R::optimizer, &O::amsgrad>("optimizer.amsgrad", kCompiling, "keep the largest second moment"),
      key<&R::optimizer, &O::weight_decay>("optimizer.weight_decay", kIfThere, "pull of the weights towards zero"),
      key<&R::optimizer, &O::weight_decay_on>("optimizer.weight_decay_on", kCompiling, "all weights, or matrices: those of rank 2 or more, no biases and scales"),
      key<&R::optimizer, &O::exclude_from_weight_decay>("optimizer.exclude_from_weight_decay", kCompiling, "weights that weight_decay leaves alone, by name pattern"),
      key<&R::optimizer, &O::initial_accumulator_value>("optimizer.initial_accumulator_value", kCompiling, "adagrad: where the sum of squares starts"),
      key<&R::optimizer, &O::lr_decay>("optimizer.lr_decay", kIfThere, "PyTorch's adagrad: decay of the learning rate"),
      key<&R::optimizer, &O::momentum_decay>("optimizer.momentum_decay", kIfThere, "PyTorch's nadam: decay of the momentum"),
      key<&R::optimizer, &O::beta2_decay>("optimizer.beta2_decay", kIfThere, "adafactor: the second moment's decay is 1 - step^beta2_decay"),
      key<&R::optimizer, &O::epsilon2>("optimizer.epsilon2", kIfThere, "adafactor: the least that a weight's size counts"),
      key<&R::optimizer, &O::clip_threshold>("optimizer.clip_threshold", kIfThere, "adafactor: the largest root mean square of an update"),
      key<&R::optimizer, &O::exclude_from_muon>("optimizer.exclude_from_muon", kCompiling, "matrices that muon leaves to AdamW, by name pattern"),
      key<&R::optimizer, &O::clip_norm>("optimizer.clip_norm", kIfThere, "longest gradient, over all weights together; 0: any"),
      key<&R::optimizer, &O::clip_value>("optimizer.clip_value", kIfThere, "largest element of a gradient; 0: any"),
      key<&R::schedule, &S::kind>("schedule.kind", kRunning, "how the learning rate changes from step to step"),
      key<&R::schedule, &S::warmup_steps>("schedule.warmup_steps", kRunning, "steps over which the learning rate rises from 0: torch: the first is above it; keras: the first is 0"),
      key<&R::schedule, &S::total_steps>("schedule.total_steps", kRunning, "steps until the schedule ends, those of the warm-up included; 0: the whole run"),
      key<&R::schedule, &S::final_fraction>("schedule.final_fraction", kRunning, "of the learning rate, where the schedule ends"),
      key<&R::schedule, &S::factor>("schedule.factor", kRunning, "step, exponential, piecewise, plateau: what a drop multiplies by; inverse_time: what the divisor, from 1, grows by"),
      key<&R::schedule, &S::every>("schedule.every", kRunning, "step, exponential, inverse_time: epochs from drop to drop; cosine_restarts: epochs of the first cycle; 0: 1"),
      key<&R::schedule, &S::every_steps>("schedule.every_steps", kRunning, "the same in steps; 0: schedule.every says it"),
      key<&R::schedule, &S::boundaries>("schedule.boundaries", kRunning, "piecewise: the steps where the rate changes"),
      key<&R::schedule, &S::fractions>("schedule.fractions", kRunning, "piecewise: of the learning rate, before, between and behind the boundaries; without it each one multiplies by factor"),
      key<&R::schedule, &S::cycle_growth>("schedule.cycle_growth", kRunning, "cosine_restarts: how many times as long as the one before a cycle is"),
      key<&R::schedule, &S::peak_factor>("schedule.peak_factor", kRunning, "cosine_restarts: what a cycle begins with, as a share of what the one before did"),
      key<&R::schedule, &S::power>("schedule.power", kRunning, "polynomial: its power"),
      key<&R::schedule, &S::pct_start>("schedule.pct_start", kRunning, "one_cycle: share of the steps in which the rate rises"),
      key<&R::schedule, &S::div_factor>("schedule.div_factor", kRunning, "one_cycle: it begins at the learning rate divided by this"),
      key<&R::schedule, &S::final_div_factor>("schedule.final_div_factor", kRunning, "one_cycle: it ends at its first rate divided by this"),
      key<&R::schedule, &S::monitor>("schedule.monitor", kRunning, "plateau: what has to get better"),
      key<&R::schedule, &S::patience>("schedule.patience", kRunning, "plateau: epochs without improvement that are borne"),
      key<&R::schedule, &S::min_delta>("schedule.min_delta", kRunning, "plateau: what counts as an improvement"),
      key<&R::schedule, &S::cooldown>("schedule.cooldown", kRunning, "plateau: epochs after a drop that do not count"),
      key<&R::schedule, &S::min_rate>("schedule.min_rate", kRunning, "plateau: the least learning rate"),
      key<&R::metrics, &R::Metrics::list>("metrics.list", kCompiling, "what to report beside the loss"),
      key<&R::data, &R::Data::batch_size>("data.batch_size", kRunning, "samples of a step"),
      key<&R::data, &R::Data::shuffle_buffer>("data.shuffle_buffer", kRunning, "samples to choose the next one from; 0: all of them"),
      key<&R::data, &R::Data::scale>("data.scale", kRunning, "factors for inputs, by name"),
      key<&R::train, &T::epochs>("train.epochs", kRunning, "how often to go through the data"),
      key<&R::train, &T::seed>("train.seed", kRunning, "of the data's order and of all random numbers"),
      key<&R::train, &T::max_seconds>("train.max_seconds", kRunning, "seconds after which training ends; 0: when it is over"),
      key<&R::train, &T::early_stopping_monitor>("train.early_stopping.monitor", kRunning, "what has to get better for training to go on"),
      key<&R::train, &T::early_stopping_patience>("train.early_stopping.patience", kRunning, "epochs without improvement that are borne"),
      key<&R::train, &T::early_stopping_min_delta>("train.early_stopping.min_delta", kRunning, "what counts as an improvement"),
      key<&R::train, &T::early_stopping_restore_best>("train.early_stopping.restore_best", kRunning, "keep the weights of the best epoch"),
      key<&R::train, &T::ema_decay>("train.ema_decay", kIfThere, "share of the weights' moving average that a step keeps; 0: there is none"),
      key<&R::train, &T::gradient_accumulation_steps>("train.gradient_accumulation_steps", kIfThere, "batches whose gradients make one step"),
      key<&R::train, &T::precision>("train.precision", kCompiling, "element type of products, convolutions and attention and of what is kept for the backward pass"),
      key<&R::train, &T::keep_f32>("train.keep_f32", kCompiling, "nodes that stay in f32 whatever the precision, by name pattern"),
      key<&R::train, &T::exchange_precision>("train.exchange_precision", kCompiling, "element type of gradients on their way between replicas"),
      key<&R::train, &T::loss_scale>("train.loss_scale", kCompiling, "f16: what the loss is multiplied by at first"),
      key<&R::train, &T::loss_scale_growth_steps>("train.loss_scale_growth_steps", kCompiling, "f16: steps without an overflow after which the scale doubles"),
      key<&R::train, &T::convention>("train.convention", kCompiling, "whose formulas and defaults: torch or keras"),
  };
}

std::optional<RecipeValue> as_float(const RecipeValue& value) {
  if (value.kind != Kind::kInt) return std::nullopt;
  return value_of(static_cast<double>(value.integer));
}

std::optional<RecipeValue> as_int(const RecipeValue& value) {
  if (value.kind != Kind::kFloat or std::nearbyint(value.number) != value.number or std::abs(value.number) > 0x1p53) return std::nullopt;
  return value_of(static_cast<std::int64_t>(value.number));
}

}  // namespace

const std::vector<RecipeKey>& recipe_keys() {
  static const std::vector<RecipeKey> keys = make_keys();
  return keys;
}

const RecipeKey* find_recipe_key(std::string_view name) {
  const auto& keys = recipe_keys();
  const auto found = std::find_if(keys.begin(), keys.end(), [&](const RecipeKey& key) { return key.name == name; });
  return found == keys.end() ? nullptr : &*found;
}

std::optional<RecipeValue> convert(const RecipeValue& value, RecipeValue::Kind kind) {
  if (value.kind == kind) return value;
  if (kind == Kind::kFloat) return as_float(value);
  if (kind == Kind::kInt) return as_int(value);
  if (kind == Kind::kStrings and value.kind == Kind::kNumberList and value.number_list.empty()) return value_of(std::vector<std::string>{});
  if (kind == Kind::kNumberList and value.kind == Kind::kStrings and value.strings.empty()) return value_of(std::vector<double>{});
  if (kind == Kind::kStrings and value.kind == Kind::kString) return value_of(std::vector{value.string});
  return std::nullopt;
}

std::string_view describe(RecipeValue::Kind kind) {
  switch (kind) {
    case Kind::kBool: return "true or false";
    case Kind::kInt: return "a whole number";
    case Kind::kFloat: return "a number";
    case Kind::kString: return "a text";
    case Kind::kStrings: return "a list of texts";
    case Kind::kNumbers: return "a table of numbers by name";
    case Kind::kNumberList: return "a list of numbers";
  }
  internal_error(__FILE__, __LINE__, "unknown kind of recipe value");
}

std::string to_text(const RecipeValue& value) {
  switch (value.kind) {
    case Kind::kBool: return value.boolean ? "true" : "false";
    case Kind::kInt: return fmt::format("{}", value.integer);
    case Kind::kFloat: {
      const std::string text = fmt::format("{}", value.number);
      return text.find_first_of(".en") == std::string::npos ? text + ".0" : text;
    }
    case Kind::kString: return quoted(value.string);
    case Kind::kStrings: {
      std::vector<std::string> items;
      for (const std::string& item : value.strings) items.push_back(quoted(item));
      return fmt::format("[{}]", fmt::join(items, ", "));
    }
    case Kind::kNumbers: {
      std::vector<std::string> items;
      for (const auto& [name, number] : value.numbers) items.push_back(fmt::format("{} = {}", quoted(name), to_text(value_of(number))));
      return items.empty() ? "{}" : fmt::format("{{ {} }}", fmt::join(items, ", "));
    }
    case Kind::kNumberList: {
      std::vector<std::string> items;
      for (const double number : value.number_list) items.push_back(to_text(value_of(number)));
      return fmt::format("[{}]", fmt::join(items, ", "));
    }
  }
  internal_error(__FILE__, __LINE__, "unknown kind of recipe value");
}

}  // namespace hone
