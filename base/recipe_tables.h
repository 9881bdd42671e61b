// What the recipe's values may be: kinds, ranges, each optimizer's numbers with their defaults, and what this version does not
// have yet. For the recipe's own files, and for who shows what a key is set to; everyone else calls resolve().
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "base/fixed_list.h"
#include "base/recipe.h"

namespace hone {

/// A value that a text key may have. Losses and optimizers come from their own tables; adding another is a row.
struct RecipeKind {
  std::string_view key;  ///< "loss.kind"
  std::string_view name;
};
std::span<const RecipeKind> recipe_kinds();

/// What a number may be.
struct RecipeRange {
  std::string_view key;
  double low = 0;
  double high = std::numeric_limits<double>::infinity();
  bool below_high = false;  ///< high itself is out
  bool above_low = false;   ///< low itself is out
};
std::span<const RecipeRange> recipe_ranges();

/// One number (or switch: 0 or 1) of an optimizer, with the defaults of torch.optim and keras.optimizers.
struct OptimizerNumber {
  std::string_view key;  ///< "beta1"
  double torch = 0;
  double keras = 0;
  bool in_keras = true;  ///< false: Keras has it fixed at `keras`
};
struct OptimizerKind {
  std::string_view name;
  FixedList<OptimizerNumber, 12> numbers;
};
/// The optimizer `name`, or null.
const OptimizerKind* find_optimizer(std::string_view name);
/// All optimizers' numbers, each key once ("learning_rate", ...), clipping left out: any optimizer clips.
std::span<const std::string_view> optimizer_number_keys();

struct ScheduleKeys {
  std::string_view kind;
  FixedList<std::string_view, 6> keys;  ///< of [schedule], that it reads beside kind and warmup_steps
};
/// Those of the kind `name`, or null.
const ScheduleKeys* find_schedule(std::string_view name);

/// The key named `name`, or null.
const RecipeKey* find_recipe_key(std::string_view name);
/// `value` read as `kind`: whole numbers as floats, one text as a list of one, floats without a fraction as integers.
/// Nothing when it cannot be.
std::optional<RecipeValue> convert(const RecipeValue& value, RecipeValue::Kind kind);
/// What is wrong with a value that has the key's kind, by ranges and names.
struct RecipeProblem {
  std::string message;
  std::vector<std::string> notes;
};
std::optional<RecipeProblem> problem_of(const RecipeKey& key, const RecipeValue& value);
/// "a number", "a list of texts", ...
std::string_view describe(RecipeValue::Kind kind);
/// The value as one would write it.
std::string to_text(const RecipeValue& value);

}  // namespace hone
