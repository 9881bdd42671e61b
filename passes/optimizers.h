// The optimizers as a recipe names them: which op updates a weight, with which states and numbers.
#pragma once

#include <string>
#include <string_view>

#include "base/recipe.h"
#include "ir/op.h"
#include "passes/passes.h"

namespace hone {

/// A state of an optimizer: the op's operand of that name.
struct OptimizerState {
  enum class Extent : std::uint8_t {
    kWeight,   ///< the weight's type
    kRows,     ///< the weight's shape with 1 for its last extent
    kColumns,  ///< the weight's shape with 1 for its last but one
    kShared,   ///< one f64 scalar for all weights
  };
  std::string_view name;
  bool (*is_needed)(const Recipe::Optimizer&, const Type& weight) = [](const Recipe::Optimizer&, const Type&) { return true; };
  double (*initial)(const Recipe::Optimizer&) = [](const Recipe::Optimizer&) { return 0.0; };
  Extent extent = Extent::kWeight;

  Type type_for(const Type& weight) const;
};

struct OptimizerRow {
  std::string_view kind;
  const OpDef* op;
  FixedList<OptimizerState, 4> states;  ///< in the order of the op's operands
};

/// The row that updates this weight: the recipe's optimizer, or what that leaves the weight to. Throws Error kRecipeValue for an optimizer that is none.
const OptimizerRow& optimizer_for(const Recipe& recipe, const TrainedWeight& weight, const Type& type);

/// The attributes of that op for this weight.
Attrs optimizer_attributes(const Recipe& recipe, const OpDef& op, const TrainedWeight& weight);

}  // namespace hone
