// A model as a function that gives gradients, too: what saliency maps, adversarial examples, or an optimizer of one's own need.
#pragma once

#include <string>
#include <vector>

#include "base/recipe.h"
#include "ir/graph.h"

namespace hone {

/// What is differentiated, and with respect to what, by name.
struct GradientsOf {
  /// "loss": the mean loss of the recipe, or the output of that name if the recipe has none. Else an output of the model, whose elements are summed.
  std::string of = "loss";
  /// Inputs and weights of the model, of floats.
  std::vector<std::string> wrt;
};

/// The graph "predict" with the outputs `of` and, for each of `wrt`, NAME_grad: d(of)/d(NAME), of NAME's shape. It evaluates: dropout keeps everything, running statistics normalize. With a loss it takes
/// `target` as training does (and `sample_weight`, if the recipe has it).
/// Throws Error kUsage for a name that is not there or cannot be differentiated by, kNoGradient where `of` does not depend on it, and what attach_loss and differentiate throw.
Graph build_gradient_function(const Graph& imported, const Recipe& recipe, const GradientsOf& wanted);

}  // namespace hone
