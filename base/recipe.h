// The recipe: how a model is to be trained. One struct, one key table, one validation, used by compiler and runtime alike.
// The TOML reader is frontend/recipe_toml.h; as resolved, a recipe travels as JSON in the plan, the run folder and checkpoints.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/diag.h"

namespace hone {

enum class Convention { kTorch, kKeras };

struct Recipe {
  struct Model {
    std::string output;                   ///< "" the only output
    std::vector<std::string> freeze;      ///< weights not to train, by name pattern
    std::vector<std::string> train_only;  ///< the other way round; "NAME[:, 0:80]" trains a part of a tensor
    std::vector<std::string> tie;         ///< weights that are one although there are several, by name pattern
    std::vector<std::string> add_bias;    ///< products and convolutions that get a bias of zeros, by name pattern
    std::string initialize = "keep";      ///< keep, he_normal, he_uniform, glorot_normal, glorot_uniform, normal, zeros
    std::string batch_norm = "train";     ///< train, frozen
    bool sync_batch_norm = false;         ///< batch statistics are those of all replicas together
    std::vector<std::string> dropout_after;  ///< nodes after which training drops elements, by name pattern
    double dropout_rate = 0;                 ///< how many of them
    std::int64_t new_head_classes = 0;       ///< a fresh last layer for so many classes; 0: the file's
    std::string frozen_precision = "f32";    ///< what weights that are not trained are kept in: f32, bf16, int8 (by channel)
  } model;
  /// Low-rank adapters: the weights that match are frozen, and W + alpha / rank * B A takes their place, where B and A are trained.
  struct Lora {
    std::vector<std::string> targets;  ///< weights of rank 2, by name pattern; empty: no adapters
    std::int64_t rank = 8;
    double alpha = 16;
    std::string exported = "merged";   ///< merged: into the weights; separate: as nodes of the exported model
  } lora;
  struct Loss {
    std::string kind;            ///< "" : no loss, the plan can predict only
    std::string targets = "classes";  ///< of losses of classes: classes (numbers), probabilities (of each class, one-hot rows among them)
    std::int64_t class_axis = -1;
    double label_smoothing = 0;
    bool has_ignore_index = false;
    std::int64_t ignore_index = -100;
    double delta = 1;
    std::vector<double> class_weights;  ///< what a target of each class counts; empty: all 1
    bool sample_weights = false;        ///< what each sample counts is fed as `sample_weight`
  } loss;
  struct Optimizer {
    std::string kind;
    double learning_rate = 0;  ///< defaults of all numbers depend on kind and convention; filled in by resolve()
    double beta1 = 0, beta2 = 0, epsilon = 0, rho = 0, momentum = 0, dampening = 0, weight_decay = 0;
    double initial_accumulator_value = 0, lr_decay = 0, momentum_decay = 0, beta2_decay = 0, epsilon2 = 0, clip_threshold = 0;
    bool nesterov = false, centered = false, amsgrad = false;
    std::string weight_decay_on = "all";                 ///< all, matrices (rank 2 or more: no biases, no scales)
    std::vector<std::string> exclude_from_weight_decay;  ///< weights that it does not pull, by name pattern
    std::vector<std::string> exclude_from_muon;          ///< matrices that muon leaves to AdamW, by name pattern
    double clip_norm = 0, clip_value = 0;  ///< 0: off
  } optimizer;
  struct Schedule {
    std::string kind = "constant";
    std::int64_t warmup_steps = 0;
    std::int64_t total_steps = 0;   ///< 0: the whole run
    double final_fraction = 0;      ///< of the learning rate, where the schedule ends
    double factor = 0.1;            ///< step, exponential, inverse_time, piecewise, plateau
    std::int64_t every = 0;         ///< step, exponential, inverse_time, cosine_restarts: epochs of a drop, or of the first cycle
    std::int64_t every_steps = 0;   ///< the same in steps; one of the two
    std::vector<double> boundaries;  ///< piecewise: steps of the run behind which the next part begins
    std::vector<double> fractions;   ///< piecewise: of the learning rate, in each part; empty: factor's powers
    double cycle_growth = 1, peak_factor = 1;  ///< cosine_restarts: what a cycle's length and its peak are multiplied by to make the next one's
    double power = 1;               ///< polynomial
    double pct_start = 0.3, div_factor = 25, final_div_factor = 1e4;  ///< one_cycle, as PyTorch calls them
    std::int64_t patience = 10, cooldown = 0;                         ///< plateau, in epochs
    double min_delta = 1e-4, min_rate = 0;                            ///< plateau
    std::string monitor = "val_loss";                                 ///< plateau: "loss", a metric, or one of them behind "val_"
  } schedule;
  struct Metrics {
    std::vector<std::string> list;
  } metrics;
  struct Data {
    std::int64_t batch_size = 32;
    std::int64_t shuffle_buffer = 0;
    std::map<std::string, double> scale;
  } data;
  struct Train {
    std::int64_t epochs = 1;
    std::int64_t seed = 0;
    double max_seconds = 0;  ///< 0: no limit
    std::int64_t gradient_accumulation_steps = 1;
    double ema_decay = 0;    ///< of a moving average of the weights; 0: there is none
    std::string early_stopping_monitor;  ///< "": no early stopping
    std::int64_t early_stopping_patience = 0;
    double early_stopping_min_delta = 0;
    bool early_stopping_restore_best = false;
    std::string precision = "f32";       ///< of products, convolutions and attention and of what they keep for the backward pass: f32, bf16, f16; tf32 where a GPU multiplies
    std::vector<std::string> keep_f32;   ///< nodes that stay in f32 whatever the precision, by name pattern
    std::string exchange_precision = "f32";  ///< of gradients on their way between replicas: f32, bf16
    double loss_scale = 65536;               ///< f16: what the loss is multiplied by at first
    std::int64_t loss_scale_growth_steps = 2000;  ///< f16: steps without an overflow after which it doubles
    Convention convention = Convention::kTorch;
  } train;

  bool can_train() const { return not loss.kind.empty(); }
};

/// What a recipe's value may be; the readers convert to it.
struct RecipeValue {
  enum class Kind { kBool, kInt, kFloat, kString, kStrings, kNumbers /* name -> number */, kNumberList };
  Kind kind = Kind::kBool;
  bool boolean = false;
  std::int64_t integer = 0;
  double number = 0;
  std::string string = {};
  std::vector<std::string> strings = {};
  std::map<std::string, double> numbers = {};
  std::vector<double> number_list = {};
};

/// One key of the recipe: its dotted name, its doc, how it is set and read. The one table of keys.
struct RecipeKey {
  std::string_view name;  ///< "optimizer.learning_rate"
  RecipeValue::Kind kind;
  std::string_view doc;
  /// May it still be changed when running?
  enum class When : std::uint8_t {
    kCompiling,  ///< no
    kRunning,    ///< yes (data.*, schedule.*, most of train.*, the learning rate)
    kIfThere,    ///< yes, unless it is what Recipe{} has, a 0 or 1 that means none: what it takes is left out of the plan then (the optimizer's other numbers)
  };
  When when;
  void (*set)(Recipe&, const RecipeValue&);
  RecipeValue (*get)(const Recipe&);
};
const std::vector<RecipeKey>& recipe_keys();

/// Keys that were set by the user, dotted names; resolve() fills in the rest.
struct RecipeSource {
  std::map<std::string, RecipeValue, std::less<>> values;
  std::map<std::string, int, std::less<>> lines;  ///< for errors
  std::string file;
};

/// Adds "key=value" (--set). The value is read as TOML-like text: numbers, true/false, "text", bare words, [lists].
void add_override(RecipeSource& source, std::string_view assignment);

/// Checks all keys and values, collects every problem (unknown key with the nearest one, wrong type, value out of range or unknown kind with the list of kinds,
/// an optimizer number that its kind does not have) and throws Error kRecipeKey / kRecipeValue; else the recipe with all defaults of kind and convention filled in.
Recipe resolve(const RecipeSource& source);

/// What resolve() checks, for a recipe that a program has put together, or changed. A number that its optimizer should have and that is 0 is taken to be meant. Throws Error kRecipeKey / kRecipeValue with every problem.
void check_recipe(const Recipe& recipe);

/// `recipe` with what may still be changed when running (RecipeKey::when) changed. Throws Error kRecipeKey / kRecipeValue with every problem.
Recipe change_at_run_time(const Recipe& recipe, const RecipeSource& changes);

/// Has the recipe's optimizer the number `name` ("beta1") in the recipe's convention?
bool is_number_of(const Recipe& recipe, std::string_view name);

/// As resolved, every key; reads back with recipe_from_json to the same recipe.
std::string to_json(const Recipe& recipe);
Recipe recipe_from_json(std::string_view json);

}  // namespace hone
