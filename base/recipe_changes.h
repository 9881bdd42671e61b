// What a program has changed in a recipe by hand, as keys and values: so that the recipe's own rules check it.
#pragma once

#include "base/recipe.h"

namespace hone {

/// Each key whose value in `after` is not that in `before`.
RecipeSource changes_between(const Recipe& before, const Recipe& after);

}  // namespace hone
