// Loss scaling (Micikevicius et al. 2018) for training in f16, whose smallest numbers gradients would fall below: what is differentiated is the mean loss times a scale, which follows
// what PyTorch's GradScaler does with it. The scale is a state of the step, and so part of every checkpoint.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "base/recipe.h"
#include "ir/graph.h"
#include "passes/passes.h"

namespace hone {

/// Does the recipe ask for it? train.precision = "f16".
bool scales_loss(const Recipe& recipe);

/// What is differentiated in the loss's place.
struct ScaledLoss {
  ValueId loss;     ///< the batch's mean loss times the scale
  ValueId inverse;  ///< what its gradients are multiplied by to be those of the sum of the losses
};
/// Adds the state `loss_scale`, f32[], which begins as train.loss_scale. Each replica divides by its own number of targets, so that the scale means what it means for a mean loss.
ScaledLoss scale_loss(Graph& graph, const Objective& objective, const Recipe& recipe);
/// From here on gradients are those of the sum of the losses, as everywhere else: what is added up over batches and replicas does not depend on the scale. An infinite one stays infinite.
void unscale_gradients(Graph& graph, const ScaledLoss& scaled, std::vector<ValueId>& gradients);
/// How many elements of the gradients are not finite, f32[]. Invalid gradients have none.
ValueId count_overflows(Graph& graph, std::span<const ValueId> gradients);

/// The aliases from number `first` on keep the old value where objective.overflows is not 0: such a step is left out. Adds what becomes of the scale, as GradScaler.update() has it: times 0.5 after such
/// a step; times 2 after train.loss_scale_growth_steps others in a row, while that is finite. Outputs loss_scale (that of this step), overflows, and skipped_steps, those of the whole run. For graphs
/// to which scale_loss() was done.
void update_unless_overflow(Graph& graph, const Objective& objective, const Recipe& recipe, std::size_t first);

}  // namespace hone
