#include "base/recipe_changes.h"

#include <tuple>

namespace hone {

namespace {

/// NaN is a change from everything.
bool are_same(const RecipeValue& a, const RecipeValue& b) {
  const auto all = [](const RecipeValue& value) { return std::tie(value.kind, value.boolean, value.integer, value.number, value.string, value.strings, value.numbers, value.number_list); };
  return all(a) == all(b);
}

}  // namespace

RecipeSource changes_between(const Recipe& before, const Recipe& after) {
  RecipeSource changes;
  for (const RecipeKey& key : recipe_keys())
    if (RecipeValue value = key.get(after); not are_same(value, key.get(before))) changes.values.emplace(key.name, std::move(value));
  return changes;
}

}  // namespace hone
