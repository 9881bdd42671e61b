#include "base/recipe.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "base/diag.h"
#include "base/objectives.h"
#include "base/recipe_changes.h"
#include "base/recipe_tables.h"
#include "frontend/recipe_toml.h"

namespace hone {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

RecipeSource source_of(std::string_view toml) { return parse_recipe(toml, "train.toml"); }
Recipe resolved(std::string_view toml) { return resolve(source_of(toml)); }

/// All diagnostics of `action`; the test fails when it does not throw.
template <typename Action>
std::vector<Diag> problems_of(Action&& action) {
  try {
    action();
  } catch (const Error& error) { return error.diags(); }
  ADD_FAILURE() << "no error";
  return {};
}
std::vector<Diag> problems(std::string_view toml) {
  return problems_of([&] { resolve(source_of(toml)); });
}

constexpr std::string_view kSmallRecipe = "[loss]\nkind = \"softmax_cross_entropy\"\n[optimizer]\n";

Recipe optimizer(const std::string& kind, const std::string& convention) {
  return resolved("[loss]\nkind = \"mse\"\n[optimizer]\nkind = \"" + kind + "\"\n[train]\nconvention = \"" + convention + "\"\n");
}

TEST(Recipe, EmptyOneIsForPredictionOnly) {
  const Recipe recipe = resolve({});
  EXPECT_FALSE(recipe.can_train());
  EXPECT_EQ(recipe.data.batch_size, 32);
}

TEST(Recipe, DefaultsAreThoseOfTheConvention) {
  EXPECT_EQ(optimizer("adam", "torch").optimizer.epsilon, 1e-8);
  EXPECT_EQ(optimizer("adam", "keras").optimizer.epsilon, 1e-7);
  EXPECT_EQ(optimizer("adamw", "torch").optimizer.weight_decay, 1e-2);
  EXPECT_EQ(optimizer("adamw", "keras").optimizer.weight_decay, 4e-3);
  EXPECT_EQ(optimizer("sgd", "torch").optimizer.learning_rate, 1e-3);
  EXPECT_EQ(optimizer("sgd", "keras").optimizer.learning_rate, 1e-2);
  EXPECT_EQ(optimizer("rmsprop", "torch").optimizer.rho, 0.99);
  EXPECT_EQ(optimizer("rmsprop", "keras").optimizer.rho, 0.9);
  EXPECT_EQ(optimizer("adagrad", "torch").optimizer.initial_accumulator_value, 0);
  EXPECT_EQ(optimizer("adagrad", "keras").optimizer.initial_accumulator_value, 0.1);
  EXPECT_EQ(optimizer("adagrad", "torch").optimizer.epsilon, 1e-10);
  EXPECT_EQ(optimizer("nadam", "torch").optimizer.momentum_decay, 4e-3);
  EXPECT_EQ(optimizer("nadam", "keras").optimizer.momentum_decay, 1);
  EXPECT_EQ(optimizer("nadam", "torch").optimizer.learning_rate, 2e-3);
}

TEST(Recipe, WhatIsSetStays) {
  const Recipe recipe = resolved(std::string(kSmallRecipe) +
                                 "kind = \"adam\"\nlearning_rate = 1\nepsilon = 0.5\n[metrics]\nlist = [\"accuracy\", \"top_5_accuracy\"]\n"
                                 "[data]\nscale = { image = 0.25, other = 2 }\n[train]\nepochs = 3\n");
  EXPECT_EQ(recipe.optimizer.learning_rate, 1);
  EXPECT_EQ(recipe.optimizer.epsilon, 0.5);
  EXPECT_EQ(recipe.optimizer.beta2, 0.999);
  EXPECT_EQ(recipe.metrics.list.size(), 2u);
  EXPECT_EQ(recipe.data.scale.at("image"), 0.25);
  EXPECT_EQ(recipe.data.scale.at("other"), 2);
  EXPECT_EQ(recipe.train.epochs, 3);
}

TEST(Recipe, AllProblemsComeAtOnceEachWithItsLine) {
  const auto found = problems(
      "[loss]\nkind = \"softmax_crossentropy\"\n[optimizer]\nkind = \"adam\"\nlerning_rate = 1e-3\nbeta1 = 1.0\nmomentum = 0.9\n[train]\nepochs = \"ten\"\n");
  ASSERT_EQ(found.size(), 5u);
  for (const Diag& diag : found) {
    EXPECT_EQ(diag.loc.file, "train.toml") << diag.message;
    EXPECT_GT(diag.loc.line, 0) << diag.message;
    EXPECT_FALSE(diag.notes.empty()) << diag.message;
  }
}

struct BadRecipe {
  std::string_view toml, message, note;
  Code code;
  int line;
};

class BadRecipes : public ::testing::TestWithParam<BadRecipe> {};

TEST_P(BadRecipes, SayWhatWhereAndTheWayOut) {
  const auto found = problems(GetParam().toml);
  ASSERT_EQ(found.size(), 1u);
  EXPECT_THAT(found[0].message, HasSubstr(GetParam().message));
  EXPECT_EQ(found[0].code, GetParam().code);
  EXPECT_EQ(exit_code(found[0].code), 5);
  EXPECT_EQ(found[0].loc.line, GetParam().line);
  ASSERT_FALSE(found[0].notes.empty());
  EXPECT_THAT(found[0].notes[0], HasSubstr(GetParam().note));
}

INSTANTIATE_TEST_SUITE_P(
    Recipe, BadRecipes,
    ::testing::Values(
        BadRecipe{"[train]\nepoch = 1\n", "no key \"train.epoch\"", "did you mean \"train.epochs\"?", Code::kRecipeKey, 2},
        BadRecipe{"[train]\nbatch_size = 1\n", "no key \"train.batch_size\"", "did you mean \"data.batch_size\"?", Code::kRecipeKey, 2},
        BadRecipe{"[data]\nqwertyuiop = 1\n", "no key \"data.qwertyuiop\"", "it has data.batch_size", Code::kRecipeKey, 2},
        BadRecipe{"[trian]\nepochs = 1\n", "no section \"trian\"", "did you mean \"train\"?", Code::kRecipeKey, 1},
        BadRecipe{"epochs = 1\n", "\"epochs\" stands outside", "it belongs into [train]", Code::kRecipeKey, 1},
        BadRecipe{"[train]\n\nepochs = 0\n", "train.epochs is 0, and has to be at least 1", "correct it", Code::kRecipeValue, 3},
        BadRecipe{"[train]\nepochs = 1.5\n", "train.epochs is a whole number, and a number was found: 1.5", "it says", Code::kRecipeValue, 2},
        BadRecipe{"[train]\nprecision = \"f23\"\n", "\"f23\" is none that Hone knows", "did you mean", Code::kRecipeValue, 2},
        BadRecipe{"[train]\nprecision = \"qwertyuiop\"\n", "is none that Hone knows", "this version has f32, bf16, f16", Code::kRecipeValue, 2},
        BadRecipe{"[train]\ngradient_accumulation_steps = 0\n", "gradient_accumulation_steps is 0, and has to be at least 1", "correct it", Code::kRecipeValue, 2},
        BadRecipe{"[train]\nema_decay = 1.0\n", "train.ema_decay is 1, and has to be at least 0 and less than 1", "correct it", Code::kRecipeValue, 2},
        BadRecipe{"[train]\nmax_seconds = -1\n", "train.max_seconds is -1", "correct it", Code::kRecipeValue, 2},
        BadRecipe{"[train]\nearly_stopping = { patience = -1 }\n", "train.early_stopping.patience is -1", "correct it", Code::kRecipeValue, 2},
        BadRecipe{"[train]\nearly_stopping = { patienc = 1 }\n", "no key \"train.early_stopping.patienc\"", "did you mean \"train.early_stopping.patience\"?", Code::kRecipeKey, 2},
        BadRecipe{"[schedule]\nkind = \"plateau\"\nfactor = 1.0\n", "has to be less than 1", "0.1", Code::kRecipeValue, 3},
        BadRecipe{"[schedule]\nkind = \"one_cycle\"\nwarmup_steps = 5\n", "a rise of its own", "schedule.pct_start", Code::kRecipeValue, 3},
        BadRecipe{"[schedule]\nkind = \"one_cycle\"\npct_start = 1.5\n", "schedule.pct_start is 1.5", "correct it", Code::kRecipeValue, 3},
        BadRecipe{"[data]\nscale = { x = nan }\n", "the factor of \"x\" is nan", "finite", Code::kRecipeValue, 2},
        BadRecipe{"[data]\nscale = { x = \"a\" }\n", "a table entry that is no number", "a value is", Code::kRecipeValue, 2},
        BadRecipe{"[train]\nepochs = 2020-01-01\n", "a date or time", "a value is", Code::kRecipeValue, 2},
        BadRecipe{"[metrics]\nlist = [\"accuracy\", 1]\n", "an item that is no text", "a value is", Code::kRecipeValue, 2},
        BadRecipe{"[optimizer]\nkind = \"adam\"\n", "loss.kind is missing", "this version has softmax_cross_entropy", Code::kRecipeValue, 2},
        BadRecipe{"[loss]\nkind = \"mse\"\n", "optimizer.kind is missing", "this version has sgd, adam", Code::kRecipeValue, 2},
        BadRecipe{"[loss]\nkind = \"mse\"\ndelta = 2\n[optimizer]\nkind = \"sgd\"\n", "mse has no delta", "only huber", Code::kRecipeKey, 3},
        BadRecipe{"[loss]\nkind = \"mse\"\n[optimizer]\nkind = \"adam\"\nmomentum = 0.9\n", "the optimizer adam has no momentum", "it has learning_rate, beta1",
                  Code::kRecipeKey, 5},
        BadRecipe{"[loss]\nkind = \"mse\"\n[optimizer]\nkind = \"sgd\"\ndampening = 0.5\n[train]\nconvention = \"keras\"\n", "Keras's sgd has no dampening",
                  "it has learning_rate", Code::kRecipeKey, 5},
        BadRecipe{"[loss]\nkind = \"mse\"\n[optimizer]\nkind = \"sgd\"\nnesterov = true\n", "nesterov needs a momentum", "momentum = 0.9", Code::kRecipeValue,
                  5},
        BadRecipe{"[loss]\nkind = \"mse\"\n[optimizer]\nkind = \"sgd\"\nclip_norm = -1.0\n", "optimizer.clip_norm is -1, and has to be at least 0", "correct it",
                  Code::kRecipeValue, 5},
        BadRecipe{"[loss]\nkind = \"mse\"\n[optimizer]\nkind = \"sgd\"\nclip_norm = 1.0\nclip_value = 1.0\n", "are both set", "keep one", Code::kRecipeValue, 6},
        BadRecipe{"[loss]\nkind = \"mse\"\n[optimizer]\nkind = \"sgd\"\nexclude_from_muon = [\"a\"]\n", "the optimizer is sgd, not muon", "leave it out", Code::kRecipeKey, 5},
        BadRecipe{"[loss]\nkind = \"mse\"\n[optimizer]\nkind = \"sgd\"\nweight_decay_on = \"matrixes\"\n", "is none that Hone knows", "did you mean \"matrices\"?",
                  Code::kRecipeValue, 5},
        BadRecipe{"[loss]\nkind = \"mse\"\nlabel_smoothing = 0.1\n[optimizer]\nkind = \"sgd\"\n", "is about integer classes, and the loss mse has none", "leave it out",
                  Code::kRecipeKey, 3},
        BadRecipe{"[loss]\nkind = \"mse\"\nclass_weights = [1, 2]\n[optimizer]\nkind = \"sgd\"\n", "is about integer classes", "leave it out", Code::kRecipeKey, 3},
        BadRecipe{"[loss]\nkind = \"bce\"\ntargets = \"probabilities\"\n[optimizer]\nkind = \"sgd\"\n", "the loss bce has no classes", "leave it out", Code::kRecipeKey, 3},
        BadRecipe{"[loss]\nkind = \"nll\"\ntargets = \"probabilities\"\nignore_index = 1\n[optimizer]\nkind = \"sgd\"\n", "has no numbers", "a row of zeros", Code::kRecipeKey, 4},
        BadRecipe{"[loss]\nkind = \"nll\"\ntargets = \"onehot\"\n[optimizer]\nkind = \"sgd\"\n", "is none that Hone knows", "probabilities", Code::kRecipeValue, 3},
        BadRecipe{"[loss]\nkind = \"mse\"\nclass_axis = 1\n[optimizer]\nkind = \"sgd\"\n", "no axis of classes", "leave it out", Code::kRecipeKey, 3},
        BadRecipe{"[schedule]\nkind = \"step\"\nevery = 2\nevery_steps = 100\n", "in epochs and in steps", "keep one of the two", Code::kRecipeValue, 4},
        BadRecipe{"[schedule]\nkind = \"piecewise\"\n", "schedule.boundaries is missing", "boundaries = [1000, 2000]", Code::kRecipeValue, 2},
        BadRecipe{"[schedule]\nkind = \"piecewise\"\nboundaries = [10, 10]\n", "each larger than the one before", "for example", Code::kRecipeValue, 3},
        BadRecipe{"[schedule]\nkind = \"piecewise\"\nboundaries = [10.5]\n", "numbers of steps", "for example", Code::kRecipeValue, 3},
        BadRecipe{"[schedule]\nkind = \"piecewise\"\nboundaries = [10, 20]\nfractions = [1, 0.5]\n", "2 numbers, and 2 boundaries make 3 parts", "one number for each part", Code::kRecipeValue, 4},
        BadRecipe{"[schedule]\nkind = \"piecewise\"\nboundaries = [-1, 2]\n", "schedule.boundaries: number 0 is -1", "correct it", Code::kRecipeValue, 3},
        BadRecipe{"[loss]\nkind = \"bce\"\nclass_weights = [1, 2, 3]\n[optimizer]\nkind = \"sgd\"\n", "has 3 numbers, and the loss bce knows no and yes", "what a target of 1 counts", Code::kRecipeValue, 3},
        BadRecipe{"[loss]\nkind = \"hinge\"\nlabel_smoothing = 0.1\n[optimizer]\nkind = \"sgd\"\n", "is about integer classes, and the loss hinge has none", "leave it out", Code::kRecipeKey, 3},
        BadRecipe{"[loss]\nkind = \"bce\"\nignore_index = 1\n[optimizer]\nkind = \"sgd\"\n", "is about integer classes, and the loss bce has none", "leave it out", Code::kRecipeKey, 3},
        BadRecipe{"[loss]\nkind = \"nll\"\nclass_weights = [1, -2]\n[optimizer]\nkind = \"sgd\"\n", "number 1 is -2", "0 leaves it out", Code::kRecipeValue, 3},
        BadRecipe{"[loss]\nkind = \"nll\"\nclass_weights = [0, 0.0]\n[optimizer]\nkind = \"sgd\"\n", "are all 0", "leave the key out", Code::kRecipeValue, 3},
        BadRecipe{"[loss]\nkind = \"nll\"\nclass_weights = [1, \"a\"]\n[optimizer]\nkind = \"sgd\"\n", "an item that is no number", "a value is", Code::kRecipeValue, 3},
        BadRecipe{"[loss]\nkind = \"nll\"\nclass_weights = 2\n[optimizer]\nkind = \"sgd\"\n", "a list of numbers, and a whole number was found", "it says", Code::kRecipeValue, 3},
        BadRecipe{"[loss]\nkind = \"nll\"\n[optimizer]\nkind = \"sgd\"\n[schedule]\nkind = \"plateau\"\nmonitor = \"val_los\"\n", "nothing that the run reports",
                  "did you mean \"val_loss\"?", Code::kRecipeValue, 7},
        BadRecipe{"[loss]\nkind = \"nll\"\n[optimizer]\nkind = \"sgd\"\n[train]\nearly_stopping = { monitor = \"accuracy\" }\n", "nothing that the run reports",
                  "it reports loss, val_loss", Code::kRecipeValue, 6},
        BadRecipe{"[loss]\nkind = \"mse\"\n[optimizer]\nkind = \"sgd\"\nlearning_rate = inf\n", "learning_rate is inf", "finite", Code::kRecipeValue, 5},
        BadRecipe{"[loss]\nkind = \"mse\"\n[optimizer]\nkind = \"sgd\"\n[metrics]\nlist = [\"accuracy\"]\n", "the metric accuracy says nothing about what the loss mse compares", "it goes with softmax_cross_entropy",
                  Code::kRecipeValue, 6},
        BadRecipe{"[loss]\nkind = \"cross_entropy\"\n[optimizer]\nkind = \"sgd\"\n[metrics]\nlist = [\"acuracy\"]\n", "the metric \"acuracy\"",
                  "did you mean \"accuracy\"?", Code::kRecipeValue, 6},
        BadRecipe{"[model]\nfreeze = [\"a\"]\ntrain_only = [\"b\"]\n", "opposite ways", "keep one", Code::kRecipeValue, 3}));

TEST(Recipe, ListsOfNumbersComeFromFileCommandLineAndJson) {
  const std::string start = "[loss]\nkind = \"nll\"\nclass_weights = [1, 0.5, 2]\n[optimizer]\nkind = \"sgd\"\n";
  const std::vector<double> weights = {1, 0.5, 2};
  const Recipe recipe = resolved(start);
  EXPECT_EQ(recipe.loss.class_weights, weights);
  EXPECT_EQ(recipe_from_json(to_json(recipe)).loss.class_weights, weights);
  RecipeSource source = source_of(start);
  add_override(source, "loss.class_weights=[3, 0.25]");
  EXPECT_EQ(resolve(source).loss.class_weights, (std::vector<double>{3, 0.25}));
  add_override(source, "loss.class_weights=[]");
  EXPECT_TRUE(resolve(source).loss.class_weights.empty());
}

TEST(Recipe, OneKeyOfEarlyStoppingAsksForIt) {
  EXPECT_EQ(resolved("[train]\nepochs = 2\n").train.early_stopping_monitor, "");
  EXPECT_EQ(resolved("[train]\nearly_stopping = { patience = 3 }\n").train.early_stopping_monitor, "val_loss");
  EXPECT_EQ(resolved("[train]\nearly_stopping = { monitor = \"loss\", restore_best = true }\n").train.early_stopping_monitor, "loss");
  RecipeSource changes;
  add_override(changes, "train.early_stopping.patience=2");
  EXPECT_EQ(change_at_run_time(resolved("[train]\nepochs = 2\n"), changes).train.early_stopping_monitor, "val_loss");
}

TEST(Recipe, AScheduleThatIsChangedWhenRunningIsCheckedToo) {
  RecipeSource changes;
  add_override(changes, "schedule.kind=plateau");
  add_override(changes, "schedule.monitor=accuracy");
  const Recipe recipe = resolved("[loss]\nkind = \"mse\"\n[optimizer]\nkind = \"sgd\"\n");
  ASSERT_EQ(problems_of([&] { change_at_run_time(recipe, changes); }).size(), 1u);
}

TEST(Recipe, BrokenTomlNamesTheLine) {
  const auto found = problems_of([] { parse_recipe("[loss]\nkind = \"mse\"\n[optimizer\n", "train.toml"); });
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].code, Code::kRecipeSyntax);
  EXPECT_EQ(found[0].loc.line, 3);
}

TEST(Recipe, OverridesReadAsWhatTheyLookLike) {
  RecipeSource source = source_of("[loss]\nkind = \"cross_entropy\"\n[optimizer]\nkind = \"sgd\"\nlearning_rate = 1\n");
  add_override(source, "optimizer.learning_rate=5e-2");
  add_override(source, "optimizer.kind=adam");
  add_override(source, "metrics.list=[accuracy, \"top_3_accuracy\"]");
  add_override(source, "model.train_only=[\"a[:, 0:80]\",b]");
  add_override(source, "data.scale={image=3,old=4}");
  add_override(source, "data.scale = { image = 0.5 }");
  add_override(source, "data.scale.other=2");
  const Recipe recipe = resolve(source);
  EXPECT_EQ(recipe.optimizer.learning_rate, 0.05);
  EXPECT_EQ(recipe.optimizer.kind, "adam");
  EXPECT_EQ(recipe.metrics.list, (std::vector<std::string>{"accuracy", "top_3_accuracy"}));
  EXPECT_EQ(recipe.model.train_only, (std::vector<std::string>{"a[:, 0:80]", "b"}));
  EXPECT_EQ(recipe.data.scale, (std::map<std::string, double>{{"image", 0.5}, {"other", 2}}));
}

TEST(Recipe, WrongOverrideIsBlamedOnTheCommandLineNotTheFile) {
  RecipeSource source = source_of("[train]\nepochs = 1\n");
  add_override(source, "train.epochs=0");
  const auto found = problems_of([&] { resolve(source); });
  EXPECT_EQ(found[0].loc.file, "--set train.epochs");
  EXPECT_EQ(problems_of([&] { add_override(source, "train.epochs"); })[0].code, Code::kUsage);
}

TEST(Recipe, JsonRoundTripKeepsEveryKey) {
  Recipe recipe;
  double number = 0.1;
  for (const RecipeKey& key : recipe_keys()) {  // something new for each key
    RecipeValue value = key.get(recipe);
    number *= 1.7;
    value.boolean = not value.boolean;
    value.integer += 3;
    value.number += number;
    for (const RecipeRange& range : recipe_ranges())
      if (range.key == key.name and std::isfinite(range.high)) value.number = range.low + (range.high - range.low) * 0.37;
    value.string += "\"x\n\xc3\xa9";
    for (const RecipeKind& kind : recipe_kinds())
      if (kind.key == key.name) value.string = kind.name;
    if (key.name == "train.convention") value.string = "keras";
    value.strings.push_back("[:, 0:80]");
    value.numbers["a.b"] = number / 3;
    key.set(recipe, value);
  }
  const std::string json = to_json(recipe);
  EXPECT_EQ(to_json(recipe_from_json(json)), json);
  EXPECT_EQ(recipe_from_json(json).optimizer.beta1, recipe.optimizer.beta1);
  EXPECT_TRUE(recipe_from_json(json).loss.has_ignore_index);
  EXPECT_FALSE(recipe_from_json(to_json(Recipe{})).loss.has_ignore_index);
  EXPECT_THAT(to_json(Recipe{}), Not(HasSubstr("ignore_index")));
}

TEST(Recipe, DamagedJsonIsRefused) {
  for (const char* json : {"", "[]", "{", "{\"loss\":1}", "{\"loss\":{\"kind\":1}}", "{\"loss\":{\"knd\":\"mse\"}}", "{\"data\":{\"scale\":{\"x\":\"y\"}}}",
                           "{\"metrics\":{\"list\":[1]}}", "{\"data\":{\"batch_size\":0}}", "{\"data\":{\"batch_size\":-3}}", "{\"data\":{\"shuffle_buffer\":-1}}", "{\"schedule\":{\"kind\":\"nope\"}}",
                           "{\"schedule\":{\"warmup_steps\":-9223372036854775808}}", "{\"optimizer\":{\"learning_rate\":-1.0}}", "{\"loss\":{\"class_weights\":[1.0,-1.0]}}"})
    EXPECT_THROW(recipe_from_json(json), Error) << json;
}

TEST(Recipe, OnlySomeKeysChangeWhenRunning) {
  const Recipe recipe = optimizer("adam", "torch");
  RecipeSource changes;
  add_override(changes, "train.epochs=7");
  add_override(changes, "optimizer.learning_rate=0.5");
  add_override(changes, "schedule.kind=cosine");
  const Recipe changed = change_at_run_time(recipe, changes);
  EXPECT_EQ(changed.train.epochs, 7);
  EXPECT_EQ(changed.optimizer.learning_rate, 0.5);
  EXPECT_EQ(changed.optimizer.epsilon, 1e-8);
  add_override(changes, "optimizer.kind=sgd");
  add_override(changes, "loss.kind=mse");
  EXPECT_EQ(problems_of([&] { change_at_run_time(recipe, changes); }).size(), 2u);
}

TEST(Recipe, NumbersThatThePlanReadsChangeWhenRunning) {
  const Recipe recipe = resolved("[loss]\nkind = \"mse\"\n[optimizer]\nkind = \"adam\"\nclip_norm = 1\n[train]\nema_decay = 0.9\n");
  const auto changed = [&](const std::vector<std::string>& assignments) {
    RecipeSource changes;
    for (const std::string& assignment : assignments) add_override(changes, assignment);
    return change_at_run_time(recipe, changes);
  };
  const Recipe made = changed({"optimizer.beta1=0.5", "optimizer.clip_norm=0", "train.ema_decay=0.99", "optimizer.weight_decay=0"});
  EXPECT_EQ(made.optimizer.beta1, 0.5);
  EXPECT_EQ(made.optimizer.clip_norm, 0);
  EXPECT_EQ(made.train.ema_decay, 0.99);
  const auto problem = [&](const std::vector<std::string>& assignments) {
    const std::vector<Diag> problems = problems_of([&] { changed(assignments); });
    return problems.size() == 1 ? problems[0].message : std::to_string(problems.size()) + " problems";
  };
  EXPECT_EQ(problem({"optimizer.weight_decay=0.1"}), "optimizer.weight_decay is 0 in the plan, which leaves out what another one takes, and cannot be changed when running");
  EXPECT_EQ(problem({"train.gradient_accumulation_steps=2"}), "train.gradient_accumulation_steps is 1 in the plan, which leaves out what another one takes, and cannot be changed when running");
  EXPECT_EQ(problem({"optimizer.rho=0.5"}), "the optimizer adam has no rho");
  EXPECT_EQ(problem({"optimizer.beta1=1"}), "optimizer.beta1 is 1, and has to be at least 0 and less than 1");
  EXPECT_EQ(problem({"optimizer.amsgrad=true"}), "optimizer.amsgrad is compiled into the plan and cannot be changed when running");
}

/// What resolve() has filled in, a program may hand on as it is.
TEST(Recipe, ThatWasResolvedIsInOrder) {
  for (const std::string convention : {"torch", "keras"}) {
    const std::string train = "[train]\nconvention = \"" + convention + "\"\n";
    for (const std::string kind : {"sgd", "adam", "adamw", "nadam", "adamax", "rmsprop", "adagrad", "adadelta", "lamb", "lion", "muon", "adafactor"}) {
      ASSERT_NE(find_optimizer(kind), nullptr) << kind;
      EXPECT_NO_THROW(check_recipe(resolve(parse_recipe(train + "[loss]\nkind = \"mse\"\n[optimizer]\nkind = \"" + kind + "\"\n", "r")))) << convention << ", " << kind;
    }
    for (const LossKind& loss : loss_kinds()) EXPECT_NO_THROW(check_recipe(resolve(parse_recipe(train + "[loss]\nkind = \"" + std::string(loss.name) + "\"\n[optimizer]\nkind = \"sgd\"\n", "r")))) << convention << ", " << loss.name;
    EXPECT_NO_THROW(check_recipe(resolve(parse_recipe(train + "early_stopping = { patience = 3 }\n[loss]\nkind = \"mse\"\n[optimizer]\nkind = \"sgd\"\nmomentum = 0.9\n[schedule]\nkind = \"one_cycle\"\n", "r")))) << convention;
  }
  Recipe other = resolve(parse_recipe("[train]\nconvention = \"keras\"\n[loss]\nkind = \"mse\"\n[optimizer]\nkind = \"nadam\"\n", "r"));
  other.optimizer.momentum_decay = 0.5;
  const std::vector<Diag> problems = problems_of([&] { check_recipe(other); });
  EXPECT_THAT(problems.front().message, HasSubstr("nadam has no momentum_decay"));
  EXPECT_EQ(problems.front().loc.file, "the program's recipe, optimizer.momentum_decay");
}

TEST(Recipe, WhatAProgramChangedIsToldByKeys) {
  const Recipe before = optimizer("adam", "torch");
  Recipe after = before;
  EXPECT_THAT(changes_between(before, after).values, ::testing::IsEmpty());
  after.train.epochs = 7;
  after.optimizer.learning_rate = std::nan("");
  after.data.scale["x"] = 0.5;
  after.train.early_stopping_monitor = "loss";
  std::vector<std::string> keys;
  for (const auto& [key, value] : changes_between(before, after).values) keys.push_back(key);
  EXPECT_THAT(keys, ::testing::ElementsAre("data.scale", "optimizer.learning_rate", "train.early_stopping.monitor", "train.epochs"));
  EXPECT_THAT(problems_of([&] { change_at_run_time(before, changes_between(before, after)); }).front().message, HasSubstr("optimizer.learning_rate is nan"));
}

}  // namespace
}  // namespace hone
