// The passes: one transformation each. A pass is a free function; it tells the truth about having changed something and leaves a valid graph.
// Passes over one graph alone can be run by name (hone-opt, hone-compile --passes). The order of the pipeline stands in passes/pipeline.cc.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/recipe.h"
#include "ir/differentiate.h"
#include "ir/rewriter.h"

namespace hone {

/// Replaces ops of meaning `lower` by what they lower to, until none is left.
Changed expand(Graph& graph);
/// The same, but those that wait for a target's rows (OpDef::whole) stay.
Changed expand_unclaimed(Graph& graph);
/// As expand(), but those that have a gradient of their own (OpDef::keep) stay: what runs before differentiate().
Changed expand_for_gradients(Graph& graph);
/// The same, but `gradient` nodes stay: what remains has a form in other formats.
Changed expand_for_export(Graph& graph);
/// Drops nodes whose results nobody reads, and weights, states and constants that no node reads.
Changed eliminate_dead_code(Graph& graph);
/// Nodes with the same op, operands and attributes become one.
Changed eliminate_common_subexpressions(Graph& graph);
/// Nodes over constants become constants, integer values that inference knows too.
Changed fold_constants(Graph& graph);
/// Algebraic rules (passes/simplify.cc), to a fixpoint.
Changed simplify(Graph& graph);
/// g * a + g * b -> g * (a + b) where g is a gradient and the forward pass knows a and b: an activation's derivative is one tensor then, which can be made, and
/// kept, where the activation is, in place of its argument.
Changed factor_gradients(Graph& graph);

// Loops (scan). What a loop's body computes moves out of it where nothing in it waits for that; random numbers, host functions and control flow stay.
/// Drops states that only feed themselves, stacked results that nobody reads, and operands of loops that nothing in them reads.
Changed prune_loops(Graph& graph);
/// What is the same in all iterations is computed before the loop.
Changed hoist_invariants(Graph& graph);
/// What an earlier loop computes in the same iteration and is dear, is stacked there and read.
Changed reuse_iterations(Graph& graph);
/// Matrix products and reductions of slices, and what is only stacked, are computed for all iterations at once, before the loop.
Changed hoist_from_loops(Graph& graph);
/// What only results and sums over the iterations need is computed for all iterations at once, after the loop.
Changed sink_from_loops(Graph& graph);

class Target;
/// Gives each node for which the target has a library row that row (attribute kRow); those that wait for one (OpDef::whole) become a library_call, or what they lower to.
Changed select_library(Graph& graph, const Target& target);

/// Each library_call becomes what its body says.
Changed inline_calls(Graph& graph);

/// Activations that convolution and pooling read and write lie channels last where that moves fewer elements (passes/layout.cc).
Changed choose_layout(Graph& graph);
/// A line for each group of activations whose layout choose_layout would decide, with what decides.
std::vector<std::string> explain_layout(const Graph& graph);

/// A pass that runs on a graph alone.
struct NamedPass {
  std::string_view name;
  Changed (*run)(Graph&);
  std::string_view doc;
};
std::span<const NamedPass> named_passes();
/// Runs the passes of a list "fold,simplify". Throws Error kUsage for an unknown one, with the nearest.
void run_named_passes(Graph& graph, std::string_view list);

// --- What turns a model into a training step. They run once, in this order. ---

/// A softmax whose NaNs are made zeros, which is how PyTorch's exporters write attention, becomes safe_softmax: else what is masked as a whole would make its gradient, and with it all weights, NaN.
Changed find_safe_softmaxes(Graph& graph);

/// batch_norm and batch_norm_train become batch_norm_train of the convention with running statistics as aliases, where mean and variance are weights of the
/// model.
Changed train_batch_norm(Graph& graph, Convention convention);
/// The statistics of batch_norm_train become those of all replicas: it becomes ordinary ops with all_reduce nodes among them, through which gradients flow.
Changed synchronize_batch_norm(Graph& graph);
/// batch_norm_train becomes batch_norm: what a file exported for training means when its running statistics stay. They become states that nothing moves: no
/// gradient may train them.
Changed freeze_batch_norm(Graph& graph);

/// What the loss added to a graph.
struct Objective {
  ValueId loss_sum, target_count;
  ValueId overflows = {};  ///< with a scaled loss: how many gradients' elements are not finite (passes/loss_scale.h)
};
/// The output that the loss is of. Throws Error kRecipeModel where model.output names none, or must and does not.
const Output& chosen_output(const Graph& graph, const Recipe& recipe);
/// Adds the input `target`, the loss and the metrics; the graph's outputs become loss_sum, target_count and metric:NAME.
/// With loss.sample_weights there is an input `sample_weight`, too. Throws Error kRecipeModel when output, loss and metrics do not fit.
Objective attach_loss(Graph& graph, const Recipe& recipe);

/// What a recipe asks for that is allowed but seldom meant: softmax_cross_entropy on an output that ends in Softmax, dropout after dropout, keys that change nothing
/// because of another one, factors for inputs that there are not.
std::vector<Diag> recipe_warnings(const Graph& graph, const Recipe& recipe);

/// Dropout after the nodes of the file that model.dropout names and that make floats of what is fed, bodies included; the names of those nodes. The graph must be as imported: nodes are found by name.
/// Throws Error kRecipeModel for a pattern that matches no node, with the nearest name.
std::vector<std::string> insert_dropout(Graph& graph, const Recipe& recipe);
/// Where that comes on top of a Dropout of the model's own.
std::vector<Diag> dropout_warnings(const Graph& graph, const Recipe& recipe);
/// dropout keeps everything: for evaluation and prediction.
Changed remove_dropout(Graph& graph);

/// Nodes that draw random numbers draw others in every step, for every run's seed, and in every iteration of a loop; and for a part of a batch what they would draw for
/// it as a part of the whole. They are given an event made of two states, `random_step` and `random_seed` (which begins as `seed`), and, where they draw for each
/// sample, the input `first_sample`: the position of the batch's first one in the whole batch. `samples`: the extent of the samples' axis.
Changed key_random(Graph& graph, std::int64_t seed, const Dim& samples);
/// What a graph without steps needs of that: every iteration of a loop draws other numbers.
Changed key_iterations(Graph& graph);

/// The weights that a recipe trains: every float initializer of rank 1 or more, running statistics aside, or those that train_only names, less the frozen ones.
/// Throws Error kRecipeModel for a pattern that matches nothing (with the nearest name), and for one that matches what cannot be trained.
struct TrainedWeight {
  ValueId value;
  std::string name;
  std::string part;  ///< "" all of it, or the "[:, 0:80]" of train_only
  std::vector<std::string> also_called = {};  ///< passes/weight_names.h
  bool is_matrix = false;  ///< rank 2 or more, and no bias or scale that is stored with extents of 1 ([C,1,1])
  bool outputs_last = false;  ///< a matrix that is multiplied from the left, [in,out], as Keras has it and exporters make of PyTorch's [out,in]
};
std::vector<TrainedWeight> select_weights(Graph& graph, const Recipe& recipe);

/// What becomes of the gradients that are added up over batches.
enum class Accumulated : std::uint8_t { kKept, kUsed /* by an update: the next sums begin at 0 */ };
/// Adds to the gradient sums and the target count those of the batches since the last update, which lie in the states WEIGHT/accumulated and accumulated_targets.
void accumulate_gradients(Graph& graph, Objective& objective, std::span<const TrainedWeight> weights, std::vector<ValueId>& gradients, Accumulated what);

/// Sums the batch's loss over the replicas, and nothing else of the objective: an all_reduce node in a bucket of its own. Where several batches make an update, each is judged by its loss, and
/// the rest is the update's: what shards collect of a bucket is added up until it is exchanged.
void all_reduce_loss(Graph& graph, Objective& objective);
enum class LossIs : std::uint8_t { kOwn, kAllReduced };
/// Sums gradients and what the objective holds over the replicas: all_reduce nodes, in buckets in the order in which gradients become ready.
/// gradients[i] is that of weights[i]. Gradients of f32 travel as `wire`: each replica's is rounded, and so is the sum; what is
/// added up is f32. That of a replica that is alone is rounded, too: how many there are changes no step's meaning.
void all_reduce_gradients(Graph& graph, Objective& objective, LossIs loss, std::span<const TrainedWeight> weights, std::vector<ValueId>& gradients, DType wire);
/// Has a replica a part of the batch?
enum class HasSamples : std::uint8_t { kNo, kYes };
/// Running statistics, which each replica moves by its own batch, become their means over the replicas that have samples. For a graph whose only other aliases are integers.
void average_running_statistics(Graph& graph, HasSamples has_samples);
/// Adds, for every exchange that the graph has, one to which this replica brings zeros, in the same order, as an output.
void exchange_nothing(Graph& graph);
/// The graph of one replica that is alone: it has nobody to exchange anything with.
Changed drop_all_reduce(Graph& graph);

struct OptimizerOptions {
  bool gradient_norms = false;  ///< adds an output grad_norm:NAME for each trained weight
};
/// Adds learning rate, step counter, optimizer states, updates and the weights' moving averages with their aliases. Gradients are of the loss sum; they are divided
/// by the target count. Where that is invalid they are of the mean.
/// Throws Error kRecipeModel for a pattern of optimizer.exclude_from_weight_decay or exclude_from_muon that matches none of the weights.
void attach_optimizer(Graph& graph, const Objective& objective, std::span<const TrainedWeight> weights, std::span<const ValueId> gradients, const Recipe& recipe,
                      OptimizerOptions options);

/// Every alias, running statistics included, keeps the old value when `loss` is not finite: a bad step changes nothing.
void update_if_finite(Graph& graph, ValueId loss);

// --- The same for a model that says itself how it is trained (ir/own_training.h). ---

/// Adds an output grad_norm:NAME for each weight that an update replaces and a `gradient` node has among its x.
void add_gradient_norms(Graph& graph);
/// What `initialization`, which takes nothing, gives, by the names of its outputs; nodes that draw random numbers draw others for every `seed`.
std::vector<std::pair<std::string, Tensor>> first_values(const Graph& initialization, std::int64_t seed);

/// Fresh initial values for the trained weights as `recipe.model.initialize` says. "keep" leaves them.
void initialize_weights(Graph& graph, const Recipe& recipe, std::span<const TrainedWeight> weights);

}  // namespace hone
