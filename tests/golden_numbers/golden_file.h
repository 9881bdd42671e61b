// The cases that make.py wrote: recipes, inputs, and what PyTorch and Keras make of them.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/files.h"
#include "base/recipe.h"
#include "frontend/recipe_toml.h"

namespace hone::test {

using Json = nlohmann::json;

/// The cases of tests/golden_numbers/NAME.json.
inline Json golden_cases(const std::string& name) { return Json::parse(read_file(std::string(HONE_SOURCE_DIR) + "/tests/golden_numbers/" + name + ".json")); }

inline Recipe recipe_of(const Json& golden) { return resolve(parse_recipe(golden["recipe"].get<std::string>(), "golden.toml")); }

/// Whole numbers as sizes, any as values.
inline std::vector<std::int64_t> shape_of(const Json& json) { return json.get<std::vector<std::int64_t>>(); }
inline std::vector<double> numbers_of(const Json& json) { return json.get<std::vector<double>>(); }

/// Equal to 1e-6 of the largest element.
inline void expect_same(const std::vector<double>& found, const std::vector<double>& wanted, const std::string& what) {
  constexpr double kTolerance = 1e-6;
  ASSERT_EQ(found.size(), wanted.size()) << what;
  double largest = 0;
  for (const double number : wanted) largest = std::max(largest, std::abs(number));
  for (std::size_t i = 0; i < wanted.size(); ++i) EXPECT_NEAR(found[i], wanted[i], kTolerance * largest) << what << "[" << i << "]";
}

}  // namespace hone::test
