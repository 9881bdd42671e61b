// Recipes as TOML files.
#pragma once

#include <string>
#include <string_view>

#include "base/recipe.h"

namespace hone {

/// The recipe in the file at `path` ("-": standard input), each key with its line. Keys and values are checked by resolve(), not here.
/// Throws kRecipeSyntax with file and line, kFileOpen, kFileRead.
RecipeSource read_recipe(const std::string& path);
/// The same from text; `name` is what messages call it.
RecipeSource parse_recipe(std::string_view text, const std::string& name);

}  // namespace hone
